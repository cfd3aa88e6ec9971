package node

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/dunlin-cache/dunlin/internal/boottime"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/ring"
)

// node/ownership decides what this node serves, and this file carries it out: an event, the actions
// that follow, and the answers that some of them ask for. All that runs under tableMu, so that no
// other event comes between.

// retryPeriod is the pause before something that failed is tried again.
const retryPeriod = ownership.RetryPeriod

// obedience is the node's side of its ownership.Machine. tableMu protects it.
type obedience struct {
	machine *ownership.Machine
	begun   time.Duration // the machine's time 0, by boottime
	timer   *time.Timer   // runs at the machine's Due

	asks      context.Context // ends with the take-over under way; nil before the first one
	endAsks   context.CancelFunc
	handOvers map[uint64]*handOver  // under way
	lostHolds map[*engine.Hold]bool // whose end the machine is told
	claimed   *claimed              // between Claim and Refeed
	waiting   map[uint64]chan ownership.Reply
	waits     uint64 // the newest key of waiting
	encoded   []byte // encodedOf as it travels
	encodedOf *ring.Table
	loses     bool // since the last barrier: partitions, whose tracked keys nobody here hears of any more
}

// claimed is what Claim found of the gained partitions.
type claimed struct {
	of   map[uint16]replica.Claim
	lost int // partitions whose data is lost
}

// startObedience makes the machine. Start calls it before anybody else knows the node.
func (n *Node) startObedience() {
	n.obedience = obedience{
		machine: ownership.New(ownership.Config{ID: n.cfg.ID, Boot: n.cfg.Boot, StallLimit: n.cfg.StallLimit}),
		begun:   boottime.Now(), handOvers: make(map[uint64]*handOver),
		lostHolds: make(map[*engine.Hold]bool), waiting: make(map[uint64]chan ownership.Reply),
	}
	n.timer = time.AfterFunc(time.Hour, n.tick)
	n.timer.Stop()
	n.fence.Limit, n.fence.Absence = n.cfg.StallLimit, absence
	n.view.Store(ownership.None)
}

// SetTable makes the node obey t, if it is newer than the present table. On return the node
// executes nothing under an older table, and has dropped what it lost. Gained partitions may still
// wait. SetTable must not be called on a loop.
func (n *Node) SetTable(t *ring.Table) {
	n.step(func(m *ownership.Machine, now time.Duration) { m.Install(now, t) })
}

// tick is the timer's function.
func (n *Node) tick() {
	n.step(func(m *ownership.Machine, now time.Duration) { m.Tick(now) })
}

// step passes an event to the machine and carries out what it decides. It waits for the loops, so
// it must not be called on one. Once the node closes it does nothing.
func (n *Node) step(event func(m *ownership.Machine, now time.Duration)) {
	n.tableMu.Lock()
	defer n.tableMu.Unlock()
	if n.ctx.Err() != nil {
		return
	}
	m := n.machine
	m.Members(n.aliveNodes())
	event(m, n.monotonic())
	for actions := m.Actions(); len(actions) > 0; actions = m.Actions() {
		for _, a := range actions {
			if !n.doLocked(a) {
				return // the node closes
			}
		}
	}
	if due, ok := m.Due(); ok {
		n.timer.Reset(due - n.monotonic())
	} else {
		n.timer.Stop()
	}
}

// monotonic is the time by which freshness is judged: the machine's, and that of copies and streams.
// It goes on while the computer is suspended.
func (n *Node) monotonic() time.Duration { return boottime.Now() - n.begun }

// doLocked runs an action. It returns false if the node closes meanwhile.
func (n *Node) doLocked(a ownership.Action) bool {
	switch a := a.(type) {
	case ownership.Obey:
		n.obeyLocked(a.View)
	case ownership.Barrier:
		if !n.barrier() || a.Holds && !n.awaitHolds() {
			return false
		}
		if n.loses { // no loop marks keys under the older view any more, and nobody else serves them yet
			n.loses = false
			n.flushTracking(false)
		}
		n.passed.Store(n.view.Load().Table)
		n.machine.BarrierPassed(n.monotonic(), n.heldBeyondLocked())
	case ownership.HandOver:
		n.handOverLocked(a)
	case ownership.Reset:
		n.resetLocked(a.Seed)
	case ownership.Drop:
		for _, p := range a.Partitions {
			n.engine.Drop(p)
		}
	case ownership.Review:
		n.copies.Review(a.View, a.Away, n.feeding.Spared(), n.aliveNodes())
	case ownership.Settle:
		n.copies.Settle(a.View)
	case ownership.AskForCopies:
		n.copies.Ask(a.View)
	case ownership.Refeed:
		n.refeedAfterLocked(a.View)
	case ownership.Ask:
		n.askLocked(a)
	case ownership.CancelAsks:
		n.endAsks()
		n.asks = nil
	case ownership.Tell:
		n.tellLocked(a)
	case ownership.Claim:
		n.claimed = new(claimed)
		n.claimed.of, n.claimed.lost = n.copies.Claim(a.View, a.Ended)
		n.machine.Claimed(n.monotonic())
	case ownership.Finish:
		n.finishHandOverLocked(a.HandOver)
	case ownership.Reply:
		n.waiting[a.ID] <- a
		delete(n.waiting, a.ID)
	default:
		panic("BUG: unknown action")
	}
	return true
}

// obeyLocked has the loops execute under v, from their next input on.
func (n *Node) obeyLocked(v *ownership.View) {
	if v.Newest > n.view.Load().Newest {
		n.following.Gained(v.Newest, n.cfg.Group.Clock())
	}
	n.discardLocked(v)
	n.tearLocked(v)
	n.loses = n.loses || losesSome(n.view.Load(), v)
	n.following.Obeys(n.view.Load(), v)
	n.awaitTold(v)
	n.noteMoves(v)
	serving := v.Count(ownership.Serving)
	if serving > 0 {
		n.hasServed.Store(true)
	}
	n.view.Store(v)
	n.reviewBlocked()
	n.events.review()
	n.log.Info("obeys table", "epoch", v.Epoch(), "nodes", len(v.Table.Nodes),
		"serving", serving, "gained", v.Count(ownership.Gained))
	for _, w := range n.workers {
		w.loop.Post(w.endTopics)
	}
	n.movesChanged()
}

// discardLocked drops what was handed over of the channels that the next view brings, or begins
// anew, when they were to come here before: they have been elsewhere since.
func (n *Node) discardLocked(next *ownership.View) {
	old := n.view.Load()
	var gained ring.PartitionSet
	for p := range uint16(ring.Partitions) {
		if next.Began[p] != old.Began[p] && next.Owns(p) {
			gained.Add(p)
		}
	}
	n.discard(gained, old.Epoch())
}

// discard drops what is kept of the channels of partitions under tables up to an epoch.
func (n *Node) discard(of ring.PartitionSet, epoch uint64) {
	if !of.Empty() && n.broker.Keeps() {
		n.broker.Discard(func(channel string) bool { return of.Has(ring.PartitionOf([]byte(channel))) }, epoch)
	}
}

// tearLocked tells of a gap those who listen to channels that come back under the next view, and that the owner before
// has not handed over, or not for them.
func (n *Node) tearLocked(next *ownership.View) {
	returned := n.following.Returned(n.view.Load(), next)
	var torn ring.PartitionSet
	if clusterLevel(next.Table) >= ring.HandedLevel {
		torn = n.following.Torn(n.view.Load(), next)
	}
	if torn.Empty() && returned.Empty() {
		return
	}
	isTorn := func(channel string) bool { return torn.Has(ring.PartitionOf([]byte(channel))) }
	n.goJob(func() {
		n.broker.Gap(func(channel string) uint64 {
			if p := ring.PartitionOf([]byte(channel)); torn.Has(p) || returned.Has(p) {
				return next.Began[p]
			}
			return 0
		}, isTorn, func() bool { return n.ctx.Err() == nil })
	})
}

// awaitTold has those who listen to the channels that the next view takes from this node stay until it
// has looked who they are.
func (n *Node) awaitTold(next *ownership.View) {
	old := n.view.Load()
	for p := range uint16(ring.Partitions) {
		switch {
		case next.Standing[p] != ownership.Foreign:
			n.untold[p].Store(false)
		case old.Standing[p] != ownership.Foreign:
			n.untold[p].Store(true)
		}
	}
}

// toldBut is tolds for what a view had, but for the channels of the set.
func (n *Node) toldBut(old *ownership.View, set *ring.PartitionSet) {
	var others ring.PartitionSet
	for p := range uint16(ring.Partitions) {
		if old.Standing[p] != ownership.Foreign && !set.Has(p) {
			others.Add(p)
		}
	}
	n.tolds(&others)
}

// tolds notes that this node has looked who listens to the channels of some partitions, or need not.
func (n *Node) tolds(set *ring.PartitionSet) {
	for p := range uint16(ring.Partitions) {
		if set.Has(p) {
			n.untold[p].Store(false)
		}
	}
}

// losesSome reports whether some partition is served under a view, and not under the next one.
func losesSome(v, next *ownership.View) bool {
	for p := range v.Standing {
		if v.Standing[p] == ownership.Serving && next.Standing[p] != ownership.Serving {
			return true
		}
	}
	return false
}

// barrier returns when every loop has finished what it executed under an older view. If a loop takes
// longer than Each waits, barrier waits again. It returns false if the node closes meanwhile.
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

// resetLocked empties the engine for another hash seed, by which every key has another place.
func (n *Node) resetLocked(seed uint64) {
	n.feeding.Clear()
	n.actFeedingLocked()
	n.copies.Clear()
	all := ring.AllPartitions()
	n.tolds(&all)
	n.noteHeard(&all)
	n.engine.Reset(seed)
	n.flushTracking(false)
}

// refeedAfterLocked brings the feeds in line with v, after a table or after Claim.
func (n *Node) refeedAfterLocked(v *ownership.View) {
	c := n.claimed
	n.claimed = nil
	if c == nil {
		n.refeedLocked(v, nil)
		return
	}
	n.refeedLocked(v, c.of)
	n.copies.Own(c.of)
	n.log.Info("taken over", "epoch", v.Epoch(), "partitions", len(c.of), "lost", c.lost)
}

// aliveNodes returns the nodes that gossip calls alive, nil without gossip.
func (n *Node) aliveNodes() []ring.Member {
	source := n.source()
	if source == nil {
		return nil
	}
	nodes := []ring.Member{}
	for _, m := range source.Members() {
		if m.Role == ring.RoleNode {
			nodes = append(nodes, m)
		}
	}
	return nodes
}

func (n *Node) name() string { return ring.Member{ID: n.cfg.ID, Boot: n.cfg.Boot}.Name() }

// DUNLIN TAKE, from both ends: asking other nodes to obey a table, and obeying one.

// askLocked asks a node to obey a table, and tells the machine the outcome.
func (n *Node) askLocked(a ownership.Ask) {
	if n.asks == nil {
		n.asks, n.endAsks = context.WithCancel(n.ctx)
	}
	ctx, encoded := n.asks, n.encodeLocked(a.Table)
	n.goJob(func() {
		ctx, cancel := context.WithTimeout(ctx, a.Within)
		defer cancel()
		taken, err := n.handTable(ctx, a.Member, encoded)
		if err != nil && a.Attempt == 10 { // after a second, once: it may just be starting
			n.log.Warn("still taking over", "epoch", a.Table.Epoch, "error", err)
		}
		n.step(func(m *ownership.Machine, now time.Duration) {
			if err != nil {
				m.Failed(now, a.ID, errors.Is(err, syscall.ECONNREFUSED))
				return
			}
			m.Acknowledged(now, a.ID, taken.Name, taken.Epoch, taken.Held)
		})
	})
}

// tellLocked hands a table to a node, whose answer does not matter.
func (n *Node) tellLocked(a ownership.Tell) {
	encoded := n.encodeLocked(a.Table)
	n.goJob(func() {
		ctx, cancel := context.WithTimeout(n.ctx, ownership.TakeTimeout)
		defer cancel()
		if _, err := n.handTable(ctx, a.Member, encoded); err != nil {
			n.log.Debug("the next owner hears of a table by gossip only", "node", a.Member.Name(), "error", err)
		}
		var heard ring.PartitionSet // or it is out of reach, which must not make clients wait
		for p := range uint16(ring.Partitions) {
			if a.Table.OwnerOf(p).Name() == a.Member.Name() {
				heard.Add(p)
			}
		}
		n.noteHeard(&heard)
	})
}

// encodeLocked returns the encoded table, which nobody may change. It keeps the last one, because
// one table goes to many nodes.
func (n *Node) encodeLocked(t *ring.Table) []byte {
	if n.encodedOf != t {
		n.encoded, n.encodedOf = t.Encode(), t
	}
	return n.encoded
}

// handTable hands a table to a node (DUNLIN TAKE), and returns how the node acknowledges it.
func (n *Node) handTable(ctx context.Context, m ring.Member, encoded []byte) (taken member.Taken, err error) {
	p, err := member.DialPeer(ctx, n.cfg.Dialer, m.Addr, n.cfg.Secret.First(), n.cfg.Boot)
	if err != nil {
		return taken, err
	}
	defer p.Close()
	if taken, err = p.Take(encoded); err != nil {
		return taken, fmt.Errorf("cannot hand table to node %s: %w", m.Name(), err)
	}
	return taken, nil
}

// obeyTaken obeys a table that another node hands over, and returns the answer. That is also
// StillBusy if the node closes. obeyTaken must not be called on a loop.
func (n *Node) obeyTaken(t *ring.Table) ownership.Reply {
	if source := n.source(); source != nil {
		source.Adopt(t)
		n.SetTable(source.Table())
	} else if t.Newer(n.view.Load().Table) {
		n.SetTable(t)
	}
	reply := n.await(func(m *ownership.Machine, now time.Duration, id uint64) { m.Take(now, id, t) })
	select {
	case r := <-reply:
		return r
	case <-n.ctx.Done():
		return ownership.Reply{Answer: ownership.StillBusy}
	}
}

// farewell is how long a node that leaves waits for proxies to close their pipes. That takes them up
// to 50 ms from the table on, on a busy machine longer. A proxy that stands still for so long is
// declared dead.
const farewell = 2 * time.Second

// Release obeys t, which takes everything from this node, and returns when the new owners have all
// of it and the proxies have closed their pipes, or ctx ends. Until then this node must stay a
// member of its cluster, because nobody waits for data from a node that is gone, and proxies close
// its pipes at once. Release must not be called on a loop.
func (n *Node) Release(ctx context.Context, t *ring.Table) {
	n.SetTable(t)
	select {
	case <-n.await(func(m *ownership.Machine, _ time.Duration, id uint64) { m.Release(id) }):
		n.awaitProxies(ctx)
	case <-n.ctx.Done():
	case <-ctx.Done():
		n.log.Warn("leaving before all was handed over", "error", ctx.Err())
	}
}

// awaitProxies returns when no pipe is left, after the farewell, or when ctx ends. A proxy that has
// the table closes its pipes as soon as nothing is outstanding on them. One that does not have it
// yet may be sending right now: its clients would not know the outcome of what is on its way when
// this node says goodbye, or closes the pipe itself.
func (n *Node) awaitProxies(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	for {
		open := make([]int, len(n.workers))
		err := n.cfg.Group.Each(func(l *netloop.Loop) { open[l.Index()] = n.workers[l.Index()].pipes() })
		if err != nil || sum(open) == 0 {
			return
		}
		select {
		case <-n.ctx.Done():
			return
		case <-ctx.Done():
			n.log.Info("leaving before all proxies have closed their pipes", "pipes", sum(open))
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// await passes an event to the machine, which answers it by a Reply with that id.
func (n *Node) await(event func(m *ownership.Machine, now time.Duration, id uint64)) <-chan ownership.Reply {
	reply := make(chan ownership.Reply, 1)
	n.step(func(m *ownership.Machine, now time.Duration) {
		n.waits++
		n.waiting[n.waits] = reply
		event(m, now, n.waits)
	})
	return reply
}
