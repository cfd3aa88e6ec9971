package proxy

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// A long transaction is divided in turns, and executed like a short one.
func TestLongTransaction(t *testing.T) {
	const n, words = 5*maxKeys + 7, 15 * maxKeys
	crossing := "-CROSSSLOT Keys in request don't hash to the same slot"
	for _, f := range []func(*Config){func(*Config) {}, relaxed} {
		c := newCluster(t, 2, oneLoop(t), f)
		lenient := c.proxy.cfg.RelaxedMulti
		cl := c.dial()
		var turns atomic.Int64 // behind which another one waits
		w := c.proxy.workers[0]
		w.loop.Post(func() { w.loop.OnIterationEnd(func() { turns.Add(int64(len(w.turns.waiting))) }) })
		exec := func(wantTurns int, want string, lines ...string) {
			t.Helper()
			turns.Store(0)
			cl.send(append(append([]string{"MULTI"}, lines...), "EXEC", "GET {k}after")...)
			cl.want("+OK")
			for range lines {
				cl.want("+QUEUED")
			}
			if got := cl.reply(); got != want {
				t.Errorf("EXEC answers %.80q, want %.80q", got, want)
			}
			cl.want("$-1")
			if got := int(turns.Load()); got < wantTurns {
				t.Errorf("%d turns, want %d", got, wantTurns)
			}
		}
		lines, want := []string{}, "*"+strconv.Itoa(n+1)+" +PONG"
		for i := range n {
			lines = append(lines, "INCR {k}n")
			want += " :" + strconv.Itoa(i+1)
		}
		exec(2*n/maxKeys, want, append([]string{"PING"}, lines...)...)
		del := ofSlot("DEL", words)
		exec(2*words/maxKeys, "*3 +OK :1 +PONG", "SET {k}7 v", del, "PING")
		cl.send(ofSlot("WATCH", n))
		cl.want("+OK")
		exec(2*words/maxKeys, "*2 +OK :1", "SET {k}7 v", del)
		if lenient {
			exec(words/maxKeys, "*2 +OK :1", "SET far v", del+" far")
		} else {
			exec(0, crossing, "SET far v", del+" far")
			exec(0, crossing, append(lines, "GET far")...)
		}
		cl.send("EXISTS far", "MULTI", "PING", "EXEC")
		cl.want(":0", "+OK", "+QUEUED", "*1 +PONG")
		large := strings.Repeat("v", 600_000)
		exec(0, fmt.Sprintf("*2 +OK $%d %s", len(large), large), "SET {k}l "+large, "GET {k}l")
		gone := c.dial()
		gone.send("MULTI", del, "EXEC")
		gone.Close()
		c.wantNothingKept()
	}
}
