package netloop

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dialResult dials on loop 0 and returns the conn or an error.
func dialResult(g *Group, addr string, timeout time.Duration, h Handler) (<-chan *Conn, <-chan error) {
	conns, failures := make(chan *Conn, 10), make(chan error, 10)
	l := g.loops[0]
	l.Post(func() {
		inside := true
		l.Dial(addr, timeout, func(c *Conn) Handler {
			if inside {
				failures <- errors.New("open inside Dial")
			}
			conns <- c
			return h
		}, func(err error) {
			if inside {
				err = errors.New("fail inside Dial")
			}
			failures <- err
		})
		inside = false
	})
	return conns, failures
}

// A loop's client talks to a loop's server, by address and by name.
func TestDial(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	ln := serve(t, g, echo{})
	_, port, _ := net.SplitHostPort(ln.Addr())
	for _, addr := range []string{ln.Addr(), "localhost:" + port} {
		got := make(chan string, 1)
		conns, failures := dialResult(g, addr, patience, funcs{data: func(_ *Conn, in []byte) int {
			got <- string(in)
			return len(in)
		}})
		var c *Conn
		select {
		case c = <-conns:
		case err := <-failures:
			t.Fatal(err)
		}
		each(t, g, func(*Loop) { c.SetOut(append(c.Out(), "hello"...)) })
		if s := receive(t, got); s != "hello" {
			t.Fatalf("got %q", s)
		}
		if c.RemoteAddr() != ln.Addr() || strings.HasSuffix(c.LocalAddr(), ":0") {
			t.Fatalf("from %s to %s", c.LocalAddr(), c.RemoteAddr())
		}
	}
}

func TestDialErrors(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	ln := serve(t, g, echo{})
	ln.Close()
	full := fullListener(t)
	for _, test := range []struct {
		name, addr string
		timeout    time.Duration
		want       error
	}{
		{"refused", ln.Addr(), patience, syscall.ECONNREFUSED},
		{"no answer", full, 50 * time.Millisecond, os.ErrDeadlineExceeded},
		{"unknown name", "name.invalid:1", patience, nil},
		{"no port", "127.0.0.1", patience, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			conns, failures := dialResult(g, test.addr, test.timeout, echo{})
			err := receive(t, failures)
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Fatalf("failed with %v, want %v", err, test.want)
			}
			if !strings.HasPrefix(err.Error(), "cannot connect to ") {
				t.Fatalf("text: %v", err)
			}
			each(t, g, func(l *Loop) {
				if len(conns)+len(failures)+len(l.dials)+l.Stats().Conns > 0 {
					t.Error("called back twice, or something is left")
				}
			})
		})
	}
}

// fullListener returns an address that never answers: its backlog is full, and it never accepts.
func fullListener(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := errors.Join(
		syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
		syscall.Listen(fd, 0),
	); err != nil {
		t.Fatal(err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: sa.(*syscall.SockaddrInet4).Port}).String()
	for range 3 {
		if nc, err := net.DialTimeout("tcp", addr, 50*time.Millisecond); err == nil {
			t.Cleanup(func() { nc.Close() })
		}
	}
	return addr
}

// A dial under way ends with the group.
func TestDialWhenGroupCloses(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	_, failures := dialResult(g, fullListener(t), patience, echo{})
	each(t, g, func(*Loop) {})
	g.Close()
	if err := receive(t, failures); !errors.Is(err, ErrClosed) {
		t.Fatalf("failed with %v, want %v", err, ErrClosed)
	}
}
