package node

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// turns are pieces of long work that wait for a loop, each of up to about loopSlice. They belong to the
// loop, which executes one in an iteration: in between it serves everybody else, however many there
// are. Each connection has a bounded number of them.
type turns struct {
	loop    *netloop.Loop
	waiting []func()
	posted  bool                      // next runs in the next iteration
	delayed map[*netloop.Timer]func() // what the timers call
}

// take has the loop call f when it is its turn.
func (t *turns) take(f func()) {
	t.waiting = append(t.waiting, f)
	if !t.posted {
		t.posted = true
		t.loop.Post(t.next)
	}
}

// takeAfter has the loop call f after d, outside of its turns.
func (t *turns) takeAfter(d time.Duration, f func()) {
	if t.delayed == nil {
		t.delayed = make(map[*netloop.Timer]func())
	}
	var timer *netloop.Timer
	timer = t.loop.After(d, func() {
		delete(t.delayed, timer)
		f()
	})
	t.delayed[timer] = f
}

func (t *turns) next() {
	if len(t.waiting) == 0 { // drained
		t.posted = false
		return
	}
	f := t.waiting[0]
	t.waiting[0] = nil
	if t.waiting = t.waiting[1:]; len(t.waiting) > 0 {
		t.loop.Post(t.next)
	} else {
		t.waiting, t.posted = nil, false
	}
	f()
}

// drain executes all that waits, and what that makes wait: the node closes.
func (t *turns) drain() {
	for timer, f := range t.delayed {
		timer.Stop()
		t.waiting = append(t.waiting, f)
	}
	t.delayed = nil
	for len(t.waiting) > 0 {
		f := t.waiting[0]
		t.waiting = t.waiting[1:]
		f()
	}
}
