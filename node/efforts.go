package node

import (
	"context"
	"net/netip"
	"time"

	"github.com/dunlin-cache/dunlin/internal/lobby"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// A job (jobs.go) needs a processor, others, or nothing but its turn. Each kind of effort finds its goroutine in another
// way.

// effort says what a goroutine does for a command.
type effort uint8

const (
	computes effort = iota // it needs a processor: it takes its turn in the crew
	rests                  // the same for what only reads: it pauses while loops are strained, see exec.Step
	waits                  // it waits for others
	visits                 // it visits all clients, when it is its turn
	yields                 // nothing: others of the loop have their turn, and no goroutine is needed
	settles                // it waits for others, and what it changes does not depend on the connection
	applies                // it applies a batch of another node, which sends one stream: nothing takes its turn before it
)

// run calls f in a goroutine, has the waiter wait, if there is one, and calls done on the loop,
// whether or not the connection lives. What yields has no work for a goroutine, and waits for its
// turn. A transaction's work takes no turn: those who have one may wait for its partition.
func (cn *conn) run(j *job, e effort, f func(ctx context.Context), waiter exec.Waiter, done func()) {
	js, n := &cn.jobs, cn.node
	if x := j.of; x != nil {
		if e == yields {
			x.take(cn, done)
			return
		}
		ctx := x.workContext(cn)
		n.goJob(func() {
			f(ctx)
			cn.worker.loop.Post(func() {
				x.cancel() // the context's memory
				x.take(cn, done)
			})
		})
		return
	}
	if e == yields {
		cn.worker.turns.take(done)
		return
	}
	if e == settles {
		j.whole = true
		js.settling++
	}
	ctx := cn.contextOf(j)
	post := func() {
		cn.worker.loop.Post(func() {
			if e == settles {
				js.settling--
			}
			done()
			if cn.closed {
				cn.endPipe()
			}
		})
	}
	work := func() {
		f(ctx)
		if waiter == nil || ctx.Err() != nil {
			post()
			return
		}
		n.goJob(func() {
			waiter.Await(ctx)
			post()
		})
	}
	if e == rests && len(j.keeps) > 0 {
		e = computes // others wait for these partitions
	}
	inTurn := n.crew.Go
	if j.anew {
		inTurn = n.crew.GoAnew
	}
	switch e {
	case computes:
		n.pressing.Add(1)
		inTurn(&cn.queue, cn.source(), j.about, func() time.Duration {
			n.pressing.Add(-1)
			began := time.Now()
			work()
			return time.Since(began)
		})
	case rests:
		inTurn(&cn.queue, cn.source(), j.about, func() time.Duration {
			ctx = exec.WithSteps(ctx, n.mayRest)
			work()
			return 0
		})
	case visits:
		cn.visit.begin(n, work)
	case waits, settles, applies:
		n.goJob(work)
	}
}

// source returns the address with whose other connections this one takes turns in the crew. A proxy's pipe, another
// node's connection take turns of their own.
func (cn *conn) source() netip.Addr {
	if cn.pipe != nil || cn.peer {
		return netip.Addr{}
	}
	return lobby.Source(cn.Socket.RemoteIP())
}

// restBehind keeps a place of the crew empty behind work, while loops are strained. The work is done: its
// command does not wait, only the next one does.
func (n *Node) restBehind(worked time.Duration) {
	if n.strained() {
		exec.RestBehind(n.ctx, worked)
	}
}

// mayRest reports whether a goroutine should pause. It does not while work waits for a place in the
// crew that others wait for, or that begins anew if what it reads changes: pauses keep the place.
func (n *Node) mayRest() bool { return n.pressing.Load() == 0 && n.strained() }
