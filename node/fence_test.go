package node

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// fakeSource is a gossip agent that confirms when it is told to.
type fakeSource struct {
	mu      sync.Mutex
	table   *ring.Table
	asked   int
	confirm chan *ring.Table // nil values: an error
	alone   chan struct{}    // nobody is left who knows
	alive   []ring.Member
}

func (s *fakeSource) Members() []ring.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive
}

func (s *fakeSource) setAlive(alive ...ring.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive = alive
}

func (s *fakeSource) Table() *ring.Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table
}

func (s *fakeSource) setTable(t *ring.Table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table = t
}

func (s *fakeSource) Adopt(t *ring.Table) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	newer := t.Newer(s.table)
	if newer {
		s.table = t
	}
	return newer
}

func (s *fakeSource) Confirm(ctx context.Context, _ *ring.Table) (*ring.Table, error) {
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	select {
	case t := <-s.confirm:
		if t == nil {
			return nil, errors.New("nobody answers")
		}
		return t, nil
	case <-s.alone:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *fakeSource) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func TestFence(t *testing.T) {
	n := startNode(t)
	table := n.view.Load().Table
	source := &fakeSource{table: table, confirm: make(chan *ring.Table)}
	n.SetAgent(source)
	c := dial(t, n.Addr())
	c.want("SET k v", "OK")
	p := openPipeTo(t, n, 1, 0, "common", 1, 2)

	n.Fence("test")
	c.want("GET k", saysTryAgain)
	c.want("DBSIZE", saysTryAgain)
	p.want("GET k", saysWait)
	c.want("PING", "PONG")
	if n.Serving() {
		t.Error("a fenced node says that it serves")
	}
	source.confirm <- nil // one attempt fails
	eventually(t, "it asks again", func() bool { return source.times() == 2 })
	c.want("GET k", saysTryAgain)
	source.confirm <- table
	eventually(t, "the fence is lifted", n.Serving)
	c.want("GET k", `"v"`)
}

// TestFenceDropsWhatWasLost: the table heard after a stall has given a partition
// away and back.
func TestFenceDropsWhatWasLost(t *testing.T) {
	n := startNode(t)
	table := n.view.Load().Table
	source := &fakeSource{table: table, confirm: make(chan *ring.Table)}
	n.SetAgent(source)
	c := dial(t, n.Addr())
	c.want("SET k v", "OK")
	c.want("SET stays v", "OK")
	n.Fence("test")
	source.confirm <- assign(table, partitionOf("k"), 0)
	eventually(t, "the fence is lifted", n.Serving)
	c.want("GET k", "(nil)")
	c.want("GET stays", `"v"`)
}

// TestFenceForgets: behind a long standstill nobody is left who knows whether the other nodes of the
// table have served meanwhile what this node serves. Misses are better than old values. Without a
// standstill, or without other nodes, nobody else has served it.
func TestFenceForgets(t *testing.T) {
	n := startNode(t)
	source := &fakeSource{table: n.view.Load().Table, confirm: make(chan *ring.Table), alone: make(chan struct{})}
	n.SetAgent(source)
	c := dial(t, n.Addr())
	c.want("SET k v", "OK")
	confirmAlone := func() {
		source.alone <- struct{}{}
		eventually(t, "the fence is lifted", func() bool { return !n.fenced.Load() })
	}
	stall := func() { n.stalled(nil, 2*n.cfg.StallLimit) }

	stall()
	confirmAlone()
	c.want("GET k", `"v"`)

	giveAway(n, partitionOf("another"))
	source.setTable(n.view.Load().Table)
	n.Fence("test")
	confirmAlone()
	c.want("GET k", `"v"`)
	stall()
	confirmAlone()
	c.want("GET k", saysTryAgain) // the other node does not acknowledge the table
	c.want("DBSIZE", "(integer) 0")
	alone := assign(n.view.Load().Table, partitionOf("another"), 0)
	alone.Nodes, alone.Joined = alone.Nodes[:1], alone.Joined[:1]
	n.SetTable(alone)
	eventually(t, "it serves k without a value", func() bool { c.send("GET k"); return c.next() == "(nil)" })
}

// TestDoubtsDuringConfirmation: what was heard before the last stall may be old.
func TestDoubtsDuringConfirmation(t *testing.T) {
	n := startNode(t)
	table := n.view.Load().Table
	source := &fakeSource{table: table, confirm: make(chan *ring.Table)}
	n.SetAgent(source)
	n.Fence("first")
	eventually(t, "it asks", func() bool { return source.times() == 1 })
	n.Fence("second")
	source.confirm <- table
	eventually(t, "it asks again", func() bool { return source.times() == 2 })
	if n.Serving() {
		t.Error("serves on what it heard before the second doubt")
	}
	source.confirm <- table
	eventually(t, "the fence is lifted", n.Serving)
}

// TestStallFences: a loop that stood still fences the node before it reads. The limit is so short that
// a busy machine may exceed it by itself.
func TestStallFences(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group, c.StallLimit = newGroup(t, 1), 150*time.Millisecond })
	table := n.view.Load().Table
	source := &fakeSource{table: table, confirm: make(chan *ring.Table)}
	n.SetAgent(source)
	c := dial(t, n.Addr())
	confirmedUntil := func(line, want string) {
		t.Helper()
		eventually(t, line+" answers "+want, func() bool {
			select {
			case source.confirm <- table:
			default:
			}
			c.send(line)
			return c.next() == want
		})
	}
	confirmedUntil("SET k v", "OK")

	release := holdLoops(t, n)
	c.send("GET k") // waits in the socket
	time.AfterFunc(300*time.Millisecond, release)
	if got := c.next(); got != saysTryAgain {
		t.Errorf("first reply after a stall is %s, want %s", got, saysTryAgain)
	}
	confirmedUntil("GET k", `"v"`)
}
