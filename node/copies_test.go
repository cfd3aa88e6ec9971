package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// altered returns the table that follows t, as f changes it.
func altered(t *ring.Table, f func(next *ring.Table)) *ring.Table {
	next := *t
	next.Epoch++
	next.Ancestors = append([]ring.Version{t.Version()}, t.Ancestors...)
	next.Moves = slices.Clone(t.Moves)
	f(&next)
	return &next
}

// startTrio starts three nodes that obey one table, in which the key's partition is the first
// one's.
func startTrio(t *testing.T, change ...func(*Config)) (nodes [3]*Node, table *ring.Table, key string) {
	t.Helper()
	var members []ring.Member
	for i := range nodes {
		nodes[i] = startBare(t, append(change, func(c *Config) { c.ID, c.Boot = string(rune('a'+i)), int64(i+1) })...)
		members = append(members, memberOf(nodes[i]))
	}
	table = tableOf(nil, members...)
	install(t, table, nodes[:]...)
	return nodes, table, keyIn(t, table, 0)
}

// startLeveledTrio is startTrio in a cluster that has the level of this build.
func startLeveledTrio(t *testing.T, change ...func(*Config)) (nodes [3]*Node, table *ring.Table, key string) {
	t.Helper()
	nodes, table, key = startTrio(t, change...)
	table = altered(table, func(next *ring.Table) { next.Level = ring.Level })
	install(t, table, nodes[:]...)
	return nodes, table, key
}

// succeed closes the first node when its followers have what it has sent, and has the others obey the
// table without it. A stream that has broken on a busy machine begins anew, so the second one must have whole copies
// then.
func succeed(t *testing.T, nodes [3]*Node, table *ring.Table) {
	t.Helper()
	for _, s := range nodes[0].senders.List() {
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for p := range table.Follower {
		if table.Owner[p] == 0 && table.Follower[p] == 1 {
			eventually(t, fmt.Sprintf("the copy of partition %d is in sync", p), inSync(nodes[1], uint16(p)))
		}
	}
	if err := nodes[0].Close(); err != nil {
		t.Fatal(err)
	}
	install(t, tableWithout(table, 0), nodes[1], nodes[2])
}

// install has the nodes obey the table, and waits until all of it is served.
func install(t *testing.T, table *ring.Table, nodes ...*Node) {
	t.Helper()
	for _, n := range nodes {
		n.SetTable(table)
	}
	for _, n := range nodes {
		eventually(t, n.cfg.ID+" serves", n.Serving)
	}
}

// inSync reports whether the node reports its copy of p.
func inSync(n *Node, p uint16) func() bool {
	return func() bool { return n.report().Has(p) }
}

// fillTagged writes keys of one partition, some with a time to live.
func fillTagged(t *testing.T, c *client, tag string, count int) {
	t.Helper()
	for i := range count {
		c.send(fmt.Sprintf("SET {%s}%d value%d", tag, i, i))
		c.send(fmt.Sprintf("SET {%s}t%d value%d PX 100000", tag, i, i))
	}
	for range 2 * count {
		if got := c.next(); got != "OK" {
			t.Fatalf("SET answers %s", got)
		}
	}
}

// wantFilled checks what fillTagged has written.
func wantFilled(t *testing.T, c *client, tag string, count int) {
	t.Helper()
	for i := range count {
		c.want(fmt.Sprintf("GET {%s}%d", tag, i), fmt.Sprintf("%q", fmt.Sprintf("value%d", i)))
		var ttl int
		_, _ = fmt.Sscanf(c.do(fmt.Sprintf("PTTL {%s}t%d", tag, i)), "(integer) %d", &ttl)
		if ttl < 50_000 || ttl > 100_000 {
			t.Fatalf("PTTL is %d, want a little less than 100000", ttl)
		}
	}
}

func TestMoveTakesTheDataAlong(t *testing.T) {
	nodes, table, key := startTrio(t)
	p := partitionOf(key)
	a, b := dial(t, nodes[0].Addr()), dial(t, nodes[1].Addr())
	fillTagged(t, a, key, 100)
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moving, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	a.want("SET {"+key+"}late 1", "OK")
	a.want("INCR {"+key+"}late", "(integer) 2")
	a.want("DEL {"+key+"}0", "(integer) 1")
	moved := altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 })
	nodes[1].SetTable(moved) // hands it to the others
	eventually(t, "the new owner serves", nodes[1].Serving)
	b.want("GET {"+key+"}late", `"2"`)
	b.want("GET {"+key+"}0", "(nil)")
	b.want("SET {"+key+"}0 value0", "OK")
	wantFilled(t, b, key, 100)
	if got := a.do("GET {" + key + "}late"); got == `"2"` {
		t.Error("the owner before still serves")
	}
	eventually(t, "the owner before forgets", func() bool { return nodes[0].engine.Count(p) == 0 })
}

func TestFollowerTakesOver(t *testing.T) {
	nodes, table, key := startTrio(t)
	p := partitionOf(key)
	a, b := dial(t, nodes[0].Addr()), dial(t, nodes[1].Addr())
	following := altered(table, func(next *ring.Table) { next.Follower[p] = 1 })
	install(t, following, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	fillTagged(t, a, key, 100)
	eventually(t, "the copy has everything", func() bool { return nodes[1].engine.Count(p) == nodes[0].engine.Count(p) })
	b.want("GET {"+key+"}1", "(error) MOVED "+fmt.Sprint(ring.Slot([]byte(key)))+" "+nodes[0].Addr())
	if err := nodes[0].Close(); err != nil {
		t.Fatal(err)
	}
	alone := tableWithout(following, 0)
	install(t, alone, nodes[1], nodes[2])
	wantFilled(t, b, key, 100)
}

// tableWithout returns the table after a node died: of what it had, followers take over, and the
// rest goes anew to the next.
func tableWithout(t *ring.Table, dead uint16) *ring.Table {
	return altered(t, func(next *ring.Table) {
		next.Nodes = slices.Delete(slices.Clone(t.Nodes), int(dead), int(dead)+1)
		next.Joined = slices.Delete(slices.Clone(t.Joined), int(dead), int(dead)+1)
		next.Moves = nil
		number := func(i uint16) uint16 {
			if i > dead && i != ring.NoNode {
				return i - 1
			}
			return i
		}
		for p := range next.Owner {
			owner, follower := t.Owner[p], t.Follower[p]
			if owner == dead && follower != ring.NoNode {
				owner, follower = follower, ring.NoNode
			}
			if owner == dead {
				owner = (dead + 1) % uint16(len(t.Nodes))
				next.Since[p] = next.Epoch
			}
			if follower == dead {
				follower = ring.NoNode
			}
			next.Owner[p], next.Follower[p] = number(owner), number(follower)
		}
	})
}

// A copy whose snapshot is not complete is not served: misses, not half of the keys.
func TestHalfACopyIsDropped(t *testing.T) {
	nodes, table, key := startTrio(t, func(c *Config) { c.MoveRate = 20 << 10 })
	p := partitionOf(key)
	a, b := dial(t, nodes[0].Addr()), dial(t, nodes[1].Addr())
	fillTagged(t, a, key, 5000) // takes 10 s to move
	following := altered(table, func(next *ring.Table) { next.Follower[p] = 1 })
	install(t, following, nodes[:]...)
	eventually(t, "the copy begins", func() bool { return nodes[1].engine.Count(p) > 0 })
	if inSync(nodes[1], p)() {
		t.Fatal("half a copy is reported in sync")
	}
	if err := nodes[0].Close(); err != nil {
		t.Fatal(err)
	}
	install(t, tableWithout(following, 0), nodes[1], nodes[2])
	b.want("GET {"+key+"}1", "(nil)")
	if got := nodes[1].engine.Count(p); got != 0 {
		t.Errorf("%d keys of half a copy are served", got)
	}
}

// The follower stays in sync when its partition moves, without a new snapshot.
func TestFollowerStaysInSyncThroughAMove(t *testing.T) {
	nodes, table, key := startTrio(t)
	p := partitionOf(key)
	a, b := dial(t, nodes[0].Addr()), dial(t, nodes[1].Addr())
	fillTagged(t, a, key, 50)
	both := altered(table, func(next *ring.Table) {
		next.Follower[p] = 2
		next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}}
	})
	install(t, both, nodes[:]...)
	eventually(t, "the copy that moves is in sync", inSync(nodes[1], p))
	eventually(t, "the follower's copy is in sync", inSync(nodes[2], p))
	moved := altered(both, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 })
	install(t, moved, nodes[:]...)
	b.want("SET {"+key+"}new 1", "OK")
	eventually(t, "the follower's copy is in sync with the new owner", inSync(nodes[2], p))
	eventually(t, "it has what the new owner has", func() bool { return nodes[2].engine.Count(p) == nodes[1].engine.Count(p) })
	if got := nodes[1].senders.To(memberOf(nodes[2])).Progress().Moved; got != 0 {
		t.Errorf("%d bytes were sent anew", got)
	}
	if err := nodes[1].Close(); err != nil {
		t.Fatal(err)
	}
	install(t, tableWithout(moved, 1), nodes[0], nodes[2])
	c := dial(t, nodes[2].Addr())
	c.want("GET {"+key+"}new", `"1"`)
	wantFilled(t, c, key, 50)
}

// What the owner before did last reaches the new owner before that serves, whatever the clients do
// meanwhile.
func TestNothingIsLostInAMove(t *testing.T) {
	nodes, table, key := startTrio(t)
	p := partitionOf(key)
	owner, other := uint16(0), uint16(1)
	clients := []*client{dial(t, nodes[0].Addr()), dial(t, nodes[1].Addr())}
	count := 0
	clients[0].want("SET "+key+" 0", "OK")
	for range 20 {
		moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: owner, To: other}} })
		install(t, moving, nodes[:]...)
		eventually(t, "the copy is in sync", inSync(nodes[other], p))
		table = altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, other })
		done := make(chan struct{})
		go func() {
			defer close(done)
			nodes[other].SetTable(table)
		}()
		for begun := time.Now(); clients[owner].do("INCR "+key) == fmt.Sprintf("(integer) %d", count+1); count++ {
			if time.Since(begun) > replyTimeout {
				t.Fatal("the partition does not move")
			}
		}
		came(t, "the next owner has the table", done)
		install(t, table, nodes[:]...)
		clients[other].want("INCR "+key, fmt.Sprintf("(integer) %d", count+1))
		count++
		owner, other = other, owner
	}
}

// A copy may cease to be in sync between its report and the table that heeds it. The owner then
// sends the rest before it acknowledges the table.
func TestOwnerSendsTheRest(t *testing.T) {
	nodes, table, key := startTrio(t, func(c *Config) { c.MoveRate = 400 << 10 })
	p := partitionOf(key)
	a, b := dial(t, nodes[0].Addr()), dial(t, nodes[1].Addr())
	fillTagged(t, a, key, 5000)
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moving, nodes[:]...)
	eventually(t, "the copy begins", func() bool { return nodes[1].engine.Count(p) > 0 })
	if inSync(nodes[1], p)() {
		t.Fatal("half a copy is reported in sync")
	}
	install(t, altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 }), nodes[:]...)
	wantFilled(t, b, key, 5000)
}

// Whoever loses a partition hands the table to its heir: commands wait until that one serves.
func TestHeirHearsFromTheOwner(t *testing.T) {
	nodes, table, key := startTrio(t)
	p := partitionOf(key)
	dial(t, nodes[0].Addr()).want("SET "+key+" v", "OK")
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moving, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	nodes[0].SetTable(altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 })) // and nobody tells the others
	b := dial(t, nodes[1].Addr())
	eventually(t, "the heir serves", func() bool { return b.do("GET "+key) == `"v"` })
}

// A key that never expires, as far as anybody will see, moves with its value, whether that is large
// or not, and whichever of the two clocks is ahead.
func TestMoveTakesFarExpiriesAlong(t *testing.T) {
	nodes, table, key := startTrio(t)
	p := partitionOf(key)
	a, b := dial(t, nodes[0].Addr()), dial(t, nodes[1].Addr())
	sizes := []int{1, 64 << 10, 200_000}
	for _, size := range sizes {
		a.sendArgs([]byte("SET"), fmt.Appendf(nil, "{%s}%d", key, size), make([]byte, size), []byte("PXAT"), []byte("9223372036854775807"))
		if got := a.next(); got != "OK" {
			t.Fatalf("SET answers %s", got)
		}
	}
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moving, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	install(t, altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 }), nodes[:]...)
	for _, size := range sizes {
		b.want(fmt.Sprintf("STRLEN {%s}%d", key, size), fmt.Sprintf("(integer) %d", size))
	}
}

// A key of a copy lives until its owner says otherwise, whatever this node's clock says; once this node
// is the owner, it is gone at once.
func TestCopiesExpireByTheirOwner(t *testing.T) {
	nodes, table, key := startTrio(t)
	p := partitionOf(key)
	a, b := dial(t, nodes[0].Addr()), dial(t, nodes[1].Addr())
	a.want("SET "+key+" value PX 100000", "OK")
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moving, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	now := nodes[1].cfg.Group.UnixMilli()
	txn := nodes[1].engine.Lock(p, now)
	txn.SetExpire([]byte(key), now-1)
	_, found := txn.Peek([]byte(key))
	txn.Unlock()
	if !found {
		t.Error("a key of the copy has expired")
	}
	install(t, altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 }), nodes[:]...)
	b.want("GET "+key, "(nil)")
	b.want("SET "+key+" value", "OK")
}
