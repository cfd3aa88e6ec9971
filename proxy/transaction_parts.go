package proxy

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/ring"
)

// EXEC assigns the commands of a transaction to parts, by the slots of their keys.

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
