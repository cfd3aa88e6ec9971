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
	SoftOut int           // a conn with more unsent bytes is not read: default 1 MiB
	HardOut int           // a conn with more unsent bytes is closed: default 64 MiB
	Stall   time.Duration // a peer that accepts no output for this long is closed: default 10 s
	Keep    int           // bytes of free buffers that a loop keeps: default 4 MiB
	Answer  time.Duration // Each waits this long for a busy loop: default 1 s

	// BusyPoll is for how long a loop looks for events before it sleeps, while this is worth it and
	// processors are free: default 0, not at all. Processors is how many this process may use, which
	// can be less than one: default as many as there are.
	BusyPoll   time.Duration
	Processors float64

	strained func() bool // reports whether newcomers wait: default: a Gauge does
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
	if cfg.Keep <= 0 {
		cfg.Keep = maxKept
	}
	if cfg.Answer <= 0 {
		cfg.Answer = time.Second
	}
	if cfg.Processors <= 0 {
		cfg.Processors = float64(cpus)
	}
	return cfg
}

// cpus is the number of processors that the cgroup allows. It is read before any Group raises
// GOMAXPROCS.
var cpus = runtime.GOMAXPROCS(0)

// DefaultLoops returns the number of processors minus one, but at least one.
func DefaultLoops() int { return max(1, cpus-1) }

// Group is the set of loops of a process. Any goroutine may call its methods.
type Group struct {
	loops    []*Loop
	log      *slog.Logger
	clock    *clock
	running  sync.WaitGroup
	stop     chan struct{} // closed when the group closes
	answer   time.Duration // Config.Answer
	strained func() bool   // see IsStrained

	mu        sync.Mutex
	listeners map[*Listener]struct{} // open ones
	nextLoop  int                    // index of the loop that watches the next listener
	closed    bool
}

// NewGroup starts the loops. A waiting loop keeps its processor from the Go scheduler, so
// GOMAXPROCS becomes two more than there are loops: one for all other goroutines, one for the
// garbage collector.
func NewGroup(cfg Config) (*Group, error) {
	cfg = cfg.withDefaults()
	g := &Group{
		log: cfg.Logger, clock: newClock(cfg.Logger), stop: make(chan struct{}), answer: cfg.Answer,
		listeners: make(map[*Listener]struct{}),
	}
	for i := range cfg.Loops {
		l, err := newLoop(i, g, cfg)
		if err != nil {
			for _, l := range g.loops {
				l.shutdown()
			}
			return nil, fmt.Errorf("cannot make event loop %d: %w", i, err)
		}
		g.loops = append(g.loops, l)
	}
	if g.strained = cfg.strained; g.strained == nil {
		gauge := g.NewGauge()
		g.strained = func() bool { return gauge.Read().Above(busyLoops, lateLoops) }
	}
	if want := cfg.Loops + 2; runtime.GOMAXPROCS(0) < want {
		runtime.GOMAXPROCS(want)
	}
	if cfg.BusyPoll > 0 {
		g.pollBusily(cfg.BusyPoll, cfg.Processors)
	}
	for _, l := range g.loops {
		g.running.Go(l.run)
	}
	return g, nil
}

// Loops returns the group's loops, which the caller must not change.
func (g *Group) Loops() []*Loop { return g.loops }

// SetKeep changes Config.Keep. Loops give back what they have beyond it, a little in each
// iteration.
func (g *Group) SetKeep(bytes int) {
	for _, l := range g.loops {
		l.Post(func() {
			l.pool.keep = bytes
			l.trim()
		})
	}
}

// trim gives back memory that the loop does not keep any more.
func (l *Loop) trim() {
	if l.pool.trim() {
		l.Post(l.trim)
	}
}

// Each runs f once on every loop and waits until all have run it: for scrapes, and as a barrier. It
// fails if a loop has not run f within Config.Answer; f may then still run later. Do not call Each
// on a loop.
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
	timeout := time.NewTimer(g.answer)
	defer timeout.Stop()
	for range g.loops {
		select {
		case <-done:
		case <-timeout.C:
			return fmt.Errorf("cannot reach every loop: one was busy for %v", g.answer)
		}
	}
	return nil
}

// Close closes every listener and every conn (OnClose gets ErrClosed), stops the loops and waits
// for them. Do not call Close on a loop.
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
		close(g.stop)
	}
	g.running.Wait()
	g.clock.judges.Wait()
}

// shutdown releases everything that a loop has. It still runs the functions posted before, because
// they may own a descriptor.
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
