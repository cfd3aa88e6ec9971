package netloop

import (
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Connections are spread evenly, even after one loop has lost its connections.
func TestAcceptBalance(t *testing.T) {
	g := newGroup(t, Config{Loops: 4})
	ln := serve(t, g, echo{})
	for range 400 {
		dialTo(t, ln)
	}
	balanced := func(want int) {
		t.Helper()
		eventually(t, g, "balance", func(l *Loop) bool { return l.Stats().Conns == want })
	}
	balanced(100)
	g.loops[1].Post(func() {
		for _, c := range g.loops[1].conns {
			if c != nil {
				c.Close(nil)
			}
		}
	})
	each(t, g, func(*Loop) {})
	for range 100 {
		dialTo(t, ln)
	}
	balanced(100)
}

// slow is a Wrapper that takes longer, on the loop, than all of an iteration's connections may, and
// then closes the connection.
type slow struct{ wrapped func() }

func (slow) Ready() bool { return true }
func (slow) Memory() int { return 0 }

func (s slow) Wrap(fd int, _ netip.AddrPort, _ func(fd int, taken func())) {
	for begun := time.Now(); time.Since(begun) < 2*acceptTime; {
	}
	unix.Close(fd)
	s.wrapped()
}

// TestStormOfConnections checks that connections that arrive at once do not hold a loop for longer
// than acceptTime, and one of them.
func TestStormOfConnections(t *testing.T) {
	const storm = 10
	g := newGroup(t, Config{Loops: 1})
	l := g.loops[0]
	var iterations []uint64
	done := make(chan struct{})
	ln, err := g.ListenWrapped("127.0.0.1:0", slow{func() {
		if iterations = append(iterations, l.stats.Iterations); len(iterations) == storm {
			close(done)
		}
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	arrived, begin := make(chan struct{}), make(chan struct{})
	l.Post(func() { // they wait until all are there
		close(arrived)
		<-begin
	})
	<-arrived
	for range storm {
		dialTo(t, ln)
	}
	close(begin)
	<-done
	if once := slices.Compact(slices.Clone(iterations)); len(once) != storm {
		t.Errorf("%d connections were accepted in %d iterations", storm, len(once))
	}
}

// resting makes a listener whose rest has an hour to go, with a connection that waits. It returns
// how often the loop has looked whether it is strained, and what ends the rest.
func resting(t *testing.T, g *Group, looked *atomic.Int64) (ln *Listener, nc *net.TCPConn, end func(l *Loop)) {
	ln = serve(t, g, echo{})
	var until time.Duration
	each(t, g, func(l *Loop) {
		until = l.Now() + time.Hour
		ln.rest = until
	})
	nc = dialTo(t, ln)
	eventually(t, g, "the connection is noticed", func(*Loop) bool { return looked.Load() > 0 })
	return ln, nc, func(l *Loop) {
		i := slices.IndexFunc(l.timers, func(timer *Timer) bool { return timer.at == nextMultiple(until, tick) })
		if i < 0 {
			t.Error("the rest has no end")
			return
		}
		timer := l.timers[i]
		timer.Stop()
		ln.rest = 0
		timer.f()
	}
}

// TestRestingListener checks that connections that wait while a listener rests do not wake the
// loop, and are accepted afterwards.
func TestRestingListener(t *testing.T) {
	var looked atomic.Int64
	g := newGroup(t, Config{Loops: 1, strained: func() bool { looked.Add(1); return true }})
	_, nc, end := resting(t, g, &looked)
	for range 20 {
		each(t, g, func(*Loop) {}) // one iteration at least
	}
	if n := looked.Load(); n != 1 {
		t.Errorf("the listener was looked at %d times during its rest, want once", n)
	}
	each(t, g, end)
	write(t, nc, "hello")
	expect(t, nc, "hello")
}

// TestRestingListenerCloses checks that the end of its rest does not disturb the next listener,
// which may have its descriptor.
func TestRestingListenerCloses(t *testing.T) {
	var looked atomic.Int64
	log := &logCounter{}
	g := newGroup(t, Config{Loops: 1, Logger: slog.New(slog.NewTextHandler(log, nil)),
		strained: func() bool { looked.Add(1); return true }})
	ln, _, end := resting(t, g, &looked)
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	next := serve(t, g, echo{})
	each(t, g, end)
	nc := dialTo(t, next)
	write(t, nc, "hello")
	expect(t, nc, "hello")
	if n := log.lines(); n != 0 {
		t.Errorf("%d lines logged", n)
	}
}

func TestManyConns(t *testing.T) {
	const count = 2000
	g := newGroup(t, Config{Loops: 2})
	ln := serve(t, g, echo{})
	clients := make([]*net.TCPConn, count)
	for i := range clients {
		clients[i] = dialTo(t, ln)
	}
	for range 3 {
		for _, nc := range clients {
			write(t, nc, "hello")
		}
		for _, nc := range clients {
			expect(t, nc, "hello")
		}
	}
	for _, nc := range clients {
		nc.Close()
	}
	eventually(t, g, "all are gone", func(l *Loop) bool { return l.Stats().Conns == 0 })
}

func TestRefuse(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	nc := dialTo(t, listen(t, g, func(*Conn) Handler { return nil }))
	if n, err := nc.Read(make([]byte, 1)); err == nil {
		t.Fatalf("read %d bytes", n)
	}
	eventually(t, g, "no conn left", func(l *Loop) bool { return l.Stats().Conns == 0 && l.Stats().Accepted == 1 })
}

func TestAddresses(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	addrs := make(chan [2]string, 1)
	ln := listen(t, g, func(c *Conn) Handler {
		addrs <- [2]string{c.RemoteAddr(), c.LocalAddr()}
		return echo{}
	})
	nc := dialTo(t, ln)
	got, want := receive(t, addrs), [2]string{nc.LocalAddr().String(), ln.Addr()}
	if got != want {
		t.Fatalf("remote and local address %v, want %v", got, want)
	}
}

// After Close the port is free, accepted connections live on, and Close may be called again.
func TestListenerClose(t *testing.T) {
	g := newGroup(t, Config{Loops: 2})
	ln := serve(t, g, echo{})
	nc := dialTo(t, ln)
	write(t, nc, "x")
	expect(t, nc, "x")
	for range 2 {
		if err := ln.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if nc, err := net.Dial("tcp", ln.Addr()); err == nil {
		nc.Close()
		t.Fatal("connected to a closed listener")
	}
	again, err := g.Listen(ln.Addr(), func(*Conn) Handler { return echo{} })
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	write(t, nc, "y")
	expect(t, nc, "y")
}

func TestListenError(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	ln := serve(t, g, echo{})
	_, err := g.Listen(ln.Addr(), nil)
	if err == nil || !strings.HasPrefix(err.Error(), `cannot listen on "127.0.0.1:`) {
		t.Fatalf("second listener on one port: %v", err)
	}
}

// logCounter counts lines.
type logCounter struct {
	mu sync.Mutex
	n  int
}

func (w *logCounter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	return len(p), nil
}

func (w *logCounter) lines() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// Without descriptors the loop logs that, does not spin or die, and accepts again when there are
// some.
func TestOutOfDescriptors(t *testing.T) {
	log := &logCounter{}
	g := newGroup(t, Config{Loops: 1, Logger: slog.New(slog.NewTextHandler(log, nil))})
	ln := serve(t, g, echo{})
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	spare, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(spare)
	lowered := unix.Rlimit{Cur: uint64(highestFD(t)) + 4, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lowered); err != nil {
		t.Fatal(err)
	}
	restore := sync.OnceFunc(func() { unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) })
	defer restore()
	begun := time.Now()
	fillers := fillDescriptors(t, ln)
	defer func() {
		for _, nc := range fillers {
			nc.Close()
		}
	}()
	// The loop may have taken the last descriptor for the last of the fillers. There is none for this one.
	addr := netip.MustParseAddrPort(ln.Addr())
	if err := unix.Connect(spare, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}); err != nil {
		t.Fatal(err)
	}
	var before uint64
	eventually(t, g, "shortage is logged", func(l *Loop) bool {
		before = l.Stats().Iterations
		return log.lines() > 0
	})
	waited := make(chan uint64)
	g.loops[0].Post(func() {
		l := g.loops[0]
		l.After(3*acceptBackoff, func() { waited <- l.Stats().Iterations - before })
	})
	n, lines, took := receive(t, waited), log.lines(), time.Since(begun)
	if most := 200 * uint64(1+took/time.Second); n > most {
		t.Errorf("%d iterations in %v while nothing could be accepted", n, took)
	}
	if most := 1 + int(took/acceptLogGap); lines > most {
		t.Errorf("%d lines logged in %v", lines, took)
	}
	restore()
	last := fillers[len(fillers)-1]
	write(t, last, "hello")
	expect(t, last, "hello")
}

// fillDescriptors connects until there is no descriptor left: the last ones perhaps cannot be accepted.
func fillDescriptors(t *testing.T, ln *Listener) (clients []net.Conn) {
	t.Helper()
	for {
		nc, err := net.Dial("tcp", ln.Addr())
		if err != nil {
			if len(clients) == 0 {
				t.Fatal(err)
			}
			return clients
		}
		clients = append(clients, nc)
	}
}

func highestFD(t *testing.T) (highest int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		highest = max(highest, fd)
	}
	return highest
}
