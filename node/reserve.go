package node

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

const (
	// reserveLapse is how long a connection may keep partitions for a command that another node executes.
	reserveLapse = 2 * time.Second
	// maxElement is how long an element may be that is moved, or a value of MSETNX, in bytes: under a lock it is copied.
	maxElement = 64 << 10
	// copyPatience is how long a follower has to acknowledge an element that was moved.
	copyPatience = 500 * time.Millisecond
	// endsAtOnce is how many reservations end in one turn of their loop.
	endsAtOnce = 32
)

const (
	errBadReserve = "ERR cannot reserve: malformed request, another command than is executed so, or on a pipe"
	errLapsed     = member.Lapsed + " not executed: the partition is not reserved any more"
	errLong       = "CROSSSLOT the element is longer than 64 KiB, and the keys lie in several slots: give them a common hash tag"
)

// reservations are partitions that this node holds for a command over several slots
// (internal/member). What is changed in one reaches others, and copies, when its hold ends.
type reservations struct {
	hand
	all  []*reservation
	at   *reservation // of the command that is executed
	undo bool         // what is executed is heard by nobody
}

// reserved is what a connection has reserved, for a command that another node executes. It belongs
// to the connection's loop, but while it is busy.
type reserved struct {
	*reservations
	cn    *conn
	lapse *netloop.Timer
	busy  bool // a goroutine executes a command, or the reservations end in turns
	over  bool // all ends, when that command has ended: nothing else is executed
}

// reservation is one partition that is held.
type reservation struct {
	hold     *engine.Hold
	section  uint16
	now      int64 // when it began
	ctx      *workContext
	undoing  [][]byte    // deletes what MSETNX has stored, unless the reservation is released
	events   []heldEvent // of that
	charged  int64       // for both
	finished bool        // the hold has ended
}

// heldEvent is a notification that waits until it is sure that what it is about stays.
type heldEvent struct {
	keyChange
	key []byte
}

// reserve: DUNLIN RESERVE database command arguments... As for a client, a partition that somebody holds is waited for.
func reserve(r *request) {
	database, args, ok := member.ParseReserve(r.Args[2:])
	p, runs := reservable(args)
	if !ok || !runs || r.conn.pipe != nil {
		r.Fail(errBadReserve)
		return
	}
	v := r.conn.reserved
	if v != nil {
		if v.over {
			r.Fail(errLapsed)
			return
		}
		if h := v.of(p); h != nil { // of another slot
			v.execute(r, h, args, member.GoesOn)
			return
		}
	}
	t, ok := r.lockSpread(database, args[command.Row(args).FirstKey(args)], (*request).admitSpread)
	if !ok {
		return
	}
	h := r.node.newReservation(r.hold(t), r.Now, r.node.fences.Load())
	t.Unlock()
	if v == nil {
		v = r.node.newReserved(r.conn)
	}
	v.all = append(v.all, h)
	v.execute(r, h, args, member.GoesOn)
}

// within: DUNLIN WITHIN further command arguments...
func within(r *request) {
	further, args, ok := member.ParseWithin(r.Args[2:])
	p, runs := reservable(args)
	if !ok || !runs || r.conn.pipe != nil {
		r.Fail(errBadReserve)
		return
	}
	if v := r.conn.reserved; v != nil && !v.over {
		if h := v.of(p); h != nil {
			v.execute(r, h, args, further)
			return
		}
	}
	r.Fail(errLapsed)
}

// release: DUNLIN RELEASE
func release(r *request) {
	cn, v, n := r.conn, r.conn.reserved, 0
	if v == nil || v.over {
		r.ReplyInt(0)
		return
	}
	keep := func(h *reservation) bool {
		good := v.isGood(h)
		if good {
			n++
		}
		return good
	}
	if v.endSome(keep) {
		r.ReplyInt(int64(n))
		return
	}
	var goOn func()
	goOn = func() {
		if !v.endSome(keep) {
			cn.worker.turns.take(goOn)
			return
		}
		cn.resume(func(r *request) {
			r.Cmd = command.ByID(command.DunlinRelease)
			r.ReplyInt(int64(n))
		})
	}
	cn.pause()
	cn.worker.turns.take(goOn)
}

// reservable returns the partition of a command which can be executed in a reserved one, and is not too long for that.
func reservable(args [][]byte) (p uint16, ok bool) {
	c, _ := command.Resolve(nil, args)
	if c == nil {
		return 0, false
	}
	switch c.ID {
	case command.LIndex, command.LLen, command.LPush, command.RPush, command.LPop, command.RPop,
		command.SIsMember, command.SCard, command.SAdd, command.SRem, command.Exists, command.MSetNX:
	default:
		return 0, false
	}
	keys, _ := c.AppendKeys(nil, args)
	for i, at := range keys {
		if i == 0 {
			p = ring.PartitionOf(args[at])
		} else if ring.PartitionOf(args[at]) != p {
			return 0, false
		}
	}
	return p, len(keys) > 0
}

func (n *Node) newReserved(cn *conn) *reserved {
	cn.reserved = &reserved{reservations: n.takeReservations(), cn: cn}
	cn.reserved.lapse = cn.worker.loop.After(reserveLapse, cn.dropReserved)
	return cn.reserved
}

// takeReservations returns some that nobody uses, of no partition yet.
func (n *Node) takeReservations() *reservations {
	if v, ok := n.gathers.reserved.Get().(*reservations); ok {
		return v
	}
	v := &reservations{hand: hand{node: n}}
	v.equip(new(exec.Worker))
	v.state.Executing = true
	v.Announce = v.note
	return v
}

// giveReservations lets others have v, which has no reservations any more.
func (n *Node) giveReservations(v *reservations) {
	v.at, v.Request.Hold = nil, nil
	n.gathers.reserved.Put(v)
}

// newReservation returns that of the partition that is held since a time. fences is Node.fences as
// of then.
func (n *Node) newReservation(hold *engine.Hold, now int64, fences uint64) *reservation {
	return &reservation{
		hold: hold, section: hold.Section(), now: now,
		ctx: &workContext{Context: n.ctx, node: n, partition: hold.Partition(), held: true, fences: fences},
	}
}

// note announces what a command does. It looks where Redis does not, so nothing is missed, and MSETNX may be undone.
func (v *reservations) note(class keyevent.Class, event string, database uint8, key []byte) {
	switch {
	case v.undo || class == keyevent.KeyMiss:
	case v.Cmd.ID == command.MSetNX:
		v.at.events = append(v.at.events, heldEvent{keyChange{class, event}, bytes.Clone(key)})
	default:
		v.node.events.note(class, event, database, key)
	}
}

// of returns the reservation of a partition; nil if there is none.
func (v *reservations) of(p uint16) *reservation {
	for _, h := range v.all {
		if h.hold.Partition() == p {
			return h
		}
	}
	return nil
}

// isGood reports whether nobody else can have the partition: no barrier waits for what is done in it.
func (v *reservations) isGood(h *reservation) bool {
	return !v.node.isFenced(v.node.cfg.Group.Clock()) && h.ctx.Err() == nil
}

// enter has the hand work in a partition.
func (v *reservations) enter(h *reservation) {
	v.at, v.Request.Hold = h, h.hold
	v.Partition, v.Database, v.Now = engine.PartitionOf(h.section), engine.DatabaseOf(h.section), h.now
}

// begin begins a command in a partition, and returns what it takes. If that is refused, the
// partition may not be reserved any more.
func (v *reservations) begin(h *reservation, args [][]byte) (size int64, refusal string) {
	if !v.isGood(h) {
		v.end(h, false)
		return 0, errLapsed
	}
	size = v.sizeOf(args)
	if !v.Heap.Charge(size) {
		return 0, exec.ErrOOM
	}
	v.enter(h)
	v.prepare(exec.CloneArgs(args))
	plans[v.Cmd.ID].handler(&v.Request)
	return size, ""
}

// execute executes a command in a partition.
func (v *reserved) execute(r *request, h *reservation, args [][]byte, further member.Further) {
	size, refusal := v.begin(h, args)
	if refusal != "" {
		v.closeIfEmpty()
		r.Fail(refusal)
		return
	}
	if v.later == nil && further != member.IsCopied {
		reply := v.replyOf(h)
		v.refund(h, size)
		v.ends(h, further)
		if r.Room(len(reply)) {
			r.Out = append(r.Out, reply...)
		}
		return
	}
	v.busy = true
	r.haveAnswered(settles, unkeyed, func(context.Context) []byte {
		v.goOn(h.ctx)
		reply := v.replyOf(h)
		if further == member.IsCopied && !resp.IsError(reply) {
			v.finish(h)
			v.node.awaitCopy(h.hold.Partition())
		}
		return reply
	}, func() {
		if v.later != nil { // the connection has closed before
			v.later.End()
			v.later = nil
			v.EndScripted()
		}
		v.busy = false
		v.refund(h, size)
		v.ends(h, further)
	})
}

// sizeOf is what a command takes: its arguments, and for MSETNX what undoes it and the events of that, which are kept.
func (v *reservations) sizeOf(args [][]byte) int64 {
	size := wordBytes(args)
	if command.Row(args).ID == command.MSetNX {
		size += size + gatherCost*int64(len(args))
	}
	return size
}

// refund gives back what a command has taken, or has the reservation do so, which keeps what undoes the command.
func (v *reservations) refund(h *reservation, size int64) {
	if len(h.undoing) > 0 && !h.finished {
		h.charged += size
		return
	}
	v.Heap.Refund(size)
}

// replyOf returns a copy of the reply to the command that was executed.
func (v *reservations) replyOf(h *reservation) (reply []byte) {
	defer v.EndScripted()
	if v.Produced() > maxElement+exec.LineRoom {
		return resp.AppendError(nil, errLong)
	}
	reply = bytes.Clone(v.take())
	stored := string(reply) == ":1\r\n" || bytes.HasPrefix(reply, []byte("-"+exec.ErrReplyLost))
	if v.Cmd.ID == command.MSetNX && stored {
		h.undoing = [][]byte{[]byte("DEL")}
		for _, at := range v.Keys {
			h.undoing = append(h.undoing, bytes.Clone(v.Args[at]))
		}
	}
	return reply
}

// ends does what is due behind a command.
func (v *reserved) ends(h *reservation, further member.Further) {
	if further != member.GoesOn {
		v.end(h, true)
	}
	if v.over {
		v.endAll()
	} else {
		v.closeIfEmpty()
	}
}

// end ends a reservation, and keeps what MSETNX has stored there or deletes that.
func (v *reservations) end(h *reservation, keep bool) {
	if !h.finished && !keep && len(h.undoing) > 0 {
		v.enter(h)
		v.undo = true
		v.call(h.ctx, h.undoing...)
		v.EndScripted()
		v.undo, h.events = false, nil
	}
	v.finish(h)
	v.all = slices.DeleteFunc(v.all, func(other *reservation) bool { return other == h })
}

// finish ends the hold of a reservation. From then on others see what was changed.
func (v *reservations) finish(h *reservation) {
	if h.finished {
		return
	}
	h.finished = true
	if len(h.events) > 0 {
		t := h.hold.Lock()
		for _, e := range h.events {
			v.node.events.note(e.class, e.event, engine.DatabaseOf(h.section), e.key)
		}
		t.Unlock()
	}
	h.hold.End()
	v.Heap.Refund(h.charged)
	h.undoing, h.events, h.charged = nil, nil, 0
}

// endAll ends all reservations, none of which was released, in turns of the loop.
func (v *reserved) endAll() {
	w := v.cn.worker
	v.over = true
	if !v.endSome(func(*reservation) bool { return false }) {
		w.turns.take(v.endAll)
	}
}

// endSome ends some of the reservations, and keeps what was stored there if keep says so. It reports whether none is
// left: then v is not to be used any more.
func (v *reserved) endSome(keep func(h *reservation) bool) (all bool) {
	for range endsAtOnce {
		if len(v.all) == 0 {
			break
		}
		h := v.all[len(v.all)-1]
		v.end(h, keep(h))
	}
	v.busy = len(v.all) > 0
	all = !v.busy
	v.closeIfEmpty()
	return all
}

// closeIfEmpty forgets what has no reservations.
func (v *reserved) closeIfEmpty() {
	if len(v.all) > 0 || v.cn == nil {
		return
	}
	v.lapse.Stop()
	v.cn.reserved, v.cn = nil, nil
	v.node.giveReservations(v.reservations)
}

// dropReserved ends what a connection has reserved: it has closed, or had it for too long.
func (cn *conn) dropReserved() {
	switch v := cn.reserved; {
	case v == nil:
	case v.busy:
		v.over = true
	default:
		v.endAll()
	}
}

// awaitCopy waits until the partition's followers have what was changed in it, but not for long: the owner alone could
// lose it when it dies.
func (n *Node) awaitCopy(p uint16) {
	ctx, cancel := context.WithTimeout(n.ctx, copyPatience)
	defer cancel()
	for _, s := range n.senders.List() {
		if copies := s.Copies(); copies.Has(p) {
			_ = s.Flush(ctx) // or it is a copy no more, or will have it later
		}
	}
}
