package netloop

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"testing"
	"time"
)

// patience is how long a test waits for an event that must happen.
const patience = 20 * time.Second

// funcs is a Handler made of functions. Functions that are nil do nothing and consume nothing.
type funcs struct {
	data   func(c *Conn, in []byte) int
	closed func(c *Conn, err error)
}

func (f funcs) OnData(c *Conn, in []byte) int {
	if f.data == nil {
		return 0
	}
	return f.data(c, in)
}

func (f funcs) OnClose(c *Conn, err error) {
	if f.closed != nil {
		f.closed(c, err)
	}
}

// echo sends its input back.
type echo struct{}

func (echo) OnData(c *Conn, in []byte) int {
	c.SetOut(append(c.Out(), in...))
	return len(in)
}

func (echo) OnClose(*Conn, error) {}

// newGroup makes loops that poison released buffers, so that tests notice views that are kept too
// long.
func newGroup(t testing.TB, cfg Config) *Group {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Answer == 0 {
		cfg.Answer = patience
	}
	procs := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(procs) })
	g, err := NewGroup(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	_, isTest := t.(*testing.T)
	each(t, g, func(l *Loop) { l.pool.poison = isTest })
	return g
}

func each(t testing.TB, g *Group, f func(l *Loop)) {
	t.Helper()
	if err := g.Each(f); err != nil {
		t.Fatal(err)
	}
}

// serve listens for conns that all have the same handler.
func serve(t testing.TB, g *Group, h Handler) *Listener {
	t.Helper()
	return listen(t, g, func(*Conn) Handler { return h })
}

func listen(t testing.TB, g *Group, accept func(c *Conn) Handler) *Listener {
	t.Helper()
	ln, err := g.Listen("127.0.0.1:0", accept)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// tooMuch is more than the sockets between server and client can hold.
const tooMuch = 12 << 20

// dialTo connects a client with small buffers and a deadline for everything.
func dialTo(t testing.TB, ln *Listener) *net.TCPConn {
	t.Helper()
	nc, err := net.DialTimeout("tcp", ln.Addr(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(2 * patience))
	tc := nc.(*net.TCPConn)
	tc.SetReadBuffer(64 << 10)
	tc.SetWriteBuffer(64 << 10)
	return tc
}

func write(t testing.TB, w io.Writer, s string) {
	t.Helper()
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
}

// expect reads exactly want.
func expect(t testing.TB, r io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v, want %q", got[:n], err, want)
	}
}

// receive waits for a value.
func receive[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("waited in vain")
		panic("unreachable")
	}
}

// eventually waits until f returns true on every loop.
func eventually(t testing.TB, g *Group, what string, f func(l *Loop) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		results := make(chan bool, len(g.loops))
		each(t, g, func(l *Loop) { results <- f(l) })
		all := true
		for range g.loops {
			all = <-results && all
		}
		if all {
			return
		}
	}
	t.Fatalf("waited in vain: %s", what)
}

func TestEcho(t *testing.T) {
	g := newGroup(t, Config{Loops: 2})
	ln := serve(t, g, echo{})
	for i := range 3 {
		nc := dialTo(t, ln)
		for j := range 3 {
			s := fmt.Sprintf("hello %d %d", i, j)
			write(t, nc, s)
			expect(t, nc, s)
		}
	}
}

// An idle connection holds no buffers.
func TestIdleConnHoldsNothing(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	ln := serve(t, g, echo{})
	nc := dialTo(t, ln)
	write(t, nc, "hello")
	expect(t, nc, "hello")
	eventually(t, g, "buffers given back", func(l *Loop) bool {
		for _, c := range l.conns {
			if c != nil && (c.in != nil || c.out != nil) {
				return false
			}
		}
		return l.pool.kept > 0 && l.pool.lent == 0 && l.account.used == 0
	})
}
