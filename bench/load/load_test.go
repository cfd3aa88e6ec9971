package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// fake is a server with a map. Each connection reads whole requests, one after the other.
type fake struct {
	addr string

	mu       sync.Mutex
	keys     map[string]string
	commands int
	answer   string        // to everything, when set
	stall    time.Duration // before the first answer
}

func startFake(t *testing.T, p Protocol) *fake {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{addr: ln.Addr().String(), keys: map[string]string{}}
	read := readRESP
	if p == Memcached {
		read = readMemcached
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { f.serve(conn, read, p) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		serving.Wait()
	})
	return f
}

func (f *fake) serve(conn net.Conn, read func(*bufio.Reader) []string, p Protocol) {
	defer conn.Close()
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	for {
		words := read(in)
		if words == nil {
			return
		}
		fmt.Fprint(out, f.reply(words, p))
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}

func readRESP(in *bufio.Reader) (words []string) {
	var n, length int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
		return nil
	}
	for range n {
		if _, err := fmt.Fscanf(in, "$%d\r\n", &length); err != nil {
			return nil
		}
		word := make([]byte, length+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil
		}
		words = append(words, string(word[:length]))
	}
	return words
}

func readMemcached(in *bufio.Reader) []string {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil
	}
	words := strings.Fields(line)
	if words[0] == "set" {
		line, _ = in.ReadString('\n')
		words = []string{"SET", words[1], strings.TrimSuffix(line, "\r\n")}
	}
	return words
}

func (f *fake) reply(words []string, p Protocol) (text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.commands++; f.commands == 1 {
		time.Sleep(f.stall) // the fault that is simulated
	}
	if f.answer != "" {
		return f.answer
	}
	if words[0] == "SET" {
		f.keys[words[1]] = words[2]
		return map[Protocol]string{RESP: "+OK\r\n", Memcached: "STORED\r\n"}[p]
	}
	for _, k := range words[1:] {
		v, found := f.keys[k]
		switch {
		case found && p == RESP:
			text += fmt.Sprintf("$%d\r\n%s\r\n", len(v), v)
		case found:
			text += fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\n", k, len(v), v)
		case p == RESP:
			text += "$-1\r\n"
		}
	}
	switch {
	case p == Memcached:
		return text + "END\r\n"
	case words[0] == "MGET":
		return fmt.Sprintf("*%d\r\n", len(words)-1) + text
	}
	return text
}

// config is a load of the fake that lasts for a moment.
func (f *fake) config(p Protocol) Config {
	return Config{Addr: f.addr, Protocol: p, Clients: 3, Pipeline: 7, Sets: 1, Gets: 2, KeysPerGet: 1,
		Prefix: "key:", Keys: 1500, ValueBytes: 64, Duration: 30 * time.Millisecond}
}

func TestRun(t *testing.T) {
	f := func(p Protocol, change func(*Config)) {
		t.Helper()
		s := startFake(t, p)
		c := s.config(p)
		change(&c)
		if err := Fill(t.Context(), c, time.Minute); err != nil {
			t.Fatal(err)
		}
		if n := len(s.keys); n != c.Keys || s.commands != c.Keys || len(s.keys[KeyName("key:", c.Keys-1)]) != 64 {
			t.Fatalf("%d keys were set by %d commands: want %d and %d, of 64 bytes", n, s.commands, c.Keys, c.Keys)
		}
		s.commands = 0
		r, err := Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Commands < 21 || r.Commands != s.commands || r.Missed != 0 ||
			r.Latency.Total() != uint64(r.Commands) || r.Elapsed < c.Duration {
			t.Errorf("%d commands, %d misses, %d latencies in %v, with %+v: want %d, 0, as many, and %v",
				r.Commands, r.Missed, r.Latency.Total(), r.Elapsed, c, s.commands, c.Duration)
		}
		clear(s.keys)
		c.Sets = 0
		r, err = Run(t.Context(), c)
		if err != nil || r.Missed != r.Commands*max(1, c.KeysPerGet) {
			t.Errorf("of %d commands %d keys were missed, %v: want all", r.Commands, r.Missed, err)
		}
	}
	for _, p := range []Protocol{RESP, Memcached} {
		f(p, func(*Config) {})
		f(p, func(c *Config) { c.KeysPerGet = 10 })
		f(p, func(c *Config) { c.Threads = 2 })
		f(p, func(c *Config) { c.Pipeline = 5000; c.Sets = 4 }) // more than a socket takes at once
	}
}

// TestOpenLoop checks that the latency of batches that wait while the server stalls is counted from
// their intended times.
func TestOpenLoop(t *testing.T) {
	s := startFake(t, RESP)
	s.stall = 200 * time.Millisecond
	c := s.config(RESP)
	c.Clients, c.Threads, c.Pipeline, c.Sets, c.Rate, c.Duration = 4, 2, 2, 0, 4000, 400*time.Millisecond
	s.answer = "$-1\r\n"
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Commands != 1600 || r.Commands != s.commands || r.Latency.Total() != 1600 {
		t.Errorf("%d commands were sent, %d counted: want 1600 of both", s.commands, r.Commands)
	}
	// The lock of the fake stalls all its connections. Batches intended for the first 150 of 400 ms
	// waited for at least 50 ms.
	if n := r.Latency.Above(48 * time.Millisecond); n < 590 {
		t.Errorf("only %d commands waited for 50 ms of a stall of 200: want about 600", n)
	}
}

// TestOpenLoopBound checks that batches over the bound wait in the schedule.
func TestOpenLoopBound(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pair[1])
	w := newWorker(&Config{Clients: 1, Threads: 1, Pipeline: 100, Gets: 1, KeysPerGet: 1, Keys: 10,
		Rate: 1000, Duration: time.Second}, 0, 0, nil)
	defer w.close()
	c := w.clients[0]
	c.fd, c.due = pair[0], 50
	if w.poller, err = newPoller(); err != nil {
		t.Fatal(err)
	}
	if err := w.sendClientsDue(c); err != nil || c.outstanding != 1000 || c.sent != 10 {
		t.Errorf("%d commands in %d batches are outstanding, %v: want 1000, the most that %d allows",
			c.outstanding, c.sent, err, maxOpen)
	}
	if err := w.count(c, 100, 0); err != nil || c.outstanding != 1000 || c.sent != 11 {
		t.Errorf("after 100 replies %d commands in %d batches are outstanding, %v: want 1000 in 11",
			c.outstanding, c.sent, err)
	}
	if n := w.result.Late.Total(); n != 10 {
		t.Errorf("the lateness of %d batches was counted: want 10, the other one waited for the server", n)
	}
}

func TestRunRefuses(t *testing.T) {
	s := startFake(t, RESP)
	f := func(answer, want string, change func(*Config)) {
		t.Helper()
		s.mu.Lock()
		s.answer = answer
		s.mu.Unlock()
		c := s.config(RESP)
		change(&c)
		if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a load of a server that answers %q gave %v: want an error with %q", answer, err, want)
		}
	}
	as := func(*Config) {}
	f("-OOM command not allowed\r\n", "OOM", as)
	f("$5\r\nshort\r\n", "want 64", as)
	f("+OK\r\n+OK\r\n", "more replies than commands", as)
	f("", "no port", func(c *Config) { c.Addr = "no port" })
	f("", "0 clients", func(c *Config) { c.Clients = 0 })
	f("", "0:0 SET:GET", func(c *Config) { c.Sets, c.Gets = 0, 0 })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the only connection that it gets
		if conn, err := ln.Accept(); err == nil {
			_, _ = conn.Read(make([]byte, 1<<10))
			_ = conn.Close()
		}
	}()
	f("", "closed", func(c *Config) { c.Addr = ln.Addr().String(); c.Clients = 1 })
	_ = ln.Close()
	f("", "refused", func(c *Config) { c.Addr = ln.Addr().String() })
}

// TestNoForeignDescriptor checks that a connection that could not be opened is not closed, because
// its descriptor would belong to another file.
func TestNoForeignDescriptor(t *testing.T) {
	w := newWorker(&Config{Clients: 2, Threads: 1, Pipeline: 1, Gets: 1, KeysPerGet: 1, Keys: 1}, 0, 0, nil)
	if err := w.connect(netip.MustParseAddrPort("127.0.0.1:1")); err == nil || w.clients[0].fd != -1 ||
		w.clients[1].fd != -1 {
		t.Errorf("after %v the clients have the descriptors %d and %d: want none", err, w.clients[0].fd, w.clients[1].fd)
	}
	w.close()
}

// TestDialGoesOn checks that signals end the wait for a connection that the server is slow to
// accept, but not the attempt.
func TestDialGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second: the kernel asks again only then")
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
		syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(name.(*syscall.SockaddrInet4).Port))
	first, err := dial(addr) // takes the only place in the queue
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(first)
	thread, dialed := make(chan int), make(chan error)
	go func() {
		runtime.LockOSThread()
		thread <- syscall.Gettid()
		second, err := dial(addr)
		if err == nil {
			_ = syscall.Close(second)
		}
		dialed <- err
	}()
	id := <-thread
	full := true
	for begin := time.Now(); ; {
		select {
		case err := <-dialed:
			if err != nil {
				t.Errorf("a connection that was interrupted by signals gave %v: want none", err)
			}
			return
		case <-time.After(10 * time.Millisecond):
			_ = syscall.Tgkill(syscall.Getpid(), id, syscall.SIGURG) // as the scheduler does
		}
		if full && time.Since(begin) > 100*time.Millisecond {
			if taken, _, err := syscall.Accept(fd); err == nil { // makes room in the queue
				defer syscall.Close(taken)
			}
			full = false
		}
	}
}

// TestRunEnds checks that, with a server that never answers, a run ends with its context and a fill
// after its limit.
func TestRunEnds(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	c := Config{Addr: ln.Addr().String(), Clients: 2, Pipeline: 1, Gets: 1, Keys: 1, Duration: time.Hour}
	if _, err := Run(ctx, c); !errors.Is(err, why) {
		t.Errorf("the run gave %v: want the cause of its end", err)
	}
	s := startFake(t, RESP)
	c = s.config(RESP)
	c.Keys = 10_000_000
	if err := Fill(t.Context(), c, 20*time.Millisecond); err == nil ||
		!strings.Contains(err.Error(), "of 10000000 keys were set in 20ms") {
		t.Errorf("a fill that took too long gave %v", err)
	}
}
