package netloop

import (
	"container/heap"
	"time"
)

// tick is the resolution of timers: all that are due within one tick fire in the same iteration.
const tick = time.Millisecond

// Timer is a function that its loop will call later.
type Timer struct {
	loop  *Loop
	at    time.Duration // on the loop's clock, a multiple of tick
	every time.Duration // 0: once
	f     func()
	index int // in the loop's heap; -1: not in it
}

// After calls f on the loop once, at d after Now or up to one tick (and the length of an iteration)
// later.
func (l *Loop) After(d time.Duration, f func()) *Timer {
	return l.schedule(nextMultiple(l.now+d, tick), 0, f)
}

// Every calls f on the loop every d (at least one tick), whenever Now reaches a multiple of d, so
// that timers with the same period wake a sleeping loop once for all. It skips calls missed while the
// loop was busy.
func (l *Loop) Every(d time.Duration, f func()) *Timer {
	d = max(d/tick*tick, tick)
	return l.schedule(nextMultiple(l.now, d), d, f)
}

func (l *Loop) schedule(at, every time.Duration, f func()) *Timer {
	t := &Timer{loop: l, at: at, every: every, f: f}
	heap.Push(&l.timers, t)
	return t
}

// nextMultiple returns the first multiple of d after t: a timer set while timers run is never due in
// the same run.
func nextMultiple(t, d time.Duration) time.Duration { return t/d*d + d }

// Stop prevents the timer from firing (again). It may be called twice, or after the timer fired.
func (t *Timer) Stop() {
	t.every = 0
	if t.index >= 0 {
		heap.Remove(&t.loop.timers, t.index)
	}
}

// runTimers calls every timer that is due.
func (l *Loop) runTimers() {
	for len(l.timers) > 0 && l.timers[0].at <= l.now {
		t := l.timers[0]
		if t.every > 0 {
			t.at = nextMultiple(l.now, t.every)
			heap.Fix(&l.timers, 0)
		} else {
			heap.Pop(&l.timers)
		}
		l.call("timer", t.f)
	}
}

// timerHeap orders timers by due time for container/heap.
type timerHeap []*Timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timerHeap) Push(x any) {
	t := x.(*Timer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = -1
	return t
}
