package node

import (
	"runtime/debug"

	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// Blocked commands are served here, by those who bring what they wait for (blocked.go).

// waker executes commands that have waited. Whoever serves them takes one, under a shard's lock.
type waker struct {
	exec.Request
	worker exec.Worker
	conn   exec.Conn
	state  session.State
	host   wakerHost
}

// wakerHost is the exec.Host of a waker. A command that has one run asks for nothing else.
type wakerHost struct {
	exec.Host
	again bool // the command has found nothing again
}

// Await notes that the command goes on waiting.
func (h *wakerHost) Await(engine.Txn, exec.Await) { h.again = true }

func (n *Node) newWaker() any {
	k := new(waker)
	k.conn.State = &k.state
	n.equip(&k.Request, &k.worker)
	k.Host = &k.host
	return k
}

// execute executes a command under the lock of t. The reply is empty if it goes on waiting.
func (k *waker) execute(t engine.Txn, w *blocked) (reply exec.Apart) {
	k.state.Version, k.state.NoTouch, k.host.again = w.version, w.noTouch, false
	k.BeginApart(&k.conn, t.Now())
	k.Cmd, k.Args, k.Partition = w.cmd, w.args, ring.Partition(w.slot)
	k.Keys, _ = w.cmd.AppendKeys(k.Keys[:0], w.args)
	k.Partitions = k.Partitions[:0]
	for range k.Keys {
		k.Partitions = append(k.Partitions, k.Partition)
	}
	k.Transaction, k.InTransaction = t, true
	plans[w.cmd.ID].handler(&k.Request)
	k.Transaction, k.Args = engine.Txn{}, nil
	if k.host.again {
		return reply
	}
	return k.TakeApart()
}

// servesBlocked is the Serves of the engine's Servers. Others may serve a partition that this node served
// when it locked or held it.
func (n *Node) servesBlocked(p uint16) bool {
	fenced := n.isFenced(n.cfg.Group.Clock()) // first, see worker.begin
	return !fenced && n.view.Load().Standing[p] == ownership.Serving
}

// serveBlocked is the Serve of the engine's Servers.
func (n *Node) serveBlocked(t engine.Txn, of *engine.Waiter) (deliver func(), ended bool) {
	w := of.Owner.(*blocked)
	loop := w.conn.worker.loop
	if w.Claims {
		return func() { loop.Post(w.ready) }, true
	}
	if w.conn.gone.Load() {
		return func() { loop.Post(w.end) }, true
	}
	reply, ok := n.wake(t, w)
	if ok && reply.Empty() {
		return nil, false
	}
	return func() { loop.Post(func() { w.served(&reply, ok) }) }, true
}

// wake executes a command that has waited. If that panics, the command is answered by an error.
func (n *Node) wake(t engine.Txn, w *blocked) (reply exec.Apart, ok bool) {
	defer func() {
		if problem := recover(); problem != nil {
			n.log.Error("a command that has waited panics", "command", w.cmd.Name, "panic", problem, "stack", string(debug.Stack()))
		}
	}()
	k := n.wakers.Get().(*waker)
	reply = k.execute(t, w)
	n.wakers.Put(k)
	return reply, true
}

// served answers a command that was served.
func (w *blocked) served(reply *exec.Apart, ok bool) {
	if w.job != nil {
		w.job.whole = true // it has changed something, whether or not it was canceled
	}
	w.answer(func(r *request) {
		switch {
		case !ok:
			r.Fail(errInternal)
		case reply.IsError():
			r.worker.Count.Errors++
			fallthrough
		default:
			reply.Answer(&r.Request)
		}
	}, reply.End)
}

// serveOn is the ServeOn of the engine's Servers.
func (n *Node) serveOn(h *engine.Hold) {
	w := n.workers[int(h.Partition())%len(n.workers)]
	w.loop.Post(func() { w.serveOn(h) })
}

func (w *worker) serveOn(h *engine.Hold) {
	w.turns.take(func() {
		if h.ServeOn() {
			h.End()
		} else {
			w.serveOn(h)
		}
	})
}
