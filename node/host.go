package node

import (
	"context"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// What a request asks of its node (Host).

// AnswerLater stops the connection, has a goroutine call f, and appends the reply that f returns.
func (cn *conn) AnswerLater(f func(ctx context.Context) (reply []byte)) {
	cn.request().answerLater(func() []byte { return f(cn.node.ctx) })
}

// Later stops the connection and hands w to a goroutine.
func (cn *conn) Later(w exec.Work) {
	cn.request().MayWait()
	cn.pause()
	cn.node.goJob(func() {
		w.Run(cn.node.ctx)
		cn.worker.loop.Post(func() {
			defer w.End()
			cn.resume(func(r *request) { w.Reply(&r.Request) })
		})
	})
}

// Again executes the present request from its beginning.
func (cn *conn) Again() {
	r := cn.request()
	r.worker.Count.Commands[command.Row(r.Args).ID]-- // it was counted
	r.dispatch()
}

// Cover returns the partitions of which a command over all keys is to tell.
func (cn *conn) Cover() ring.PartitionSet {
	r := cn.request()
	if !r.Part {
		return served(r.view, &allPartitions)
	}
	_, covered := cn.node.coverage(&r.wanted)
	r.Out = member.AppendCovered(r.Out, &covered)
	return covered
}

// CoverLater is AnswerLater for a command over all keys. No barrier waits for the goroutine: when
// the view has changed, what it found may be of a partition that was lost meanwhile. A part of a
// reply must be right about that, so f is called again.
func (cn *conn) CoverLater(f func(ctx context.Context, covered *ring.PartitionSet) (reply []byte)) {
	r, n := cn.request(), cn.node
	if !r.Part {
		covered := served(r.view, &allPartitions)
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

// coverTries is how often a command over all keys is executed anew because a new table has come.
const coverTries = 5

// Drop deletes all keys of those partitions that the node still serves. It runs outside the loops,
// and no barrier waits for it: so each partition is dropped between two tables. One that was lost
// meanwhile may be a copy by now, which must stay as it is.
func (cn *conn) Drop(partitions *ring.PartitionSet) {
	for p := range uint16(ring.Partitions) {
		if partitions.Has(p) {
			cn.node.dropServed(p)
		}
	}
}

func (n *Node) dropServed(p uint16) {
	n.tableMu.Lock()
	defer n.tableMu.Unlock()
	if n.view.Load().Standing[p] == ownership.Serving {
		n.engine.Drop(p)
	}
}

// ChargeHeap takes bytes of the memory limit for what lies in the Go heap.
func (cn *conn) ChargeHeap(bytes int64) bool { return cn.node.chargeHeap(bytes) }

// RefundHeap gives them back.
func (cn *conn) RefundHeap(bytes int64) { cn.node.refundHeap(bytes) }

// EvictsByFrequency reports whether the eviction policy has one of Redis's LFU names.
func (cn *conn) EvictsByFrequency() bool { return cn.node.settings.EvictsByFrequency() }

func (cn *conn) request() *request { return &cn.worker.request }

// pause stops a connection until resume.
func (cn *conn) pause() {
	cn.Answering = true
	cn.Socket.Pause()
}

// answerLater stops the connection, has a goroutine call f, and appends the reply that f returns. f
// must not use the request or views of its arguments, and must return soon after the node closes.
func (r *request) answerLater(f func() []byte) { r.answerLaterThen(f, func() {}) }

// answerLaterThen is answerLater that calls then on the loop, before the reply is appended.
func (r *request) answerLaterThen(f func() []byte, then func()) {
	r.MayWait()
	cn := r.conn
	cn.pause()
	timing := r.timingLater()
	cn.node.goJob(func() {
		begun := time.Now()
		reply := f()
		took := time.Since(begun)
		cn.worker.loop.Post(func() {
			timing.end(took)
			then()
			cn.answer(reply)
		})
	})
}
