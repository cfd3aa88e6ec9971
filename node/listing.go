package node

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// Of a command with very many keys in any slots, the parser lists only the first arguments. The rest
// are listed, and their partitions found, in turns of the loop, before the command is admitted.
// Meanwhile its connection waits, a pipe's too:
//
//	input, taken over  *1000001 DEL a b c …      admitted and executed
//	turns              [1,024 keys] [1,024 keys] … └ in turns too, see exec.KeyLocks
const (
	listAtOnce = 1024             // keys of a turn: about 0.1 ms
	listFrom   = 1 + 2*listAtOnce // arguments of a command that is listed at once, at most
)

// listing has the arguments of a long request.
type listing struct {
	memory  *netloop.Buffer // in which they lie; nil: raw is a copy
	raw     []byte
	next    int // where in raw those begin that are not listed
	step    int // arguments a key
	left    int // keys that are not listed
	heap    exec.Heap
	charged int64

	args       [][]byte
	keys       []int    // Request.Keys and Partitions
	partitions []uint16 //
	once       []uint16 // each of these once
	seen       ring.PartitionSet
	slot       uint16 // of the first key
	crossing   bool   // there are others
}

// wordsOf is the Limits.Words of a connection.
func (cn *conn) wordsOf(name, second []byte) int {
	c := command.Lookup(name)
	if c != nil && plans[c.ID].keys == anySlots && plans[c.ID].handler != nil && !cn.State.Multi {
		return listFrom
	}
	return command.Words(name, second)
}

// isUnlisted reports whether the parser has listed only the first arguments of the present request.
func (r *request) isUnlisted() bool {
	return r.reading && len(r.Args) == listFrom && r.conn.parser.Count() > listFrom
}

// listLater has the loop list the arguments of the present request in turns, and execute it then.
func (r *request) listLater(raw []byte) {
	cn, count := r.conn, r.conn.parser.Count()
	l := &listing{step: 1, heap: r.Heap, raw: raw}
	if r.Cmd.Route == command.SplitPairs {
		l.step = 2
	}
	if (count-1)%l.step != 0 {
		r.FailArity()
		return
	}
	l.left = (count - 1) / l.step
	size := int64(count)*exec.ArgSize + int64(l.left)*exec.KeySize
	if l.memory = cn.Socket.TakeInput(raw); l.memory == nil {
		size += int64(len(raw))
	}
	if !l.heap.Charge(size) {
		l.end()
		r.Fail(exec.ErrOOM)
		return
	}
	l.charged = size
	if l.memory == nil {
		l.raw = bytes.Clone(raw)
	}
	l.args = make([][]byte, 1, count)
	l.keys, l.partitions = make([]int, 0, l.left), make([]uint16, 0, l.left)
	l.args[0], l.next = resp.DecodeArgument(l.raw, bytes.IndexByte(l.raw, '\n')+1)
	cn.pause()
	cn.worker.turns.take(func() { l.turn(cn) })
}

// turn lists the next arguments. After the last one it executes the request.
func (l *listing) turn(cn *conn) {
	if cn.closed || cn.node.ctx.Err() != nil { // the node closes
		l.end()
		return
	}
	l.some()
	if l.left > 0 {
		cn.worker.turns.take(func() { l.turn(cn) })
		return
	}
	cn.resume(l.execute)
	l.end()
}

// some lists the arguments of up to listAtOnce keys.
func (l *listing) some() {
	for range min(l.left, listAtOnce) {
		key, next := resp.DecodeArgument(l.raw, l.next)
		slot := ring.Slot(key)
		p := ring.Partition(slot)
		if len(l.keys) == 0 {
			l.slot = slot
		}
		l.crossing = l.crossing || slot != l.slot
		if !l.seen.Has(p) {
			l.seen.Add(p)
			l.once = append(l.once, p)
		}
		l.keys, l.partitions = append(l.keys, len(l.args)), append(l.partitions, p)
		if l.args = append(l.args, key); l.step == 2 {
			var value []byte
			value, next = resp.DecodeArgument(l.raw, next)
			l.args = append(l.args, value)
		}
		l.next = next
		l.left--
	}
}

// execute executes the request.
func (l *listing) execute(r *request) {
	keys, partitions := r.Keys, r.Partitions // the next commands use their memory
	r.Args, r.Keys, r.Partitions, r.listed, r.Listed = l.args, l.keys, l.partitions, l, r.conn.pipe == nil
	r.Again()
	r.Keys, r.Partitions, r.listed, r.Listed = keys, partitions, nil, false
}

// give hands the arguments and their memory over to the request that is executed.
func (l *listing) give() (input *netloop.Buffer) {
	input, l.memory = l.memory, nil
	l.end()
	return input
}

// end frees what was not given away.
func (l *listing) end() {
	l.memory.Release()
	l.memory = nil
	l.heap.Refund(l.charged)
	l.charged = 0
}

// admitListed is admitKeys for a request whose arguments were listed in turns.
func (r *request) admitListed() bool {
	l := r.listed
	r.Partition = l.once[0]
	for _, p := range l.once {
		switch {
		case r.serves(p):
		case l.crossing && r.conn.pipe == nil:
			r.Fail(errCrossSlot)
			return false
		default:
			for i, place := range l.partitions {
				if place == p {
					r.refuse(ring.Slot(l.args[l.keys[i]]), l.once...)
					return false
				}
			}
		}
	}
	return true
}
