package netloop

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"
)

// Config describes a Group. Zero fields get their defaults.
type Config struct {
	Loops   int           // default: DefaultLoops
	Logger  *slog.Logger  // default: slog.Default
	SoftOut int           // unsent bytes above which a conn is not read: default 1 MiB
	HardOut int           // unsent bytes above which a conn is closed: default 64 MiB
	Stall   time.Duration // a peer that takes no output for so long is closed: default 10 s
}

func (cfg Config) withDefaults() Config {
	if cfg.Loops <= 0 {
		cfg.Loops = DefaultLoops()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.SoftOut <= 0 {
		cfg.SoftOut = 1 << 20
	}
	if cfg.HardOut <= 0 {
		cfg.HardOut = 64 << 20
	}
	if cfg.Stall <= 0 {
		cfg.Stall = 10 * time.Second
	}
	return cfg
}

// cpus is what the cgroup gives us. Read before any Group raises GOMAXPROCS.
var cpus = runtime.GOMAXPROCS(0)

// DefaultLoops is one loop less than there are processors, and at least one.
func DefaultLoops() int { return max(1, cpus-1) }

// Group is the set of loops of a process. Its methods may be called from any goroutine.
type Group struct {
	loops   []*Loop
	log     *slog.Logger
	clock   *clock
	running sync.WaitGroup

	mu        sync.Mutex
	listeners map[*Listener]struct{} // open ones
	nextLoop  int                    // which loop watches the next listener
	closed    bool
}

// NewGroup starts the loops. A loop that waits keeps its processor from the Go
// scheduler, hence two more are allowed than there are loops: one for everybody else's
// goroutines, one for the garbage collector.
func NewGroup(cfg Config) (*Group, error) {
	cfg = cfg.withDefaults()
	g := &Group{log: cfg.Logger, clock: newClock(), listeners: make(map[*Listener]struct{})}
	for i := range cfg.Loops {
		l, err := newLoop(i, cfg, g.clock)
		if err != nil {
			for _, l := range g.loops {
				l.shutdown()
			}
			return nil, fmt.Errorf("cannot make event loop %d: %w", i, err)
		}
		g.loops = append(g.loops, l)
	}
	if want := cfg.Loops + 2; runtime.GOMAXPROCS(0) < want {
		runtime.GOMAXPROCS(want)
	}
	for _, l := range g.loops {
		g.running.Go(l.run)
	}
	return g, nil
}

// Loops returns the group's loops, which the caller must not change.
func (g *Group) Loops() []*Loop { return g.loops }

// Each runs f once on every loop and waits until all have: for scrapes, and as a
// barrier. It fails after a second when a loop did not get to it; f may then still run
// later. Must not be called on a loop.
func (g *Group) Each(f func(l *Loop)) error {
	done := make(chan struct{}, len(g.loops))
	for _, l := range g.loops {
		posted := l.mail.post(func() {
			defer func() { done <- struct{}{} }()
			f(l)
		})
		if !posted {
			return fmt.Errorf("cannot reach loop %d: %w", l.index, ErrClosed)
		}
	}
	timeout := time.NewTimer(time.Second)
	defer timeout.Stop()
	for range g.loops {
		select {
		case <-done:
		case <-timeout.C:
			return fmt.Errorf("cannot reach every loop: one was busy for a second")
		}
	}
	return nil
}

// Close closes every listener and every conn (OnClose is called with ErrClosed), stops
// the loops and waits for them. Must not be called on a loop.
func (g *Group) Close() {
	g.mu.Lock()
	closed := g.closed
	g.closed = true
	listeners := g.listeners
	g.listeners = nil
	g.mu.Unlock()
	if !closed {
		for ln := range listeners {
			ln.Close()
		}
		for _, l := range g.loops {
			l.Post(func() { l.stop = true })
		}
	}
	g.running.Wait()
}

// shutdown gives everything back. What was posted before is still run, because it may
// hold a descriptor.
func (l *Loop) shutdown() {
	for _, f := range l.mail.close() {
		l.call("posted function", f)
	}
	for d := range l.dials {
		d.fail(ErrClosed)
	}
	for _, c := range l.conns {
		if c != nil {
			c.Close(ErrClosed)
		}
	}
	l.reap()
	l.poller.close()
	l.pool.close()
}
