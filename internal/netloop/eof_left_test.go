//go:build linux && !portable

package netloop

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// waiter waits until a test says otherwise, and reads no more than 10 bytes meanwhile.
type waiter struct {
	funcs
	waits bool // only its loop uses it
}

func (w *waiter) IsWaiting(*Conn) bool { return w.waits }

// serveFull returns a conn that w serves, and its peer, which has sent more than is read.
func serveFull(t *testing.T, g *Group, w *waiter) (c *Conn, nc *net.TCPConn) {
	t.Helper()
	conns := make(chan *Conn, 1)
	nc = dialTo(t, listen(t, g, func(c *Conn) Handler {
		c.SetMaxInput(10)
		conns <- c
		return w
	}))
	c = receive(t, conns)
	write(t, nc, string(bytes.Repeat([]byte("x"), 100)))
	return c, nc
}

// A peer that finishes sending while its conn waits gets the output that is there, also what its socket
// did not take yet, behind more input than is read.
func TestPeerLeavesAndReads(t *testing.T) {
	g := newGroup(t, Config{Loops: 1, SoftOut: 64 << 20})
	closed, reasons := closeReasons()
	reply := bytes.Repeat([]byte("0123456789"), 200_000)
	calls := 0
	w := &waiter{funcs: funcs{closed: closed, data: func(c *Conn, in []byte) int {
		if calls++; calls > 1 {
			return 0
		}
		c.SetOut(append(c.Out(), reply...))
		return 1
	}}, waits: true}
	c, nc := serveFull(t, g, w)
	eventually(t, g, "reading has stopped", func(*Loop) bool { return c.stops == stopInput && c.blocked > 0 })
	write(t, nc, string(bytes.Repeat([]byte("y"), 100)))
	nc.CloseWrite()
	eventually(t, g, "the end is seen", func(*Loop) bool { return c.closed || c.finishing && c.armed == writable })
	if got, err := io.ReadAll(nc); err != nil || !bytes.Equal(got, reply) {
		t.Errorf("read %d bytes of %d and %v", len(got), len(reply), err)
	}
	if err := receive(t, reasons); err != io.EOF || calls != 1 {
		t.Errorf("closed with %v, want EOF; %d calls of OnData, want 1", err, calls)
	}
}

// A conn that waits is closed when its peer finishes sending, though input is left that was not read.
// One that does not wait gets all of it.
func TestPeerLeaves(t *testing.T) {
	for _, waits := range []bool{true, false} {
		g := newGroup(t, Config{Loops: 1})
		closed, reasons := closeReasons()
		w := &waiter{waits: waits}
		got, takes := 0, false
		w.funcs = funcs{closed: closed, data: func(_ *Conn, in []byte) int {
			if !takes {
				return 0
			}
			got += len(in)
			return len(in)
		}}
		c, nc := serveFull(t, g, w)
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

// HasLeft tells of a peer that has left at once, also in front of unread input, and not of one that is silent.
func TestHasLeft(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	w := &waiter{funcs: funcs{data: func(*Conn, []byte) int { return 0 }}}
	c, nc := serveFull(t, g, w)
	var left bool
	look := func() {
		eventually(t, g, "the loop looks", func(*Loop) bool { left = c.HasLeft(); return true })
	}
	if look(); left {
		t.Error("a peer has left that is there")
	}
	nc.CloseWrite()
	eventually(t, g, "the peer has left", func(*Loop) bool { return c.HasLeft() })
}
