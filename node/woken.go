package node

import (
	"runtime/debug"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
)

// Blocked commands are served here, by those who bring what they wait for (blocked.go).

// waker executes commands that have waited. Whoever serves them takes one, under a shard's lock.
type waker struct {
	exec.Request
	worker exec.Worker
	conn   exec.Conn
	state  session.State
	host   wakerHost
	text   []byte   // of the command's arguments
	args   [][]byte // views of that
}

// wakerHost is the exec.Host of a waker. A command that has one run asks for nothing else.
type wakerHost struct {
	exec.Host
	waiter *engine.Waiter
	waits  bool          // the command has found nothing again
	again  time.Duration // after which it is executed again; 0: never
	popped uint64        // the token for what it has popped; 0: nobody will ask
}

// Await notes that the command goes on waiting.
func (h *wakerHost) Await(t engine.Txn, a exec.Await) {
	h.waits, h.again = true, a.Again
	if a.Positions != nil {
		t.Saw(h.waiter, a.Positions)
	}
}

// Take has a proxy told by which token it can return what is popped, see served.
func (h *wakerHost) Take(t engine.Txn, key []byte) (ahead []byte) {
	if blockedOf(h.waiter).traits.has(wantsToken) {
		h.popped = t.Take(key)
	}
	return nil
}

func (n *Node) newWaker() any {
	k := new(waker)
	k.conn.State = &k.state
	n.equip(&k.Request, &k.worker)
	k.Host = &k.host
	return k
}

// execute executes a command under the lock of t. The reply is empty if it goes on waiting, or is postponed.
func (k *waker) execute(t engine.Txn, w *blocked) (reply exec.Apart) {
	k.state.Version, k.state.NoTouch, k.host = w.traits.version(), w.traits.has(noTouch), wakerHost{waiter: &w.Waiter}
	k.BeginApart(&k.conn, t.Now())
	k.text = append(k.text[:0], w.Text()...)
	k.args = unpackArgs(k.args[:0], k.text)
	k.Cmd, k.Args, k.Partition, k.Database = command.ByID(w.cmd), k.args, w.Partition(), w.database()
	k.Keys, _ = k.Cmd.AppendKeys(k.Keys[:0], k.Args)
	k.Partitions = k.Partitions[:0]
	for range k.Keys {
		k.Partitions = append(k.Partitions, k.Partition)
	}
	k.Transaction, k.InTransaction = t, true
	plans[w.cmd].handler(&k.Request)
	k.Transaction, k.Args = engine.Txn{}, nil
	if cap(k.text) > exec.MaxBodyKept {
		k.text = nil
	}
	if k.host.waits || k.Postponed {
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

// endOf is the End of the engine's Servers: any value is behind the waiters for one of its type that has no end.
func endOf(t engine.Txn, item engine.Item) engine.Position {
	if end := types.Of(item).End; end != nil {
		return end(t, item)
	}
	return engine.End
}

// serveBlocked is the Serve of the engine's Servers.
func (n *Node) serveBlocked(t engine.Txn, of *engine.Waiter) (deliver func(), ended bool, steps int) {
	w := blockedOf(of)
	loop := w.conn.worker.loop
	if w.conn.gone.Load() {
		return func() { loop.Post(w.end) }, true, 0
	}
	reply, popped, again, ok := n.wake(t, w)
	switch {
	case of.Claims:
		return nil, false, 0
	case !ok || !reply.Empty():
		return func() { loop.Post(func() { w.served(&reply, popped, ok) }) }, true, reply.Len() / servedPerStep
	case again > 0:
		return func() { loop.Post(func() { w.again(again) }) }, false, 0
	}
	return nil, false, 0
}

// servedPerStep is how many bytes of a reply a waiter is served with in one of the engine's steps.
const servedPerStep = 4 << 10

// wake executes a command that has waited. If that panics, the command is answered by an error.
func (n *Node) wake(t engine.Txn, w *blocked) (reply exec.Apart, popped uint64, again time.Duration, ok bool) {
	defer func() {
		if problem := recover(); problem != nil {
			n.log.Error("a command that has waited panics", "command", command.ByID(w.cmd).Name, "panic", problem, "stack", string(debug.Stack()))
		}
	}()
	k := n.wakers.Get().(*waker)
	reply = k.execute(t, w)
	popped, again, w.Claims = k.host.popped, k.host.again, k.Postponed
	k.host.waiter = nil
	n.wakers.Put(k)
	return reply, popped, again, true
}

// served answers a command that was served. popped is the token for what it has popped, 0 if there is none.
func (w *blocked) served(reply *exec.Apart, popped uint64, ok bool) {
	w.answer(func(r *request) {
		switch {
		case !ok:
			r.Fail(errInternal)
		case reply.IsError():
			r.worker.Count.Errors++
			fallthrough
		default:
			start, pins := len(r.Out), len(r.Pins)
			reply.Answer(&r.Request)
			if r.popped = popped; popped == 0 { // what may be given back stays whole, as in judgePins
				r.LimitPins(start, pins)
			}
		}
		w.tellAgain()
	}, reply.End)
}

// anew executes a command that takes too long to be served by others: here, from its beginning, like one that has just
// come. A proxy sends it again. The turn that it had in its group ends behind that, or by itself.
func (w *blocked) anew(turn engine.Turn) {
	args, cmd := unpackArgs(nil, []byte(w.Text())), command.ByID(w.cmd)
	keys, _ := cmd.AppendKeys(nil, args)
	pass := func() {
		if turn.Number > 0 { // there are no others in whose queues there are turns
			group := args[command.ReadsOf(args).Group]
			p := member.Pass{Kind: member.Group, Turn: turn.Number, Key: args[keys[turn.Key]], Group: group}
			w.conn.node.endTurn(w.database(), p, w.conn.worker)
		}
	}
	switch {
	case w.conn.closed:
		w.end()
	case w.canceled:
		w.answer(failCanceled, func() {})
	case w.conn.pipe == nil:
		w.answer(func(r *request) {
			l := listing{cmd: cmd, heap: r.Heap, args: args, several: true}
			for l.findKeys(); len(l.runs) > 0; {
				l.place()
			}
			l.execute(r)
		}, func() {})
	default:
		w.answer(func(r *request) {
			r.replyWait()
			r.latch(w.Partition())
		}, func() {})
		w.conn.worker.turns.takeAfter(member.ClaimTurn, pass)
		return
	}
	w.conn.worker.loop.Post(pass)
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
