package node

import (
	"container/list"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// While a partition moves, a proxy keeps its clients' requests. A client of Redis Cluster at the nodes
// gives up after a few redirects or -TRYAGAIN, so a node has its requests wait instead:
//
//	the owner before                        the next owner
//	serves                                  MOVED to the owner before
//	obeys the table: they wait              MOVED to the owner before
//	hears that the next owner obeys it  <── obeys the table: they wait
//	MOVED to the next owner                 has taken over: serves
//
// So at no time do both answer MOVED. A failover that takes longer than moverPatience shows clients
// TRYAGAIN.

// moverPatience is how long a client's request waits for a move. Behind that, it is refused. Clients
// mostly wait 2 or 3 s for a reply.
const moverPatience = time.Second

// moveWait is a connection's place among those that wait for a move.
type moveWait struct {
	at        *list.Element
	partition uint16
	limit     *netloop.Timer
}

// isMoving reports whether clients' requests for p wait: this node takes it over, or the next owner may
// not know of that yet.
func (n *Node) isMoving(v *ownership.View, p uint16) bool {
	switch v.Standing[p] {
	case ownership.Gained:
		return true
	case ownership.Foreign:
		return n.unheard[p].Load()
	}
	return false
}

// turnAway refuses a request for keys that this node may not serve now, unless it waits for a move.
func (r *request) turnAway(slot uint16, partitions ...uint16) {
	if !r.awaitMove(ring.Partition(slot)) {
		r.refuse(slot, partitions...)
	}
}

// awaitMove has a client's request wait while p moves. It reports false if the request is refused instead:
// because it must not begin anew, or because another one has waited in vain since the present table came.
// Otherwise each command of a pipeline would wait for as long.
func (r *request) awaitMove(p uint16) bool {
	cn, w := r.conn, r.worker
	switch {
	case cn.pipe != nil || cn.peer || r.fenced || r.view.Table == nil || !r.node.isMoving(r.view, p):
		return false
	case r.transaction != nil || r.Rest != nil || r.Cmd.OnChannel() || cn.inVain == r.view.Epoch():
		return false
	case cn.Upload != nil && r.Upload == nil: // it cannot be paused
		return false
	case !r.setAside():
		return false
	}
	w.Count.Waits++
	wait := &moveWait{at: w.moving.PushBack(cn), partition: p}
	epoch := r.view.Epoch()
	wait.limit = w.loop.After(r.node.moverPatience, func() {
		cn.leaveMove()
		cn.inVain = epoch
		cn.takeUp()
	})
	cn.moveWait = wait
	return true
}

// keeps reports whether a large value for p, which this node does not serve, is kept: its request waits.
func (r *request) keeps(p uint16) bool {
	return r.conn.pipe == nil && !r.conn.peer && !r.fenced && r.view.Standing[p] == ownership.Gained
}

// leaveMove ends the connection's wait, if it waits for a move.
func (cn *conn) leaveMove() {
	if wait := cn.moveWait; wait != nil {
		cn.worker.moving.Remove(wait.at)
		wait.limit.Stop()
		cn.moveWait = nil
	}
}

// passMoves has those go on whose partitions move no more, in the order in which they came.
func (w *worker) passMoves() {
	v := w.node.view.Load()
	var ready []*conn
	for at := w.moving.Front(); at != nil; at = at.Next() {
		if cn := at.Value.(*conn); !w.node.isMoving(v, cn.moveWait.partition) {
			ready = append(ready, cn)
		}
	}
	for _, cn := range ready {
		if cn.moveWait != nil {
			cn.leaveMove()
			cn.takeUp()
		}
	}
}

// movesChanged has all loops look who need not wait for a move any more.
func (n *Node) movesChanged() {
	for _, w := range n.workers {
		w.loop.Post(w.passMoves)
	}
}

// noteMoves notes what the next view takes from this node: the new owners may not know of it yet.
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

// toldOwners notes that the owners of partitions by a table know of it, or that this node does not tell
// them.
func (n *Node) toldOwners(t *ring.Table, which func(p uint16, owner string) bool) {
	for p := range uint16(ring.Partitions) {
		if n.unheard[p].Load() && int(t.Owner[p]) < len(t.Nodes) && which(p, t.OwnerOf(p).Name()) {
			n.unheard[p].Store(false)
		}
	}
	n.movesChanged()
}
