//go:build linux && !portable

package netloop

import (
	"bytes"
	"io"
	"testing"
)

// waiter waits until a test says otherwise, and reads no more than 10 bytes meanwhile.
type waiter struct {
	funcs
	waits bool // only its loop uses it
}

func (w *waiter) IsWaiting(*Conn) bool { return w.waits }

// A conn that waits is closed when its peer finishes sending, though input is left that was not read.
// One that does not wait gets all of it.
func TestPeerLeaves(t *testing.T) {
	for _, waits := range []bool{true, false} {
		g := newGroup(t, Config{Loops: 1})
		closed, reasons := closeReasons()
		w := &waiter{waits: waits}
		conns, got, takes := make(chan *Conn, 1), 0, false
		w.funcs = funcs{closed: closed, data: func(_ *Conn, in []byte) int {
			if !takes {
				return 0
			}
			got += len(in)
			return len(in)
		}}
		nc := dialTo(t, listen(t, g, func(c *Conn) Handler {
			c.SetMaxInput(10)
			conns <- c
			return w
		}))
		c := receive(t, conns)
		write(t, nc, string(bytes.Repeat([]byte("x"), 100)))
		eventually(t, g, "reading has stopped", func(*Loop) bool { return c.stops == stopInput })
		write(t, nc, string(bytes.Repeat([]byte("y"), 100)))
		nc.CloseWrite()
		if !waits {
			each(t, g, func(*Loop) {
				if c.armed != 0 {
					t.Errorf("armed is %#x", c.armed)
				}
				takes = true
				c.SetMaxInput(0)
				c.Wake()
			})
		}
		if err := receive(t, reasons); err != io.EOF {
			t.Errorf("waits %t: closed with %v, want EOF", waits, err)
		}
		if want := map[bool]int{true: 0, false: 200}[waits]; got != want {
			t.Errorf("waits %t: the handler took %d bytes, want %d", waits, got, want)
		}
	}
}
