package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// A node, after package node: what it serves (ownership.go, takeover.go), when it trusts that (fence.go), and its
// part of a pipe (pipes.go). Barriers and goroutines are events that take a while.

const (
	places      = 4 // tracked partitions
	keysPer     = 3 // keys of each: two that are set, one that is counted
	stallLimit  = 500 * time.Millisecond
	retryPeriod = 100 * time.Millisecond
	takeTimeout = 2 * time.Second
)

// placeSet is a set of places.
type placeSet uint16

func (s placeSet) has(k int) bool { return s&(1<<k) != 0 }

const everyPlace placeSet = 1<<places - 1

type standing uint8

const (
	foreign standing = iota
	gained
	serving
)

type view struct {
	table    *ring.Table
	self     int
	standing [places]standing
	began    [places]uint64
	newest   uint64
	moveTo   [places]uint16
	copying  placeSet
	from     [places]string // the owner before, of what is gained
}

func (v *view) epoch() uint64 { return v.table.Version().Epoch }

func (n *node) owns(v *view, k int) bool { return v.self >= 0 && n.owner(v.table, k) == v.self }

func (n *node) owner(t *ring.Table, k int) int { return int(t.Owner[n.w.tracked[k]]) }

func (n *node) since(v *view, k int) uint64 { return v.table.Since[n.w.tracked[k]] }

// content is what a node has of a partition.
type content struct {
	values [keysPer]int
	last   *change // that made it so; nil: it is empty
}

type node struct {
	w *world
	p *proc
	a *agent

	view, looped *view // the present one, and the one that the loops still execute under
	settled      *view // copies are begun by this one: what an older table left has been dropped
	data         [places]content
	fenced       bool
	doubts       int
	gap          time.Duration // for which the loops have stood still, until they notice
	inside       bool          // they were stopped between looking at the clock and executing a command

	busy     bool // tableMu is held
	waiting  []func(unlock func())
	turn     int // of take-overs: older ones are given up
	adopted  map[string]uint64
	departed []*departed

	feeding   []*fed
	handOvers []*handOver
	copies    copies
	inbound   map[string]*inbound

	pipes map[pipeKey]*nodePipe
}

type departed struct {
	ring.Member
	until time.Duration
}

func newNode(p *proc) *node {
	return &node{w: p.w, p: p, view: &view{self: -1}, looped: &view{self: -1}, settled: &view{self: -1}, adopted: make(map[string]uint64),
		inbound: make(map[string]*inbound),
		pipes:   make(map[pipeKey]*nodePipe), copies: newCopies()}
}

// locked runs f with tableMu held, until it calls unlock.
func (n *node) locked(f func(unlock func())) {
	if n.busy {
		n.waiting = append(n.waiting, f)
		return
	}
	n.busy = true
	f(func() {
		n.busy = false
		if len(n.waiting) > 0 {
			next := n.waiting[0]
			n.waiting = n.waiting[1:]
			n.locked(next)
		}
	})
}

// setTable makes the node obey t. done is called when nothing is executed under an older table any more.
func (n *node) setTable(t *ring.Table, done func()) {
	if t == nil {
		done()
		return
	}
	n.locked(func(unlock func()) {
		old := n.view
		if t.Epoch <= old.epoch() {
			unlock()
			done()
			return
		}
		next := n.nextView(old, t)
		n.view = next
		n.barrier(next, func() {
			n.handOver(old, next)
			n.discard(old, next)
			n.review(next, n.wasAway(old, next))
			n.settled = next
			n.askForCopies(next)
			n.refeed(next, nil)
			n.noteDeparted(old.table, t)
			n.beginTakeOver(next)
			unlock()
			done()
		})
	})
}

// barrier calls f when the loops execute under v.
func (n *node) barrier(v *view, f func()) {
	d := n.w.between(0, 2*time.Millisecond)
	if n.w.chance(0.05) {
		d = n.w.between(0, 40*time.Millisecond)
	}
	pass := func() {
		n.noteLost(n.looped, v)
		n.looped = v
	}
	if n.w.skipBarrier {
		n.w.after(n.p, d, pass)
		f()
		return
	}
	n.w.after(n.p, d, func() { pass(); f() })
}

func (n *node) noteLost(old, next *view) {
	for k := range places {
		if old.standing[k] == serving && next.standing[k] != serving {
			n.w.tracef("%s stops serving %d, epoch %d", n.p.name, k, next.epoch())
		}
	}
}

func (n *node) nextView(old *view, t *ring.Table) *view {
	next := &view{table: t, self: t.NodeIndex(n.p.id, n.p.boot)}
	for k := range places {
		next.moveTo[k] = ring.NoNode
	}
	for _, m := range t.Moves {
		if k := slices.Index(n.w.tracked, m.Partition); k >= 0 {
			next.moveTo[k] = m.To
		}
	}
	for k := range places {
		switch {
		case !n.owns(next, k):
			self := uint16(next.self)
			if next.self >= 0 && (t.Follower[n.w.tracked[k]] == self || next.moveTo[k] == self) {
				next.copying |= 1 << k
			}
		case n.keepsServing(old, k, t):
			next.standing[k], next.began[k], next.from[k] = old.standing[k], old.began[k], old.from[k]
		default:
			next.standing[k], next.began[k] = gained, t.Epoch
			if old.table != nil {
				next.from[k] = old.table.OwnerOf(n.w.tracked[k]).Name()
			}
			if n.w.serveBeforeTake {
				next.standing[k] = serving
				n.w.startsServing(n, k, true)
			}
		}
		next.newest = max(next.newest, next.began[k])
	}
	return next
}

func (n *node) keepsServing(v *view, k int, t *ring.Table) bool {
	return n.owns(v, k) && n.since(v, k) == t.Since[n.w.tracked[k]] && v.table.Seed == t.Seed
}

func (n *node) discard(old, next *view) {
	if old.table == nil || old.table.Seed != next.table.Seed {
		for _, f := range n.feeding {
			f.sender.close()
		}
		n.feeding = nil
		n.copies.clear()
		n.data = [places]content{}
		return
	}
	for k := range places {
		if n.owns(old, k) && n.owns(next, k) && !n.keepsServing(old, k, next.table) {
			n.data[k] = content{}
		}
	}
}

func (n *node) noteDeparted(old, next *ring.Table) {
	if old != nil {
		for _, m := range old.Nodes {
			noted := slices.ContainsFunc(n.departed, func(d *departed) bool { return d.Name() == m.Name() })
			if !noted && m.Name() != n.p.name {
				n.departed = append(n.departed, &departed{m, n.w.now + stallLimit})
			}
		}
	}
	n.departed = slices.DeleteFunc(n.departed, func(d *departed) bool {
		back := slices.ContainsFunc(next.Nodes, func(m ring.Member) bool { return m.Addr == d.Addr })
		return back || n.w.now > d.until
	})
}

// beginTakeOver asks all nodes to obey the view's table, and then serves what was gained.
func (n *node) beginTakeOver(v *view) {
	n.turn++
	turn := n.turn
	asked := n.unasked(v)
	if !slices.Contains(v.standing[:], gained) {
		return
	}
	gone := slices.Clone(n.departed)
	if n.w.forgetDeparted {
		gone = nil
	}
	missing := len(asked) + len(gone)
	ended := make(map[string]bool)
	answered := func() {
		if missing--; missing > 0 {
			return
		}
		n.locked(func(unlock func()) {
			if n.turn != turn || n.view != v {
				unlock()
				return
			}
			n.serveGained(v, ended, unlock)
		})
	}
	if missing == 0 {
		n.serveGainedNow(v)
		return
	}
	for _, m := range asked {
		n.askOne(turn, m, v.table, answered)
	}
	for _, d := range gone {
		n.askDeparted(turn, d, v.table, func(acknowledged bool) {
			ended[d.Name()] = acknowledged
			answered()
		})
	}
}

func (n *node) unasked(v *view) (asked []ring.Member) {
	newest := uint64(0)
	for k, s := range v.standing {
		if s == gained {
			newest = max(newest, v.began[k])
			if n.w.askBySince {
				newest = n.since(v, k)
			}
		}
	}
	known := n.adopted
	n.adopted = make(map[string]uint64)
	ask := func(m ring.Member) {
		n.adopted[m.Name()] = known[m.Name()]
		if known[m.Name()] < newest {
			asked = append(asked, m)
		}
	}
	for i, m := range v.table.Nodes {
		if i != v.self {
			ask(m)
		}
	}
	for _, m := range n.aliveNodes() {
		if m.ID != n.p.id && v.table.NodeIndex(m.ID, m.Boot) < 0 {
			ask(m)
		}
	}
	return asked
}

func (n *node) aliveNodes() (nodes []ring.Member) {
	for _, m := range n.a.alive() {
		if m.Role == ring.RoleNode {
			nodes = append(nodes, m)
		}
	}
	return nodes
}

// askOne calls done when the node has acknowledged the table, or need not any more. A take-over that was given up
// is not continued.
func (n *node) askOne(turn int, m ring.Member, t *ring.Table, done func()) {
	if n.turn != turn {
		return
	}
	awaited := t.NodeIndex(m.ID, m.Boot) >= 0 ||
		slices.ContainsFunc(n.aliveNodes(), func(o ring.Member) bool { return o.Name() == m.Name() })
	if !awaited {
		done()
		return
	}
	n.handTable(m, t, func(outcome takeOutcome) {
		switch outcome {
		case obeyed:
			if have, present := n.adopted[m.Name()]; present {
				n.adopted[m.Name()] = max(have, t.Epoch)
			}
			done()
			return
		case replaced:
			done()
			return
		}
		n.w.after(n.p, retryPeriod, func() { n.askOne(turn, m, t, done) })
	})
}

func (n *node) askDeparted(turn int, d *departed, t *ring.Table, done func(acknowledged bool)) {
	finished := false
	finish := func(acknowledged bool) {
		if finished || n.turn != turn {
			return
		}
		finished = true
		n.departed = slices.DeleteFunc(n.departed, func(o *departed) bool { return o == d })
		done(acknowledged)
	}
	n.w.after(n.p, max(0, d.until-n.w.now), func() { finish(false) })
	var ask func()
	ask = func() {
		if finished || n.turn != turn {
			return
		}
		n.handTable(d.Member, t, func(outcome takeOutcome) {
			switch outcome {
			case obeyed:
				finish(true)
			case refused, replaced:
				finish(false)
			default:
				n.w.after(n.p, retryPeriod, ask)
			}
		})
	}
	ask()
}

// acknowledgement is the answer to a TAKE: the epoch that is obeyed.
type acknowledgement struct {
	name  string
	epoch uint64
}

// takeOutcome is that of one DUNLIN TAKE.
type takeOutcome uint8

const (
	unknown takeOutcome = iota // no answer, or an older epoch
	obeyed
	refused  // nobody listens there
	replaced // another life of that id does
)

// handTable is one DUNLIN TAKE.
func (n *node) handTable(m ring.Member, t *ring.Table, done func(takeOutcome)) {
	n.w.call(n.p, m.Addr, takeTimeout, func(at *proc, reply func(any)) {
		if at.node == nil {
			reply(callRefused)
			return
		}
		at.node.take(t, reply)
	}, func(answer any) {
		ack, ok := answer.(acknowledgement)
		switch {
		case answer == any(callRefused):
			done(refused)
		case !ok || ack.epoch < t.Epoch:
			done(unknown)
		case ack.name != m.Name() && !n.w.anyoneAcknowledges:
			done(replaced)
		default:
			done(obeyed)
		}
	})
}

// take adopts a table that another node hands over.
func (n *node) take(t *ring.Table, reply func(any)) {
	n.a.adopt(t)
	n.setTable(n.a.table, func() {
		answer := func() {
			have := n.view.table
			if have == nil || have.Version() != t.Version() && !have.Descends(t.Version()) && !n.w.adoptForeign {
				reply(nil)
				return
			}
			reply(acknowledgement{n.p.name, have.Epoch})
		}
		if n.w.ackBeforeFlush {
			answer()
			return
		}
		n.awaitHandOvers(answer)
	})
}

// serveGainedNow is serveGained for who holds the lock anyway.
func (n *node) serveGainedNow(v *view) {
	n.w.after(n.p, 0, func() {
		n.locked(func(unlock func()) {
			if n.view != v {
				unlock()
				return
			}
			n.serveGained(v, nil, unlock)
		})
	})
}

// serveGained serves what was gained, with the copies of it that are whole.
func (n *node) serveGained(v *view, ended map[string]bool, unlock func()) {
	acknowledged := func(source string) bool {
		return ended[source] || n.adopted[source] > 0 && n.adopted[source] >= v.newest
	}
	next := *v
	for k := range places {
		if v.standing[k] == gained {
			next.standing[k] = serving
		}
	}
	n.settled = &next // nobody sends us the rest any more
	fresh := n.claim(v, acknowledged)
	n.barrier(v, func() {
		for k := range places {
			if v.standing[k] == gained {
				n.w.startsServing(n, k, fresh[k].kept)
			}
		}
		n.refeed(&next, fresh)
		n.view, n.looped = &next, &next
		unlock()
	})
}

// release obeys a table that takes everything from this node, and calls done when the new owners have all of it, or
// that takes too long.
func (n *node) release(t *ring.Table, within time.Duration, done func()) {
	finished := false
	finish := func() {
		if !finished {
			finished = true
			done()
		}
	}
	if n.w.leaveEarly {
		finish()
		return
	}
	n.w.after(n.p, within, finish)
	n.setTable(t, func() { n.awaitHandOvers(finish) })
}
