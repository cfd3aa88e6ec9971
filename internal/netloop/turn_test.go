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
		if limit := int(TurnTime/(2*time.Microsecond)) + 2*turnCommands; most > limit {
			t.Errorf("a turn has %d commands, want at most %d", most, limit)
		}
		if longest > scratchSize+smallKept {
			t.Errorf("%d bytes were kept, want no more than one read has", longest)
		}
	})
}

// A turn that is told of a long command asks for the time behind it.
func TestTurnAsksBehindLongCommands(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	each(t, g, func(l *Loop) {
		var turn Turn
		long := func() bool {
			for began := l.Clock(); l.Clock()-began <= TurnTime/2; {
				continue
			}
			turn.Ask()
			return turn.IsOver(l)
		}
		if long() || turn.IsOver(l) {
			t.Error("a turn is over that has just begun")
		}
		if long(); !long() {
			t.Error("a turn of three long commands is not over")
		}
	})
}

// A handler that takes long with its input gets little of it at a time: others have their turns between.
func TestReadsOfSlowHandlers(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	const all = 2 << 20
	longest, seen := 0, 0
	ln := serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		longest, seen = max(longest, len(in)), seen+len(in)
		for began := time.Now(); time.Since(began) < 2*TurnTime; {
			continue
		}
		if seen == all {
			c.SetOut(append(c.Out(), "done"...))
		}
		return len(in)
	}})
	nc := dialTo(t, ln)
	go func(nc net.Conn) { _, _ = nc.Write([]byte(strings.Repeat(".", all))) }(nc)
	expect(t, nc, "done")
	each(t, g, func(*Loop) {
		if longest > firstRead {
			t.Errorf("a read has %d bytes, want at most %d", longest, firstRead)
		}
	})
}

func TestPace(t *testing.T) {
	const slow, quick = TurnTime + 1, TurnTime/2 - 1
	for _, test := range []struct {
		most, read int
		took       time.Duration
		want       int
	}{
		{firstRead, firstRead, quick, 2 * firstRead},
		{firstRead, firstRead, TurnTime, firstRead},
		{firstRead, firstRead, slow, firstRead},
		{4 * firstRead, 2 * firstRead, quick, 4 * firstRead}, // there was no more to read
		{4 * firstRead, 3 * firstRead, slow, 3 * firstRead / 2},
		{scratchSize, scratchSize, quick, scratchSize},
		{scratchSize, scratchSize, slow, scratchSize / 2},
	} {
		c := &Conn{most: int32(test.most)}
		if c.pace(test.read, test.took); int(c.most) != test.want {
			t.Errorf("the next read after one of %d bytes of at most %d that took %v may have %d, want %d",
				test.read, test.most, test.took, c.most, test.want)
		}
	}
}
