package netloop

import (
	"sync/atomic"
	"time"
)

// clock is a group's time. It runs with the monotonic clock, so that a step of the system's clock
// (NTP, an operator, a leap second) expires nothing early and keeps nothing longer. But absolute
// times must become right one day even if the system's clock was set after the start. So the clock
// follows the system's slowly, and its second is never off by more than a hundredth.
type clock struct {
	started time.Time
	offset  atomic.Int64 // Unix milliseconds at the start, as far as corrected

	followed time.Duration // time of the last correction; belongs to the loop that corrects
}

const (
	followPeriod = time.Second
	// maxFollow is the largest correction in milliseconds a period. Correcting an hour takes 100 h.
	maxFollow = 10
)

func newClock() *clock {
	c := &clock{started: time.Now()}
	c.offset.Store(c.started.UnixMilli())
	return c
}

func (c *clock) now() time.Duration { return time.Since(c.started) }

func (c *clock) unixMilli(now time.Duration) int64 { return c.offset.Load() + now.Milliseconds() }

// follow brings the clock nearer to the system's once a period. One loop calls it.
func (c *clock) follow(now time.Duration, system func() time.Time) {
	if now-c.followed < followPeriod {
		return
	}
	c.followed = now
	behind := system().UnixMilli() - c.unixMilli(now)
	c.offset.Add(max(-maxFollow, min(behind, maxFollow)))
}

// Clock returns the monotonic time since the group was made: what Loop.Now would be now. Any
// goroutine may call it.
func (g *Group) Clock() time.Duration { return g.clock.now() }

// UnixMilli returns the present time in Unix milliseconds. Unlike Loop.UnixMilli it reads the
// clock, and any goroutine may call it. The result may be a hundredth of a second less than the one
// before.
func (g *Group) UnixMilli() int64 { return g.clock.unixMilli(g.clock.now()) }
