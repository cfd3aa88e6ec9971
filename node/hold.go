package node

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/ownership"
)

// A transaction that takes long holds its partition (engine.Hold). Here is what becomes of the
// others that want it meanwhile: a proxy is asked to try again, which keeps the order of its
// commands (ownership.Gate), and a client waits.

// Held takes care of a request that found its partition held by h, and that has done nothing yet.
func (r *request) Held(h *engine.Hold) {
	cn := r.conn
	switch {
	case cn.pipe != nil:
		r.replyWait()
		r.latchKeys()
		return
	case r.Upload != nil && !cn.impatient:
		cn.Upload.Pause(r.Args[len(cn.Upload.Args):])
	case r.reading && !cn.impatient:
		r.worker.Count.Commands[r.Cmd.ID]-- // it will be read again
		if cn.State.Begun() {
			cn.State.End(false)
		}
		r.putBack = true
	default:
		cn.impatient = false
		r.Fail(errHeld)
		return
	}
	cn.pause()
	n := cn.node
	n.goJob(func() {
		ended := n.awaitHold(h)
		cn.worker.loop.Post(func() { cn.goOnAfterHold(ended) })
	})
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
// is refused.
func (cn *conn) goOnAfterHold(ended bool) {
	cn.impatient = !ended
	if cn.closed || cn.Upload == nil || !cn.Upload.Paused {
		cn.Answering = false
		cn.Socket.Resume()
		return
	}
	cn.resume(func(r *request) { r.endUpload(nil) })
}

// awaitHold waits for the end of a hold, and reports whether it has come within holdPatience.
func (n *Node) awaitHold(h *engine.Hold) bool {
	limit := time.NewTimer(n.holdPatience)
	defer limit.Stop()
	select {
	case <-h.Ended():
		return true
	case <-limit.C:
	case <-n.ctx.Done():
	}
	return false
}

// awaitHolds waits until no partition is held that this node does not serve. The transactions that
// hold them end within holdPatience. False if the node closes meanwhile.
func (n *Node) awaitHolds() bool {
	view := n.view.Load()
	for _, h := range n.engine.Holds() {
		if view.Standing[h.Partition()] == ownership.Serving {
			continue
		}
		select {
		case <-h.Ended():
		case <-n.ctx.Done():
			return false
		}
	}
	return true
}
