//go:build linux && !portable

package netloop

import (
	"bytes"
	"math"
	"runtime"
	"testing"
	"time"
)

// A loop with nothing to do waits as a goroutine, and so without a thread; events, posted functions
// and timers end the wait.
func TestIdleLoopIsAGoroutine(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	nc := dialTo(t, serve(t, g, echo{}))
	fired := make(chan bool, 1)
	for _, wake := range []func(){
		func() { write(t, nc, "hello"); expect(t, nc, "hello") },
		func() { each(t, g, func(*Loop) {}) },
		func() {
			each(t, g, func(l *Loop) { l.After(2*rawWait, func() { fired <- true }) })
			receive(t, fired)
		},
	} {
		wake()
		awaitParked(t)
	}
}

// TestStrainFollowsTheThread: the thread that goes on with an idle loop may be another one, and its
// times are no continuation of the first one's.
func TestStrainFollowsTheThread(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	for range 20 {
		awaitParked(t)
		each(t, g, func(l *Loop) {
			if noted := l.thread.Load(); noted != int64(threadID()) {
				t.Errorf("the loop runs on thread %d, noted is %d", threadID(), noted)
			}
		})
	}
	before := loopTimes{thread: 1, busy: 1, ran: time.Hour, wanted: time.Hour}
	if d := (loopTimes{thread: 2, busy: 3, ran: 2 * time.Hour}).since(before); d.busy != 2 || d.ran != 0 || d.wanted != 0 {
		t.Errorf("on another thread: %+v", d)
	}
}

// TestIdleWaitOfManyConnections: what a wait costs does not grow with the connections.
func TestIdleWaitOfManyConnections(t *testing.T) {
	const many, waits = 4000, 200
	cost := func(watched int) time.Duration {
		var p poller
		if err := p.open(); err != nil {
			t.Fatal(err)
		}
		defer p.close()
		for range watched {
			var w waker
			if err := w.open(); err != nil {
				t.Fatal(err)
			}
			defer w.close()
			if err := p.watchWaker(&w); err != nil {
				t.Fatal(err)
			}
		}
		events, least := make([]event, 8), time.Duration(math.MaxInt64)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for range waits {
			begin := time.Now()
			if n, errno := p.waitBlocking(events, 1); n > 1 || errno != 0 {
				t.Fatalf("a wait returns %d events, and %v", n, errno)
			}
			least = min(least, time.Since(begin))
		}
		return least
	}
	few, lots := cost(1), cost(many)
	t.Logf("a wait takes at least %v of one connection, %v of %d", few, lots, many)
	if lots > 5*few {
		t.Errorf("a wait of %d connections takes %v, of one %v", many, lots, few)
	}
}

// awaitParked waits until the loop has nothing to do. Nothing tells when a goroutine waits: it polls.
func awaitParked(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); !loopIsParked(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the loop keeps its thread")
		}
	}
}

// loopIsParked reports whether the goroutine of a loop waits in Go's poller.
func loopIsParked() bool {
	all := make([]byte, 1<<20)
	for stack := range bytes.SplitSeq(all[:runtime.Stack(all, true)], []byte("\n\n")) {
		if bytes.Contains(stack, []byte("(*Loop).run(")) && bytes.Contains(stack, []byte("[IO wait]:")) {
			return true
		}
	}
	return false
}
