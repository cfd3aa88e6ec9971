package netloop

import (
	"io"
	"math/rand/v2"
	"testing"
)

// Whatever a handler does with its conn, every byte comes back once and in order. The handler
// consumes random amounts, and stops in all ways after which it must be called again.
func TestRandomHandlers(t *testing.T) {
	g := newGroup(t, Config{Loops: 2, SoftOut: 50_000})
	moody := funcs{data: func(c *Conn, in []byte) int {
		if c.Full() {
			return 0
		}
		n := rand.IntN(len(in) + 1)
		out := c.Out()
		if rand.IntN(2) == 0 {
			out, _ = c.Grow(out, n)
		}
		c.SetOut(append(out, in[:n]...))
		switch rand.IntN(4) {
		case 0:
			c.Wake()
		case 1:
			c.Pause()
			c.Loop().Post(c.Resume)
		case 2:
			c.Pause()
			c.Loop().After(0, c.Resume)
		case 3:
			c.Want(rand.IntN(len(in) - n + 1)) // not more than the peer has sent
			c.Wake()
		}
		return n
	}}
	ln := serve(t, g, moody)
	const clients, size = 8, 1 << 20
	done := make(chan bool, clients)
	for range clients {
		nc := dialTo(t, ln)
		want := randomLine(size)
		go func() {
			for rest := want; rest != ""; {
				n := min(len(rest), rand.IntN(100_000))
				io.WriteString(nc, rest[:n])
				rest = rest[n:]
			}
		}()
		go func() {
			defer func() { done <- true }()
			got := make([]byte, size)
			if n, err := io.ReadFull(nc, got); err != nil {
				t.Errorf("read %d bytes, %v", n, err)
			} else if string(got) != want {
				t.Error("other bytes came back")
			}
		}()
	}
	for range clients {
		receive(t, done)
	}
	each(t, g, func(l *Loop) {
		if l.Stats().Panics > 0 {
			t.Error("a handler panicked")
		}
	})
}
