package netloop

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/boottime"
)

type stallHook struct {
	limit time.Duration
	f     func(l *Loop, gap time.Duration)
}

// OnStall runs f on every loop that did not run for longer than limit, because its process was
// stopped, throttled or swapped out, its machine was suspended, or a handler took that long. f runs when the loop
// resumes and before it reads anything, so that a node does not answer from outdated state. gap is the time
// since the loop's last iteration began. limit must be above 100 ms, for which an idle loop may
// sleep. f takes effect from each loop's next iteration. Any goroutine may call OnStall.
func (g *Group) OnStall(limit time.Duration, f func(l *Loop, gap time.Duration)) {
	for _, l := range g.loops {
		l.Post(func() { l.stalls = append(l.stalls, stallHook{limit, f}) })
	}
}

// LastStall returns the longest gap between two iterations so far, without the time that the loop
// meant to sleep. Any goroutine may call it.
func (l *Loop) LastStall() time.Duration { return time.Duration(l.lastStall.Load()) }

// noteGap starts the clock of an iteration. The iteration before lasted until ended; then the loop
// meant to sleep for timeout at most.
func (l *Loop) noteGap(ended, timeout time.Duration) {
	now, slept := l.clock.now(), time.Duration(0)
	if l.idle || now-l.compared > comparePeriod {
		now, slept = l.compare()
	}
	late := ended - l.now + max(0, now-ended-timeout) + slept
	l.gap = now - l.now + slept
	l.setNow(now)
	if late > l.LastStall() {
		l.lastStall.Store(int64(late))
	}
}

// comparePeriod is how long a busy loop goes on before it compares its clock with the system's. A
// suspension interrupts a wait, which then ends without an event, and the loop compares at once. But
// a loop that was executing goes on where it was. It does so for one period at most.
const comparePeriod = 500 * time.Microsecond

// compare reads both clocks. It returns for how long the machine was suspended.
func (l *Loop) compare() (now, slept time.Duration) {
	now, wall := l.clock.read()
	slept = l.slept(now, wall, boottime.Now)
	if l.index == 0 {
		l.clock.offset.Add(slept.Milliseconds())
		if l.clock.follow(now, wall) {
			l.clock.followStep()
		}
	}
	return now, slept
}

// noticedSleep is the difference between two clocks from which on a loop looks for a suspension. It
// is more than a clock that is adjusted differs by between two comparisons.
const noticedSleep = 100 * time.Millisecond

// slept returns for how long the machine was suspended since the clocks were last compared. The
// monotonic clock stood still meanwhile. The system's clock did not, and costs little to read
// together with the other; but somebody may just have set it. So when the two differ, sinceBoot
// decides: a clock that nobody can set, and that needs a system call.
func (l *Loop) slept(now time.Duration, wall int64, sinceBoot func() time.Duration) time.Duration {
	apart := time.Duration(wall-l.wall) - (now - l.compared)
	l.compared, l.wall = now, wall
	if -noticedSleep < apart && apart < noticedSleep {
		return 0
	}
	before := l.suspended
	l.suspended = sinceBoot() - l.clock.now()
	return max(0, l.suspended-before)
}

func (l *Loop) tellStall() {
	for _, h := range l.stalls {
		if gap := l.gap; gap > h.limit {
			l.call("stall hook", func() { h.f(l, gap) })
		}
	}
}
