package netloop

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// closeReasons returns a handler's closed function, and the channel that receives the reasons.
func closeReasons() (func(*Conn, error), <-chan error) {
	reasons := make(chan error, 10)
	return func(_ *Conn, err error) { reasons <- err }, reasons
}

// The handler gets and answers data that was sent before the end.
func TestHalfClose(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	closed, reasons := closeReasons()
	nc := dialTo(t, serve(t, g, funcs{data: echo{}.OnData, closed: closed}))
	write(t, nc, "last words")
	nc.CloseWrite()
	expect(t, nc, "last words")
	if err := receive(t, reasons); err != io.EOF {
		t.Fatalf("closed with %v, want EOF", err)
	}
}

// Output that the socket did not take yet is sent to a peer that has finished sending.
func TestHalfCloseSendsRest(t *testing.T) {
	g := newGroup(t, Config{Loops: 1, SoftOut: 64 << 20})
	closed, reasons := closeReasons()
	reply := randomLine(tooMuch)
	nc := dialTo(t, serve(t, g, funcs{closed: closed, data: func(c *Conn, in []byte) int {
		c.SetOut(append(c.Out(), reply...))
		return len(in)
	}}))
	write(t, nc, "x")
	nc.CloseWrite()
	eventually(t, g, "end of input is seen", func(l *Loop) bool {
		return len(l.blocked) == 1 && l.blocked[0].finishing && l.blocked[0].armed == writable
	})
	expect(t, nc, reply)
	if err := receive(t, reasons); err != io.EOF {
		t.Fatalf("closed with %v, want EOF", err)
	}
}

// halfCloser answers later.
type halfCloser struct{ funcs }

func (halfCloser) OnEOF(c *Conn) bool {
	c.Loop().After(tick, func() {
		c.SetOut(append(c.Out(), "late"...))
		c.CloseAfterFlush()
	})
	return true
}

func TestHalfCloser(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	closed, reasons := closeReasons()
	nc := dialTo(t, serve(t, g, halfCloser{funcs{closed: closed}}))
	nc.CloseWrite()
	if got, err := io.ReadAll(nc); string(got) != "late" || err != nil {
		t.Fatalf("read %q, %v", got, err)
	}
	if err := receive(t, reasons); err != nil {
		t.Fatalf("closed with %v, want nil", err)
	}
}

func reset(nc *net.TCPConn) {
	nc.SetLinger(0)
	nc.Close()
}

// A reset closes a conn that reads, one that is paused, and one that waits to send. No loop spins.
func TestReset(t *testing.T) {
	prepare := map[string]func(c *Conn){
		"reading": func(*Conn) {},
		"paused":  func(c *Conn) { c.Pause() },
		"blocked": func(c *Conn) { c.SetOut(append(c.Out(), randomLine(tooMuch)...)) },
		"woken":   func(c *Conn) { c.Pause(); c.Wake() },
	}
	for name, f := range prepare {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, Config{Loops: 1})
			closed, reasons := closeReasons()
			conns := make(chan *Conn, 1)
			calls := 0
			nc := dialTo(t, serve(t, g, funcs{closed: closed, data: func(c *Conn, in []byte) int {
				if calls++; calls == 1 {
					f(c)
					conns <- c
				}
				return 0
			}}))
			write(t, nc, "x")
			receive(t, conns)
			each(t, g, func(*Loop) {}) // the iteration is over
			reset(nc)
			if err := receive(t, reasons); !errors.Is(err, syscall.ECONNRESET) {
				t.Fatalf("closed with %v, want a reset", err)
			}
		})
	}
}
