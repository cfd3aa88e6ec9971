package proxy

import (
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
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
}

// entry is a queued command.
type entry struct {
	session.Queued
	local  []byte  // the reply, if the proxy executed the command
	parts  []int   // otherwise: the parts whose next element belongs to this command
	partOf []int32 // of a command that was divided: the index in parts for the n-th key
}

// entrySize is what an entry takes, in bytes.
const entrySize = 104

// slotPart holds the commands of one slot, which its owner executes as a whole.
type slotPart struct {
	slot     uint16
	database uint8 // in which it begins
	watched  int   // keys
	commands int
	body     []byte // behind execRoom: watched keys with their versions, and the requests, each encoded as an argument
	size     int    // of the reply
	replies  []byte // the elements of the reply that no entry has received yet
	alone    []int  // entry.parts of all commands that only this part executes
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
		s.answer(errCrossSlot)
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

// watch adds watched keys to the part of their slot.
func (t *transaction) watch(e *session.Encoded) {
	p := &t.parts[t.part(e.Slot)]
	p.watched += e.Keys
	p.body = append(p.body, e.Text...)
}

// execRoom is what stands before the watched keys of a part, at most.
const execRoom = headerRoom + 4*bulkRoom

// part returns the index of the part for a slot, which it makes at that slot's first key.
func (t *transaction) part(slot uint16) int {
	i, ok := t.bySlot[slot]
	if !ok {
		i = len(t.parts)
		t.bySlot[slot] = i
		t.parts = append(t.parts, slotPart{slot: slot, database: t.database, alone: []int{i}, body: make([]byte, execRoom)})
	}
	return i
}

// divide assigns the commands to parts. It reports false if the keys lie in several slots and must
// not.
func (t *transaction) divide(tx *session.Transaction) bool {
	for _, q := range tx.Queue {
		if !t.add(q) {
			return false
		}
	}
	return t.mayDivide()
}

// mayDivide reports whether there may be as many parts as there are.
func (t *transaction) mayDivide() bool { return len(t.parts) <= 1 || t.relaxed }

// add assigns the next command to parts.
func (t *transaction) add(q session.Queued) bool {
	e := entry{Queued: q}
	switch {
	case q.Cmd.ID == command.Select:
		t.selects(&e)
	case isRemote(q.Cmd) && !t.place(&e):
		return false
	}
	t.entries = append(t.entries, e)
	return true
}

// isRemote reports whether nodes execute a command of a transaction.
func isRemote(cmd *command.Command) bool { return cmd.Route != command.Local && cmd.ID != command.Wait }

// place adds a command on keys to the part of its slot, or divides it among several parts.
func (t *transaction) place(e *entry) bool {
	keys, _ := e.Cmd.AppendKeys(t.keys[:0], e.Args)
	if channel := e.Cmd.Placed(); channel > 0 && t.s.w.order.Level() < ring.PinnedLevel {
		keys = append(keys, channel) // nodes publish on their own channels only
	}
	t.keys = keys
	same := true
	for _, k := range keys {
		same = same && t.slotOf(e, k) == t.slotOf(e, keys[0])
	}
	step := stepOf(e.Cmd)
	switch {
	case len(keys) == 0: // also with a malformed count of keys: any node answers with the error
		e.parts = t.parts[t.part(t.home())].alone
	case same:
		e.parts = t.parts[t.part(t.slotOf(e, keys[0]))].alone
	case e.Cmd.Route == command.Key || (len(e.Args)-1)%step != 0:
		return false
	default:
		t.cut(e, step)
		return true
	}
	t.parts[e.parts[0]].add(e.Args)
	return true
}

// slotOf returns the slot of an argument of a command that is placed: of a key, or of a channel, which lies in no
// database.
func (t *transaction) slotOf(e *entry, arg int) uint16 {
	if arg == e.Cmd.Placed() {
		return ring.Slot(e.Args[arg])
	}
	return t.placement.SlotOf(t.database, e.Args[arg])
}

// home returns the slot of a command without keys: that of others, so that it adds no part. A node publishes on the
// channels of all others.
func (t *transaction) home() uint16 {
	if len(t.parts) > 0 {
		return t.parts[0].slot
	}
	channel := uint16(0)
	database := t.s.state.Database
	for _, q := range t.queue[:min(len(t.queue), maxKeys)] {
		if q.Cmd.ID == command.Select {
			if selected, refusal := t.s.w.proxy.server.ParseDatabase(q.Args[1]); refusal == "" {
				database = selected
			}
			continue
		}
		switch first := q.Cmd.FirstKey(q.Args); {
		case first == 0 || !isRemote(q.Cmd):
		case q.Cmd.Placed() > 0:
			channel = ring.Slot(q.Args[first])
		default:
			return t.placement.SlotOf(database, q.Args[first])
		}
	}
	if t.placement.Pins(database) {
		return t.placement.SlotOf(database, nil) // a script without keys may use any
	}
	return channel
}

// cut divides a command: each slot's part receives the keys of that slot.
func (t *transaction) cut(e *entry, step int) {
	place := make(map[int]int32) // in e.parts
	var args [][][]byte
	for i := 1; i < len(e.Args); i += step {
		p := t.part(t.slotOf(e, i))
		at, ok := place[p]
		if !ok {
			at = int32(len(e.parts))
			place[p] = at
			e.parts = append(e.parts, p)
			args = append(args, e.Args[:1:1])
		}
		args[at] = append(args[at], e.Args[i:i+step]...)
		e.partOf = append(e.partOf, at)
	}
	for at, p := range e.parts {
		t.parts[p].add(args[at])
	}
}

func (p *slotPart) add(args [][]byte) {
	p.commands++
	p.body = member.AppendQueued(p.body, args...)
}

// request returns the part as a DUNLIN EXEC request, and gives up the part's body, in which it
// lies.
func (p *slotPart) request() []byte {
	var room [execRoom]byte
	header := member.AppendExec(room[:0], p.slot, p.watched, p.commands)
	b := p.body[execRoom-len(header):]
	copy(b, header)
	p.body = nil
	return b
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

// Done receives the reply to a part.
func (t *transaction) Done(id int32, reply []byte) {
	n, header, ok := resp.DecodeArray(reply)
	switch {
	case t.failed != nil:
	case resp.IsError(reply), len(t.parts) == 1 && (n < 0 || reply[0] == '_'): // null: a watched key has changed
		t.failed = append(t.failed, reply...)
	case !t.fits(id, len(reply)):
		t.failed = errRepliesLarge
	case !ok || n != t.parts[id].commands:
		t.failed = errMerge
	default:
		t.parts[id].replies = append([]byte(nil), reply[header:]...)
	}
	n = len(t.parts[id].replies)
	if t.bytes += n; !t.s.gatherFor(t.seq, n) {
		return
	}
	t.done()
}

// fits notes the size of a part's reply, n bytes, and reports whether the replies of all parts stay
// within maxReplies. One reply alone always fits.
func (t *transaction) fits(id int32, n int) bool {
	p := &t.parts[id]
	t.replies += n - p.size
	p.size = n
	return t.replies == n || t.replies <= maxReplies
}

// done counts a finished part. After the last one it delivers the whole reply.
func (t *transaction) done() {
	t.pending--
	if t.pending > 0 || t.s.isClosed() {
		return
	}
	whole := 0
	if t.failed == nil {
		if whole = t.bytes; !t.s.gather(whole) {
			return
		}
		out, ok := t.merge()
		if t.failed = errMerge; ok {
			t.failed = out
		}
		t.parts, t.entries = nil, nil
	}
	t.s.gather(-t.bytes)
	t.s.gathered -= whole // so that its own bytes do not forbid an early reply; charged until it is copied
	t.s.reply(t.seq, t.failed)
	t.s.chargeOther()
}

// merge returns the replies to all commands as one array.
func (t *transaction) merge() (out []byte, ok bool) {
	out = resp.AppendArray(nil, len(t.entries))
	for i := range t.entries {
		e := &t.entries[i]
		elements := make([][]byte, len(e.parts))
		for j, p := range e.parts {
			if elements[j], ok = t.parts[p].next(); !ok {
				return nil, false
			}
		}
		switch {
		case len(elements) == 0:
			out = append(out, e.local...)
		case e.partOf == nil:
			out = append(out, elements[0]...)
		default:
			out = e.appendMerged(out, elements)
		}
	}
	for i := range t.parts {
		if len(t.parts[i].replies) > 0 {
			return nil, false
		}
	}
	return out, true
}

// next removes and returns the next element of the part's reply, a view.
func (p *slotPart) next() (element []byte, ok bool) {
	var scan resp.Scanner
	if scan.Scan(p.replies) != resp.Done {
		return nil, false
	}
	element, p.replies = p.replies[:scan.Len()], p.replies[scan.Len():]
	return element, true
}

// appendMerged appends the reply to a command that was divided, from the replies to its parts.
func (e *entry) appendMerged(out []byte, elements [][]byte) []byte {
	f := fan{cmd: e.Cmd, partOf: e.partOf, replies: elements, parts: int32(len(elements))}
	for i, element := range elements {
		if resp.IsError(element) {
			return append(out, element...)
		}
		if !f.merge(int32(i), element) {
			return append(out, errMerge...)
		}
	}
	switch e.Cmd.Merge {
	case command.MergeSum:
		return resp.AppendInt(out, f.sum)
	case command.MergeArray:
		return append(out, f.appendArray(nil)...)
	}
	return resp.AppendSimple(out, "OK")
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
