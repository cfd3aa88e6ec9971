package proxy

import (
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// The proxy queues a transaction. EXEC sends all its commands as one request to the owner of their
// slot, which executes them as a whole:
//
//	WATCH k          ─> DUNLIN WATCH k                      the proxy keeps the versions of the keys
//	MULTI, SET k v   +OK, +QUEUED
//	EXEC             ─> DUNLIN EXEC slot 1 k version SET…   the reply is the client's
//
// With Config.RelaxedMulti the keys may lie in several slots. Then each slot has one part, which is
// executed as a whole, and the proxy merges the parts' replies in the order of the commands. It
// first divides a command like MSET by slot. The keys of a transaction that watches keys always
// share one slot.

const (
	// maxLocal bounds the replies to a transaction's commands that the proxy executes itself.
	maxLocal = 64 << 20
	// maxReplies bounds the replies of the nodes to one transaction. Each of them is at most 64
	// MiB, or a single value.
	maxReplies = 256 << 20
)

// transaction is an EXEC in flight: a part for each slot, and the reply to each command.
type transaction struct {
	s       *client
	relaxed bool // the keys may lie in several slots
	seq     uint64
	// database is the one that the commands which are added are about, here that of those executed here.
	database, here uint8
	placement      ring.Placement
	queue          []session.Queued // of the session
	keys           []int            // scratch
	entries        []entry
	parts          []slotPart
	bySlot         map[uint16]int // the index in parts
	local          int            // bytes of the replies of commands that the proxy has executed
	pending        int
	replies        int    // bytes of the parts' replies
	bytes          int    // of these, of local and of entries, charged to the session
	failed         []byte // the first error of a part
	refused        bool   // a part was not executed
}

// exec starts EXEC. It reports false if the command must wait.
func (s *client) exec() bool {
	if s.watching {
		return false
	}
	tx, refusal, ok := s.state.Exec(nil)
	if !ok {
		s.answer(refusal)
		s.chargeOther()
		return true
	}
	if len(tx.Queue) > maxKeys || s.state.QueuedBytes() > chunkBytes || slices.ContainsFunc(tx.Queue, isSlowHere) {
		s.execInTurns(tx)
		return true
	}
	heavy := slices.ContainsFunc(tx.Queue, func(q session.Queued) bool { return q.Cmd.Flags&command.Heavy != 0 })
	if !s.enterLane(s.laneFor(s.state.QueuedBytes(), heavy)) {
		return false
	}
	if full := s.fullFor(tx); full != nil {
		s.waitFor(full)
		return false
	}
	t := s.newTransaction(tx)
	for i := range tx.Encoded {
		t.watch(&tx.Encoded[i])
	}
	if !t.divide(tx) {
		s.state.EndTransaction()
		s.chargeOther()
		s.answer(s.crossSlot())
		return true
	}
	requests := make([][]byte, len(t.parts))
	for i := range t.parts {
		requests[i] = t.parts[i].request()
	}
	s.state.EndTransaction()
	s.chargeOther()
	s.w.stats.Commands[command.Exec]++
	t.seq = s.tail
	s.issue()
	for i := range t.entries {
		if _, ok := t.executeHere(i); !ok {
			return true // the session is closed
		}
	}
	t.send(requests)
	return true
}

// fullFor returns a pipe, to an owner of the transaction's keys, that has no room for the
// transaction; nil if all have room, as far as it is about the session's database. A waiting
// session calls it repeatedly, so it builds nothing.
func (s *client) fullFor(tx *session.Transaction) *order.Pipe {
	full := func(slot uint16) *order.Pipe {
		if owner := s.w.order.Owner(ring.Partition(slot)); owner != nil {
			if p := owner.Pipe(s.Lane()); p.IsFull(s.state.QueuedBytes()) {
				return p
			}
		}
		return nil
	}
	for i := range tx.Encoded {
		if p := full(tx.Encoded[i].Slot); p != nil {
			return p
		}
	}
	for _, q := range tx.Queue {
		keys, _ := q.Cmd.AppendKeys(s.w.keys[:0], q.Args)
		s.w.keys = keys
		for _, k := range keys {
			if p := full(s.slotOf(q.Args[k])); p != nil {
				return p
			}
		}
	}
	return nil
}

// newTransaction returns a transaction without watched keys and commands.
func (s *client) newTransaction(tx *session.Transaction) *transaction {
	return &transaction{s: s, relaxed: s.w.proxy.cfg.RelaxedMulti && len(tx.Encoded) == 0, queue: tx.Queue,
		bySlot: make(map[uint16]int), entries: make([]entry, 0, len(tx.Queue)),
		database: s.state.Database, here: s.state.Database, placement: s.w.order.Placement()}
}

// isSlowHere reports whether a command of a transaction is executed here, and takes longer than
// microseconds.
func isSlowHere(q session.Queued) bool { return !isRemote(q.Cmd) && !q.Cmd.Quick() }

// executeHere executes a command that needs no node, before the others are sent, so that commands
// behind EXEC see its result. A watched key may have changed, which would cancel EXEC. That does no
// harm: these commands only read, or set the connection's name. It returns how long the reply is. If
// there is no memory for the reply, ok is false, and the session is closed.
func (t *transaction) executeHere(i int) (size int, ok bool) {
	e := &t.entries[i]
	t.s.w.stats.Commands[e.Cmd.ID]++
	if len(e.parts) > 0 {
		if e.Cmd.ID == command.Select {
			t.here, _ = t.s.w.proxy.server.ParseDatabase(e.Args[1])
		}
		return 0, true
	}
	e.local = t.s.executeHere(e.Cmd, e.Args, t.here)
	size = len(e.local)
	if t.local += size; t.local > maxLocal {
		e.local = errRepliesLarge
		return size, true
	}
	t.bytes += size
	return size, t.s.gather(size)
}

// send sends the parts. The reply to the only part of a transaction goes to the client unchanged,
// if the proxy itself executed none of the commands.
func (t *transaction) send(requests [][]byte) {
	s := t.s
	s.selectBehind(t.seq, t.database)
	whole := len(t.parts) == 1
	for i := range t.entries {
		e := &t.entries[i]
		whole = whole && len(e.parts) == 1
		e.Args = nil
	}
	t.queue = nil
	if !whole { // t stays until the replies are there
		n := len(t.entries) * entrySize
		if t.bytes += n; !s.gather(n) {
			return
		}
	}
	t.pending = len(t.parts) + 1 // one for this loop
	for i, raw := range requests {
		r := order.Request{Session: &s.Session, Part: t, Seq: t.seq, ID: int32(i),
			Origin: order.Origin{Partition: ring.Partition(t.parts[i].slot), Database: t.parts[i].database}}
		if whole {
			r.Part = nil
		}
		if !s.submit(r, raw) { // the pipe filled up meanwhile: park the request like one that came back undone
			s.w.order.Park(r, raw, s.w.loop.Now())
		}
	}
	s.w.act()
	if !whole {
		t.done()
	}
}

func cloneAll(args [][]byte) (own [][]byte) {
	for _, a := range args {
		own = append(own, append([]byte(nil), a...))
	}
	return own
}

// executeHere returns the reply to a transaction's command that needs no node, in a database.
func (s *client) executeHere(cmd *command.Command, args [][]byte, database uint8) (reply []byte) {
	switch cmd.ID {
	case command.Wait:
		return session.AppendWaitInExec(nil, args)
	case command.ClientTracking:
		return errTrackingInside
	case command.Select:
		return s.selectHere(args)
	}
	defer func(was uint8) { s.state.Database = was }(s.state.Database)
	s.state.Database = database
	reply, _, ok := s.w.proxy.server.Do(s.state, cmd, args, nil)
	if !ok {
		panic("BUG: nobody executes " + cmd.Name)
	}
	return reply
}
