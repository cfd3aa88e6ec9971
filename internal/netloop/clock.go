package netloop

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/beat"
)

// clock is a group's time. It runs with the monotonic clock, so that a step of the system's clock
// (NTP, an operator, a leap second) expires nothing early and keeps nothing longer. But absolute
// times must become right if the system's clock was set after the start. So the clock follows a step
// at once if nobody minds (see Group.OnClockStep), because nothing that expires is stored, say.
// Otherwise it follows the system's slowly, and its second is never off by more than a hundredth.
//
// The monotonic clock stands still while the machine is suspended. That time has passed all the
// same, so the loops find out how long it was, and the clock goes on from there.
type clock struct {
	log     *slog.Logger
	started time.Time
	offset  atomic.Int64  // Unix milliseconds at the start, as far as corrected
	steps   atomic.Uint64 // how often the clock has followed a step at once
	behind  atomic.Int64  // milliseconds that the system's clock was ahead at the last correction

	followed time.Duration // time of the last correction; belongs to the loop that corrects
	warned   bool          // that this clock is far off; belongs to that loop, too

	judging atomic.Bool
	judges  sync.WaitGroup

	mu      sync.Mutex
	minders map[*func() bool]struct{} // see Group.OnClockStep
}

const (
	followPeriod = time.Second
	// maxFollow is the largest correction in milliseconds a period. Correcting an hour takes 100 h.
	maxFollow = 10
	// farOff is the difference in milliseconds that is a step, and not the drift of two clocks.
	farOff = 1000
)

func newClock(log *slog.Logger) *clock {
	now := time.Now()
	// Loops' timers fire at multiples of their intervals by this clock: so together with others.
	c := &clock{log: log, started: beat.Before(now), minders: make(map[*func() bool]struct{})}
	c.offset.Store(c.started.UnixMilli())
	return c
}

func (c *clock) now() time.Duration { return time.Since(c.started) }

// read returns now, and the system's time in Unix nanoseconds of the same moment.
func (c *clock) read() (now time.Duration, wall int64) {
	t := time.Now()
	return t.Sub(c.started), t.UnixNano()
}

func (c *clock) unixMilli(now time.Duration) int64 { return c.offset.Load() + now.Milliseconds() }

// follow brings the clock nearer to the system's once a period. One loop calls it. far reports that
// the system's clock has been set, so that judge should be called.
func (c *clock) follow(now time.Duration, wall int64) (far bool) {
	if now-c.followed < followPeriod {
		return false
	}
	c.followed = now
	behind := wall/1e6 - c.unixMilli(now)
	c.behind.Store(behind)
	if far = behind > farOff || behind < -farOff; !far {
		c.warned = false
	}
	c.offset.Add(max(-maxFollow, min(behind, maxFollow)))
	return far
}

// followStep has the clock follow a step at once, if nobody minds. Those who may mind take locks, so
// a goroutine asks them.
func (c *clock) followStep() {
	if !c.judging.CompareAndSwap(false, true) {
		return
	}
	warn := !c.warned
	c.warned = true
	c.judges.Go(func() {
		defer c.judging.Store(false)
		if c.judge(c.read) {
			c.log.Info("the system's clock was set: expiry follows at once")
		} else if warn {
			c.log.Warn("the system's clock was set, but what expires is stored: absolute expiry times are off, and follow by 1 %",
				"by", time.Duration(c.behind.Load())*time.Millisecond)
		}
	})
}

// judge sets the clock by the system's, unless somebody minds.
func (c *clock) judge(read func() (now time.Duration, wall int64)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.minders {
		if !(*f)() {
			return false
		}
	}
	now, wall := read()
	c.offset.Add(wall/1e6 - c.unixMilli(now))
	c.behind.Store(0)
	c.steps.Add(1) // last: a loop that sees it takes the new offset
	return true
}

// OnClockStep has f asked when the system's clock was set by more than a second, in whichever
// direction. If every such f reports true, UnixMilli follows at once, and steps; otherwise it
// follows by a hundredth of the time that passes, and f is asked again every second. f is called on
// a goroutine and must return soon. Nothing calls it any more when forget has returned.
//
// A loop that is executing something at the moment of the step still uses the time before.
func (g *Group) OnClockStep(f func() (follow bool)) (forget func()) {
	c, key := g.clock, &f
	c.mu.Lock()
	defer c.mu.Unlock()
	c.minders[key] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.minders, key)
	}
}

// ClockBehind returns how far the system's clock is ahead of UnixMilli, as of a second ago at most;
// below 0 it is behind.
func (g *Group) ClockBehind() time.Duration {
	return time.Duration(g.clock.behind.Load()) * time.Millisecond
}

// Clock returns the monotonic time since the group was made: what Loop.Now would be now. Any
// goroutine may call it.
func (g *Group) Clock() time.Duration { return g.clock.now() }

// UnixMilli returns the present time in Unix milliseconds. Unlike Loop.UnixMilli it reads the
// clock, and any goroutine may call it. The result may be a hundredth of a second less than the one
// before, and anything after a step (see OnClockStep).
func (g *Group) UnixMilli() int64 { return g.clock.unixMilli(g.clock.now()) }
