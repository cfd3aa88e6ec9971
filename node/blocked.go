package node

import (
	"container/heap"
	"slices"
	"time"
	"unsafe"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/internal/tokenlist"
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

// waitMemory is what a wait takes in the Go heap beside its arguments, in bytes (TestMemoryOfWaiters): itself, and its
// entries in the tables of its connection and of the keys that are awaited. placeMemory is what each further key
// takes, clientMemory what the wait of a client takes more, and timeMemory what one with a deadline does.
const waitMemory, placeMemory, clientMemory, timeMemory = 128, 120, 96, 32

// blockedAtOnce is how many waits end, or are looked at, in one turn of a loop: fewer if they are for more
// than blockedKeys keys each.
const blockedAtOnce, blockedKeys = 64, 8

// blocked is a command that waits. It belongs to the connection's loop; those who serve it read what never
// changes. A node has very many, so it is small.
type blocked struct {
	engine.Waiter // first, see blockedOf; its text are the packed arguments of the command
	conn          *conn
	token         uint64 // on its pipe, or among the loop's clients
	place         int32  // in allBlocked.due; or notDue or hasEnded
	cmd           command.ID
	traits        traits
	canceled      bool // nobody waits for it any more
}

const (
	notDue   = -1 // it is not in allBlocked.due
	hasEnded = -2 // it waits no more
)

// blockedOf returns the command that w is the first field of, as all waiters of a node are. A pointer to it in each
// would take 16 bytes.
func blockedOf(w *engine.Waiter) *blocked { return (*blocked)(unsafe.Pointer(w)) }

// traits of a command that waits never change.
type traits uint8

const (
	wantsMarks traits = 1 << iota // its client may keep what it reads
	wantsToken                    // its proxy may return what it pops
	readsRESP3
	noTouch
	isTimed // it has been in allBlocked.due, or is
)

func (t traits) has(all traits) bool { return t&all == all }

// set adds a trait if a condition holds.
func (t *traits) set(trait traits, holds bool) {
	if holds {
		*t |= trait
	}
}

// version returns that of the replies.
func (t traits) version() resp.Version {
	if t.has(readsRESP3) {
		return resp.RESP3
	}
	return resp.RESP2
}

// waitList has the commands that wait of one pipe, or of all clients of a loop.
type waitList = tokenlist.List[*blocked]

// allBlocked are the commands of a loop that wait.
type allBlocked struct {
	worker   *worker
	lists    []*waitList // those that are not empty
	clients  waitList
	token    uint64 // of the newest of clients
	due      deadlines
	timer    *netloop.Timer // for the first of due
	expiring bool           // a turn ends those that are due
	review   review
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
	w := &blocked{conn: cn, cmd: r.Cmd.ID, place: notDue}
	w.traits.set(isTimed, a.Limit > 0 || a.Positions != nil)
	w.traits.set(readsRESP3, cn.State.Version == resp.RESP3)
	w.traits.set(noTouch, cn.State.NoTouch)
	w.traits.set(wantsMarks, r.tracksReads())
	w.traits.set(wantsToken, cn.pipe != nil && cn.pipe.returns)
	if !cn.Socket.TrySetOther(cn.otherBytes() + w.chargeFor(packedSize(a.Args), len(a.Keys))) {
		r.Fail(exec.ErrOOM)
		return
	}
	w.Claims = r.Cmd.ID == command.DunlinClaim
	if cn.pipe == nil {
		r.wait(&session.Waiting{Reply: w.timeout, Withdraw: w.leave, Stop: w.end})
		ws := &r.worker.blocked
		ws.token++
		w.token = ws.token
	} else {
		w.token = r.token(a.IDs)
		r.deferred = true
	}
	a.Since = r.worker.loop.Clock() - max(a.Waited, r.aged, r.Waited)
	args := packArgs(a.Args)
	var few [8]engine.Part
	t.Await(&w.Waiter, a.Wish, string(args), args.appendKeys(few[:0], a.Keys))
	r.worker.blocked.add(w, a.Limit, a.Again)
}

// charge returns the bytes that the wait takes.
func (w *blocked) charge() int { return w.chargeFor(len(w.Text()), w.Keys()) }

// chargeFor is charge of a wait whose packed arguments take so many bytes.
func (w *blocked) chargeFor(args, keys int) int {
	charge := waitMemory + (keys-1)*placeMemory + args
	if w.conn.pipe == nil {
		charge += clientMemory
	}
	if w.traits.has(isTimed) {
		charge += timeMemory
	}
	return charge
}

// Token implements tokenlist.Tokened.
func (w *blocked) Token() uint64 { return w.token }

// list returns where the command stands under its token.
func (w *blocked) list() *waitList {
	if p := w.conn.pipe; p != nil {
		return &p.waits
	}
	return &w.conn.worker.blocked.clients
}

// database returns that of its keys.
func (w *blocked) database() uint8 { return engine.DatabaseOf(w.Section()) }

// slot returns that of the keys of a command, which is no claim.
func (w *blocked) slot(placement ring.Placement) uint16 {
	args := unpackArgs(nil, []byte(w.Text()))
	return placement.SlotOf(w.database(), args[command.ByID(w.cmd).FirstKey(args)])
}

// timeout is the reply to a command whose time is up.
func (w *blocked) timeout() []byte { return resp.AppendNullArray(nil, w.traits.version()) }

// leave ends the wait, and reports false if the command was served.
func (w *blocked) leave() bool { return w.conn.node.engine.Leave(&w.Waiter) }

// end forgets a wait that has ended.
func (w *blocked) end() {
	ws, cn := &w.conn.worker.blocked, w.conn
	list := w.list()
	if list.Remove(w.token); list.Len() == 0 {
		ws.lists = slices.DeleteFunc(ws.lists, func(other *waitList) bool { return other == list })
	}
	if w.place >= 0 {
		heap.Remove(&ws.due, int(w.place))
	}
	w.place = hasEnded
	cn.blockedCharge -= w.charge()
	cn.node.waiters.Add(-1)
}

// add notes a wait that begins.
func (ws *allBlocked) add(w *blocked, limit, again time.Duration) {
	w.conn.node.waiters.Add(1)
	w.conn.blockedCharge += w.charge()
	list := w.list()
	if list.Add(w); list.Len() == 1 {
		ws.lists = append(ws.lists, list)
	}
	now, ends, looks := ws.worker.loop.Clock(), time.Duration(0), time.Duration(0)
	if limit > 0 {
		ends = now + limit
	}
	if again > 0 {
		looks = now + again
	}
	ws.schedule(w, ends, looks)
}

// schedule has expire see to a wait that is not in due, when its time is up, or when it is to be executed again: by the
// loop's clock, 0 for never.
func (ws *allBlocked) schedule(w *blocked, ends, looks time.Duration) {
	at := ends
	if looks > 0 && (ends == 0 || looks < ends) {
		at = looks
	}
	if at > 0 {
		heap.Push(&ws.due, deadline{at, ends, w})
		ws.arm()
	}
}

// again notes that a command that goes on waiting is to be executed again.
func (w *blocked) again(after time.Duration) {
	if w.place == hasEnded {
		return
	}
	ws, ends := &w.conn.worker.blocked, time.Duration(0)
	if w.place >= 0 {
		ends = heap.Remove(&ws.due, int(w.place)).(deadline).ends
	}
	ws.schedule(w, ends, ws.worker.loop.Clock()+after)
}

// arm sets the timer to the first deadline.
func (ws *allBlocked) arm() {
	if ws.timer != nil {
		ws.timer.Stop()
		ws.timer = nil
	}
	if len(ws.due) > 0 && !ws.expiring {
		loop := ws.worker.loop
		ws.timer = loop.After(max(0, ws.due[0].at-loop.Now()), ws.expire)
	}
}

// expire ends the waits that are due, some in each turn.
func (ws *allBlocked) expire() {
	ws.timer, ws.expiring = nil, false
	now := ws.worker.loop.Clock()
	for range blockedAtOnce {
		if len(ws.due) == 0 || ws.due[0].at > now {
			break
		}
		d := heap.Pop(&ws.due).(deadline)
		if d.ends > 0 && d.ends <= now {
			ws.endBy(d.of, d.of.timeout)
			continue
		}
		ws.schedule(d.of, d.ends, 0)
		ws.worker.node.engine.Retry(&d.of.Waiter, ws.worker.loop.UnixMilli())
	}
	if len(ws.due) > 0 && ws.due[0].at <= now {
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
		r.Partition = w.Partition()
		switch serves := r.serves(r.Partition); {
		case serves && reply != nil:
			r.answer(&exec.Gathered{Head: reply()})
		case !serves && r.conn.pipe == nil:
			r.refuse(w.slot(r.Placement), r.Partition)
		default:
			r.replyWait()
			r.latch(r.Partition)
		}
	}, func() {})
}

// answer ends a wait that the queues know no more, and answers the command. free frees what reply has
// not used.
func (w *blocked) answer(reply func(r *request), free func()) {
	cn, cmd := w.conn, command.ByID(w.cmd)
	w.end()
	switch {
	case cn.pipe != nil:
		j := &job{cmd: cmd, token: w.token, whole: true} // how the wait has ended is decided
		cn.pends(j)
		cn.finish(j, reply, free)
	case cn.closed:
		free()
	default:
		defer free()
		cn.State.Waiting = nil
		cn.Unblock()
		cn.resume(func(r *request) {
			r.Cmd = cmd
			reply(r)
		})
	}
}

// cancel ends the wait of a command for which nobody waits any more, unless it was served. It is called in the
// middle of another command.
func (w *blocked) cancel() {
	if w.canceled = true; w.leave() {
		w.conn.worker.loop.Post(func() { w.answer(failCanceled, func() {}) })
	}
}

// review is a look at all waits of a loop.
type review struct {
	left  []stretch
	on    bool // a turn looks
	again bool // all are to be looked at once more
}

// stretch is a part of a list that is to be looked at, by token.
type stretch struct {
	list        *waitList
	first, last uint64
}

// reviewAll ends the waits of connections that have closed, and those for partitions that this node does
// not serve any more, some in each turn. The others are served if their keys have got values meanwhile.
func (ws *allBlocked) reviewAll() {
	ws.review.again = true
	if !ws.review.on && len(ws.lists) > 0 {
		ws.review.on = true
		ws.worker.turns.take(ws.reviewSome)
	}
}

func (ws *allBlocked) reviewSome() {
	view := ws.worker.node.view.Load()
	for left := blockedAtOnce; left > 0; left-- {
		w := ws.nextToReview()
		if w == nil {
			ws.review.on = false
			return
		}
		left -= w.Keys() / blockedKeys
		ws.look(w, view)
	}
	ws.worker.turns.take(ws.reviewSome)
}

// nextToReview returns the wait that is to be looked at next, nil if there is none.
func (ws *allBlocked) nextToReview() *blocked {
	for r := &ws.review; ; r.left = r.left[1:] {
		if len(r.left) == 0 && r.again {
			r.again = false
			for _, list := range ws.lists {
				last, _ := list.Last() // who comes later has looked himself
				r.left = append(r.left, stretch{list: list, last: last.token})
			}
		}
		if len(r.left) == 0 {
			return nil
		}
		part := &r.left[0]
		if w, ok := part.list.From(part.first); ok && w.token <= part.last {
			part.first = w.token + 1
			return w
		}
	}
}

// look reviews one wait. The partition may be served again by the next view: the wait ends nonetheless, and its time
// is not up.
func (ws *allBlocked) look(w *blocked, view *ownership.View) {
	switch {
	case w.conn.closed:
		if w.leave() {
			w.end()
		}
	case view.Standing[w.Partition()] != ownership.Serving || ws.worker.node.placing.Load().closing.Databases.Has(w.database()):
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

// deadline is when a command that waits is to be seen to, and when its time is up (0: never), by the loop's clock.
type deadline struct {
	at, ends time.Duration
	of       *blocked
}

// deadlines is a heap of them.
type deadlines []deadline

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at < d[j].at }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].of.place, d[j].of.place = int32(i), int32(j)
}

// Push implements heap.Interface.
func (d *deadlines) Push(x any) {
	last := x.(deadline)
	last.of.place = int32(len(*d))
	*d = append(*d, last)
}

// Pop implements heap.Interface.
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	popped := (*d)[last]
	(*d)[last] = deadline{}
	popped.of.place, *d = notDue, (*d)[:last]
	return popped
}
