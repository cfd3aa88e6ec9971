package netloop

import (
	"runtime"
	"strings"
	"testing"
)

// In steady state an event costs no allocation: not small requests, not pipelined ones
// that are cut by reads, not replies that are larger than a pooled buffer starts, not
// posted functions or conns that wake, pause and resume. (Measured by hand:
// testing.AllocsPerRun sets GOMAXPROCS to 1, and would have the loop and the client
// take turns every 10 ms.)
func TestNoAllocations(t *testing.T) {
	busy := funcs{data: func(c *Conn, in []byte) int {
		n := min(len(in), 3000)
		out, _ := c.Grow(c.Out(), n)
		c.SetOut(append(out, in[:n]...))
		c.Pause()
		c.Resume()
		if n < len(in) {
			c.Wake()
		}
		return n
	}}
	for _, test := range []struct {
		name string
		h    Handler
		size int
	}{
		{"small", echo{}, 64},
		{"pipelined", echo{}, 10_000},
		{"woken", busy, 10_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newGroup(t, Config{Loops: 1})
			nc := dialTo(t, serve(t, g, test.h))
			request, reply := []byte(strings.Repeat("x", test.size)), make([]byte, test.size)
			round := func() {
				if _, err := nc.Write(request); err != nil {
					t.Fatal(err)
				}
				for n := 0; n < len(reply); {
					m, err := nc.Read(reply[n:])
					if err != nil {
						t.Fatal(err)
					}
					n += m
				}
			}
			const rounds = 2000
			for range rounds / 10 {
				round() // buffers and lists grow to their final size
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range rounds {
				round()
			}
			runtime.ReadMemStats(&after)
			if n := after.Mallocs - before.Mallocs; n > rounds/50 { // the runtime allocates a little
				t.Errorf("%d allocations in %d rounds", n, rounds)
			}
		})
	}
}
