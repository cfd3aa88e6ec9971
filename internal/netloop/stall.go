package netloop

import "time"

type stallHook struct {
	limit time.Duration
	f     func(l *Loop, gap time.Duration)
}

// OnStall runs f on every loop that did not run for longer than limit, because its process was
// stopped, throttled or swapped out, or a handler took that long. f runs when the loop resumes and
// before it reads anything, so that a node does not answer from outdated state. gap is the time
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
	now := l.clock.now()
	late := ended - l.now + max(0, now-ended-timeout)
	l.gap = now - l.now
	l.setNow(now)
	if l.index == 0 {
		l.clock.follow(now, time.Now)
	}
	if late > l.LastStall() {
		l.lastStall.Store(int64(late))
	}
}

func (l *Loop) tellStall() {
	for _, h := range l.stalls {
		if gap := l.gap; gap > h.limit {
			l.call("stall hook", func() { h.f(l, gap) })
		}
	}
}
