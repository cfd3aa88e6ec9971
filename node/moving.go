package node

import (
	"container/list"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// While a partition moves, a proxy keeps its clients' requests. A client of Redis Cluster at the nodes
// gives up after a few redirects or -TRYAGAIN, so the nodes have its requests wait:
//
//	the owner before                        the next owner
//	serves                                  MOVED to the owner before
//	obeys the table: they wait              MOVED to the owner before
//	hears that the next owner obeys it  <── obeys the table: they wait
//	MOVED to the next owner                 has taken over: serves
//
// So at no time do both answer MOVED, but to a command that was blocked when its partition moved: that
// is redirected at once. A failover that takes longer than movingPatience shows clients TRYAGAIN.

const (
	// movingPatience is how long a client's request waits for moves, and before for holds. Clients often
	// wait no longer than 2 or 3 s for a reply.
	movingPatience = time.Second
	// movingPeriod is how often a loop looks who has waited for that long.
	movingPeriod = movingPatience / 20
	// movingSteps is how many steps a loop looks at those who wait before others have their turn. A request
	// that goes on takes goOnSteps.
	movingSteps, goOnSteps = 128, 8
)

// moving are the connections of a loop whose requests wait for moves.
type moving struct {
	worker *worker
	queue  list.List      // of *conn
	left   int            // so many at the front of queue are to be looked at
	looks  bool           // a turn looks at them
	timer  *netloop.Timer // nil: none is needed
}

// isMoving reports whether clients' requests for p wait: this node takes it over, or the next owner may
// not know that it does.
func (n *Node) isMoving(v *ownership.View, p uint16) bool {
	switch v.Standing[p] {
	case ownership.Gained:
		return true
	case ownership.Foreign:
		return n.unheard[p].Load()
	}
	return false
}

// turnAway has a request for keys that this node may not serve now wait for a move, or refuses it.
// slot is that of the first such key.
func (r *request) turnAway(slot uint16, partitions ...uint16) {
	if !r.awaitMove(ring.Partition(slot)) {
		r.refuse(slot, partitions...)
	}
}

// awaitMove has a client's request wait while p moves. It reports false if the request is to be refused.
//
// When a request has waited in vain, those behind it on the connection are refused at once, until the
// next table: otherwise each command of a pipeline would wait for as long.
func (r *request) awaitMove(p uint16) bool {
	cn := r.conn
	switch {
	case cn.pipe != nil || cn.peer || r.fenced || !r.node.isMoving(r.view, p):
		return false
	case r.transaction != nil || r.Rest != nil: // it has begun
		return false
	case r.Waited >= r.node.movingPatience:
		cn.inVain = r.view.Epoch()
		return false
	case cn.inVain == r.view.Epoch() || !r.setAside():
		return false
	}
	r.worker.Count.Waits++
	r.worker.moving.add(cn, p)
	return true
}

// mayServe reports whether a large value for p, which this node does not serve, is kept: its request
// will wait, and be served here.
func (r *request) mayServe(p uint16) bool {
	return r.conn.pipe == nil && !r.conn.peer && !r.fenced && r.view.Standing[p] == ownership.Gained
}

func (m *moving) add(cn *conn, p uint16) {
	cn.queued = &queuePlace{queue: &m.queue, at: m.queue.PushBack(cn), begun: m.worker.loop.Clock(), moves: p}
	if m.timer == nil {
		m.timer = m.worker.loop.After(movingPeriod, m.tick)
	}
}

// tick runs from time to time while requests wait.
func (m *moving) tick() {
	if m.timer = nil; m.queue.Len() > 0 {
		m.timer = m.worker.loop.After(movingPeriod, m.tick)
		m.review()
	}
}

// review looks at all that wait. Those whose partitions move no more go on, and those who have waited for
// too long are refused, some in each turn.
func (m *moving) review() {
	m.left = m.queue.Len()
	if m.left > 0 && !m.looks {
		m.looks = true
		m.worker.turns.take(m.look)
	}
}

func (m *moving) look() {
	n, now := m.worker.node, m.worker.loop.Clock()
	view := n.view.Load()
	m.looks = false
	for steps := 0; m.left > 0 && m.queue.Len() > 0; m.left-- {
		if steps >= movingSteps {
			m.looks = true
			m.worker.turns.take(m.look)
			return
		}
		steps++
		at := m.queue.Front()
		cn := at.Value.(*conn)
		q := cn.queued
		if n.isMoving(view, q.moves) && cn.waited+now-q.begun < n.movingPatience {
			m.queue.MoveToBack(at)
			continue
		}
		steps += goOnSteps
		cn.leaveQueue()
		cn.takeUp()
	}
}

// movesChanged has all loops look who need not wait for a move any more.
func (n *Node) movesChanged() {
	for _, w := range n.workers {
		w.loop.Post(w.moving.review)
	}
}

// noteMoves notes what the next view takes from this node: the new owners may not know that yet.
func (n *Node) noteMoves(next *ownership.View) {
	old := n.view.Load()
	for p := range uint16(ring.Partitions) {
		switch {
		case next.Standing[p] != ownership.Foreign:
			n.unheard[p].Store(false)
		case old.Standing[p] == ownership.Serving:
			n.unheard[p].Store(true)
		}
	}
}

// noteUntold notes which of the partitions that are handed over have new owners whom this node does not
// tell: clients do not wait for these.
func (n *Node) noteUntold(a ownership.HandOver, told []string) {
	var untold ring.PartitionSet
	t := a.Next.Table
	for p := range uint16(ring.Partitions) {
		lost := a.Old.Standing[p] != ownership.Foreign
		if lost && (int(t.Owner[p]) >= len(t.Nodes) || !slices.Contains(told, t.OwnerOf(p).Name())) {
			untold.Add(p)
		}
	}
	n.noteHeard(&untold)
}

// noteHeard notes that clients need not wait any more until the new owners of partitions obey the table.
func (n *Node) noteHeard(set *ring.PartitionSet) {
	for p := range uint16(ring.Partitions) {
		if set.Has(p) {
			n.unheard[p].Store(false)
		}
	}
	n.movesChanged()
}
