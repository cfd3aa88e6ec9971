package proxy

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// rig is a real proxy over fake nodes.
type rig struct {
	t     testing.TB
	proxy *Proxy
	nodes []*fakeNode
	epoch uint64
	level uint8  // of the next table
	gone  uint64 // in the next table

	settings ring.SettingsID // that the next table names
}

// setTimeout gives the proxy settings of the cluster with which it closes idle clients.
func (c *rig) setTimeout(seconds string) {
	c.t.Helper()
	s, err := (*ring.Settings)(nil).With(1, map[string]string{"config/timeout": seconds})
	if err != nil {
		c.t.Fatal(err)
	}
	c.proxy.ApplySettings(s)
}

func newCluster(t testing.TB, nodes int, change ...func(*Config)) *rig {
	t.Helper()
	group := newGroup(t, 2)
	cfg := Config{ID: "p1", Boot: 7, Listen: "127.0.0.1:0", Group: group, Log: slog.New(slog.DiscardHandler),
		Patience: 10 * time.Second, Silence: time.Minute, MaxClients: 1000} // a busy machine takes its time
	for _, f := range change {
		f(&cfg)
	}
	p, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := &rig{t: t, proxy: p}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range nodes {
		c.nodes = append(c.nodes, newFakeNode(t, fmt.Sprintf("n%d", i+1)))
	}
	c.route(func(p int) int { return p % max(nodes, 1) })
	return c
}

// newGroup returns loops that end with the test. On a busy machine they may take long to answer.
func newGroup(t testing.TB, loops int) *netloop.Group {
	t.Helper()
	group, err := netloop.NewGroup(netloop.Config{
		Loops: loops, Logger: slog.New(slog.DiscardHandler), Stall: 5 * time.Second, Answer: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(group.Close)
	return group
}

// oneLoop makes all sessions share one worker, and so its pipes.
func oneLoop(t testing.TB) func(*Config) {
	return func(cfg *Config) { cfg.Group = newGroup(t, 1) }
}

// stats returns the proxy's present counters.
func (c *rig) stats() Stats {
	c.t.Helper()
	s, err := c.proxy.Stats()
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// each runs f on every loop, and waits until all have run it.
func (c *rig) each(f func(l *netloop.Loop)) {
	c.t.Helper()
	if err := c.proxy.cfg.Group.Each(f); err != nil {
		c.t.Fatal(err)
	}
}

// retry tells all workers that it is time to send what is parked again.
func (c *rig) retry() {
	c.t.Helper()
	c.each(func(l *netloop.Loop) {
		w := c.proxy.workers[l.Index()]
		w.order.RetryTimer(l.Now())
		w.act()
	})
}

// route installs a newer table. owner returns the owner of each partition as an index in nodes, as those in moves are.
func (c *rig) route(owner func(p int) int, moves ...ring.Move) {
	if len(c.nodes) == 0 {
		return
	}
	c.epoch++
	t := &ring.Table{Epoch: c.epoch, Issuer: "test", Level: c.level, Settings: c.settings, Moves: moves, Gone: c.gone}
	for before := range min(c.epoch-1, 8) {
		t.Ancestors = append(t.Ancestors, ring.Version{Epoch: c.epoch - 1 - before, Issuer: "test"})
	}
	for _, n := range c.nodes {
		t.Nodes = append(t.Nodes, n.member())
	}
	for p := range t.Owner {
		t.Owner[p] = uint16(owner(p))
		t.Follower[p] = ring.NoNode
	}
	c.proxy.SetTable(t)
}

// key returns a key that node i of n owns by the first table.
func key(i, n int) string {
	for k := 0; ; k++ {
		name := fmt.Sprintf("key:%d:%d", i, k)
		if int(ring.PartitionOf([]byte(name)))%n == i {
			return name
		}
	}
}

// conn is a raw client.
type conn struct {
	t testing.TB
	net.Conn
	r    *bufio.Reader
	last []byte // the memory of the last reply
}

func (c *rig) dial() *conn {
	c.t.Helper()
	nc, err := net.Dial("tcp", c.proxy.Addr())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { nc.Close() })
	return &conn{t: c.t, Conn: nc, r: bufio.NewReader(nc)}
}

// send writes commands, one per line, in one write.
func (c *conn) send(lines ...string) {
	c.t.Helper()
	var b []byte
	for _, line := range lines {
		var args [][]byte
		for _, f := range strings.Fields(line) {
			args = append(args, []byte(f))
		}
		b = resp.AppendRequest(b, args...)
	}
	if _, err := c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// want reads one reply for each expectation and compares; "\r\n" is written as a space.
func (c *conn) want(replies ...string) {
	c.t.Helper()
	for i, want := range replies {
		if got := c.reply(); got != want {
			c.t.Fatalf("reply %d: got %q, want %q", i, got, want)
		}
	}
}

// reply reads one reply and returns it with spaces for line ends. For each MiB of it the test has patience. It looks at
// all that has come at once: beside the race detector a step for each line would be slow.
func (c *conn) reply() string {
	c.t.Helper()
	var scan resp.Scanner
	var err error
	b := c.last[:0] // what has been taken from r
	for limited := 0; ; {
		if c.r.Buffered() == 0 && len(b) >= limited {
			limited = len(b) + 1<<20
			if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
				c.t.Fatal(err)
			}
		}
		var peeked []byte
		if missing := scan.Need() - len(b); missing > c.r.Size() {
			n := len(b)
			b = slices.Grow(b, missing)
			missing, err = c.r.Read(b[n : n+missing])
			b = b[:n+missing]
		} else if _, err = c.r.Peek(1); err == nil {
			peeked, _ = c.r.Peek(c.r.Buffered())
		}
		if err != nil {
			c.t.Fatalf("reading a reply: %v, have %d bytes: %.300q", err, len(b), b)
		}
		all := peeked
		if len(b) > 0 {
			all = append(b, peeked...)
		}
		switch scan.Scan(all) {
		case resp.Done:
			if _, err := c.r.Discard(len(peeked) - (len(all) - scan.Len())); err != nil {
				c.t.Fatal(err)
			}
			c.last = b
			return strings.ReplaceAll(strings.TrimSuffix(string(all[:scan.Len()]), "\r\n"), "\r\n", " ")
		case resp.Malformed:
			c.t.Fatalf("malformed reply %.300q", all)
		}
		if len(b) == 0 {
			all = append(b, peeked...)
		}
		if b = all; len(peeked) > 0 {
			if _, err := c.r.Discard(len(peeked)); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

// wantClosed expects the proxy to close the connection without another byte.
func (c *conn) wantClosed() {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	if b, err := c.r.ReadByte(); err != io.EOF {
		c.t.Fatalf("got byte %q and error %v, want the connection closed", b, err)
	}
}

// patience is how long a test waits for what comes in a moment, on a machine that has twenty other things to do.
const patience = 30 * time.Second

// eventually polls a condition that has no event of its own.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	eventuallyWithin(t, patience, what, f)
}

func eventuallyWithin(t testing.TB, patience time.Duration, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("%s did not happen within %v", what, patience)
}

// came returns what comes from a channel, and fails the test if that takes too long.
func came[T any](t testing.TB, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatalf("waited %v in vain: %s", patience, what)
	}
	return v
}
