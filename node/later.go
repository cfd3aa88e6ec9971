package node

import (
	"context"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// A request is its own exec.Host and exec.Keyspace: what its handler asks of the node.

// AnswerLater stops the connection, has a goroutine call f, and appends the reply that f returns.
func (r *request) AnswerLater(f func(ctx context.Context) (reply []byte)) {
	ctx := r.node.ctx
	r.answerLater(func() []byte { return f(ctx) })
}

// Later stops the connection and hands w to a goroutine.
func (r *request) Later(w exec.Work) {
	r.holdOn()
	cn := r.conn
	cn.pause()
	cn.node.goJob(func() {
		w.Run(cn.node.ctx)
		cn.post(func() {
			defer w.End()
			cn.resume(func(r *request) { w.Reply(&r.Request) })
		})
	})
}

// Again executes the present request from its beginning.
func (r *request) Again() {
	r.worker.Count.Commands[command.Row(r.Args).ID]-- // it was counted
	r.dispatch()
}

// Cover returns the partitions that the reply to a command over all keys must cover.
func (r *request) Cover() ring.PartitionSet {
	if !r.Part {
		return served(r.view, &allPartitions)
	}
	_, covered := r.node.coverage(&r.wanted)
	r.Out = member.AppendCovered(r.Out, &covered)
	return covered
}

// CoverLater is AnswerLater for a command over all keys. No barrier waits for the goroutine: if the
// view has changed meanwhile, f may have found keys of a partition that this node has lost. A part
// of a reply must be right about that, so CoverLater calls f again.
func (r *request) CoverLater(f func(ctx context.Context, covered *ring.PartitionSet) (reply []byte)) {
	n := r.node
	if !r.Part {
		_, covered := n.coverage(&allPartitions) // none while the node is fenced
		r.answerLater(func() []byte { return f(n.ctx, &covered) })
		return
	}
	wanted := r.wanted
	r.answerLater(func() []byte {
		for range coverTries {
			before, covered := n.coverage(&wanted)
			reply := f(n.ctx, &covered)
			if resp.IsError(reply) {
				return reply
			}
			if after := n.view.Load(); after == before {
				return append(member.AppendCovered(nil, &covered), reply...)
			}
		}
		return resp.AppendError(nil, errTakingOver)
	})
}

// coverTries bounds how often a command over all keys runs again because a new table has arrived.
const coverTries = 5

// Drop deletes all keys of those partitions that the node still serves. It runs outside the loops,
// and no barrier waits for it. So it drops each partition between two tables: a partition that this
// node has lost meanwhile may be a copy, which must stay as it is.
func (r *request) Drop(partitions *ring.PartitionSet) {
	n := r.node
	for p := range uint16(ring.Partitions) {
		if partitions.Has(p) {
			n.dropServed(p)
		}
	}
}

// dropServed deletes all keys of a partition that the node serves, once nobody holds it.
func (n *Node) dropServed(p uint16) {
	for n.ctx.Err() == nil {
		h := n.tryDrop(p)
		if h == nil {
			return
		}
		n.awaitHold(h)
	}
}

func (n *Node) tryDrop(p uint16) *engine.Hold {
	n.tableMu.Lock()
	defer n.tableMu.Unlock()
	if n.view.Load().Standing[p] != ownership.Serving {
		return nil
	}
	return n.engine.DropUnheld(p)
}

// pause stops a connection until resume.
func (cn *conn) pause() {
	cn.Answering = true
	cn.Socket.Pause()
}

// answerLater stops the connection, has a goroutine call f, and appends the reply that f returns. f
// must not use the request or views of its arguments, and must return soon after the node closes.
func (r *request) answerLater(f func() []byte) { r.answerLaterThen(f, func() {}) }

// answerLaterThen is answerLater, but calls then on the loop before it appends the reply.
func (r *request) answerLaterThen(f func() []byte, then func()) {
	r.holdOn()
	cn := r.conn
	cn.pause()
	timing := r.timingLater()
	cn.node.goJob(func() {
		begun := time.Now()
		reply := f()
		took := time.Since(begun)
		cn.post(func() {
			timing.end(took)
			then()
			cn.answer(reply)
		})
	})
}
