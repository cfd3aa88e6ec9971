package netloop

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// Closing inside OnData: OnClose comes later, once, and the input stays readable until
// OnData returns.
func TestCloseInsideOnData(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	reason := errors.New("enough")
	inside := false
	var left string
	events := make(chan error, 10)
	nc := dialTo(t, serve(t, g, funcs{
		data: func(c *Conn, in []byte) int {
			if len(in) < 2*smallKept { // wait, so that the input lies in a buffer of the conn's own
				return 0
			}
			inside = true
			c.Close(reason)
			c.Close(io.ErrUnexpectedEOF) // too late
			c.SetOut(append(c.Out(), "nobody will see this"...))
			c.Pause()
			c.Wake()
			c.MarkDirty()
			c.CloseAfterFlush()
			left = string(in)
			inside = false
			return 0
		},
		closed: func(c *Conn, err error) {
			if inside || c.FD() != -1 {
				err = errors.New("OnClose inside Close, or before the socket is gone")
			}
			events <- err
		},
	}))
	first, second := randomLine(smallKept+100), randomLine(smallKept)
	write(t, nc, first)
	eventually(t, g, "first part is kept", func(l *Loop) bool { return l.stats.BytesIn == uint64(len(first)) })
	write(t, nc, second)
	if err := receive(t, events); err != reason {
		t.Fatalf("closed with %v, want %v", err, reason)
	}
	each(t, g, func(*Loop) {
		if !strings.HasPrefix(first+second, left) || len(left) < 2*smallKept {
			t.Error("input changed by Close")
		}
		if len(events) > 0 {
			t.Error("OnClose called twice")
		}
	})
	if n, err := nc.Read(make([]byte, 1)); err == nil {
		t.Fatalf("read %d bytes from a closed conn", n)
	}
}

// A handler closes all other conns while they have events, output and wakes pending in
// the same iteration.
func TestCloseOthers(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	const count = 50
	closed, reasons := closeReasons()
	var all []*Conn
	ln := listen(t, g, func(c *Conn) Handler {
		all = append(all, c)
		return funcs{closed: closed, data: func(c *Conn, in []byte) int {
			for _, o := range all {
				o.SetOut(append(o.Out(), "bye"...))
				o.Wake()
				o.Pause()
				if o != c {
					o.Close(nil)
				}
			}
			return len(in)
		}}
	})
	clients := make([]*net.TCPConn, count)
	for i := range clients {
		clients[i] = dialTo(t, ln)
	}
	eventually(t, g, "all are accepted", func(*Loop) bool { return len(all) == count })
	resume := holdLoop(g.loops[0])
	for _, nc := range clients {
		write(t, nc, "x")
	}
	resume()
	for range count - 1 {
		if err := receive(t, reasons); err != nil {
			t.Fatalf("closed with %v", err)
		}
	}
	each(t, g, func(l *Loop) {
		if n := l.Stats().Conns; n != 1 || len(reasons) > 0 {
			t.Errorf("%d conns left, want the one that closed the others", n)
		}
	})
}

// holdLoop stops the loop in the middle of an iteration until the returned function is called.
func holdLoop(l *Loop) (resume func()) {
	entered, stop := make(chan bool), make(chan bool)
	l.Post(func() {
		close(entered)
		<-stop
	})
	<-entered
	return func() { close(stop) }
}

func TestCloseAfterFlush(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	closed, reasons := closeReasons()
	reply := randomLine(tooMuch)
	nc := dialTo(t, serve(t, g, funcs{closed: closed, data: func(c *Conn, in []byte) int {
		c.SetOut(append(c.Out(), reply...))
		c.CloseAfterFlush()
		return 0
	}}))
	write(t, nc, "x")
	if got, err := io.ReadAll(nc); string(got) != reply || err != nil {
		t.Fatalf("read %d bytes, %v", len(got), err)
	}
	if err := receive(t, reasons); err != nil {
		t.Fatalf("closed with %v, want nil", err)
	}
}

// A refusal reaches the peer even if its request is never read.
func TestCloseAfterFlushWithInputUnread(t *testing.T) {
	const refusal = "-ERR max number of clients reached"
	g := newGroup(t, Config{Loops: 1})
	ln := listen(t, g, func(c *Conn) Handler {
		c.SetOut(append(c.Out(), refusal...))
		c.CloseAfterFlush()
		return echo{}
	})
	resume := holdLoop(g.loops[0])
	nc := dialTo(t, ln)
	write(t, nc, "PING")
	resume()
	if got, err := io.ReadAll(nc); string(got) != refusal || err != nil {
		t.Fatalf("read %q, %v", got, err)
	}
}

// A handler's panic closes its own conn and leaves the others alone.
func TestPanic(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	closed, reasons := closeReasons()
	ln := serve(t, g, funcs{closed: closed, data: func(c *Conn, in []byte) int {
		if in[0] == 'p' {
			panic("as asked")
		}
		return echo{}.OnData(c, in)
	}})
	good, bad := dialTo(t, ln), dialTo(t, ln)
	write(t, bad, "p")
	if err := receive(t, reasons); err == nil || !strings.Contains(err.Error(), "as asked") {
		t.Fatalf("closed with %v", err)
	}
	each(t, g, func(l *Loop) {
		l.Post(func() { panic("in a posted function") })
		l.After(0, func() { panic("in a timer") })
	})
	eventually(t, g, "panics are counted", func(l *Loop) bool { return l.Stats().Panics == 3 })
	write(t, good, "alive")
	expect(t, good, "alive")
}

// A handler that claims to have consumed more than it got is a bug, which closes only its conn.
func TestConsumedTooMuch(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	closed, reasons := closeReasons()
	nc := dialTo(t, serve(t, g, funcs{closed: closed, data: func(_ *Conn, in []byte) int { return len(in) + 1 }}))
	write(t, nc, "x")
	if err := receive(t, reasons); err == nil || !strings.Contains(err.Error(), "BUG") {
		t.Fatalf("closed with %v", err)
	}
}

// The event of a closed conn does not reach the next conn with the same descriptor.
func TestStaleEvent(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	conns := make(chan *Conn, 1)
	calls := 0
	ln := listen(t, g, func(c *Conn) Handler {
		conns <- c
		return funcs{data: func(_ *Conn, in []byte) int { calls++; return len(in) }}
	})
	dialTo(t, ln)
	c := receive(t, conns)
	each(t, g, func(l *Loop) {
		ev := newEvent(int32(c.fd), c.gen-1, readable)
		reads := l.stats.Reads
		l.dispatch(&ev)
		if l.stats.Reads != reads {
			t.Error("a stale event caused a read")
		}
		ev = newEvent(int32(c.fd), c.gen, readable)
		if l.dispatch(&ev); l.stats.Reads == reads {
			t.Error("the conn's own event caused no read")
		}
	})
}
