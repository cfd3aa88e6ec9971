package node

import (
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestTableIsObeyedBesideHolds: a node obeys a table at once that takes two partitions from it, of which
// it holds one. The other one is served by its new owner, and this one when its hold has ended, with
// all that the holder has written.
func TestTableIsObeyedBesideHolds(t *testing.T) {
	nodes, table, key := startTrio(t)
	a, b := nodes[0], nodes[1]
	p, beside := partitionOf(key), "other"
	for partitionOf(beside) == p || table.Owner[partitionOf(beside)] != 0 {
		beside += "!"
	}
	q := partitionOf(beside)
	ca, cb := dial(t, a.Addr()), dial(t, b.Addr())
	ca.want("SET "+key+" 1", "OK")
	ca.want("SET "+beside+" 1", "OK")
	moving := altered(table, func(n *ring.Table) {
		n.Level = ring.HoldLevel
		n.Moves = []ring.Move{{Partition: p, From: 0, To: 1}, {Partition: q, From: 0, To: 1}}
		slices.SortFunc(n.Moves, func(x, y ring.Move) int { return int(x.Partition) - int(y.Partition) })
	})
	install(t, moving, nodes[:]...)
	eventually(t, "b has both", func() bool { return inSync(b, p)() && inSync(b, q)() })

	h := holdPartition(a, key)
	moved := altered(moving, func(n *ring.Table) { n.Owner[p], n.Owner[q], n.Moves = 1, 1, nil })
	for _, n := range nodes {
		n.SetTable(moved)
	}
	eventually(t, "b serves the other one", func() bool { return cb.do("GET "+beside) == `"1"` })
	cb.want("GET "+key, saysTryAgain)
	peer, err := member.DialPeer(t.Context(), nil, a.Addr(), nil, 5)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	var want ring.PartitionSet
	want.Add(p)
	if taken, err := peer.Take(moved.Encode()); err != nil || taken.Held != want {
		t.Errorf("TAKE answers %v, %v, want that %d is held", taken, err, p)
	}
	x := h.Lock()
	if err := x.Set([]byte(key), []byte("2"), engine.TypeString, 0); err != nil {
		t.Fatal(err)
	}
	x.Unlock()
	h.End()
	eventually(t, "b serves", b.Serving)
	cb.want("GET "+key, `"2"`)
	if taken, err := peer.Take(moved.Encode()); err != nil || !taken.Held.Empty() {
		t.Errorf("TAKE answers %v, %v, want that nothing is held", taken, err)
	}
	eventually(t, "a drops it", func() bool { return a.engine.Count(p) == 0 })
}

// TestHeldPartitionComesBack: what a table gives back while it is held is served when the hold has
// ended, with what was in it.
func TestHeldPartitionComesBack(t *testing.T) {
	nodes, table, key := startTrio(t)
	a, p := nodes[0], partitionOf(key)
	c := dial(t, a.Addr())
	c.want("SET "+key+" 1", "OK")
	h := holdPartition(a, key)
	away := altered(table, func(n *ring.Table) { n.Level, n.Owner[p] = ring.HoldLevel, 1 })
	back := altered(away, func(n *ring.Table) { n.Owner[p] = 0 })
	for _, next := range []*ring.Table{away, back} {
		for _, n := range nodes {
			n.SetTable(next)
		}
	}
	c.want("GET "+key, saysTryAgain)
	h.End()
	eventually(t, "it is served again", a.Serving)
	c.want("GET "+key, `"1"`)
}

// TestTransactionGivesUpWhatOthersServe: a transaction whose node was fenced meanwhile ends at once if
// its partition was lost: others may not have waited for it.
func TestTransactionGivesUpWhatOthersServe(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c := dial(t, n.Addr())
	slowTransaction(c, n, 3000)
	c.send("EXEC")
	eventually(t, "the transaction holds its partition", func() bool { return len(n.engine.Holds()) == 1 })
	n.fenced.Store(true)
	n.fences.Add(1)
	away := altered(n.view.Load().Table, func(next *ring.Table) {
		next.Level = ring.HoldLevel
		next.Nodes = []ring.Member{memberOf(n), {ID: "b", Boot: 2, Role: ring.RoleNode, State: ring.Serving, Addr: "127.0.0.1:1"}}
		next.Joined = []uint64{1, 1}
		next.Owner[partitionOf("{k}")] = 1
	})
	n.SetTable(away)
	if len(n.engine.Holds()) == 0 {
		t.Error("the transaction has ended under the fence")
	}
	n.fenced.Store(false)
	if got := c.next(); !strings.Contains(got, errNotReached) {
		t.Errorf("EXEC answers %.200s", got)
	}
}

// TestGivingUpTakesTurns: no slice answers more than errorsAtOnce commands of a transaction that is
// given up.
func TestGivingUpTakesTurns(t *testing.T) {
	const many = 10*errorsAtOnce + 1
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c := dial(t, n.Addr())
	c.want("PING", "PONG")
	w := n.workers[0]
	w.loop.Post(func() {
		var r *request
		for cn := range w.conns {
			r = w.begin(cn)
		}
		x := &transaction{Transaction: &session.Transaction{Queue: make([]session.Queued, many)}}
		for turns, done := 1, false; !done; turns++ {
			before := x.next
			done = x.giveUp(r, turns == 1)
			if !x.gaveUp || x.next-before > errorsAtOnce || done != (x.next == many) {
				t.Errorf("turn %d answers %d commands, and then %d are answered", turns, x.next-before, x.next)
			}
		}
		r.Finish()
	})
	if got := c.next(); got != "(error) "+errHalfway {
		t.Errorf("the command that has begun answers %s", got)
	}
	for range many {
		if got := c.next(); got != "(error) "+errNotReached {
			t.Fatalf("another one answers %s", got)
		}
	}
}
