package node

import (
	"container/list"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// A transaction that takes long holds its partition (engine.Hold). Here is how that begins, and what
// becomes of the others that want the partition meanwhile: a proxy is asked to try again, which keeps
// the order of its commands (ownership.Gate), and a client waits.

// holdOn has the transaction at hand, if there is one, hold its partition: it does not end under the
// lock that it has.
func (r *request) holdOn() {
	if x := r.transaction; x != nil && r.InTransaction && x.hold == nil {
		x.hold, x.now, x.fences = r.hold(r.Transaction), r.Now, r.node.fences.Load()
	}
}

// hold begins a hold on the partition. What the holder changes reaches copies as one unit, if all
// members understand that.
func (r *request) hold(t engine.Txn) *engine.Hold {
	if clusterLevel(r.view.Table) < ring.EffectsLevel {
		return t.Hold()
	}
	return t.HoldUnit()
}

// HoldOn has the command at hand, which has its partition locked by t, hold the partition until it is
// answered. The command then leaves the rest to Later.
func (r *request) HoldOn(t engine.Txn) {
	if r.holdOn(); r.transaction == nil {
		r.transaction = &transaction{
			Transaction: new(session.Transaction), single: true, keyed: true, partition: r.Partition, database: r.Database,
			wrote: r.Cmd.Flags&command.Write != 0, hold: r.hold(t), now: r.Now, fences: r.node.fences.Load(),
		}
	}
}

// Held takes care of a request that found its partition held by h, and that has done nothing yet.
func (r *request) Held(h *engine.Hold) {
	cn := r.conn
	busy := r.node.busyScript(h)
	switch {
	case busy != "":
		r.Fail(busy)
		return
	case cn.pipe != nil:
		r.replyWait()
		r.latchKeys()
		return
	case r.Waited >= r.node.holdPatience || !r.setAside():
		r.Fail(exec.ErrHeld)
		return
	}
	cn.awaitHold(h)
}

// setAside keeps a client's request, of which nothing was done yet, and stops its connection until takeUp.
// It reports false if the request cannot wait.
func (r *request) setAside() bool {
	cn := r.conn
	switch {
	case r.Rewrite != nil:
		cn.held = r.Rewrite.Move()
	case r.listed != nil:
		cn.held = r.listed.move(r)
	case r.Upload != nil:
		cn.Upload.Pause(r.Args[len(cn.Upload.Args):])
	case cn.Upload != nil:
		return false // its values are not in the input
	case r.planned != nil && !r.reading:
		cn.held = r.planned.move()
	case r.reading:
		r.worker.Count.Commands[r.Cmd.ID]-- // it will be read again
		if cn.State.Begun() {
			cn.State.End(false)
		}
		r.putBack = true
	default:
		return false
	}
	cn.waited = r.Waited
	cn.pause()
	return true
}

// queuePlace is a connection's place among those of its loop that wait for a hold, or for moves.
type queuePlace struct {
	queue *list.List // of all that wait for that hold, in order; or for moves
	at    *list.Element
	begun time.Duration  // by the loop's clock
	limit *netloop.Timer // of a wait for a hold
	moves uint16         // the partition, of a wait for a move
}

// awaitHold has the connection go on when the hold has ended, or when its request has waited for holds
// for long enough. One goroutine waits for all connections of a loop.
func (cn *conn) awaitHold(h *engine.Hold) {
	w, n := cn.worker, cn.node
	queue := w.holdQueues[h]
	if queue == nil {
		queue = list.New()
		w.holdQueues[h] = queue
		n.goJob(func() {
			ended := true
			select {
			case <-h.Ended():
			case <-n.ctx.Done():
				ended = false
			}
			w.loop.Post(func() { w.passHold(h, ended) })
		})
	}
	limit := w.loop.After(n.holdPatience-cn.waited, func() {
		cn.leaveQueue()
		cn.goOnAfterHold(false)
	})
	cn.queued = &queuePlace{queue: queue, at: queue.PushBack(cn), begun: w.loop.Clock(), limit: limit}
}

// leaveQueue ends the connection's wait, if it waits for a hold or a move.
func (cn *conn) leaveQueue() {
	q := cn.queued
	if q == nil {
		return
	}
	cn.waited += max(1, cn.worker.loop.Clock()-q.begun) // not 0, see isFirst
	q.queue.Remove(q.at)
	if q.limit != nil {
		q.limit.Stop()
	}
	cn.queued = nil
}

// passAtOnce is how many that have waited for a hold go on before others have their turn.
const passAtOnce = 16

// passHold has all go on that have waited for the hold. If it has not ended, they are refused.
func (w *worker) passHold(h *engine.Hold, ended bool) {
	queue := w.holdQueues[h]
	delete(w.holdQueues, h)
	w.passQueue(queue, ended)
}

// passQueue has those in the queue of a hold go on in their order, some in each turn. Requests that come meanwhile
// do not wait behind them: while clients send more than passAtOnce in a turn, the queue would never end.
func (w *worker) passQueue(queue *list.List, ended bool) {
	for i := 0; queue.Len() > 0; i++ {
		if i == passAtOnce {
			w.turns.take(func() { w.passQueue(queue, ended) })
			return
		}
		cn := queue.Front().Value.(*conn)
		cn.leaveQueue()
		cn.goOnAfterHold(ended)
	}
}

// latchKeys latches the partitions of the request's keys.
func (r *request) latchKeys() {
	if r.Cmd.ID == command.Exec || keyPlanOf(r.Cmd) == oneKey {
		r.latch(r.Partition)
		return
	}
	r.latch(r.Partitions...)
}

// goOnAfterHold executes the request that has waited for a hold. If that has not ended, the request
// waits for no other one: it is refused if its partition is still held.
func (cn *conn) goOnAfterHold(ended bool) {
	if !ended {
		cn.waited = max(cn.waited, cn.node.holdPatience)
	}
	cn.takeUp()
}

// takeUp executes the request that was set aside.
func (cn *conn) takeUp() {
	switch {
	case cn.held != nil:
		w := cn.held
		cn.held = nil
		defer w.End()
		cn.resume(func(r *request) { w.Reply(&r.Request) })
	case cn.Upload != nil && cn.Upload.Paused:
		cn.resume(func(r *request) { r.endUpload(nil) })
	default: // the request is in the input
		cn.Answering = false
		cn.Socket.Resume()
	}
}

// dropHeld frees what was set aside, of a connection that is closed.
func (cn *conn) dropHeld() {
	cn.leaveQueue()
	if cn.held != nil {
		cn.held.End()
		cn.held = nil
	}
}

// heldBeyond returns the holds on partitions that this node does not serve. The transactions that hold
// them end within holdPatience, and no other one can begin behind the barrier.
func (n *Node) heldBeyond() []*engine.Hold {
	view := n.view.Load()
	return slices.DeleteFunc(n.engine.Holds(), func(h *engine.Hold) bool {
		return view.Standing[h.Partition()] == ownership.Serving
	})
}

// awaitHolds waits until no partition is held that this node does not serve. False if the node closes
// meanwhile.
func (n *Node) awaitHolds() bool {
	for _, h := range n.heldBeyond() {
		select {
		case <-h.Ended():
		case <-n.ctx.Done():
			return false
		}
	}
	return true
}

// heldBeyondLocked returns the partitions that are held although this node does not serve them. The
// machine is told when each of these holds has ended.
func (n *Node) heldBeyondLocked() (set ring.PartitionSet) {
	for _, h := range n.heldBeyond() {
		set.Add(h.Partition())
		if n.lostHolds[h] {
			continue
		}
		n.lostHolds[h] = true
		n.goJob(func() {
			select {
			case <-h.Ended():
			case <-n.ctx.Done():
				return
			}
			n.step(func(m *ownership.Machine, now time.Duration) {
				delete(n.lostHolds, h)
				if n.engine.Holder(h.Partition()) == nil {
					m.Released(now, h.Partition())
				}
			})
		})
	}
	return set
}
