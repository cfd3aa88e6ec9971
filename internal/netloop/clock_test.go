package netloop

import (
	"log/slog"
	"testing"
	"time"
)

func testClock() *clock { return newClock(slog.New(slog.DiscardHandler)) }

// wallAt is the system's time at now, if its clock was set by step.
func (c *clock) wallAt(now, step time.Duration) int64 { return c.started.Add(step + now).UnixNano() }

func TestClockFollowsSlowly(t *testing.T) {
	run := func(name string, step time.Duration, wantFar bool, afterOne, afterAll int64, periods int) {
		t.Run(name, func(t *testing.T) {
			c := testClock()
			start := c.started.UnixMilli()
			if c.follow(followPeriod-1, c.wallAt(followPeriod-1, step)) {
				t.Error("far off before it is time")
			}
			if off := c.unixMilli(0) - start; off != 0 {
				t.Errorf("off by %d ms before it is time", off)
			}
			for i := 1; i <= periods; i++ {
				now := time.Duration(i) * followPeriod
				far := c.follow(now, c.wallAt(now, step))
				if off := c.unixMilli(0) - start; i == 1 && (off != afterOne || far != wantFar) {
					t.Errorf("after one period corrected by %d ms, far off: %v, want %d, %v", off, far, afterOne, wantFar)
				}
			}
			if off := c.unixMilli(0) - start; off != afterAll {
				t.Errorf("after %d periods corrected by %d ms, want %d", periods, off, afterAll)
			}
		})
	}
	run("no step", 0, false, 0, 0, 5)
	run("little", 3*time.Millisecond, false, 3, 3, 5)
	run("an hour ahead", time.Hour, true, 10, 1000, 100)
	run("an hour back", -time.Hour, true, -10, -1000, 100)
	run("to the end", -time.Second, false, -10, -1000, 200)
}

// TestClockFollowsAtOnce: a step is followed at once, forward and back, as soon as nobody minds.
func TestClockFollowsAtOnce(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		g := &Group{clock: testClock()}
		l := &Loop{clock: g.clock}
		mind := true
		forget := g.OnClockStep(func() bool { return !mind })
		read := func() (time.Duration, int64) { return followPeriod, g.clock.wallAt(followPeriod, step) }
		now, wall := read()
		l.setNow(now)
		start := g.clock.started.Add(now).UnixMilli()

		if g.clock.follow(now, wall); g.clock.judge(read) {
			t.Errorf("a step by %v is followed though somebody minds", step)
		}
		if behind := g.ClockBehind(); behind != step {
			t.Errorf("the system's clock is %v ahead, want %v", behind, step)
		}
		mind = false
		if !g.clock.judge(read) || g.ClockBehind() != 0 {
			t.Errorf("a step by %v is not followed, %v are left", step, g.ClockBehind())
		}
		l.setNow(now)
		if got := l.UnixMilli() - start; got != step.Milliseconds() {
			t.Errorf("a step by %v: the loop's clock stepped by %d ms", step, got)
		}
		mind = true
		if forget(); !g.clock.judge(read) {
			t.Error("somebody who was forgotten still minds")
		}
	}
}

// TestUnixMilliNeverStepsBack sets the clock back by more than the time that has passed.
func TestUnixMilliNeverStepsBack(t *testing.T) {
	l := &Loop{clock: testClock()}
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
