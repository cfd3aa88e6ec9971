package node

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
)

// A transaction begins under the lock of its one partition, which its commands do not take again,
// and most end there. One that takes longer than lockSlice, or that has a command for a goroutine,
// holds its partition from there on, and the loop executes the rest in slices
// between which others are served. Each command then locks the partition for itself.
//
//	EXEC ─> begin: lock, commands, unlock ─> reply
//	                  └> hold, unlock · · · slice: commands · · · slice: commands, end of the hold ─> reply
//	                                    └ a goroutine, or others' turn
//
// A client waits for the reply. A pipe goes on: EXEC is a job (jobs.go) from its second slice on.

// transaction is an EXEC while it is executed.
//
// A single command that takes long on its partition is a transaction of its own (HoldOn).
type transaction struct {
	*session.Transaction
	single    bool // its only command is not in Queue, and its reply is no array
	keyed     bool // it has keys; otherwise partition means nothing
	partition uint16
	database  uint8           // of the command that comes next
	checked   int             // so many watched keys have their versions still
	next      int             // the command in Queue that comes next
	size      int64           // bytes of watched keys and commands that are not charged
	owned     bool            // watched keys and commands are no views of the input
	input     *netloop.Buffer // not nil: they are views of this
	long      int             // bytes of long replies so far
	wrote     bool            // a command was executed that may have changed something
	must      bool            // the present command mustRun

	running bool               // at this moment
	waits   bool               // for a goroutine, which works on one of its commands
	cancel  context.CancelFunc // ends the work of that
	work    *workContext       // of that

	// From the second slice on:
	job      *job         // what answers it
	hold     *engine.Hold // nil without keys
	fences   uint64       // Node.fences when the hold began
	now      int64        // time stands still
	replies  exec.Gathered
	charged  int64         // for the commands
	scripted time.Duration // for how long its scripts have run
	gaveUp   bool          // the commands that are left are answered with errors
	hindered time.Duration // since when the node is fenced or does not serve the partition; 0: it may go on
}

const (
	// lockSlice is how long a transaction may have its partition locked.
	lockSlice = 100 * time.Microsecond
	// loopSlice is how long one that holds its partition may have the loop.
	loopSlice = 500 * time.Microsecond
	// watchedAtOnce is how many watched keys are checked in one slice.
	watchedAtOnce = 512
	// longWords and longBytes are the longest that a command of the first slice is.
	longWords, longBytes = 1024, 64 << 10
	// errorsAtOnce commands that are given up are answered in one slice.
	errorsAtOnce = 1024
	// commandsAtOnce quick commands are executed between two looks at the clock.
	commandsAtOnce = 4
	// holdPatience is how long requests wait for the end of a hold, and how long a hold lasts whose
	// partition this node serves no more, or of which it cannot know.
	holdPatience = 5 * time.Second
	// hinderedPause is how long it takes until a hindered transaction looks again.
	hinderedPause = 10 * time.Millisecond
	// shortReply is up to how many bytes a reply counts nothing towards exec.MaxReply: all short
	// ones of a transaction come to that at most. A single long one is answered whatever its size.
	shortReply = 1 << 10
	// queuedCost is the memory of a queued command beside its arguments' bytes, and argCost of each
	// argument.
	queuedCost, argCost = 64, 24
)

// transact executes a transaction whose keys this node serves, and answers EXEC, unless it goes on
// later. It reports whether that has ended.
func (r *request) transact(x *transaction) (ended bool) {
	cn := r.conn
	start, pins := len(r.Out), len(r.Pins)
	x.running = true
	defer x.releaseIfPanicking(cn)
	if ended = x.begin(r); !ended {
		x.takeQueue()
		x.chargeQueue(r.Heap)
		x.gather(r, start, pins)
		r.Cmd = command.ByID(command.Exec)
		x.isJob(r)
		x.yield(cn)
	}
	x.running = false
	return ended
}

// isJob has later turns of the loop answer the transaction.
func (x *transaction) isJob(r *request) {
	if x.job = r.resumed; x.job != nil {
		r.goesOn(x.job)
	} else {
		x.job = r.newJob([]uint16{x.partition})
	}
	if x.hold == nil {
		r.conn.jobs.settling++
	}
	if x.job.whole = x.wrote; x.cancel != nil {
		x.letCancel()
	}
}

// mustEnd notes that the transaction changes something: it is executed to its end.
func (x *transaction) mustEnd() {
	if x.wrote = true; x.job != nil {
		x.job.whole = true
	}
}

// beginWork has a goroutine work on the present command of the transaction.
func (x *transaction) beginWork(r *request) *job {
	x.waits = true
	r.holdOn()
	if x.single && x.job == nil {
		x.isJob(r)
		r.transaction = nil
	}
	return &job{cmd: r.Cmd, of: x}
}

// begin executes the first slice. It reports whether EXEC is answered, or will be read again.
func (x *transaction) begin(r *request) (ended bool) {
	cn := r.conn
	if x.keyed {
		t, ok := r.Lock()
		if !ok {
			if !cn.Answering {
				cn.State.EndTransaction() // EXEC is answered; otherwise it will be executed again
			}
			return true
		}
		defer t.Unlock()
		r.BeginUnit(t)
		r.Waited = 0 // of EXEC, not of its commands
		r.Transaction, r.InTransaction = t.Within(), true
		defer func() { r.InTransaction = false }()
	}
	cn.State.TakeTransaction()
	ended = true // also behind a panic
	defer func() {
		if ended {
			x.Release()
		}
	}()
	if changed := x.check(r, r.Transaction); changed || !r.Room(exec.LineRoom) {
		return true
	}
	r.transaction = x
	defer func() { r.transaction = nil }()
	if x.checked == len(x.Watched) && x.run(r, lockSlice) {
		return true
	}
	r.holdOn()
	return false
}

// check looks at the next watched keys, in the partition that t has locked. If one has another
// version, check answers EXEC and returns true. When all were looked at, it begins the reply.
func (x *transaction) check(r *request, t engine.Txn) (changed bool) {
	var scratch [64]byte
	next := min(x.checked+watchedAtOnce, len(x.Watched))
	for _, w := range x.Watched[x.checked:next] {
		if !bytes.Equal(w.Version, r.appendVersion(scratch[:0], t.Select(w.Database), w.Key)) {
			r.Out = resp.AppendNullArray(r.Out, r.Version())
			return true
		}
	}
	if x.checked = next; next == len(x.Watched) {
		r.Out = resp.AppendArray(r.Out, len(x.Queue))
	}
	return false
}

// checkOn is check in a later slice.
func (x *transaction) checkOn(r *request) (changed bool) {
	t := x.hold.Lock()
	defer t.Unlock()
	return x.check(r, t)
}

// takeQueue copies the watched keys and commands that are left, if they are views of the input.
func (x *transaction) takeQueue() {
	if x.owned {
		return
	}
	x.Queue, x.Watched = slices.Clone(x.Queue[x.next:]), slices.Clone(x.Watched[x.checked:])
	x.next, x.checked = 0, 0
	for i, w := range x.Watched {
		both := exec.CloneArgs([][]byte{w.Key, w.Version})
		x.Watched[i] = session.Watched{Key: both[0], Version: both[1], Database: w.Database}
	}
	for i := range x.Queue {
		x.Queue[i].Args = exec.CloneArgs(x.Queue[i].Args)
	}
	x.owned = true
}

// chargeQueue charges what was planned since the call before.
func (x *transaction) chargeQueue(heap exec.Heap) {
	x.charge(heap, x.size)
	x.size = 0
}

// charge takes memory, as far as there is any: what has begun is executed to its end.
func (x *transaction) charge(heap exec.Heap, n int64) {
	if heap.Charge(n) {
		x.charged += n
	}
}

// run executes commands for about the given time. It reports whether that was the last one. A
// command that a goroutine finishes is the last for now.
func (x *transaction) run(r *request, limit time.Duration) (done bool) {
	cn, clock := r.conn, r.worker.loop.Clock
	cn.State.Executing = true
	defer func() { cn.State.Executing = false }()
	begun := clock()
	for n := 1; x.next < len(x.Queue); n++ {
		q := x.Queue[x.next]
		if r.InTransaction && isLong(q.Args) {
			return false // it locks for itself, when it needs to
		}
		x.next++
		x.must = mustRun(q.Cmd, q.Args)
		if cn.closed && !x.must {
			continue // nobody reads the reply
		}
		if x.must {
			x.mustEnd()
		}
		r.Room(exec.LineRoom) // without it the connection is closed, but what has begun is executed to its end
		start, before := len(r.Out), r.Produced()
		r.Args = q.Args
		r.dispatch()
		if x.waits {
			return false
		}
		x.limit(r, start, before)
		if (n%commandsAtOnce == 0 || !q.Cmd.Quick()) && clock()-begun > limit {
			break
		}
	}
	return x.next == len(x.Queue)
}

// mustRun reports whether a command of a transaction is executed although nobody reads its reply: it, or
// the script, may change something that others see. A SORT or GEORADIUS that does not store only reads.
func mustRun(c *command.Command, args [][]byte) bool {
	if c.Gathers == command.GatherStore && c.Destination(args) == 0 {
		return false
	}
	return mayWrite(c) || c.IsScript() && c.Flags&command.ReadOnly == 0
}

// isLong reports whether a command has so many arguments, or such long ones, that it takes long to
// begin with it.
func isLong(args [][]byte) bool {
	if len(args) > longWords {
		return true
	}
	n := 0
	for _, arg := range args {
		n += len(arg)
	}
	return n > longBytes
}

// limit replaces a long reply, which begins at start, by an error if all long ones are too long
// together.
func (x *transaction) limit(r *request, start, before int) {
	n := r.Produced() - before
	switch {
	case n <= shortReply:
	case x.long > 0 && x.long+n > exec.MaxReply:
		r.Undo(start)
		r.Fail(errRepliesTooLarge)
	default:
		x.long += n
	}
}

// gather keeps a pipe's replies, from start on, until the last one is there: a large reply to EXEC is
// answered by a ticket. A client gets its replies as they come, unless it wants none.
func (x *transaction) gather(r *request, start, firstPin int) {
	switch cn := r.conn; {
	case cn.closed, cn.State.Muted():
		r.Undo(start)
	case cn.pipe != nil:
		x.replies.Take(&r.Request, start, firstPin)
	}
}

// yield has the transaction go on when the others of the loop have had their turn, unless a goroutine
// works for it.
func (x *transaction) yield(cn *conn) {
	if !x.waits {
		x.take(cn, func() { cn.goOn(x, nil) })
	}
}

// take has the loop call f, which goes on with the transaction, when it is its turn. It waits for the
// end of the fence.
func (x *transaction) take(cn *conn, f func()) {
	w := cn.worker
	w.turns.take(func() {
		if cn.node.ctx.Err() == nil && x.keyed && cn.node.fenced.Load() &&
			!x.overdue(true, w.loop.Now(), cn.node.holdPatience) {
			w.turns.takeAfter(hinderedPause, func() { x.take(cn, f) })
			return
		}
		f()
	})
}

// goOn executes the next slice of a transaction, and answers it behind the last one. f finishes the
// command that a goroutine has worked on, if there is one.
func (cn *conn) goOn(x *transaction, f func(r *request)) {
	if x.job.token == 0 && !cn.closed {
		cn.resume(func(r *request) {
			if x.slice(r, f) {
				x.reply(r)
				x.end(r.Heap)
			} else {
				cn.pause()
			}
		})
		return
	}
	panics := true
	defer func() { cn.closeIf(panics) }()
	r := cn.worker.begin(cn)
	done := x.slice(r, f)
	heap := r.Heap
	cn.worker.Count.Output(r.Finish())
	panics = false
	if done {
		cn.finish(x.job, x.reply, func() { x.end(heap) })
	}
	if done && cn.closed {
		cn.endPipe()
	}
}

// slice executes commands for about loopSlice. It reports whether those were the last ones.
func (x *transaction) slice(r *request, f func(r *request)) (done bool) {
	cn := r.conn
	x.running, x.waits = true, false
	defer x.releaseIfPanicking(cn)
	r.transaction = x
	if x.hold != nil {
		r.Hold, r.Now, r.Partition = x.hold, x.now, x.partition
	}
	r.Database = x.database
	defer func() { r.transaction, r.Hold = nil, nil }()
	start, pins := len(r.Out), len(r.Pins)
	lost := x.keyed && r.view.Standing[x.partition] != ownership.Serving
	hindered := lost || x.keyed && r.fenced
	if x.workIsOverdue() || x.gaveUp || x.overdue(hindered, r.worker.loop.Now(), r.node.holdPatience) || lost && x.doubted(r) ||
		(cn.closed || x.job.canceled) && !x.wrote || r.node.ctx.Err() != nil { // the node closes
		done = x.giveUp(r, f != nil)
	} else if x.checked < len(x.Watched) {
		done = x.checkOn(r)
	} else {
		done = x.finishCommand(r, f) && x.run(r, loopSlice) && !(x.keyed && r.fenced)
	}
	x.gather(r, start, pins)
	if x.running = false; done {
		x.release(cn)
	} else {
		x.yield(cn)
	}
	return done
}

// finishCommand has f, if there is one, answer the command that a goroutine has worked on. It
// reports false if that goes on with another one.
func (x *transaction) finishCommand(r *request, f func(r *request)) bool {
	if f == nil {
		return true
	}
	cn := r.conn
	start, before := len(r.Out), r.Produced()
	cn.State.Executing = true
	f(r)
	cn.State.Executing = false
	if x.waits {
		return false
	}
	x.limit(r, start, before)
	return true
}

// overdue reports whether the transaction must end because it is hindered for too long: since this
// node is fenced, or does not serve the partition any more.
func (x *transaction) overdue(hindered bool, now, limit time.Duration) bool {
	if !hindered {
		x.hindered = 0
	} else if x.hindered == 0 {
		x.hindered = now
	}
	return hindered && now-x.hindered > limit
}

// doubted reports whether the node was fenced since the hold began. If it has lost the partition, then
// others may not have waited for the end of the hold.
func (x *transaction) doubted(r *request) bool {
	return x.hold != nil && x.fences != r.node.fences.Load()
}

// giveUp answers the commands that are left with errors, some in each slice. It reports whether
// those were the last ones. begun says that one of the commands has begun.
func (x *transaction) giveUp(r *request, begun bool) (done bool) {
	r.Cmd = command.ByID(command.Exec)
	if x.checked < len(x.Watched) { // nothing was executed, nor the reply begun
		r.Fail(exec.ErrHeld)
		return true
	}
	if x.gaveUp = true; begun {
		r.Fail(errHalfway)
	}
	end := min(x.next+errorsAtOnce, len(x.Queue))
	for ; x.next < end; x.next++ {
		if r.conn.closed || !r.Room(len(errNotReached)+exec.LineRoom) {
			return true // nobody reads them
		}
		r.Fail(errNotReached)
	}
	return x.next == len(x.Queue)
}

// reply answers EXEC with what was gathered.
func (x *transaction) reply(r *request) {
	if !x.replies.Empty() {
		x.replies.Answer(&r.Request)
	}
}

// end frees what reply has not used.
func (x *transaction) end(heap exec.Heap) {
	heap.Refund(x.charged)
	x.charged = 0
	x.replies.End()
	x.input.Release()
	x.Release()
}

// release ends the hold.
func (x *transaction) release(cn *conn) {
	switch {
	case x.hold != nil:
		x.hold.End()
	case x.job != nil:
		cn.jobs.settling--
	}
}

// releaseIfPanicking is deferred: it ends the hold if a handler panics.
func (x *transaction) releaseIfPanicking(cn *conn) {
	if x.running {
		x.release(cn)
	}
}
