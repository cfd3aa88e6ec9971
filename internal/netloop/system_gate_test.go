//go:build linux && !portable

package netloop

import (
	"bytes"
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
		for deadline := time.Now().Add(patience); !loopIsParked(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the loop keeps its thread")
			}
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
