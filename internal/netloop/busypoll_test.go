package netloop

import (
	"testing"
	"time"
)

const us = time.Microsecond

// TestBusyPoll checks that a loop with a processor for itself takes an event without sleeping, and
// that it sleeps when none comes.
func TestBusyPoll(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	nc := dialTo(t, serve(t, g, echo{}))
	l := g.loops[0]
	places := &pollPlaces{}
	places.awake.Store(1)
	enable := func(limit time.Duration, most int32) {
		each(t, g, func(l *Loop) {
			places.most.Store(most)
			l.polling.limit, l.polling.window, l.polling.places = limit, limit, places
		})
	}
	enable(patience, 1)
	before := l.polling.looked.Load()
	write(t, nc, "hello")
	expect(t, nc, "hello")
	each(t, g, func(*Loop) {}) // a posted function ends a look, too
	if looked := l.polling.looked.Load() - before; looked <= 0 {
		t.Errorf("the loop looked for %v", time.Duration(looked))
	}
	enable(patience, 0) // no processor is free
	each(t, g, func(*Loop) {})
	before = l.polling.looked.Load()
	write(t, nc, "hello")
	expect(t, nc, "hello")
	if looked := l.polling.looked.Load() - before; looked > int64(time.Millisecond) {
		t.Errorf("without a free processor the loop looked for %v", time.Duration(looked))
	}
	if n := places.awake.Load(); n < 0 || n > 1 {
		t.Errorf("%d loops are awake", n)
	}
}

// TestBusyPollLearnsFromWaits checks that a loop which has work, and does not wait, does not open
// its window.
func TestBusyPollLearnsFromWaits(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	each(t, g, func(l *Loop) {
		l.polling.limit, l.polling.places = time.Hour, &pollPlaces{}
		f := func(what string) {
			if l.wait(); l.polling.window != 0 {
				t.Errorf("%s: the window is %v", what, l.polling.window)
			}
			l.polling.window = 0
		}
		place := l.newcomers.PushBack((*Conn)(nil))
		f("a newcomer waits")
		l.newcomers.Remove(place)
		l.Post(func() {})
		f("a function is posted")
		l.polling.limit, l.polling.places = 0, nil
	})
}

// TestBusyPollWindow checks that the window opens when it saves a sleep, and closes when it does not.
func TestBusyPollWindow(t *testing.T) {
	b := &busyPoll{limit: 50 * us}
	for i, c := range []struct{ waited, window time.Duration }{
		{51 * us, 0},
		{50 * us, 50 * us},
		{time.Second, 25 * us},
		{time.Second, 12500 * time.Nanosecond},
		{10 * us, 50 * us},
		{60 * us, 25 * us},
		{60 * us, 12500 * time.Nanosecond},
		{60 * us, 6250 * time.Nanosecond},
		{60 * us, 3125 * time.Nanosecond},
		{60 * us, 0},
	} {
		if b.learn(c.waited); b.window != c.window {
			t.Errorf("%d: after a wait of %v the window is %v, want %v", i, c.waited, b.window, c.window)
		}
	}
}

func TestFreeProcessors(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		what       string
		did        processorTimes
		processors float64
		want       int
	}{
		{"no time has passed", processorTimes{idle: s}, 4, 0},
		{"an idle machine", processorTimes{elapsed: s, idle: 4 * s}, 4, 4},
		{"others use all", processorTimes{elapsed: s, own: s / 10}, 4, 0},
		{"one is idle", processorTimes{elapsed: s, idle: s}, 2, 1},
		{"a little less than one is idle", processorTimes{elapsed: s, idle: 95 * s / 100}, 2, 1},
		{"a loop has it, and looks for half of the time", processorTimes{elapsed: s, idle: s / 2, own: s, looked: s / 2}, 2, 1},
		{"a loop shares it with others", processorTimes{elapsed: s, own: s * 6 / 10, looked: s * 6 / 10}, 2, 0},
		{"the group allows half a processor", processorTimes{elapsed: s, idle: 4 * s}, 0.5, 0},
		{"the process does other things, too", processorTimes{elapsed: s, idle: s, own: 2 * s, looked: s}, 2, 1},
		{"it does so for all that it may use", processorTimes{elapsed: s, idle: 2 * s, own: 2 * s}, 2, 0},
	} {
		if got := c.did.free(c.processors); got != c.want {
			t.Errorf("%s: %d free processors, want %d", c.what, got, c.want)
		}
	}
}

func TestIdleTime(t *testing.T) {
	for _, c := range []struct {
		stat  string
		idle  time.Duration
		found bool
	}{
		{"cpu  1 2 3 400 50 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7\n", 4500 * time.Millisecond, true},
		{"cpu  1 2 3 400\n", 0, false},
		{"cpu  1 2 3 x 50\n", 0, false},
		{"", 0, false},
	} {
		if idle, found := idleTime([]byte(c.stat)); found != c.found || found && idle != c.idle {
			t.Errorf("%q: %v %v, want %v %v", c.stat, idle, found, c.idle, c.found)
		}
	}
}
