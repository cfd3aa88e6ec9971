package node

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// startPair starts two nodes on loops of their own, without a table.
func startPair(t *testing.T, change ...func(*Config)) (a, b *Node) {
	a = startBare(t, append(change, func(c *Config) { c.ID, c.Boot = "a", 1 })...)
	b = startBare(t, append(change, func(c *Config) { c.ID, c.Boot = "b", 2 })...)
	return a, b
}

// keyIn returns a key of which the table gives the partition to the owner.
func keyIn(t *testing.T, table *ring.Table, owner int) string {
	t.Helper()
	for i := range 10_000 {
		key := "key" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		if int(table.Owner[partitionOf(key)]) == owner {
			return key
		}
	}
	t.Fatalf("no key of node %d", owner)
	return ""
}

func TestFirstTableWaitsForTheOthers(t *testing.T) {
	a, b := startPair(t)
	table := tableOf(nil, memberOf(a), memberOf(b))
	// b is known, but does not answer yet: its loops are held.
	release := holdLoops(t, b)
	a.SetTable(table)
	key := keyIn(t, table, 0)
	c := dial(t, a.Addr())
	c.want("GET "+key, saysTryAgain)
	release()
	eventually(t, "a serves", a.Serving)
	c.want("GET "+key, "(nil)")
	// By the hand-over b obeys the table as well, and takes over its own part.
	eventually(t, "b serves", b.Serving)
	if got := b.view.Load().Epoch(); got != table.Epoch {
		t.Errorf("b obeys epoch %d, want %d", got, table.Epoch)
	}
}

// holdLoops stops the loops of a node until release is called.
func holdLoops(t *testing.T, n *Node) (release func()) {
	t.Helper()
	held := make(chan struct{})
	var holding sync.WaitGroup
	for _, l := range n.cfg.Group.Loops() {
		holding.Add(1)
		l.Post(func() { holding.Done(); <-held })
	}
	holding.Wait()
	release = sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	return release
}

func TestMoveBetweenNodes(t *testing.T) {
	a, b := startPair(t)
	first := tableOf(nil, memberOf(a), memberOf(b))
	a.SetTable(first)
	eventually(t, "both serve", func() bool { return a.Serving() && b.Serving() })
	key := keyIn(t, first, 0)
	ca, cb := dial(t, a.Addr()), dial(t, b.Addr())
	ca.want("SET "+key+" old", "OK")
	ca.want("SET {"+key+"}2 old", "OK")

	// The newer table reaches b only; b hands it to a before it serves.
	second := assign(first, partitionOf(key), 1)
	b.SetTable(second)
	eventually(t, "b serves what it gained", b.Serving)
	cb.want("GET "+key, "(nil)")
	cb.want("SET "+key+" new", "OK")
	if got := ca.do("GET " + key); got == `"old"` {
		t.Error("the previous owner still serves")
	}
	if got := a.engine.Count(partitionOf(key)); got != 0 {
		t.Errorf("the previous owner keeps %d keys", got)
	}

	// Back again: what a once had is gone for good.
	third := assign(second, partitionOf(key), 0)
	a.SetTable(third)
	eventually(t, "a serves again", a.Serving)
	ca.want("GET "+key, "(nil)")
}

// TestNewSinceDropsData: our own partition begins anew, as when we were away and
// somebody else had it meanwhile.
func TestNewSinceDropsData(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	c.want("SET k v", "OK")
	c.want("SET stays v", "OK")
	n.SetTable(assign(n.view.Load().Table, partitionOf("k"), 0))
	eventually(t, "it serves again", n.Serving)
	c.want("GET k", "(nil)")
	c.want("GET stays", `"v"`)
}

func TestOldTablesAreIgnored(t *testing.T) {
	n := startNode(t)
	first := n.view.Load().Table
	second := assign(first, partitionOf("k"), 0)
	n.SetTable(second)
	dial(t, n.Addr()).want("SET k v", "OK")
	n.SetTable(first)
	n.SetTable(second)
	n.SetTable(nil)
	if got := n.view.Load().Table; got != second {
		t.Errorf("obeys epoch %d, want %d", got.Epoch, second.Epoch)
	}
	dial(t, n.Addr()).want("GET k", `"v"`)
}

// TestDeadNodeIsNotWaitedForForEver: a newer table without it ends the wait.
func TestDeadNodeIsNotWaitedForForEver(t *testing.T) {
	a := startBare(t)
	gone := ring.Member{ID: "b", Boot: 2, State: ring.Serving, Addr: "127.0.0.1:1", Fingerprint: ring.Fingerprint()}
	first := tableOf(nil, memberOf(a), gone)
	a.SetTable(first)
	if a.Serving() {
		t.Fatal("serves without b's word")
	}
	a.SetTable(tableOf(first, memberOf(a)))
	eventually(t, "a serves without b", a.Serving)
	dial(t, a.Addr()).want("SET k v", "OK")
}

// TestForeignTableIsNotAcknowledged: a node of another lineage does not follow
// ours, so it must not say that it does.
func TestForeignTableIsNotAcknowledged(t *testing.T) {
	n := startNode(t)
	other := *n.view.Load().Table
	other.Epoch, other.Issuer = 9, "someone@else"
	p, err := member.DialPeer(t.Context(), nil, n.Addr(), nil, 5)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if taken, err := p.Take(other.Encode()); err == nil {
		t.Errorf("acknowledged epoch %d of a foreign table", taken.Epoch)
	}
	if _, err := p.Call(member.VerbTake, "nonsense"); err == nil {
		t.Error("acknowledged nonsense")
	}
	mine := n.view.Load().Table
	if taken, err := p.Take(mine.Encode()); err != nil || taken.Epoch != mine.Epoch {
		t.Errorf("its own table: epoch %d, %v", taken.Epoch, err)
	}
}

func TestFetchTable(t *testing.T) {
	n := startBare(t)
	if got, err := member.FetchTable(t.Context(), nil, n.Addr(), nil); got != nil || err != nil {
		t.Errorf("without a table: %v, %v; want none", got, err)
	}
	n.SetTable(soleTable(n))
	got, err := member.FetchTable(t.Context(), nil, n.Addr(), nil)
	if err != nil || got.Version() != n.view.Load().Table.Version() {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := member.FetchTableOf(t.Context(), nil, n.Addr(), n.name(), nil); err != nil || got == nil {
		t.Errorf("by its name: %v, %v, want the table", got, err)
	}
	if got, err := member.FetchTableOf(t.Context(), nil, n.Addr(), n.name()+"0", nil); err == nil {
		t.Errorf("by another name: %v, want an error", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := member.FetchTable(ctx, nil, n.Addr(), nil); err == nil {
		t.Error("no error from a context that has ended")
	}
}

// TestNoTwoOwners moves a partition to and fro: at no moment may both nodes serve
// it.
func TestNoTwoOwners(t *testing.T) {
	a, b := startPair(t)
	table := tableOf(nil, memberOf(a), memberOf(b))
	a.SetTable(table)
	eventually(t, "both serve", func() bool { return a.Serving() && b.Serving() })
	key := keyIn(t, table, 0)
	p := partitionOf(key)

	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			// Two nodes' views cannot be read at one moment: read a's around b's.
			before := a.view.Load()
			theirs := b.view.Load().Standing[p] == ownership.Serving
			if theirs && before.Standing[p] == ownership.Serving && a.view.Load() == before {
				t.Error("both nodes serve the partition")
				return
			}
		}
	})
	for i := range 20 {
		owner := uint16((i + 1) % 2)
		table = assign(table, p, owner)
		nodes := []*Node{a, b}
		nodes[owner].SetTable(table)
		eventually(t, "the new owner serves", nodes[owner].Serving)
	}
	close(stop)
	watch.Wait()
}

func TestBarrierWaitsForLoops(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	held, holding := make(chan struct{}), make(chan struct{})
	n.workers[0].loop.Post(func() { close(holding); <-held })
	came(t, "the loop", holding)
	installed := make(chan struct{})
	go func() {
		n.SetTable(assign(n.view.Load().Table, 5, 0))
		close(installed)
	}()
	eventually(t, "the new view is published", func() bool { return n.view.Load().Epoch() == 2 })
	select {
	case <-installed:
		t.Error("SetTable returned while a loop may still be executing under the old table")
	default:
	}
	close(held)
	came(t, "the table is installed", installed)
}

// TestLeavingNodeIsAsked: a node that leaves is in no newer table, but serves under the old one
// until it hears of it.
func TestLeavingNodeIsAsked(t *testing.T) {
	a, b := startPair(t)
	first := tableOf(nil, memberOf(a), memberOf(b))
	a.SetTable(first)
	eventually(t, "both serve", func() bool { return a.Serving() && b.Serving() })
	source := &fakeSource{table: first}
	source.setAlive(memberOf(a), memberOf(b))
	b.SetAgent(source)
	key := keyIn(t, first, 0)
	ca, cb := dial(t, a.Addr()), dial(t, b.Addr())
	ca.want("SET "+key+" old", "OK")

	release := holdLoops(t, a) // a is busy and does not answer
	b.SetTable(tableOf(first, memberOf(b)))
	cb.want("GET "+key, saysTryAgain)
	release()
	eventually(t, "b serves what it gained", b.Serving)
	if got := a.view.Load().Epoch(); got != 2 {
		t.Errorf("the leaving node obeys epoch %d when b serves, want 2", got)
	}
	cb.want("SET "+key+" new", "OK")
	ca.want("GET "+key, fmt.Sprintf("(error) MOVED %d %s", slotOf(key), b.Addr()))
}

// TestDeadNodeIsNotAsked: what gossip does not call alive is not waited for.
func TestDeadNodeIsNotAsked(t *testing.T) {
	a, b := startPair(t, func(c *Config) { c.StallLimit = 3 * time.Second }) // it is waited for that long
	first := tableOf(nil, memberOf(a), memberOf(b))
	a.SetTable(first)
	eventually(t, "both serve", func() bool { return a.Serving() && b.Serving() })
	source := &fakeSource{table: first}
	source.setAlive(memberOf(a), memberOf(b))
	b.SetAgent(source)
	holdLoops(t, a) // frozen for good
	b.SetTable(tableOf(first, memberOf(b)))
	if b.Serving() {
		t.Error("b serves what a live node may be serving")
	}
	source.setAlive(memberOf(b))
	eventually(t, "b serves what it gained", b.Serving)
}

// TestNodeDroppedWhileItStoodStill: gossip called it dead and the table dropped it, but it runs
// again, and serves until it hears of the table.
func TestNodeDroppedWhileItStoodStill(t *testing.T) {
	a, b := startPair(t)
	first := tableOf(nil, memberOf(a), memberOf(b))
	a.SetTable(first)
	eventually(t, "both serve", func() bool { return a.Serving() && b.Serving() })
	source := &fakeSource{table: first}
	source.setAlive(memberOf(b))
	b.SetAgent(source)
	b.SetTable(tableOf(first, memberOf(b)))
	eventually(t, "b serves what it gained", b.Serving)
	if got := a.view.Load().Epoch(); got != 2 {
		t.Errorf("the dropped node obeys epoch %d when b serves, want 2", got)
	}
}

// TestReleaseWaitsForProxies: a node does not leave while a proxy, which may not have the table yet, uses it.
func TestReleaseWaitsForProxies(t *testing.T) {
	nodes, table, key := startTrio(t)
	proxy := commonPipe(t, nodes[0])
	moved := altered(table, func(next *ring.Table) {
		for p := range next.Owner {
			if next.Owner[p] == 0 {
				next.Owner[p] = 1
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	nodes[0].Release(ctx, moved)
	if ctx.Err() == nil {
		t.Error("the node is released though a pipe is open")
	}
	proxy.send("GET " + key)
	if got := string(proxy.read()); !strings.HasPrefix(got, "-MOVED") {
		t.Errorf("released, the node answers %q, want -MOVED", got)
	}
	proxy.conn.Close()
	patient, end := context.WithTimeout(t.Context(), 20*time.Second)
	defer end()
	nodes[0].Release(patient, moved)
	if patient.Err() != nil {
		t.Error("the node is not released though no pipe is left")
	}
}

// TestReleaseWaitsForTheHandOver: a node that ends when it is released has given all
// that was written to it to the next owner, even if that hears of it only later.
func TestReleaseWaitsForTheHandOver(t *testing.T) {
	nodes, table, key := startTrio(t)
	p := partitionOf(key)
	a := dial(t, nodes[0].Addr())
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moving, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	const count = 40 // less than a log holds
	value := bytes.Repeat([]byte("v"), 32<<10)
	for i := range count {
		a.sendArgs([]byte("SET"), fmt.Appendf(nil, "{%s}%d", key, i), value)
	}
	for range count {
		if got := a.next(); got != "OK" {
			t.Fatalf("SET answers %s", got)
		}
	}
	moved := altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	begun := time.Now()
	nodes[0].Release(ctx, moved)
	t.Logf("released in %v", time.Since(begun))
	if ctx.Err() != nil {
		t.Fatal("the node was not released in time")
	}
	if err := nodes[0].Close(); err != nil {
		t.Fatal(err)
	}
	if got := nodes[1].engine.Count(p); got != count {
		t.Errorf("released, and the next owner has %d keys, want %d", got, count)
	}
}
