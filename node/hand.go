package node

import (
	"context"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// hand executes commands one after the other and gets their replies, outside of any connection: for a script, or in a
// goroutine. Nothing that a command leaves for later is left for long.
type hand struct {
	exec.Request
	node  *Node
	conn  exec.Conn
	state session.State
	later exec.Work // what the present command has left to do
}

func (x *hand) equip(w *exec.Worker) {
	x.conn.State = &x.state
	x.node.equip(&x.Request, w)
	x.Request.Host = handHost{x: x}
}

// prepare begins a command on keys that all lie in the hand's partition, which it holds.
func (x *hand) prepare(args [][]byte) {
	x.EndScripted() // of the command before
	x.BeginScripted(&x.conn, x.Now)
	x.Cmd, x.Args = command.Row(args), args
	x.Keys, _ = x.Cmd.AppendKeys(x.Keys[:0], args)
	x.Partitions = x.Partitions[:0]
	for range x.Keys {
		x.Partitions = append(x.Partitions, x.Partition)
	}
}

// call executes such a command. Its reply is valid until the next one.
func (x *hand) call(ctx context.Context, args ...[]byte) (reply []byte) {
	x.prepare(args)
	plans[x.Cmd.ID].handler(&x.Request)
	x.goOn(ctx)
	return x.take()
}

// take returns the reply to the present command, valid until the next one.
func (x *hand) take() (reply []byte) {
	reply, ok := x.TakeScripted()
	if !ok {
		reply = lostReply(x.Cmd)
	}
	return reply
}

// goOn does what the present command has left to do.
func (x *hand) goOn(ctx context.Context) {
	for x.later != nil {
		w := x.later
		x.later = nil
		x.finish(ctx, w)
	}
}

func (x *hand) finish(ctx context.Context, w exec.Work) {
	defer w.End()
	w.Run(ctx)
	if waiter, ok := w.(exec.Waiter); ok {
		waiter.Await(ctx)
	}
	w.Reply(&x.Request)
}

// handHost is the exec.Host of a hand.
type handHost struct {
	exec.Host
	x *hand
}

// AnswerLater has f called when the handler has returned.
func (h handHost) AnswerLater(f func(ctx context.Context) (reply []byte)) {
	h.GatherLater(func(ctx context.Context, reply *exec.Gathered) { reply.Head = f(ctx) })
}

// GatherLater has f called when the handler has returned.
func (h handHost) GatherLater(f func(ctx context.Context, reply *exec.Gathered)) {
	h.x.later = &gathering{f: f}
}

// gathering is the Work of GatherLater.
type gathering struct {
	f     func(ctx context.Context, reply *exec.Gathered)
	reply exec.Gathered
}

func (g *gathering) Run(ctx context.Context) { g.f(ctx, &g.reply) }
func (g *gathering) Reply(r *exec.Request)   { g.reply.Answer(r) }
func (g *gathering) End()                    { g.reply.End() }

// Later has w done when the handler has returned.
func (h handHost) Later(w exec.Work) { h.x.later = w }

// HoldOn does nothing: the hand holds its partition.
func (h handHost) HoldOn(engine.Txn) {}

// Take does nothing: nobody returns what a hand pops.
func (h handHost) Take(engine.Txn, []byte) (ahead []byte) { return nil }

// KeepArgs has the arguments copied: who uses the hand may overwrite them.
func (h handHost) KeepArgs() (*netloop.Buffer, bool) { return nil, false }

// IsAbandoned returns false: whoever uses the hand wants its reply.
func (h handHost) IsAbandoned() bool { return false }

// Again executes the present command again.
func (h handHost) Again() { plans[h.x.Cmd.ID].handler(&h.x.Request) }
