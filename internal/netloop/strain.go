package netloop

import (
	"sync"
	"sync/atomic"
	"time"
)

// Strain is how hard it was for the loops of a group to serve their peers, in the last few
// milliseconds. Work that handlers call background (Loop.Background) does not count.
type Strain struct {
	Busy float64 // share of the time in which the busiest loop ran or wanted to, 0 to 1
	Late float64 // share of the time in which a loop wanted to run and had no processor, the largest
}

// Above reports whether some loop was busy, or late, for more than these shares of the time.
func (s Strain) Above(busy, late float64) bool { return s.Busy > busy || s.Late > late }

// gaugePeriod is how long the time is, at least, that a Strain is about.
const gaugePeriod = 10 * time.Millisecond

// Gauge measures the strain of a group's loops. Any goroutine may use it.
type Gauge struct {
	group  *Group
	strain atomic.Pointer[Strain]

	mu    sync.Mutex    // nobody waits for it: loops use Gauges, too
	last  time.Duration // when the loops were last looked at
	loops []loopTimes
}

// loopTimes is what a loop has done since it started.
type loopTimes struct {
	thread     int64         // that ran it; ran and wanted are that thread's
	busy       time.Duration // not waiting for events
	background time.Duration // of busy: what handlers called background
	looked     time.Duration // for events, without sleeping; not in busy
	ran        time.Duration // on a processor; 0 with wanted: the system does not say
	wanted     time.Duration // runnable, without a processor
}

// NewGauge returns a Gauge of the group's loops.
func (g *Group) NewGauge() *Gauge {
	ga := &Gauge{group: g, loops: make([]loopTimes, len(g.loops))}
	ga.strain.Store(&Strain{})
	return ga
}

// Read returns the strain since the last Read, or what that returned if it was less than 10 ms ago.
// After a pause of more than ten times as long the strain is unknown, and is returned as none.
func (ga *Gauge) Read() Strain { return ga.read(ga.group.clock.now()) }

func (ga *Gauge) read(now time.Duration) Strain {
	if !ga.mu.TryLock() {
		return *ga.strain.Load()
	}
	defer ga.mu.Unlock()
	elapsed := now - ga.last
	if elapsed < gaugePeriod {
		return *ga.strain.Load()
	}
	ga.last = now
	var s Strain
	for i, l := range ga.group.loops {
		if elapsed > 10*gaugePeriod {
			ga.loops[i] = l.ownTimes()
			continue
		}
		before := ga.loops[i]
		ga.loops[i] = l.times()
		s.add(ga.loops[i].since(before), elapsed)
	}
	ga.strain.Store(&s)
	return s
}

// times reads what the loop has done. Any goroutine may call it.
func (l *Loop) times() loopTimes {
	t := l.ownTimes()
	t.thread = l.thread.Load()
	t.ran, t.wanted = threadTimes(int(t.thread))
	return t
}

// ownTimes is times without the system's figures, for which a file must be read: an idle process is asked
// for its strain now and then, and only then.
func (l *Loop) ownTimes() loopTimes {
	return loopTimes{
		busy: time.Duration(l.busy.Load()), background: time.Duration(l.background.Load()),
		looked: time.Duration(l.polling.looked.Load()),
	}
}

// since returns what was done since before. Of a loop that has changed its thread, the system's
// figures are left out.
func (t loopTimes) since(before loopTimes) loopTimes {
	d := loopTimes{
		thread: t.thread, busy: t.busy - before.busy, background: t.background - before.background,
		looked: t.looked - before.looked,
	}
	if t.thread == before.thread {
		d.ran, d.wanted = t.ran-before.ran, t.wanted-before.wanted
	}
	return d
}

// add adds what a loop has done in the elapsed time. What was background of the loop's iterations
// was background of its waits for a processor, too.
func (s *Strain) add(t loopTimes, elapsed time.Duration) {
	own := 0.0
	if t.busy > 0 {
		own = 1 - min(1, float64(t.background)/float64(t.busy))
	}
	share := func(d time.Duration) float64 { return own * min(1, max(0, float64(d)/float64(elapsed))) }
	s.Busy = max(s.Busy, share(max(t.busy, t.ran-t.looked+t.wanted)))
	s.Late = max(s.Late, share(t.wanted))
}

// Background notes that d of the present iteration was work that nobody waits for. It does not
// count in a Strain.
func (l *Loop) Background(d time.Duration) { l.background.Add(int64(d)) }
