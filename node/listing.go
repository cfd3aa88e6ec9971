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

// Of a command that may have very many arguments, the parser lists only the first ones. The rest are
// listed, and the partitions of its keys found, in turns of the loop, before the command is admitted.
// Meanwhile its connection waits, a pipe's too:
//
//	input, taken over  *1000001 DEL a b c …                      admitted and executed
//	turns              [4,096 arguments] … [1,024 keys] … └ in turns too, see exec.KeyLocks
const (
	argsAtOnce = 4096             // arguments that a turn lists: about 0.1 ms
	keysAtOnce = 1024             // keys that a turn places: as long
	listFrom   = 1 + 2*keysAtOnce // arguments of a command that is listed at once, at most
	roomAtOnce = 16 << 10         // arguments for which a turn makes the list: to clear its memory takes as long
)

// listing has the arguments of a long request.
type listing struct {
	cmd       *command.Command
	database  uint8
	placement ring.Placement
	memory    *netloop.Buffer // in which they lie; nil: raw is a copy
	raw       []byte
	next      int // where in raw those begin that are not listed
	left      int // arguments that are not listed
	heap      exec.Heap
	charged   int64

	args       [][]byte
	upload     *exec.Upload    // not nil: it has large values, and args has all other arguments
	several    bool            // the command has several keys, and their partitions are found
	runs       command.KeyRuns // of the keys that are not placed, once all arguments are listed
	keys       []int           // Request.Keys and Partitions
	partitions []uint16        //
	once       []uint16        // each of these once
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
	return count > listFrom && plans[c.ID].lists && !cn.State.Multi
}

// isListed reports whether long requests of a command on keys are listed in turns: if it may have any
// number of arguments, and its keys are found without looking for a word.
func isListed(c *command.Command) bool {
	for i := range c.Keys {
		if c.Keys[i].Begin != command.BeginIndex {
			return false
		}
	}
	return c.Arity < 0
}

// isUnlisted reports whether the parser has listed only the first arguments of the present request.
func (r *request) isUnlisted() bool {
	p := &r.conn.parser
	return r.reading && r.transaction == nil && len(r.Args) == listFrom && p.Count() > listFrom && !p.Inline()
}

// listLater has the loop list the arguments of the present request in turns, and execute it then.
func (r *request) listLater(raw []byte) {
	cn, count := r.conn, r.conn.parser.Count()
	l := r.newListing(count)
	if l == nil {
		return
	}
	l.raw = raw
	if l.memory = cn.Socket.TakeInput(raw); l.memory == nil {
		if !l.charge(int64(len(raw))) {
			l.end()
			r.Fail(exec.ErrOOM)
			return
		}
		l.raw = bytes.Clone(raw)
	}
	l.left, l.next = count, bytes.IndexByte(l.raw, '\n')+1
	cn.pause()
	l.withRoom(cn, count, func() { l.args = make([][]byte, 0, count) })
}

// newListing returns a listing for the present request, of that many arguments. If there is no memory
// for it, it answers that and returns nil.
func (r *request) newListing(count int) *listing {
	l := &listing{cmd: r.Cmd, database: r.Database, placement: r.Placement, heap: r.Heap, several: plans[r.Cmd.ID].keys != oneKey}
	size := int64(exec.ArgSize)
	if l.several {
		size += exec.KeySize
	}
	if !l.charge(int64(count) * size) {
		r.Fail(exec.ErrOOM)
		return nil
	}
	return l
}

// placeLater is listLater for a request with large values, whose other arguments are listed: it has
// the loop find their partitions in turns.
func (r *request) placeLater() {
	cn, u := r.conn, r.Upload
	l := r.newListing(len(r.Args))
	if l == nil {
		return
	}
	l.args = r.Args
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
	l.findKeys()
	cn.pause()
	l.withRoomForKeys(cn)
}

// charge reports whether there was memory, and takes it.
func (l *listing) charge(n int64) bool {
	if !l.heap.Charge(n) {
		return false
	}
	l.charged += n
	return true
}

// withRoom takes the next turn behind what makes memory for so many arguments or keys. A goroutine does that for very
// many, since it takes as long as many turns: of a million, 3 ms.
func (l *listing) withRoom(cn *conn, count int, room func()) {
	next := func() { cn.worker.turns.take(func() { l.turn(cn) }) }
	if count <= roomAtOnce {
		room()
		next()
		return
	}
	cn.node.goJob(func() {
		room()
		cn.worker.loop.Post(next)
	})
}

func (l *listing) withRoomForKeys(cn *conn) {
	n := l.runs.Count()
	l.withRoom(cn, n, func() { l.keys, l.partitions = make([]int, 0, n), make([]uint16, 0, n) })
}

// goOn takes the next turn, if there is anything left to list or to place. Otherwise it executes the request.
func (l *listing) goOn(cn *conn) {
	switch {
	case l.left == 0 && len(l.runs) > 0 && l.keys == nil:
		l.withRoomForKeys(cn)
	case l.left > 0 || len(l.runs) > 0:
		cn.worker.turns.take(func() { l.turn(cn) })
	default:
		defer l.end()
		cn.resume(l.execute)
	}
}

// turn lists the next arguments, or places the next keys. After the last one it executes the request.
func (l *listing) turn(cn *conn) {
	if cn.closed || cn.node.ctx.Err() != nil { // the node closes
		l.end()
		return
	}
	begun := cn.worker.loop.Clock()
	if l.left > 0 {
		l.list()
	} else {
		l.place()
	}
	l.took += cn.worker.loop.Clock() - begun
	l.goOn(cn)
}

// list lists up to argsAtOnce arguments.
func (l *listing) list() {
	n := min(l.left, argsAtOnce)
	for range n {
		var arg []byte
		arg, l.next = resp.DecodeArgument(l.raw, l.next)
		l.args = append(l.args, arg)
	}
	if l.left -= n; l.left == 0 {
		l.findKeys()
	}
}

// findKeys finds which arguments are the keys, if there are several.
func (l *listing) findKeys() {
	if l.several {
		l.runs = l.cmd.KeyRuns(l.args)
	}
}

// place finds the partitions of up to keysAtOnce keys.
func (l *listing) place() {
	for n := 0; n < keysAtOnce && len(l.runs) > 0; n++ {
		run := &l.runs[0]
		place := run.First
		if run.First += run.Step; run.First > run.Last {
			l.runs = l.runs[1:]
		}
		slot := l.placement.SlotOf(l.database, l.args[place])
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
	}
}

// execute executes the request.
func (l *listing) execute(r *request) {
	keys, partitions := r.Keys, r.Partitions // the next commands use their memory
	r.Args, r.Keys, r.Partitions, r.listed, r.Listed = l.args, l.keys, l.partitions, l, r.conn.pipe == nil
	r.InOne, r.Database = len(l.once) == 1, l.database
	if l.upload == nil {
		r.ArgsTake = int64(len(l.raw))
	}
	r.Upload, l.upload = l.upload, nil
	r.took = l.took
	r.Again()
	r.took = 0
	if r.Upload != nil {
		r.Upload.Drop()
	}
	r.Keys, r.Partitions, r.listed, r.Listed, r.Upload = keys, partitions, nil, false, nil
	r.InOne, r.ArgsTake = false, 0
}

// move hands the present request over to another listing, which executes it again.
func (l *listing) move(r *request) *listing {
	next := new(listing)
	*next, *l = *l, listing{heap: l.heap}
	next.upload, r.Upload = r.Upload, nil
	return next
}

// Run does nothing: the listing waits for the end of a hold, or for a move.
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
	if len(l.keys) == 0 { // the arguments contradict their number: the handler answers that
		return true
	}
	if l.placement.Pins(l.database) != r.Placement.Pins(l.database) {
		r.refuseDatabase(l.database)
		return false
	}
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
					r.turnAway(r.SlotOf(l.args[l.keys[i]]), l.once...)
					return false
				}
			}
		}
	}
	return true
}
