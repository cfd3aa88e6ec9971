package netloop

import (
	"net"
	"strings"
	"testing"
	"time"
)

// A handler that stops when its turn is over shares the loop with others, and what it leaves does not grow.
func TestTurnIsOver(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	const all = 512 << 10
	calls, most, longest, seen := 0, 0, 0, 0
	ln := serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		turn, n := Turn{}, 0
		for n < len(in) && !(n > 0 && turn.IsOver(c.loop)) {
			for began := time.Now(); time.Since(began) < 2*time.Microsecond; {
				continue
			}
			n++
		}
		calls, most, longest, seen = calls+1, max(most, n), max(longest, len(in)), seen+n
		if n < len(in) {
			c.Yield()
		} else if seen == all {
			c.SetOut(append(c.Out(), "done"...))
		}
		return n
	}})
	nc := dialTo(t, ln)
	resume := holdLoop(g.loops[0])
	go func(nc net.Conn) { _, _ = nc.Write([]byte(strings.Repeat(".", all))) }(nc)
	resume()
	expect(t, nc, "done")
	each(t, g, func(*Loop) {
		// A command takes at least 2 µs, and the time is asked for behind 64 of them.
		if limit := int(turnTime/(2*time.Microsecond)) + 2*turnCommands; most > limit {
			t.Errorf("a turn has %d commands, want at most %d", most, limit)
		}
		if longest > scratchSize+smallKept {
			t.Errorf("%d bytes were kept, want no more than one read has", longest)
		}
	})
}
