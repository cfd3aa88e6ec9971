package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/measure"
	"github.com/dunlin-cache/dunlin/ring"
)

// usesOf is what eviction knows of a key, -1 if it is not there.
func usesOf(n *Node, key string) int {
	t := n.engine.Lock(partitionOf(key), n.cfg.Group.UnixMilli())
	defer t.Unlock()
	item, found := t.Peek([]byte(key))
	if !found {
		return -1
	}
	return item.Uses()
}

// setUses has a key used so many times.
func setUses(n *Node, key string, uses int) {
	t := n.engine.Lock(partitionOf(key), n.cfg.Group.UnixMilli())
	defer t.Unlock()
	t.SetUses([]byte(key), uses)
}

// What eviction knows of a key moves with it, as its time to live does, and its type, and whether
// the value is large or not.
func TestMoveTakesUsesAlong(t *testing.T) {
	addToys(t, 0)
	nodes, table, key := startTrio(t)
	p := partitionOf(key)
	a := dial(t, nodes[0].Addr())
	name := func(i int) string { return fmt.Sprintf("{%s}%d", key, i) }
	for i := range 8 {
		value := strings.Repeat("v", 1+i/4*100_000)
		a.sendArgs([]byte("SET"), []byte(name(i)), []byte(value), []byte("PX"), []byte("100000"))
		if got := a.next(); got != "OK" {
			t.Fatalf("SET answers %s", got)
		}
		for range i % 4 {
			a.want("STRLEN "+name(i), fmt.Sprintf("(integer) %d", len(value)))
		}
	}
	if err := put(nodes[0], name(8), "value", toys.Type.ID); err != nil {
		t.Fatal(err)
	}
	setUses(nodes[0], name(8), 2)
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moving, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	want := contents(nodes[0])
	install(t, altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 }), nodes[:]...)
	got := contents(nodes[1])
	for i := range 9 {
		if got[name(i)] != want[name(i)] || got[name(i)] == "" {
			t.Errorf("%s is %.40q, want %.40q", name(i), got[name(i)], want[name(i)])
		}
		uses := i % 4
		if i == 8 {
			uses = 2
		}
		if n := usesOf(nodes[1], name(i)); n != uses {
			t.Errorf("%s was used %d times, want %d", name(i), n, uses)
		}
	}
}

// crowded is a trio whose second node is full of keys that nobody asks for, and whose first has a
// partition of keys that were used.
func crowded(t *testing.T) (nodes [3]*Node, table *ring.Table, p uint16, used []string) {
	t.Helper()
	nodes, table, key := startTrio(t, func(c *Config) { c.Memory, c.Shards = 24<<20, 4 })
	p = partitionOf(key)
	value := strings.Repeat("v", 2000)
	for i := range 2000 {
		used = append(used, fmt.Sprintf("{%s}%d", key, i))
		if err := put(nodes[0], used[i], value, engine.TypeString); err != nil {
			t.Fatal(err)
		}
		setUses(nodes[0], used[i], 3)
	}
	fillOwn(t, nodes[1], 1, 1)
	return nodes, table, p, used
}

// fillOwn fills a node, the number-th of its table, with keys of its own until so many are evicted.
func fillOwn(t *testing.T, n *Node, number int, evicted int64) {
	t.Helper()
	table, value := n.view.Load().Table, strings.Repeat("o", 2000)
	for i := 0; i%32 > 0 || n.engine.Stats().Evicted < evicted; i++ {
		key := fmt.Sprint("own:", i)
		if int(table.Owner[partitionOf(key)]) != number {
			continue
		}
		if err := put(n, key, value, engine.TypeString); err != nil {
			t.Fatal(err)
		}
	}
}

func there(n *Node, keys []string) (count int) {
	for _, key := range keys {
		if usesOf(n, key) >= 0 {
			count++
		}
	}
	return count
}

// What moves to a full node to be served there is not the first to go: what is used stays.
func TestMoveToFullNode(t *testing.T) {
	nodes, table, p, used := crowded(t)
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moving, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	install(t, altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 }), nodes[:]...)
	if n := there(nodes[1], used); n < len(used)*95/100 {
		t.Errorf("%d of %d keys that were used have moved", n, len(used))
	}
}

// A follower's copy takes nothing from what it serves, whether it was used or not.
func TestFollowerOfFullNode(t *testing.T) {
	nodes, table, p, used := crowded(t)
	before := nodes[1].engine.Stats()
	install(t, altered(table, func(next *ring.Table) { next.Follower[p] = 1 }), nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	n, evicted := there(nodes[1], used), nodes[1].engine.Stats().Evicted-before.Evicted
	if n == len(used) || evicted > int64(len(used)/2) { // buffers of connections need memory, too
		t.Errorf("%d of %d records of the copy are there, %d of others are evicted", n, len(used), evicted)
	}
}

// The owner before that becomes the follower has a copy like any other: it goes first.
func TestOwnerBeforeHasACopy(t *testing.T) {
	nodes, table, p, used := crowded(t)
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 2}} })
	install(t, moving, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[2], p))
	moved := altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p], next.Follower[p] = nil, 2, 0 })
	install(t, moved, nodes[:]...)
	feed := nodes[2].senders.To(memberOf(nodes[0]))
	eventually(t, "the owner before follows", func() bool {
		fed := feed.Copies()
		return inSync(nodes[0], p)() && fed.Has(p)
	})
	flushed(t, feed)
	if n := there(nodes[0], used); n != len(used) {
		t.Fatalf("%d of %d keys are in the copy", n, len(used))
	}
	const own = 100 // whoever finds the copy's shard locked evicts its own
	fillOwn(t, nodes[0], 0, own)
	if n := there(nodes[0], used); n > len(used)/5 { // the last may free no page
		t.Errorf("%d of %d keys of a copy are there when %d own ones are evicted", n, len(used), own)
	}
}

// The partitions of the keys that are used most move first.
func TestHottestPartitionMovesFirst(t *testing.T) {
	nodes, table, _ := startTrio(t, func(c *Config) { c.MoveRate = 1 })
	first, last := "", ""
	for i := range 1000 {
		key := fmt.Sprint("key:", i)
		if p := partitionOf(key); table.Owner[p] == 0 {
			if first == "" || p < partitionOf(first) {
				first = key
			}
			if last == "" || p > partitionOf(last) {
				last = key
			}
		}
	}
	a := dial(t, nodes[0].Addr())
	a.want("SET "+first+" value", "OK")
	a.want("SET "+last+" value", "OK")
	for range 2 * measure.HotCertain * measure.SampleInputs {
		a.want("GET "+last, `"value"`)
	}
	install(t, altered(table, func(next *ring.Table) {
		for _, key := range []string{first, last} {
			next.Moves = append(next.Moves, ring.Move{Partition: partitionOf(key), From: 0, To: 1})
		}
	}), nodes[1], nodes[0], nodes[2]) // or what the receiver does not expect yet would be refused, and queued again
	eventually(t, "the hot one is in sync", inSync(nodes[1], partitionOf(last)))
	if inSync(nodes[1], partitionOf(first))() { // would take half a minute more
		t.Error("the other one is in sync already")
	}
}
