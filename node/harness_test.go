package node

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

var discardLog = slog.New(slog.NewTextHandler(io.Discard, nil))

// newGroup returns loops that end with the test. On a busy machine they may take long to answer.
func newGroup(t testing.TB, loops int) *netloop.Group {
	t.Helper()
	g, err := netloop.NewGroup(netloop.Config{Loops: loops, Logger: discardLog, Answer: replyTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// startNode starts a node with a table of its own. change may change its
// configuration before.
func startNode(t testing.TB, change ...func(*Config)) *Node {
	t.Helper()
	n := startBare(t, change...)
	n.SetTable(soleTable(n))
	return n
}

// startLeveled is startNode in a cluster that has the level of this build.
func startLeveled(t testing.TB, change ...func(*Config)) *Node {
	t.Helper()
	n := startBare(t, change...)
	table := soleTable(n)
	table.Level = ring.Level
	n.SetTable(table)
	return n
}

// startBare starts a node that has no table yet.
func startBare(t testing.TB, change ...func(*Config)) *Node {
	t.Helper()
	cfg := Config{ID: "a", Boot: 1, Listen: "127.0.0.1:0", Memory: 64 << 20, Shards: 16, Log: discardLog,
		StallLimit: time.Minute, // a busy machine can hold the node up for a while
	}
	for _, f := range change {
		f(&cfg)
	}
	if cfg.RequirePass.Needed() && cfg.Secret == nil {
		cfg.Secret = member.NewSecrets([]byte("a secret of the cluster"))
	}
	if cfg.Group == nil {
		cfg.Group = newGroup(t, 2)
	}
	n, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.turnTime = time.Hour // on a busy machine, too, what a test sends together is executed together
	tellLoops(t, n)
	t.Cleanup(func() {
		if n.ctx.Err() != nil {
			return // the test has closed it
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func memberOf(n *Node) ring.Member {
	return ring.Member{ID: n.cfg.ID, Boot: n.cfg.Boot, Role: ring.RoleNode, State: ring.Serving,
		Addr: n.Addr(), Fingerprint: ring.Fingerprint()}
}

// tableOf returns the table that follows prev (nil: the first) for the nodes.
func tableOf(prev *ring.Table, members ...ring.Member) *ring.Table {
	return ring.Plan(prev, members, nil, members[0], 1, func() uint64 { return 42 })
}

// soleTable gives everything to one node.
func soleTable(n *Node) *ring.Table { return tableOf(nil, memberOf(n)) }

// assign returns a copy of t, an epoch newer, in which the partition belongs to
// nodes[owner], its data beginning anew.
func assign(t *ring.Table, partition uint16, owner uint16) *ring.Table {
	next := *t
	next.Epoch++
	next.Ancestors = append([]ring.Version{t.Version()}, t.Ancestors...)
	next.Owner[partition] = owner
	next.Since[partition] = next.Epoch
	return &next
}

// giveAway has a node that is alone obey a table that gives one of its partitions to a node that
// does not answer.
func giveAway(n *Node, p uint16) {
	away := assign(n.view.Load().Table, p, 0)
	away.Nodes = append(away.Nodes[:1:1], ring.Member{ID: "b", Boot: 2, Role: ring.RoleNode, State: ring.Serving, Addr: "127.0.0.1:1"})
	away.Joined = append(away.Joined[:1:1], away.Epoch)
	n.SetTable(assign(away, p, 1))
}

// client is a plain connection for tests. Requests are lines in redis-cli's
// quoting, replies its texts.
type client struct {
	t    testing.TB
	conn net.Conn
	in   []byte
	// patience is for how long it waits for one reply; 0: replyTimeout.
	patience time.Duration
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t: t, conn: c}
}

// words splits a line as redis-cli does.
func words(t testing.TB, line string) [][]byte {
	t.Helper()
	var p resp.Parser
	if p.Parse([]byte(line+"\r\n")) != resp.Done {
		t.Fatalf("cannot split %q: %s", line, p.Err())
	}
	return p.Args()
}

func (c *client) send(line string) { c.sendArgs(words(c.t, line)...) }

func (c *client) sendArgs(args ...[]byte) { c.sendRaw(resp.AppendRequest(nil, args...)) }

func (c *client) sendRaw(b []byte) {
	c.t.Helper()
	if _, err := c.conn.Write(b); err != nil {
		c.t.Fatalf("cannot write: %v", err)
	}
}

// replyTimeout is for how long a test waits for one reply.
const replyTimeout = 20 * time.Second

// read returns the next reply's bytes, nil when the connection was closed.
func (c *client) read() []byte {
	c.t.Helper()
	patience := max(replyTimeout, c.patience)
	c.conn.SetReadDeadline(time.Now().Add(patience))
	var s resp.Scanner
	for {
		switch s.Scan(c.in) {
		case resp.Done:
			reply := c.in[:s.Len():s.Len()]
			c.in = c.in[s.Len():]
			return reply
		case resp.Malformed:
			c.t.Fatalf("malformed reply %q", c.in)
		}
		if cap(c.in)-len(c.in) < 4<<10 { // memory for many replies at once
			c.in = append(make([]byte, 0, 2*len(c.in)+32<<10), c.in...)
		}
		n, err := c.conn.Read(c.in[len(c.in):cap(c.in)])
		if err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				c.t.Fatalf("no reply within %v, have %q", patience, c.in)
			}
			return nil
		}
		c.in = c.in[:len(c.in)+n]
	}
}

// do sends a line and returns its reply as redis-cli shows it.
func (c *client) do(line string) string {
	c.t.Helper()
	c.send(line)
	return c.next()
}

// next returns the next reply as text.
func (c *client) next() string {
	c.t.Helper()
	return conversation.Text(c.read())
}

// want sends a line and compares its reply.
func (c *client) want(line, want string) {
	c.t.Helper()
	if got := c.do(line); got != want {
		c.t.Errorf("%s answers\n%s\nwant\n%s", line, got, want)
	}
}

// wantTTL checks that a key has so many seconds to live, or on a slow machine half of them.
func (c *client) wantTTL(key string, seconds int) {
	c.t.Helper()
	got := c.do("TTL " + key)
	var left int
	if _, err := fmt.Sscanf(got, "(integer) %d", &left); err != nil || left > seconds || left < seconds/2 {
		c.t.Errorf("TTL %s answers %s, want %d, or a little less", key, got, seconds)
	}
}

// eventually repeats a check until it holds, or a deadline passes.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(replyTimeout)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain: %s", replyTimeout, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// came returns what comes from a channel, and fails the test if that takes too long.
func came[T any](t testing.TB, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(replyTimeout):
		t.Fatalf("waited %v in vain: %s", replyTimeout, what)
	}
	return v
}

// held is what the connections of a loop take.
func (w *worker) held() int64 { return w.clients.Used() + w.members.Used() }

// put stores a value of any type, past the commands.
func put(n *Node, key, value string, typ engine.Type) error {
	t := n.engine.Lock(ring.PartitionOf([]byte(key)), time.Now().UnixMilli())
	defer t.Unlock()
	return t.Set([]byte(key), []byte(value), typ, 0)
}
