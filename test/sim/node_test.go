package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// A node: package node/ownership itself, and around it what node/ownership.go and fence.go do
// with goroutines. A loop that passes a barrier is an event that takes a while.

const (
	places = 4 // tracked partitions
	// The keys of each: two that are set, one that is counted, two that only transactions set, to one
	// value, two lists, what a group has not read yet of a stream, and two journals. What a group has not
	// read is a list, too: what is delivered leaves it. The value of a list is its place in world.lists.
	keysPer    = elements + listsPer
	ownKeys    = 2
	counted    = 2
	pair       = 3
	elements   = 5
	listsPer   = poppable + journals
	poppable   = 3
	stream     = 2 // which of the lists is a stream that a group reads
	journals   = 2 // behind the others, see journals_test.go
	stallLimit = 500 * time.Millisecond
)

// spot is that of a list: lists are counted over all places.
type spot int

func spotOf(k, list int) spot { return spot(k*listsPer + list) }

func (s spot) place() int      { return int(s) / listsPer }
func (s spot) key() int        { return elements + int(s)%listsPer }
func (s spot) isStream() bool  { return int(s)%listsPer == stream }
func (s spot) isJournal() bool { return int(s)%listsPer >= poppable }

const spots = places * listsPer

// popped is the n-th of all lists from which elements are popped.
func poppedFrom(n int) spot { return spotOf(n/poppable, n%poppable) }

// journal is one of a place.
func journal(k, n int) spot { return spotOf(k, poppable+n) }

// keys is how many keys a place has in this history.
func (w *world) keys() int {
	switch {
	case w.reads:
		return keysPer
	case w.claims:
		return elements + poppable
	}
	return elements
}

// placeSet is a set of places.
type placeSet uint16

func (s placeSet) has(k int) bool { return s&(1<<k) != 0 }

const everyPlace placeSet = 1<<places - 1

// content is what a node has of a partition.
type content struct {
	values [keysPer]int
	last   *change // that made it so; nil: it is empty
}

type node struct {
	w *world
	p *proc
	a *agent

	machine *ownership.Machine
	busy    bool         // the machine waits for a barrier
	events  []tableEvent // meanwhile
	current tableEvent   // the one whose actions are run
	timer   int          // counts settings of the timer: older ones are void
	replies map[uint64]func(ownership.Reply)

	view, looped *ownership.View // the present one, and the one that the loops still execute under
	behind       func()          // runs when the loops execute under the present one; nil: nobody waits
	data         [places]content

	doubts ownership.Fence
	fenced bool
	fences int           // how often it was
	forgot placeSet      // what it served before nobody knew whether others did, and has not served since
	holds  [places]*hold // nil: nobody holds it
	units  [places]*unit // that gather; nil: none does
	queues [spots]queue
	turns  uint64        // that were given to claims
	gap    time.Duration // for which the loops have stood still, until they notice
	inside bool          // they were stopped between looking at the clock and executing a command

	replicas
	channels

	pipes ownership.Generations[pipeKey, *nodePipe]
}

// tableEvent is one of the machine, and what follows when its actions are done.
type tableEvent struct {
	see  func(m *ownership.Machine, now time.Duration)
	then func()
}

func newNode(p *proc) *node {
	n := &node{
		w: p.w, p: p, view: ownership.None, looped: ownership.None,
		machine: ownership.New(ownership.Config{ID: p.id, Boot: p.boot, StallLimit: stallLimit, Broken: p.w.ownership}),
		doubts:  ownership.Fence{Limit: stallLimit, Absence: suspicionTime, Broken: p.w.ownership},
		replies: make(map[uint64]func(ownership.Reply)), replicas: newReplicas(p.w),
		pipes: ownership.Generations[pipeKey, *nodePipe]{Broken: p.w.ownership},
	}
	if p.w.channels {
		n.channels = newChannels()
	}
	return n
}

// step has the machine see an event, and then runs its actions, before the next event. then is
// called when they are done.
func (n *node) step(see func(m *ownership.Machine, now time.Duration), then func()) {
	n.events = append(n.events, tableEvent{see, then})
	if !n.busy {
		n.next()
	}
}

// next has the machine see the events that wait.
func (n *node) next() {
	for !n.busy && len(n.events) > 0 {
		n.current, n.events = n.events[0], n.events[1:]
		n.busy = true
		n.machine.Members(n.aliveNodes())
		n.current.see(n.machine, n.w.now)
		n.proceed()
	}
}

// proceed runs what the machine wants done, up to a barrier.
func (n *node) proceed() {
	for actions := n.machine.Actions(); len(actions) > 0; actions = n.machine.Actions() {
		for _, a := range actions {
			if b, waits := a.(ownership.Barrier); waits { // the last one
				n.barrier(func() {
					n.awaitHolds(b.Holds, func() {
						n.machine.BarrierPassed(n.w.now, n.lostHolds())
						n.proceed()
						n.next()
					})
				})
				return
			}
			n.do(a)
		}
	}
	n.timer++
	if due, ok := n.machine.Due(); ok {
		timer := n.timer
		n.w.after(n.p, max(0, due-n.w.now), func() {
			if n.timer == timer {
				n.step((*ownership.Machine).Tick, nil)
			}
		})
	}
	n.busy = false
	if n.current.then != nil {
		n.current.then()
	}
}

func (n *node) do(a ownership.Action) {
	switch a := a.(type) {
	case ownership.Obey:
		n.obey(a.View)
	case ownership.HandOver:
		n.handOver(a)
	case ownership.Reset:
		n.reset()
	case ownership.Drop:
		for _, p := range a.Partitions {
			if k := slices.Index(n.w.tracked, p); k >= 0 {
				n.data[k] = content{}
			}
		}
	case ownership.Review:
		n.review(a.View, a.Away)
	case ownership.Settle:
		n.copies.Settle(a.View)
	case ownership.AskForCopies:
		n.copies.Ask(a.View)
		n.actCopies()
	case ownership.Refeed:
		fresh := n.fresh
		n.fresh = nil
		n.refeed(a.View, fresh)
	case ownership.Ask:
		n.handTable(a.Member, a.Table, a.Within, func(answer any) {
			n.step(func(m *ownership.Machine, now time.Duration) {
				if ack, ok := answer.(acknowledgement); ok {
					m.Acknowledged(now, a.ID, ack.name, ack.epoch, ack.held)
				} else {
					m.Failed(now, a.ID, answer == any(callRefused))
				}
			}, nil)
		})
	case ownership.CancelAsks: // the machine takes no notice of late answers
	case ownership.Tell:
		n.handTable(a.Member, a.Table, ownership.TakeTimeout, func(any) {})
	case ownership.Claim:
		n.claims = n.claim(a.View, a.Ended)
		n.fresh = n.claims
		n.machine.Claimed(n.w.now)
	case ownership.Finish:
		n.finishHandOver(a.HandOver)
	case ownership.Reply:
		n.replies[a.ID](a)
		delete(n.replies, a.ID)
	default:
		panic("BUG: unknown action")
	}
}

// obey has the loops execute under v before long.
func (n *node) obey(v *ownership.View) {
	if n.w.channels {
		n.obeyChannels(v)
	}
	gains := v.Table == n.view.Table && v.Count(ownership.Serving) >= n.view.Count(ownership.Serving)
	n.view = v
	if gains { // nothing is lost with it
		n.pass(v)
		return
	}
	n.w.after(n.p, n.loopTime(), func() { n.pass(v) })
}

// loopTime is how long it takes until the loops have done what is under way.
func (n *node) loopTime() time.Duration {
	if n.w.chance(0.05) {
		return n.w.between(0, 40*time.Millisecond)
	}
	return n.w.between(0, 2*time.Millisecond)
}

// pass has the loops execute under v.
func (n *node) pass(v *ownership.View) {
	if n.view != v {
		return // there is a newer one
	}
	old := n.looped
	n.looped = v
	for k := range places {
		before, now := n.serves(old, k), n.serves(v, k)
		if before && !now {
			n.w.tracef("%s stops serving %d, epoch %d", n.p.name, k, v.Epoch())
			n.turnAway(k)
		}
		if now && !before {
			n.w.startsServing(n, k, n.claims == nil || n.claims[n.w.tracked[k]].Kept)
		}
		n.servePlace(k, false)
	}
	if f := n.behind; f != nil {
		n.behind = nil
		f()
	}
}

// barrier calls f when the loops execute under the present view.
func (n *node) barrier(f func()) {
	if n.looped == n.view {
		n.w.after(n.p, n.loopTime(), f)
		return
	}
	n.behind = f
}

// serves reports whether commands on a place are executed under v.
func (n *node) serves(v *ownership.View, k int) bool { return n.standing(v, k) == ownership.Serving }

func (n *node) standing(v *ownership.View, k int) ownership.Standing {
	return v.Standing[n.w.tracked[k]]
}

func (n *node) owns(v *ownership.View, k int) bool { return v.Owns(n.w.tracked[k]) }

func (n *node) since(v *ownership.View, k int) uint64 { return v.Table.Since[n.w.tracked[k]] }

// setTable makes the node obey t. done is called when nothing is executed under an older table any
// more.
func (n *node) setTable(t *ring.Table, done func()) {
	n.step(func(m *ownership.Machine, now time.Duration) { m.Install(now, t) }, done)
}

// reset empties the node for another cluster's data.
func (n *node) reset() {
	n.feeding.Clear()
	n.actFeeding()
	n.copies.Clear()
	n.actCopies()
	n.data = [places]content{}
}

func (n *node) aliveNodes() []ring.Member {
	nodes := []ring.Member{}
	for _, m := range n.a.alive() {
		if m.Role == ring.RoleNode {
			nodes = append(nodes, m)
		}
	}
	return nodes
}

// acknowledgement is the answer to a TAKE: the epoch that is obeyed, and what is held.
type acknowledgement struct {
	name  string
	epoch uint64
	held  ring.PartitionSet
}

// handTable is one DUNLIN TAKE. done gets an acknowledgement, or anything else.
func (n *node) handTable(m ring.Member, t *ring.Table, within time.Duration, done func(answer any)) {
	n.w.call(n.p, m.Addr, within, func(at *proc, reply func(any)) {
		if at.node == nil {
			reply(callRefused)
			return
		}
		at.node.take(t, reply)
	}, done)
}

// take obeys a table that another node hands over.
func (n *node) take(t *ring.Table, reply func(any)) {
	n.a.adopt(t)
	n.setTable(n.a.table, func() {
		n.await(func(m *ownership.Machine, now time.Duration, id uint64) { m.Take(now, id, t) },
			func(r ownership.Reply) {
				if r.Answer == ownership.Obeyed {
					reply(acknowledgement{n.p.name, r.Epoch, r.Held})
				} else {
					reply(nil)
				}
			})
	})
}

// await has the machine see an event that it answers by a Reply with the id.
func (n *node) await(see func(m *ownership.Machine, now time.Duration, id uint64), done func(ownership.Reply)) {
	n.w.ids++
	id := uint64(n.w.ids)
	n.replies[id] = done
	n.step(func(m *ownership.Machine, now time.Duration) { see(m, now, id) }, nil)
}

// release obeys a table that takes everything from this node, and calls done when the new owners
// have all of it, or that takes too long.
func (n *node) release(t *ring.Table, within time.Duration, done func()) {
	finished := false
	finish := func() {
		if !finished {
			finished = true
			done()
		}
	}
	n.w.after(n.p, within, func() {
		if !finished {
			n.w.hurt(n.p) // what is not handed over is lost
		}
		finish()
	})
	n.setTable(t, func() {
		n.await(func(m *ownership.Machine, _ time.Duration, id uint64) { m.Release(id) },
			func(ownership.Reply) { finish() })
	})
}
