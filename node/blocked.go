package node

import (
	"container/heap"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// A blocking command that finds nothing stands in the queues of its keys (engine.Await). A client
// waits as in CLIENT PAUSE, and a pipe has a token. Whoever brings a value executes the command
// again, on its own loop and under its lock, and posts the reply to the command's loop:
//
//	loop 1   BLPOP q: wait ··················· served: reply
//	loop 2               RPUSH q: push, pop ──┘
//
// The engine alone decides how a wait ends: who wants to end it otherwise, by a timeout, CLIENT
// UNBLOCK, CANCEL or a new table, calls Leave first. If that says that the command was served, its reply is
// on its way.

// maxBlocked is how many commands wait at a node at a time.
const maxBlocked = 250_000

// waitMemory is what a wait takes in the Go heap beside its arguments, in bytes: what it consists of, its
// place in the queue of a key, and the closures of its client.
const waitMemory, placeMemory = 640, 160

// blockedAtOnce is how many waits end, or are looked at, in one turn of a loop: fewer if they are for more
// than blockedKeys keys each.
const blockedAtOnce, blockedKeys = 64, 8

// blocked is a command that waits. It belongs to the connection's loop; those who serve it read what never
// changes.
type blocked struct {
	engine.Waiter
	conn      *conn
	cmd       *command.Command
	args      [][]byte
	slot      uint16
	version   resp.Version
	noTouch   bool
	job       *job          // of a pipe; nil: a client's
	deadline  time.Duration // by the loop's clock
	place     int           // in allBlocked.due; -1: in none
	charge    int
	keys      int
	reviewed  uint32 // allBlocked.review when it was last looked at
	prev, nxt *blocked
}

// allBlocked are the commands of a loop that wait.
type allBlocked struct {
	worker      *worker
	first, last *blocked
	due         deadlines
	timer       *netloop.Timer // for the first of due
	expiring    bool           // a turn ends those that are due
	review      uint32         // how often all of them were to be looked at
	reviewing   bool           // a turn does
}

// Await has the command at hand wait, see exec.Host.
func (r *request) Await(t engine.Txn, a exec.Await) {
	cn, n := r.conn, r.node
	if n.waiters.Load() >= maxBlocked {
		r.Fail(errTooManyWaits)
		return
	}
	if cn.pipe != nil && !cn.pipe.later {
		r.replyWait()
		r.latch(r.Partition)
		return
	}
	charge := waitMemory + (len(a.Keys)-1)*placeMemory
	for _, arg := range r.Args {
		charge += exec.ArgSize + len(arg)
	}
	for _, key := range a.Keys { // which the engine copies
		charge += len(key)
	}
	if !cn.Socket.TrySetOther(cn.otherBytes() + charge) {
		r.Fail(exec.ErrOOM)
		return
	}
	w := &blocked{
		conn: cn, cmd: r.Cmd, args: exec.CloneArgs(r.Args), slot: ring.Slot(a.Keys[0]),
		version: cn.State.Version, noTouch: cn.State.NoTouch, place: -1, charge: charge, keys: len(a.Keys),
	}
	w.Owner = w
	if cn.pipe == nil {
		r.wait(&session.Waiting{Reply: w.timeout, Withdraw: w.leave, Stop: w.end})
	} else {
		w.job = r.newWait()
		w.job.blocked = w
	}
	w.Claims = r.Cmd.ID == command.DunlinClaim
	t.Await(&w.Waiter, a.Type, a.Keys, a.Waited)
	r.worker.blocked.add(w, a.Limit)
}

// newWait answers the command at hand by a token, however many others wait.
func (r *request) newWait() *job {
	r.conn.jobs.waiting++
	return r.tokenFor(&job{cmd: r.Cmd}, nil)
}

// timeout is the reply to a command whose time is up.
func (w *blocked) timeout() []byte { return resp.AppendNullArray(nil, w.version) }

// leave ends the wait, and reports false if the command was served.
func (w *blocked) leave() bool { return w.conn.node.engine.Leave(&w.Waiter) }

// end forgets a wait that has ended.
func (w *blocked) end() {
	ws, cn := &w.conn.worker.blocked, w.conn
	ws.unlink(w)
	if w.place >= 0 {
		heap.Remove(&ws.due, w.place)
	}
	if cn.blockedCharge -= w.charge; w.job != nil {
		w.job.blocked = nil
		cn.jobs.waiting--
	}
	cn.node.waiters.Add(-1)
}

// add notes a wait that begins.
func (ws *allBlocked) add(w *blocked, limit time.Duration) {
	w.conn.node.waiters.Add(1)
	w.conn.blockedCharge += w.charge
	w.reviewed = ws.review
	ws.pushBack(w)
	if limit > 0 {
		w.deadline = ws.worker.loop.Clock() + limit
		heap.Push(&ws.due, w)
		ws.arm()
	}
}

func (ws *allBlocked) pushBack(w *blocked) {
	if w.prev = ws.last; w.prev == nil {
		ws.first = w
	} else {
		w.prev.nxt = w
	}
	ws.last = w
}

func (ws *allBlocked) unlink(w *blocked) {
	if w.prev == nil {
		ws.first = w.nxt
	} else {
		w.prev.nxt = w.nxt
	}
	if w.nxt == nil {
		ws.last = w.prev
	} else {
		w.nxt.prev = w.prev
	}
	w.prev, w.nxt = nil, nil
}

// arm sets the timer to the first deadline.
func (ws *allBlocked) arm() {
	if ws.timer != nil {
		ws.timer.Stop()
		ws.timer = nil
	}
	if len(ws.due) > 0 && !ws.expiring {
		loop := ws.worker.loop
		ws.timer = loop.After(max(0, ws.due[0].deadline-loop.Now()), ws.expire)
	}
}

// expire ends the waits that are due, some in each turn.
func (ws *allBlocked) expire() {
	ws.timer, ws.expiring = nil, false
	now := ws.worker.loop.Clock()
	for range blockedAtOnce {
		if len(ws.due) == 0 || ws.due[0].deadline > now {
			break
		}
		w := ws.due[0]
		heap.Pop(&ws.due)
		ws.endBy(w, w.timeout)
	}
	if len(ws.due) > 0 && ws.due[0].deadline <= now {
		ws.expiring = true
		ws.worker.turns.take(ws.expire)
		return
	}
	ws.arm()
}

// endBy ends a wait, unless the command was served. At a node that may not serve the partition now, and if there
// is no reply, the command is refused.
func (ws *allBlocked) endBy(w *blocked, reply func() []byte) {
	if !w.leave() {
		return
	}
	w.answer(func(r *request) {
		r.Partition = ring.Partition(w.slot)
		switch serves := r.serves(r.Partition); {
		case serves && reply != nil:
			r.answer(&exec.Gathered{Head: reply()})
		case !serves && r.conn.pipe == nil:
			r.refuse(w.slot, r.Partition)
		default:
			r.replyWait()
			r.latch(r.Partition)
		}
	}, func() {})
}

// answer ends a wait that the queues know no more, and answers the command. free frees what reply has
// not used.
func (w *blocked) answer(reply func(r *request), free func()) {
	cn, j := w.conn, w.job
	w.end()
	switch {
	case j != nil:
		cn.finish(j, reply, free)
	case cn.closed:
		free()
	default:
		defer free()
		cn.State.Waiting = nil
		cn.Unblock()
		cn.resume(func(r *request) {
			r.Cmd = w.cmd
			reply(r)
		})
	}
}

// reviewAll ends the waits of connections that have closed, and those for partitions that this node does
// not serve any more, some in each turn. The others are served if their keys have got values meanwhile.
func (ws *allBlocked) reviewAll() {
	ws.review++
	if !ws.reviewing && ws.first != nil {
		ws.reviewing = true
		ws.worker.turns.take(ws.reviewSome)
	}
}

func (ws *allBlocked) reviewSome() {
	ws.reviewing = false
	view := ws.worker.node.view.Load()
	for left := blockedAtOnce; left > 0; left-- {
		w := ws.first
		if w == nil || w.reviewed == ws.review {
			return
		}
		ws.unlink(w)
		w.reviewed = ws.review
		ws.pushBack(w)
		left -= w.keys / blockedKeys
		ws.look(w, view)
	}
	ws.reviewing = true
	ws.worker.turns.take(ws.reviewSome)
}

// look reviews one wait. The partition may be served again by the next view: the wait ends nonetheless, and its time
// is not up.
func (ws *allBlocked) look(w *blocked, view *ownership.View) {
	switch {
	case w.conn.closed:
		if w.leave() {
			w.end()
		}
	case view.Standing[ring.Partition(w.slot)] != ownership.Serving:
		ws.endBy(w, nil)
	default:
		ws.worker.node.engine.Recheck(&w.Waiter, ws.worker.loop.UnixMilli())
	}
}

// reviewBlocked has all loops look at their waits, since a new view is obeyed or a fence has ended.
func (n *Node) reviewBlocked() {
	for _, w := range n.workers {
		w.loop.Post(w.blocked.reviewAll)
	}
}

// deadlines is a heap of blocked commands.
type deadlines []*blocked

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline < d[j].deadline }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}

// Push implements heap.Interface.
func (d *deadlines) Push(x any) {
	w := x.(*blocked)
	w.place = len(*d)
	*d = append(*d, w)
}

// Pop implements heap.Interface.
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	w := (*d)[last]
	(*d)[last] = nil
	w.place, *d = -1, (*d)[:last]
	return w
}
