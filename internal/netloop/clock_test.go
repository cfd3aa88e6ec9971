package netloop

import (
	"testing"
	"time"
)

func TestClockFollowsSlowly(t *testing.T) {
	run := func(name string, step time.Duration, afterOne, afterAll int64, periods int) {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			start := c.started.UnixMilli()
			system := func(now time.Duration) func() time.Time {
				return func() time.Time { return c.started.Add(step + now) }
			}
			c.follow(followPeriod-1, system(followPeriod-1))
			if off := c.unixMilli(0) - start; off != 0 {
				t.Errorf("off by %d ms before it is time", off)
			}
			for i := 1; i <= periods; i++ {
				now := time.Duration(i) * followPeriod
				c.follow(now, system(now))
				if off := c.unixMilli(0) - start; i == 1 && off != afterOne {
					t.Errorf("after one period corrected by %d ms, want %d", off, afterOne)
				}
			}
			if off := c.unixMilli(0) - start; off != afterAll {
				t.Errorf("after %d periods corrected by %d ms, want %d", periods, off, afterAll)
			}
		})
	}
	run("no step", 0, 0, 0, 5)
	run("little", 3*time.Millisecond, 3, 3, 5)
	run("an hour ahead", time.Hour, 10, 1000, 100)
	run("an hour back", -time.Hour, -10, -1000, 100)
	run("to the end", -time.Second, -10, -1000, 200)
}

// TestUnixMilliNeverStepsBack sets the clock back by more than the time that has passed.
func TestUnixMilliNeverStepsBack(t *testing.T) {
	l := &Loop{clock: newClock()}
	l.setNow(5 * time.Second)
	before := l.UnixMilli()
	l.clock.offset.Add(-maxFollow)
	l.setNow(5*time.Second + 2*time.Millisecond)
	if got := l.UnixMilli(); got != before {
		t.Errorf("got %d after %d", got, before)
	}
	l.setNow(5*time.Second + (maxFollow+1)*time.Millisecond)
	if got := l.UnixMilli(); got != before+1 {
		t.Errorf("got %d, want %d", got, before+1)
	}
}
