package tlsbridge

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/certtest"
)

// patience bounds waits for events that happen at once on a machine that is not busy.
const patience = 20 * time.Second

// plain is a Server with its plain sides, which a loop would have, as connections.
type plain struct {
	*Server
	addr  string
	given chan net.Conn
	late  atomic.Bool // the test says when a connection is taken
	taken chan func() // of late ones
}

func files(t testing.TB, a *certtest.Authority, name string, mutual bool) Files {
	cert, key := a.Issue(t, name)
	f := Files{Cert: cert, Key: key}
	if mutual {
		f.CA = a.CA
	}
	return f
}

func mustLoad(t testing.TB, f Files) *Certificates {
	t.Helper()
	c, err := Load(f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serve accepts as a loop's listener does.
func serve(t testing.TB, c *Certificates) *plain {
	t.Helper()
	return serveFor(t, c, handshakeTime)
}

func serveFor(t testing.TB, c *Certificates, handshake time.Duration) *plain {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &plain{Server: NewServer(c, slog.New(slog.DiscardHandler)), addr: l.Addr().String(),
		given: make(chan net.Conn, 10), taken: make(chan func(), 10)}
	p.patience = handshake
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f, err := c.(*net.TCPConn).File()
			c.Close()
			if err != nil {
				t.Error(err)
				return
			}
			fd, err := syscall.Dup(int(f.Fd()))
			f.Close()
			if err != nil {
				t.Error(err)
				return
			}
			p.Wrap(fd, netip.AddrPort{}, func(fd int, taken func()) {
				if p.late.Load() {
					p.taken <- taken
				} else {
					defer taken()
				}
				c, err := connOf(fd)
				if err != nil {
					t.Error(err)
				}
				p.given <- c
			})
		}
	}()
	t.Cleanup(func() { l.Close() })
	return p
}

// accepted returns the next connection's plain side.
func (p *plain) accepted(t testing.TB) *net.UnixConn {
	t.Helper()
	select {
	case c := <-p.given:
		t.Cleanup(func() { c.Close() })
		return c.(*net.UnixConn)
	case <-time.After(patience):
		t.Fatal("no connection came through")
		return nil
	}
}

func dialTLS(t testing.TB, addr string, c *tls.Config) *tls.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// TestBothWays sends much in both directions at once, and then closes one direction after the
// other.
func TestBothWays(t *testing.T) {
	a := certtest.New(t)
	s := serve(t, mustLoad(t, files(t, a, "server", false)))
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		before := runtime.NumGoroutine()
		c := dialTLS(t, s.addr, &tls.Config{RootCAs: a.Pool, MinVersion: version, MaxVersion: version})
		inner := s.accepted(t)
		want := randomBytes(5_000_001)
		go func() {
			_, _ = c.Write(want)
			_ = c.CloseWrite()
		}()
		echoed := make(chan error, 1)
		go func() {
			_, err := io.Copy(inner, inner)
			inner.Close()
			echoed <- err
		}()
		got, err := io.ReadAll(c)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("TLS %x: %d bytes came back of %d, error %v", version, len(got), len(want), err)
		}
		if err := <-echoed; err != nil {
			t.Error(err)
		}
		c.Close()
		settle(t, before)
	}
}

// settle waits until goroutines have ended.
func settle(t testing.TB, want int) {
	t.Helper()
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines are left, there were %d", runtime.NumGoroutine(), want)
		}
	}
}

// TestLastWords checks that bytes that the loop wrote before it closed arrive, even if the client
// keeps sending.
func TestLastWords(t *testing.T) {
	a := certtest.New(t)
	s := serve(t, mustLoad(t, files(t, a, "server", false)))
	c := dialTLS(t, s.addr, &tls.Config{RootCAs: a.Pool})
	inner := s.accepted(t)
	want := randomBytes(100_000)
	go func() {
		for {
			if _, err := c.Write(want); err != nil {
				return
			}
		}
	}()
	if _, err := inner.Write(want); err != nil {
		t.Fatal(err)
	}
	inner.Close()
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came of %d, error %v", len(got), len(want), err)
	}
}

// TestBackpressure checks that the bridge stops reading from the loop if the client does not read.
func TestBackpressure(t *testing.T) {
	a := certtest.New(t)
	s := serve(t, mustLoad(t, files(t, a, "server", false)))
	c := dialTLS(t, s.addr, &tls.Config{RootCAs: a.Pool})
	inner := s.accepted(t)
	taken := fill(inner)
	if taken > 32<<20 { // more than the system's buffers of a TCP connection can grow to
		t.Errorf("%d bytes were taken for a client that reads none", taken)
	}
	inner.Close()
	if n, err := io.Copy(io.Discard, c); err != nil || n != int64(taken) {
		t.Errorf("%d bytes came of %d, error %v", n, taken, err)
	}
}

// TestVanish checks that when one side is gone the other side ends too, and nothing is left.
func TestVanish(t *testing.T) {
	a := certtest.New(t)
	s := serve(t, mustLoad(t, files(t, a, "server", false)))
	before := runtime.NumGoroutine()
	for _, gone := range []string{"client", "loop"} {
		c := dialTLS(t, s.addr, &tls.Config{RootCAs: a.Pool})
		inner := s.accepted(t)
		if gone == "client" {
			_ = c.NetConn().(*net.TCPConn).SetLinger(0) // a reset
			c.NetConn().Close()
			_ = inner.SetReadDeadline(time.Now().Add(patience))
			if n, err := inner.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Error("the loop does not hear that the client is gone")
			}
			inner.Close()
		} else {
			inner.Close()
			if _, err := io.ReadAll(c); err != nil {
				t.Errorf("the client hears no goodbye: %v", err)
			}
			c.Close()
		}
		settle(t, before)
	}
}

// TestDrain checks that Drain waits until the loop's output has been sent.
func TestDrain(t *testing.T) {
	a := certtest.New(t)
	s := serveFor(t, mustLoad(t, files(t, a, "server", false)), time.Hour)
	c := dialTLS(t, s.addr, &tls.Config{RootCAs: a.Pool})
	inner := s.accepted(t)
	taken := fill(inner)
	inner.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Drain(ended); err == nil {
		t.Error("Drain does not wait for a client that has not received everything")
	}
	if n, err := io.Copy(io.Discard, c); err != nil || n != int64(taken) {
		t.Errorf("%d bytes came of %d, error %v", n, taken, err)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestDrainGivesUpHandshakes checks that a client that never begins its handshake does not delay
// Drain.
func TestDrainGivesUpHandshakes(t *testing.T) {
	a := certtest.New(t)
	s := serveFor(t, mustLoad(t, files(t, a, "server", false)), time.Hour)
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for deadline := time.Now().Add(patience); s.door.running() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no handshake has begun")
		}
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if _, failed := s.Stats(); failed != 1 {
		t.Errorf("%d failed handshakes, want 1", failed)
	}
}

// fill writes until the connection accepts no more, and returns how many bytes it accepted.
func fill(c *net.UnixConn) (taken int) {
	piece := make([]byte, 64<<10)
	for {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		n, err := c.Write(piece)
		if taken += n; err != nil {
			return taken
		}
	}
}

// Connections whose loop has closed count until their peers have closed too, and too many of them
// make others wait.
func TestLeavingAreBounded(t *testing.T) {
	a := certtest.New(t)
	p := serve(t, mustLoad(t, files(t, a, "server", false)))
	client := dialTLS(t, p.addr, &tls.Config{RootCAs: a.Pool})
	p.accepted(t).Close()
	wait := func(want int64) {
		t.Helper()
		for deadline := time.Now().Add(patience); p.leaving.Load() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d connections are leaving, want %d", p.leaving.Load(), want)
			}
		}
	}
	wait(1)
	p.leaving.Add(maxLeaving - 1)
	if p.Ready() {
		t.Error("more connections are taken")
	}
	client.Close()
	wait(maxLeaving - 1)
	if !p.Ready() {
		t.Error("no connection is taken")
	}
}

// TestUntakenConnectionsCount checks that a connection whose handshake is over counts among those of
// its source until a loop has it: otherwise one source could have any number of them before a busy
// loop.
func TestUntakenConnectionsCount(t *testing.T) {
	a := certtest.New(t)
	s := serve(t, mustLoad(t, files(t, a, "server", false)))
	s.late.Store(true)
	dialTLS(t, s.addr, &tls.Config{RootCAs: a.Pool})
	s.accepted(t)
	if n := s.door.running(); n != 1 {
		t.Errorf("%d connections count before a loop has one, want it", n)
	}
	(<-s.taken)()
	if n := s.door.running(); n != 0 {
		t.Errorf("%d connections count though a loop has them", n)
	}
}
