package node

import (
	"context"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// A request is its own exec.Host and exec.Keyspace: what its handler asks of the node.

// AnswerLater has a goroutine call f, and appends the reply that f returns.
func (r *request) AnswerLater(f func(ctx context.Context) (reply []byte)) {
	r.haveAnswered(r.computing(), pinned, f, nil)
}

// GatherLater has a goroutine call f, and appends the reply that f gathers.
func (r *request) GatherLater(f func(ctx context.Context, reply *exec.Gathered)) {
	r.gatherLater(r.computing(), pinned, f, nil)
}

// computing is the effort of a goroutine that computes for the present command.
func (r *request) computing() effort {
	if r.Cmd.Flags&(command.Write|command.Internal) != 0 && r.Cmd.ID != command.DunlinLend {
		return computes // others wait for it, or what it reads is only here
	}
	return rests
}

// Later hands w to a goroutine.
func (r *request) Later(w exec.Work) {
	e, how := r.computing(), pinned
	switch {
	case plans[r.Cmd.ID].keys == anySlots:
		e, how = waits, halfway
	case r.Cmd.Flags&command.Write != 0:
		how = again
	}
	if rest, ok := w.(*exec.Rest); ok {
		if e = yields; rest.Waits() {
			e = waits
		}
	}
	r.workLater(w, e, how)
}

// workLater has w answer the present command.
func (r *request) workLater(w exec.Work, e effort, how progress) {
	cn := r.conn
	j := r.beginJob(how)
	if j == nil {
		r.worker.loop.Post(w.End) // not under the handler's lock
		return
	}
	waiter, _ := w.(exec.Waiter)
	rewrite, _ := w.(*exec.Rewrite)
	j.anew = rewrite != nil && 0 < rewrite.Tries && rewrite.Tries <= exec.RewriteTries
	cn.run(j, e, func(ctx context.Context) {
		if j.of != nil || ctx.Err() == nil {
			took := timeOf(ctx, func() { w.Run(ctx) })
			if e == computes || e == rests {
				j.worked += took
			}
		}
	}, waiter, func() {
		cn.finish(j, func(r *request) { w.Reply(&r.Request) }, w.End)
	})
}

// timeOf calls f and returns how long it took, without the pauses of exec.Step.
func timeOf(ctx context.Context, f func()) time.Duration {
	begun, paused := time.Now(), exec.Paused(ctx)
	f()
	return time.Since(begun) - (exec.Paused(ctx) - paused)
}

// KeepArgs makes a long request's arguments stay where they are, see exec.Host.
func (r *request) KeepArgs() (input *netloop.Buffer, kept bool) {
	switch {
	case r.listed != nil:
		return r.listed.give(), true
	case r.transaction != nil && r.transaction.owned:
		return nil, true // the transaction keeps them until it has ended
	case plans[r.Cmd.ID].keys != anySlots && r.transaction == nil:
		return nil, false // it may be refused, and who times it still reads its arguments
	}
	input = r.keepInput()
	return input, input != nil
}

// keepInput is KeepArgs for what is sure to be answered later, and lies in the input.
func (r *request) keepInput() *netloop.Buffer {
	cn, last := r.conn, len(r.Args)-1
	parsed := cn.parser.Args()
	if !r.reading || r.Upload != nil || len(parsed) <= last || &parsed[len(parsed)-1] != &r.Args[last] {
		return nil // others made them, or they are parts
	}
	b := cn.Socket.TakeInput(r.Args[last])
	if b != nil {
		cn.parser.GiveArgs()
	}
	return b
}

// IsAbandoned reports whether the present request is of no use any more: the connection has closed, or a proxy's
// client has left. A transaction is executed whole, but for its replies.
func (r *request) IsAbandoned() bool {
	cn, x := r.conn, r.transaction
	switch {
	case x == nil:
		return cn.closed
	case x.single:
		return cn.closed || x.job != nil && x.job.canceled
	}
	return cn.closed && !x.must
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

// CoverLater is AnswerLater for a command over all keys. No barrier waits for the goroutine: when
// the view has changed, f may have found keys of a partition that this node has lost meanwhile. A
// part of a reply must be right about that, so CoverLater calls f again.
func (r *request) CoverLater(f func(ctx context.Context, covered *ring.PartitionSet, reply *exec.Gathered)) {
	r.gatherCover(rests, f)
}

// coverLater is CoverLater with some effort, for short replies.
func (r *request) coverLater(e effort, f func(ctx context.Context, covered *ring.PartitionSet) (reply []byte)) {
	r.gatherCover(e, func(ctx context.Context, covered *ring.PartitionSet, reply *exec.Gathered) {
		reply.Head = f(ctx, covered)
	})
}

func (r *request) gatherCover(e effort, f func(ctx context.Context, covered *ring.PartitionSet, reply *exec.Gathered)) {
	n := r.node
	if !r.Part {
		_, covered := n.coverage(&allPartitions) // none while the node is fenced
		r.gatherLater(e, covers, func(ctx context.Context, reply *exec.Gathered) { f(ctx, &covered, reply) }, nil)
		return
	}
	wanted := r.wanted
	r.gatherLater(e, covers, func(ctx context.Context, reply *exec.Gathered) {
		for range coverTries {
			before, covered := n.coverage(&wanted)
			f(ctx, &covered, reply)
			if resp.IsError(reply.Head) {
				return
			}
			if after := n.view.Load(); after == before {
				reply.Head = append(member.AppendCovered(nil, &covered), reply.Head...)
				return
			}
			reply.End()
			exec.Hurry(ctx) // the longer a try takes, the likelier comes the next table
		}
		reply.Head = resp.AppendError(nil, errTakingOver)
	}, nil)
}

// coverTries bounds how often a command over all keys runs again because a new table has arrived.
const coverTries = 5

// DropLater deletes all keys of the partitions that the node serves and the reply must cover,
// FLUSHDB those of its database, and answers OK. It stops when the connection ends, or a proxy's
// client has gone: behind that, nothing that came over the connection drops anything. It runs
// outside the loops, and no barrier waits for it. So it drops each partition between two tables: a
// partition that this node has lost meanwhile may be a copy, which must stay as it is. It takes no
// place of the crew, because it waits for those who hold partitions.
func (r *request) DropLater() {
	n, ofAllNodes, database := r.node, r.Part, r.Database
	drop := n.engine.DropUnheld
	if r.Cmd.ID == command.FlushDB {
		drop = func(p uint16, still func() bool) *engine.Hold {
			return n.engine.ClearUnheld(engine.Section(p, database), still)
		}
	}
	r.coverLater(waits, func(ctx context.Context, covered *ring.PartitionSet) []byte {
		for p := range uint16(ring.Partitions) {
			if covered.Has(p) {
				n.dropServed(ctx, p, drop)
			}
		}
		n.flushTracking(ofAllNodes)
		return resp.AppendOK(nil)
	})
}

// dropper deletes keys of a partition unless somebody holds it, or still returns false.
type dropper func(p uint16, still func() bool) *engine.Hold

// dropServed deletes keys of a partition that the node serves, once nobody holds it.
func (n *Node) dropServed(ctx context.Context, p uint16, drop dropper) {
	for ctx.Err() == nil {
		h := n.tryDrop(ctx, p, drop)
		if h == nil {
			return
		}
		var waited time.Duration
		n.awaitHold(ctx, h, &waited)
	}
}

// AwaitHold is exec.Host's.
func (r *request) AwaitHold(ctx context.Context, h *engine.Hold, waited *time.Duration) (ended bool) {
	return r.node.awaitHold(ctx, h, waited)
}

// awaitHold waits for the end of a hold, for holdPatience at most, of which waited has passed before.
// It adds to that, and reports false if the hold has not ended by then.
func (n *Node) awaitHold(ctx context.Context, h *engine.Hold, waited *time.Duration) (ended bool) {
	begun := time.Now()
	defer func() { *waited += time.Since(begun) }()
	limit := time.NewTimer(n.holdPatience - *waited)
	defer limit.Stop()
	select {
	case <-h.Ended():
		return true
	case <-limit.C:
	case <-ctx.Done():
	}
	return false
}

func (n *Node) tryDrop(ctx context.Context, p uint16, drop dropper) *engine.Hold {
	n.tableMu.Lock()
	defer n.tableMu.Unlock()
	if n.view.Load().Standing[p] != ownership.Serving {
		return nil
	}
	return drop(p, func() bool { return ctx.Err() == nil })
}

// pause stops a connection until resume.
func (cn *conn) pause() {
	cn.Answering = true
	cn.Socket.Pause()
}

// answerLater has a goroutine call f, which merely waits, and appends the reply that f returns. f
// must not use the request or views of its arguments, and must return soon after the node closes.
func (r *request) answerLater(f func() []byte) { r.answerLaterThen(f, nil) }

// answerLaterThen is answerLater, but calls then on the loop before it appends the reply.
func (r *request) answerLaterThen(f func() []byte, then func()) {
	r.haveAnswered(waits, unkeyed, func(context.Context) []byte { return f() }, then)
}

// haveAnswered has a goroutine call f, and appends the reply that f returns. If there is a then, the
// loop calls it before that. Only the f of a pinned command is called when ctx has ended already, to release
// what it holds.
func (r *request) haveAnswered(e effort, how progress, f func(ctx context.Context) []byte, then func()) {
	r.gatherLater(e, how, func(ctx context.Context, reply *exec.Gathered) { reply.Head = f(ctx) }, then)
}

// gatherLater is haveAnswered for a reply that f gathers.
func (r *request) gatherLater(e effort, how progress, f func(ctx context.Context, reply *exec.Gathered), then func()) {
	cn := r.conn
	j := r.beginJob(how)
	if j == nil {
		if how == pinned {
			r.worker.loop.Post(func() { // not under the handler's lock: f ends pins
				var unread exec.Gathered
				f(ended, &unread)
				unread.End()
			})
		}
		return
	}
	timing := r.timingLater()
	var reply exec.Gathered
	var took time.Duration
	cn.run(j, e, func(ctx context.Context) {
		if how == pinned || ctx.Err() == nil {
			took = timeOf(ctx, func() { f(ctx, &reply) })
		}
	}, nil, func() {
		timing.end(took)
		if then != nil {
			then()
		}
		cn.charge(j, len(reply.Head))
		cn.finish(j, func(r *request) { r.answer(&reply) }, reply.End)
	})
}

// answer answers with what a goroutine has made.
func (r *request) answer(reply *exec.Gathered) {
	if resp.IsError(reply.Head) {
		r.CountFailure(string(reply.Head))
	}
	reply.Answer(&r.Request)
}

// ended is a context that has ended.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
