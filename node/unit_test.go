package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// setUnit sets keys of one partition as a unit.
func setUnit(t *testing.T, n *Node, p uint16, name string, keys, length int) {
	x := n.engine.Lock(p, n.cfg.Group.UnixMilli())
	defer x.Unlock()
	x.BeginUnit()
	for i := range keys {
		if err := x.Set(fmt.Append(nil, name, i), make([]byte, length), engine.TypeString, 0); err != nil {
			t.Error(err)
		}
	}
}

// followed starts three nodes, of which the second follows the first in a partition.
func followed(t *testing.T) (nodes [3]*Node, table *ring.Table, p uint16) {
	t.Helper()
	nodes, table, key := startTrio(t)
	p = partitionOf(key)
	table = altered(table, func(next *ring.Table) { next.Follower[p] = 1 })
	install(t, table, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	return nodes, table, p
}

// A unit that is much longer than a batch arrives whole, and a goroutine applies it. What is longer
// than any unit puts the copy back to filling, and arrives with the partition's new snapshot.
func TestLongUnitsReachTheFollower(t *testing.T) {
	nodes, _, p := followed(t)
	same := func() bool { return nodes[1].engine.Count(p) == nodes[0].engine.Count(p) && inSync(nodes[1], p)() }
	resyncs := nodes[0].senders.Stats().Resyncs
	setUnit(t, nodes[0], p, "long", 4000, 100)
	eventually(t, "a unit of 500,000 bytes arrives", same)
	if got := nodes[0].senders.Stats().Resyncs; got != resyncs {
		t.Errorf("%d partitions were sent anew for it", got-resyncs)
	}
	setUnit(t, nodes[0], p, "longer", 8000, 100)
	eventually(t, "what is no unit any more arrives", same)
	if got := nodes[0].senders.Stats().Resyncs; got != resyncs+1 {
		t.Errorf("%d partitions were sent anew, want 1", got-resyncs)
	}
	for _, n := range nodes[:2] {
		eventually(t, "nothing is charged for the batch", func() bool { return n.lists.Load() == 0 })
	}
}

// A command that changes several keys of one partition reaches copies as one unit, even if it needs
// no second lock.
func TestCommandsAreUnits(t *testing.T) {
	n := startBare(t)
	n.SetTable(altered(soleTable(n), func(next *ring.Table) { next.Level = ring.Level }))
	const receiver = 0
	n.engine.OpenFeed(receiver, func() {})
	p := partitionOf("{a}")
	n.engine.Feed(p, receiver, engine.Mark{})
	c := dial(t, n.Addr())
	for _, line := range []struct {
		request, reply string
		single         bool
	}{
		{"MSET {a}1 one {a}2 two {a}3 three", "OK", false},
		{"MSETNX {a}4 four {a}5 five", "(integer) 1", false},
		{"MSETEX 2 {a}4 four {a}5 five EX 100", "(integer) 1", false},
		{"RENAME {a}5 {a}6", "OK", false},
		{"DEL {a}3 {a}4", "(integer) 2", false},
		{"MSET {a}1 one {b}2 two", "OK", true},
		{"DEL {a}1 {b}2", "(integer) 2", true},
	} {
		c.want(line.request, line.reply)
		var kinds []engine.EffectKind
		for shard := range n.engine.Shards() {
			log, _ := n.engine.Collect(receiver, shard, nil, 1<<20)
			for len(log) > 0 {
				kind, _, _, size := engine.NextEffect(log)
				if kind != engine.EffectMark {
					kinds = append(kinds, kind)
				}
				log = log[size:]
			}
		}
		if len(kinds) != 1 || kinds[0] == engine.EffectUnit == line.single {
			t.Errorf("%s: effects of the kinds %v", line.request, kinds)
		}
	}
}

// A node that takes over while a unit arrives has all or nothing of it.
func TestTakeOverHasWholeUnits(t *testing.T) {
	const keys = 10_000
	nodes, table, p := followed(t)
	for i := range 2 {
		eventually(t, "the units before have arrived", func() bool { return nodes[1].engine.Count(p) == i*keys })
		setUnit(t, nodes[0], p, fmt.Sprint(i, ":"), keys, 16)
	}
	eventually(t, "the last unit begins to arrive", func() bool { return nodes[1].engine.Count(p) > keys })
	alone := tableWithout(table, 0)
	nodes[1].SetTable(alone)
	nodes[2].SetTable(alone)
	eventually(t, "the follower serves", nodes[1].Serving)
	if n := nodes[1].engine.Count(p); n != 2*keys {
		t.Errorf("%d keys after the take-over, want %d", n, 2*keys)
	}
}

// TestTransactionsReachTheFollowerWhole: a follower that takes over in the middle of a transaction has
// nothing of it, or everything if it still ends. Behind its end, it has everything.
func TestTransactionsReachTheFollowerWhole(t *testing.T) {
	for _, ends := range []bool{false, true} {
		nodes, table, key := startTrio(t, func(c *Config) { c.Group = newGroup(t, 1) })
		p := partitionOf(key)
		table = altered(table, func(next *ring.Table) { next.Follower[p], next.Level = 1, ring.Level })
		install(t, table, nodes[:]...)
		eventually(t, "the copy is in sync", inSync(nodes[1], p))
		a, b := fmt.Sprintf("{%s}a", key), fmt.Sprintf("{%s}b", key)
		c, beside := dial(t, nodes[0].Addr()), dial(t, nodes[0].Addr())
		c.want("MSET "+a+" 100 "+b+" 100", "OK")
		long := strings.Repeat("abcdefgh", 1400)
		times := 4000
		if ends {
			times = 20
		}
		c.want(fmt.Sprintf("SET {%s}x %s", key, long), "OK")
		c.want("MULTI", "OK")
		c.want("DECRBY "+a+" 30", "QUEUED")
		for range times {
			c.want(fmt.Sprintf("LCS {%s}x {%s}x LEN", key, key), "QUEUED")
		}
		c.want("INCRBY "+b+" 30", "QUEUED")
		c.send("EXEC")
		if ends {
			c.next()
		} else {
			eventually(t, "the transaction holds its partition", func() bool { return len(nodes[0].engine.Holds()) == 1 })
			beside.want("PING", "PONG") // the first slice is over
		}
		succeed(t, nodes, table)
		none, all := "1) \"100\"\n2) \"100\"", "1) \"70\"\n2) \"130\""
		// Close ends the transaction, and a sender may still see that before it ends itself.
		if got := dial(t, nodes[1].Addr()).do("MGET " + a + " " + b); got != all && (ends || got != none) {
			t.Errorf("ends %t: the follower has\n%s", ends, got)
		}
	}
}
