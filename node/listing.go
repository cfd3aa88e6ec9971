package node

import (
	"bytes"
	"context"
	"math"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// Of a command whose arguments are very many keys, each with a value or without, the parser lists
// only the first ones. The rest are listed, and their partitions found, in turns of the loop,
// before the command is admitted. Meanwhile its connection waits, a pipe's too:
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
	upload     *exec.Upload // not nil: it has large values, and args has all other arguments
	keys       []int        // Request.Keys and Partitions
	partitions []uint16     //
	once       []uint16     // each of these once
	seen       ring.PartitionSet
	slot       uint16 // of the first key
	crossing   bool   // there are others
	took       time.Duration
}

// wordsOf is the Limits.Words of a connection.
func (cn *conn) wordsOf(name, second []byte) int {
	if c := command.Lookup(name); c != nil && cn.listsLater(c, math.MaxInt) {
		return listFrom
	}
	return command.Words(name, second)
}

// listsLater reports whether a request of so many arguments is listed in turns, rather than by the
// parser: not one that a transaction queues.
func (cn *conn) listsLater(c *command.Command, count int) bool {
	return count > listFrom && plans[c.ID].listStep > 0 && !cn.State.Multi
}

// listStepOf returns how many arguments a key has, itself included, of a command all of whose
// arguments are keys and what belongs to them. 0: it is another command.
func listStepOf(c *command.Command) int {
	for i := range c.Keys {
		k := &c.Keys[i]
		switch {
		case k.Begin != command.BeginIndex || k.Find != command.FindRange || k.Index != 1+i:
			return 0
		case k.Last == -1 && k.Limit <= 1 && (k.Step == 1 || i == 0): // to the end
			return k.Step
		case k.Last != 0: // more than one
			return 0
		}
	}
	return 0
}

// isUnlisted reports whether the parser has listed only the first arguments of the present request.
func (r *request) isUnlisted() bool {
	return r.reading && len(r.Args) == listFrom && r.conn.parser.Count() > listFrom
}

// listLater has the loop list the arguments of the present request in turns, and execute it then.
func (r *request) listLater(raw []byte) {
	cn, count := r.conn, r.conn.parser.Count()
	l := &listing{step: plans[r.Cmd.ID].listStep, heap: r.Heap, raw: raw}
	if (count-1)%l.step != 0 {
		r.FailArity()
		return
	}
	l.left = (count - 1) / l.step
	if !l.charge(int64(count)*exec.ArgSize + int64(l.left)*exec.KeySize) {
		r.Fail(exec.ErrOOM)
		return
	}
	if l.memory = cn.Socket.TakeInput(raw); l.memory == nil {
		if !l.charge(int64(len(raw))) {
			l.end()
			r.Fail(exec.ErrOOM)
			return
		}
		l.raw = bytes.Clone(raw)
	}
	l.args = make([][]byte, 1, count)
	l.args[0], l.next = resp.DecodeArgument(l.raw, bytes.IndexByte(l.raw, '\n')+1)
	l.begin(cn)
}

// placeLater is listLater for a request with large values, whose other arguments are listed: it has
// the loop find their partitions in turns.
func (r *request) placeLater() {
	cn, u := r.conn, r.Upload
	l := &listing{step: plans[r.Cmd.ID].listStep, heap: r.Heap, args: r.Args}
	if (len(l.args)-1)%l.step != 0 {
		r.FailArity()
		return
	}
	l.left = (len(l.args) - 1) / l.step
	if !l.charge(int64(len(l.args))*exec.ArgSize + int64(l.left)*exec.KeySize) {
		r.Fail(exec.ErrOOM)
		return
	}
	last := l.args[len(u.Args):] // the others are copies
	if len(last) > 0 {
		l.memory = cn.Socket.TakeInput(last[0])
	}
	if l.memory == nil {
		size := int64(0)
		for _, arg := range last {
			size += int64(len(arg))
		}
		if !l.charge(size) {
			l.end()
			r.Fail(exec.ErrOOM)
			return
		}
		copy(last, exec.CloneArgs(last))
	}
	l.upload, cn.Upload, r.Upload = u, nil, nil
	cn.Socket.Stream(false)
	l.begin(cn)
}

// charge reports whether there was memory, and takes it.
func (l *listing) charge(n int64) bool {
	if !l.heap.Charge(n) {
		return false
	}
	l.charged += n
	return true
}

// begin has the connection wait for the listing's turns.
func (l *listing) begin(cn *conn) {
	l.keys, l.partitions = make([]int, 0, l.left), make([]uint16, 0, l.left)
	cn.pause()
	cn.worker.turns.take(func() { l.turn(cn) })
}

// turn lists the next arguments. After the last one it executes the request.
func (l *listing) turn(cn *conn) {
	if cn.closed || cn.node.ctx.Err() != nil { // the node closes
		l.end()
		return
	}
	begun := cn.worker.loop.Clock()
	l.some()
	l.took += cn.worker.loop.Clock() - begun
	if l.left > 0 {
		cn.worker.turns.take(func() { l.turn(cn) })
		return
	}
	defer l.end()
	cn.resume(l.execute)
}

// some lists the arguments of up to listAtOnce keys.
func (l *listing) some() {
	for range min(l.left, listAtOnce) {
		place := 1 + len(l.keys)*l.step
		if l.upload == nil {
			l.list()
		}
		slot := ring.Slot(l.args[place])
		p := ring.Partition(slot)
		if len(l.keys) == 0 {
			l.slot = slot
		}
		l.crossing = l.crossing || slot != l.slot
		if !l.seen.Has(p) {
			l.seen.Add(p)
			l.once = append(l.once, p)
		}
		l.keys, l.partitions = append(l.keys, place), append(l.partitions, p)
		l.left--
	}
}

// list lists the next key and what belongs to it.
func (l *listing) list() {
	var arg []byte
	for range l.step {
		arg, l.next = resp.DecodeArgument(l.raw, l.next)
		l.args = append(l.args, arg)
	}
}

// execute executes the request.
func (l *listing) execute(r *request) {
	keys, partitions := r.Keys, r.Partitions // the next commands use their memory
	r.Args, r.Keys, r.Partitions, r.listed, r.Listed = l.args, l.keys, l.partitions, l, r.conn.pipe == nil
	r.Upload, l.upload = l.upload, nil
	r.took = l.took
	r.Again()
	r.took = 0
	if r.Upload != nil {
		r.Upload.Drop()
	}
	r.Keys, r.Partitions, r.listed, r.Listed, r.Upload = keys, partitions, nil, false, nil
}

// move hands the present request over to another listing, which executes it again.
func (l *listing) move(r *request) *listing {
	next := new(listing)
	*next, *l = *l, listing{heap: l.heap}
	next.upload, r.Upload = r.Upload, nil
	return next
}

// Run does nothing: the listing waits for the end of a hold.
func (l *listing) Run(context.Context) {}

// Reply executes the request.
func (l *listing) Reply(r *exec.Request) { l.execute(r.Host.(*request)) }

// End frees what was not given away.
func (l *listing) End() { l.end() }

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
	if l.upload != nil {
		l.upload.Drop()
		l.upload = nil
	}
	l.heap.Refund(l.charged)
	l.charged = 0
}

// admitListed is admitKeys for a request whose arguments were listed in turns.
func (r *request) admitListed(oneSlot bool) bool {
	l := r.listed
	if l.crossing && oneSlot {
		r.Fail(errCrossSlot)
		return false
	}
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
