package netloop

import (
	"sync/atomic"
	"time"
)

// clock tells a group's time. It runs with the monotonic clock, so that a step of the
// system's clock (NTP, an operator, a leap second) expires nothing before its time and
// keeps nothing longer. Yet a clock that was set after the start is to be right one day,
// for the sake of absolute times: so it follows the system's slowly, and a second of
// ours is never off by more than a hundredth.
type clock struct {
	started time.Time
	offset  atomic.Int64 // unix milliseconds at the start, as far as corrected

	followed time.Duration // the last correction; of the loop that makes them
}

const (
	followPeriod = time.Second
	// maxFollow is the largest correction, in milliseconds a period. An hour takes 100 h.
	maxFollow = 10
)

func newClock() *clock {
	c := &clock{started: time.Now()}
	c.offset.Store(c.started.UnixMilli())
	return c
}

func (c *clock) now() time.Duration { return time.Since(c.started) }

func (c *clock) unixMilli(now time.Duration) int64 { return c.offset.Load() + now.Milliseconds() }

// follow brings the clock nearer to the system's, if it is time. One loop does that.
func (c *clock) follow(now time.Duration, system func() time.Time) {
	if now-c.followed < followPeriod {
		return
	}
	c.followed = now
	behind := system().UnixMilli() - c.unixMilli(now)
	c.offset.Add(max(-maxFollow, min(behind, maxFollow)))
}

// UnixMilli returns the time in unix milliseconds, as Loop.UnixMilli does, but of now and
// from any goroutine. It may be a hundredth of a second less than it was.
func (g *Group) UnixMilli() int64 { return g.clock.unixMilli(g.clock.now()) }
