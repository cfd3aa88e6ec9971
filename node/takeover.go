package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// A new table changes what this node serves in three steps, so that at no time
// two nodes serve a partition, and data of an earlier ownership is never seen:
//
//	1  view with the new table; what is gained waits, what is lost is MOVED
//	   ── barrier: no loop executes under the old view any more ──
//	2  the engine drops what was lost, and what is gained: anything there is old
//	3  every other node acknowledges the table (DUNLIN TAKE): it has passed its own
//	   step 1 and barrier ──▶ view in which what was gained is served
//
// Step 3 is taken in a goroutine and asks again until it succeeds, or the next
// table comes. Asking every node, not just the previous owners, covers owners of
// tables that this node never saw; asking nodes that are alive and not in the table
// covers those that leave: they serve until they hear of it. A node that died is not
// waited for longer than it takes the coordinator to issue a table without it, and
// one outside the table not longer than gossip calls it alive.
//
// A node that the table has just dropped as dead may run: it stood still, and went
// on before the table was issued, when everybody still named the older one as
// current. It is asked too, until it acknowledges, or refuses the connection (its
// process has ended), or has not answered for StallLimit: then it stands still, and
// will fence itself and hear of this table when it goes on.

const (
	// retryPeriod is how soon a node is asked again.
	retryPeriod = 100 * time.Millisecond
	// takeTimeout is how long a node may take to acknowledge: its loops have a
	// second to pass the barrier.
	takeTimeout = 2 * time.Second
)

// departed is a node that a table dropped and that may still serve by an older one.
type departed struct {
	ring.Member
	until time.Time // when silence proves that it does not run
}

// noteDepartedLocked keeps track of the nodes that tables drop. The caller holds
// tableMu.
func (n *Node) noteDepartedLocked(old, next *ring.Table) {
	now := time.Now()
	if old != nil {
		for _, m := range old.Nodes {
			if _, noted := n.departed[m.Name()]; !noted && m.Name() != n.name() {
				n.departed[m.Name()] = departed{m, now.Add(n.cfg.StallLimit)}
			}
		}
	}
	maps.DeleteFunc(n.departed, func(_ string, d departed) bool {
		// Where another process listens, the older one has ended.
		back := slices.ContainsFunc(next.Nodes, func(m ring.Member) bool { return m.Addr == d.Addr })
		return back || now.After(d.until)
	})
}

func (n *Node) name() string { return ring.Member{ID: n.cfg.ID, Boot: n.cfg.Boot}.Name() }

// askDeparted hands the table to a node that it drops, and returns when that node
// serves by no older table, and whether it has said so.
func (n *Node) askDeparted(ctx context.Context, d departed, epoch uint64, encoded []byte) (acknowledged bool) {
	patience, cancel := context.WithDeadline(ctx, d.until)
	defer cancel()
	for patience.Err() == nil {
		err := n.handTable(patience, d.Member, epoch, encoded)
		acknowledged = err == nil
		if acknowledged || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errReplaced) {
			break
		}
		select {
		case <-patience.Done():
		case <-time.After(retryPeriod):
		}
	}
	if ctx.Err() == nil {
		n.tableMu.Lock()
		defer n.tableMu.Unlock()
		delete(n.departed, d.Name())
	}
	return acknowledged
}

// SetTable makes the node obey t, if it is newer than what it obeys. On return,
// nothing is executed under an older table any more, and what was lost is
// dropped. Gained partitions may still wait. Must not be called on a loop.
func (n *Node) SetTable(t *ring.Table) {
	if t == nil {
		return
	}
	n.tableMu.Lock()
	defer n.tableMu.Unlock()
	old := n.view.Load()
	if t.Epoch <= old.Epoch() || n.ctx.Err() != nil {
		return
	}
	next := old.Next(t, n.cfg.ID, n.cfg.Boot)
	n.view.Store(next)
	if !n.barrier() {
		return
	}
	n.handOverLocked(old, next)
	n.discard(old, next)
	n.review(next, next.WasAway(old), n.sparedLocked())
	n.settled.Store(next)
	n.askForCopies(next)
	n.refeedLocked(next, nil)
	n.noteDepartedLocked(old.Table, t)
	n.beginTakeOver(next)
	now := n.view.Load()
	n.log.Info("table installed", "epoch", t.Epoch, "nodes", len(t.Nodes),
		"serving", now.Count(ownership.Serving), "gained", now.Count(ownership.Gained))
}

// discard drops what the engine holds of partitions of ours that begin anew. A new hash seed puts every key elsewhere: it
// empties the engine.
func (n *Node) discard(old, next *ownership.View) {
	if old.Table == nil || old.Table.Seed != next.Table.Seed {
		for name, f := range n.feeding {
			f.sender.close()
			delete(n.feeding, name)
		}
		n.copies.clear()
		n.engine.Reset(next.Table.Seed)
		return
	}
	for p := range uint16(ring.Partitions) {
		if old.Owns(p) && next.Owns(p) && !old.Keeps(p, next.Table) {
			n.engine.Drop(p)
		}
	}
}

// barrier returns when every loop has finished what it executed under an older
// view. Commands are short, so a loop that takes longer than Each waits is waited
// for again. False if the node closes meanwhile.
func (n *Node) barrier() bool {
	for n.ctx.Err() == nil {
		err := n.cfg.Group.Each(func(*netloop.Loop) {})
		if err == nil {
			return true
		}
		n.log.Warn("cannot pass a table's barrier yet", "error", err)
		n.pause(retryPeriod)
	}
	return false
}

// beginTakeOver starts step 3 for the view, in the place of the one under way.
// The caller holds tableMu.
func (n *Node) beginTakeOver(v *ownership.View) {
	if n.takeOver != nil {
		n.takeOver()
		n.takeOver = nil
	}
	asked := n.unaskedLocked(v)
	if v.Count(ownership.Gained) == 0 {
		return
	}
	dropped := slices.Collect(maps.Values(n.departed))
	if len(asked)+len(dropped) == 0 {
		n.serveGainedLocked(v, nil)
		return
	}
	ctx, cancel := context.WithCancel(n.ctx)
	n.takeOver = cancel
	n.goJob(func() {
		defer cancel()
		n.askAll(ctx, v, asked, dropped)
	})
}

// unaskedLocked returns the nodes that have yet to acknowledge an epoch as new as
// the newest gain. It forgets the nodes that are gone.
func (n *Node) unaskedLocked(v *ownership.View) []ring.Member {
	known := n.adopted
	n.adopted = make(map[string]uint64, len(v.Table.Nodes))
	var asked []ring.Member
	for i, m := range v.Table.Nodes {
		if i == v.Self {
			continue
		}
		n.adopted[m.Name()] = known[m.Name()]
		if known[m.Name()] < v.Newest {
			asked = append(asked, m)
		}
	}
	for _, m := range n.aliveNodes() {
		if m.ID == n.cfg.ID || v.Table.NodeIndex(m.ID, m.Boot) >= 0 {
			continue
		}
		n.adopted[m.Name()] = known[m.Name()]
		if known[m.Name()] < v.Newest {
			asked = append(asked, m)
		}
	}
	return asked
}

// aliveNodes returns the nodes that gossip calls alive.
func (n *Node) aliveNodes() []ring.Member {
	source := n.source()
	if source == nil {
		return nil
	}
	var nodes []ring.Member
	for _, m := range source.Members() {
		if m.Role == ring.RoleNode {
			nodes = append(nodes, m)
		}
	}
	return nodes
}

// awaited tells whether a node must acknowledge: one of the table always, another
// one while it is alive.
func (n *Node) awaited(t *ring.Table, m ring.Member) bool {
	if t.NodeIndex(m.ID, m.Boot) >= 0 {
		return true
	}
	return slices.ContainsFunc(n.aliveNodes(), func(alive ring.Member) bool { return alive.Name() == m.Name() })
}

// askAll hands the table to every node until it is acknowledged, and then
// serves what was gained. ctx ends when a newer table is installed.
func (n *Node) askAll(ctx context.Context, v *ownership.View, nodes []ring.Member, dropped []departed) {
	encoded := v.Table.Encode()
	var wait sync.WaitGroup
	for _, m := range nodes {
		wait.Go(func() { n.askOne(ctx, m, v.Table, encoded) })
	}
	heard := make([]bool, len(dropped))
	for i, d := range dropped {
		wait.Go(func() { heard[i] = n.askDeparted(ctx, d, v.Table.Epoch, encoded) })
	}
	wait.Wait()
	n.tableMu.Lock()
	defer n.tableMu.Unlock()
	if ctx.Err() != nil || n.view.Load() != v {
		return
	}
	ended := make(map[string]bool)
	for i, d := range dropped {
		ended[d.Name()] = heard[i]
	}
	n.serveGainedLocked(v, ended)
}

// serveGainedLocked serves what was gained, with the copies of it that are whole. ended are nodes outside the table that have
// acknowledged it.
func (n *Node) serveGainedLocked(v *ownership.View, ended map[string]bool) {
	acknowledged := func(source string) bool {
		return ended[source] || n.adopted[source] > 0 && n.adopted[source] >= v.Newest
	}
	next := v.WithGained()
	n.settled.Store(next) // nobody sends us the rest any more
	fresh, lost := n.claim(v, acknowledged)
	if !n.barrier() {
		return
	}
	n.refeedLocked(next, fresh)
	n.view.Store(next)
	n.log.Info("taken over", "epoch", v.Table.Epoch, "partitions", len(fresh), "lost", lost)
}

// askOne hands the table to one node until it is acknowledged.
func (n *Node) askOne(ctx context.Context, m ring.Member, t *ring.Table, encoded []byte) {
	for attempt := 0; ctx.Err() == nil && n.awaited(t, m); attempt++ {
		err := n.handTable(ctx, m, t.Epoch, encoded)
		if err == nil {
			n.acknowledged(m, t.Epoch)
		}
		if err == nil || errors.Is(err, errReplaced) {
			return
		}
		if attempt == 10 { // after a second, once: it may just be starting
			n.log.Warn("still taking over", "epoch", t.Epoch, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPeriod):
		}
	}
}

// errReplaced: another life of the node answers where this one was, so that this one has ended.
var errReplaced = errors.New("another process has taken its address")

// handTable is one DUNLIN TAKE.
func (n *Node) handTable(ctx context.Context, m ring.Member, epoch uint64, encoded []byte) error {
	ctx, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	p, err := member.DialPeer(ctx, n.cfg.Dialer, m.Addr, n.secret, n.cfg.Boot)
	if err != nil {
		return err
	}
	defer p.Close()
	adopted, name, err := p.Take(encoded)
	switch {
	case err != nil:
		return fmt.Errorf("cannot hand table to node %s: %w", m.Name(), err)
	case name != m.Name():
		return fmt.Errorf("cannot hand table to node %s: %w", m.Name(), errReplaced)
	case adopted < epoch:
		return fmt.Errorf("cannot hand table to node %s: it obeys epoch %d, want %d", m.Name(), adopted, epoch)
	}
	return nil
}

func (n *Node) acknowledged(m ring.Member, epoch uint64) {
	n.tableMu.Lock()
	defer n.tableMu.Unlock()
	if have, present := n.adopted[m.Name()]; present {
		n.adopted[m.Name()] = max(have, epoch)
	}
}
