package node

import (
	"bytes"
	"errors"
	"runtime/debug"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/broker"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/script"
)

// Most scripts are short: they need not wake a goroutine. A script is tried on the loop first, under the lock of its
// partition, as EXEC begins. If that takes long, it moves to a runner, which holds the partition from then on. It
// begins anew there; its first commands return what they have returned on the loop:
//
//	loop     lock ─ GET ─ INCR ─ (too long) ─ hold, unlock ─┐
//	runner                                                  └ GET, INCR: what they returned ─ SET ─ LRANGE ─ ...
//
// A script cannot tell the difference (script.Run.Trial).

const (
	// loopTrials is how long the scripts of one input are tried. The rest of the input is read in the next iteration.
	loopTrials = loopSlice / 2
	// maxCompiledNow is the longest body that is compiled on the loop, in bytes: 70 µs.
	maxCompiledNow = 2 << 10
	// tryReplies is about how long the replies to the commands of a trial are at most, in bytes.
	tryReplies = 32 << 10
	// tryWords and tryBytes are the longest that the words of a script are that is tried, and those of its commands.
	tryWords, tryBytes = 128, 16 << 10
	// trierBytes is about what a trier takes, with what it hands to a runner.
	trierBytes = script.MachineBytes + 4*tryReplies
	// tryCalls is how many commands a trial has at most. Its steps end before that.
	tryCalls = 512
	// moveBytes is the most that a script needs to go on in a runner: a machine, the replay, and its arguments.
	moveBytes = script.MachineBytes + 2*tryReplies + tryCalls*callCost + (tryWords+2)*argCost + 2*tryBytes + maxName
	// callCost is what a triedCall takes, and maxName is longer than the name of any command, in bytes.
	callCost, maxName = 24, 32
)

// trier executes scripts on a loop, to which it belongs. It uses the loop's exec.Worker.
type trier struct {
	runner
	out      *request // what answers EVAL
	clock    func() time.Duration
	begun    time.Duration // by the clock
	done     replay        // what was executed so far
	parts    int           // of the script's reply
	reserved bool          // moveBytes are charged, for the next script that writes and moves
	used     bool          // since the last look, see restTrier
	replying bool
}

// replay are the commands of a script that were executed on the loop.
type replay struct {
	calls    []triedCall
	replies  []byte // to them, but for the last one if that was begun only
	next     int    // among calls
	database uint8  // behind them
	at       int    // in replies

	pending exec.Gathered // the reply to the last one, if it is long
	gave    bool          // there is one
	work    exec.Work     // what the last one has left to do
}

// triedCall is one of them.
type triedCall struct {
	words, bytes int
	end          int // of the reply; -1: it was begun only
}

// callOf measures the words of a command.
func callOf(args [][]byte) (c triedCall) {
	c.words = len(args)
	for _, arg := range args {
		c.bytes += len(arg)
	}
	return c
}

// isLong reports whether it takes long to begin with the command.
func (c triedCall) isLong() bool { return c.words > tryWords || c.bytes > tryBytes }

// take returns the reply to the next command, if it was answered on the loop.
func (p *replay) take(args [][]byte) (reply []byte, ok bool) {
	if p.next == len(p.calls) {
		return nil, false
	}
	c := p.calls[p.next]
	if again := callOf(args); again.words != c.words || again.bytes != c.bytes {
		panic("BUG: a script that begins anew sees something else")
	}
	if p.next++; c.end < 0 {
		return nil, false
	}
	reply = p.replies[p.at:c.end]
	p.at = c.end
	return reply, true
}

// size is what it takes in the Go heap, in bytes.
func (p *replay) size() int64 { return int64(len(p.replies) + len(p.calls)*callCost) }

// goOn has x go on with the command at hand, if it was begun on the loop.
func (p *replay) goOn(x *runner) (begun bool) {
	switch {
	case p.work != nil:
		x.later, p.work = p.work, nil
	case p.gave:
		p.gave = false
		p.pending.Answer(&x.Request)
	default:
		return false
	}
	return true
}

// end frees what was not used.
func (p *replay) end() {
	p.pending.End()
	if p.work != nil {
		p.work.End()
		p.work = nil
	}
}

// trierFor returns what tries a script with these arguments; nil: a goroutine executes it.
func (w *worker) trierFor(s *script.Script, args [][]byte) *trier {
	if s == nil || callOf(args[2:]).isLong() || len(args[1]) > tryBytes || !s.MayTry() {
		return nil
	}
	if w.trier == nil {
		w.trier = w.node.scripts.newTrier(w)
	}
	return w.trier
}

// newTrier returns nil if there is no memory for it.
func (n *Node) newTrier(w *worker) *trier {
	if !n.grant(trierBytes) {
		return nil
	}
	x := &trier{runner: runner{hand: hand{node: n}, machine: script.NewMachine()}, out: &w.request, clock: w.loop.Clock}
	x.equip(&w.Worker)
	x.state.Executing = true
	return x
}

// dropTrier gives the trier's memory back.
func (w *worker) dropTrier() {
	if w.trier.reserved {
		w.trier.Heap.Refund(moveBytes)
	}
	w.trier = nil
	w.node.ungrant(trierBytes)
}

// restTrier drops the trier if no script was tried since the last call.
func (w *worker) restTrier() {
	if x := w.trier; x != nil && !x.used {
		w.dropTrier()
	} else if x != nil {
		x.used = false
	}
}

// try executes a script under the lock of t, and answers EVAL. It reports false if that takes too long: then w.replay
// has what was executed.
func (x *trier) try(w *scriptRun, t engine.Txn) (done bool) {
	r := x.out
	start := len(r.Out)
	done = true // also behind a panic
	x.begin(w, t)
	defer x.end(start)
	r.BeginUnit(t)
	err := x.machine.Run(script.Run{
		Script: w.script, Keys: r.Args[3 : 3+w.keys], Args: r.Args[3+w.keys:],
		ReadOnly: w.readOnly || w.script.Flags&script.NoWrites != 0, Trial: true, Host: x,
	})
	if x.replying = true; err == nil {
		err = x.machine.Reply(w.version, x.write)
	}
	var thrown *script.Error
	switch {
	case err == nil:
	case errors.As(err, &thrown):
		r.Undo(start)
		r.Fail(thrown.Text)
	default:
		r.Undo(start)
		x.move()
	}
	w.tried = x.clock() - x.begun
	r.spendTrying(w.tried)
	w.script.NoteTrial(w.moves)
	return !w.moves
}

// spendTrying counts what scripts of the input have taken.
func (r *request) spendTrying(took time.Duration) {
	r.tried += took
	r.longEnough = r.longEnough || r.tried > loopTrials
}

func (x *trier) begin(w *scriptRun, t engine.Txn) {
	x.run, x.local, x.begun, x.used, x.parts, x.replying = w, x.local[:0], x.clock(), true, 0, false
	x.done.calls, x.done.replies = x.done.calls[:0], x.done.replies[:0]
	x.Placement, x.Closed = x.out.Placement, x.out.Closed
	x.Partition, x.Database, x.Transaction, x.InTransaction = w.partition, w.database, t.Within(), true
}

// end forgets the script. Behind a panic it answers that, and the trier is not used again.
func (x *trier) end(start int) {
	problem := recover()
	x.Transaction, x.InTransaction = engine.Txn{}, false
	x.EndScripted()
	if problem == nil {
		x.machine.End()
		x.run = nil
		return
	}
	r := x.out
	x.node.log.Error("a script panics", "panic", problem, "stack", string(debug.Stack()))
	r.worker.dropTrier()
	x.done.end()
	if x.later != nil {
		x.later.End()
	}
	r.Undo(start)
	r.Fail(errInternal)
}

// move leaves the rest of the script to a runner.
func (x *trier) move() {
	p := &x.done
	x.run.moves = true
	x.run.replay = replay{
		calls: slices.Clone(p.calls), replies: bytes.Clone(p.replies), database: x.Database,
		pending: p.pending, gave: p.gave, work: x.later,
	}
	p.pending, p.gave, x.later = exec.Gathered{}, false, nil
	if x.run.hasWritten() {
		x.run.reserved, x.reserved = true, false
	}
}

// reserve takes the memory that a script needs to move, before it writes: behind that it must not fail for lack of
// memory. The trier keeps what a script has not needed. reserve reports false if there is none.
func (x *trier) reserve() bool {
	x.reserved = x.reserved || x.run.heap.Charge(moveBytes)
	return x.reserved
}

// write takes a part of the script's reply: one is enough for those that are short.
func (x *trier) write(part []byte) bool {
	if x.parts++; x.parts == 1 && x.out.Room(len(part)) {
		x.out.Out = append(x.out.Out, part...)
	}
	return true
}

// Look is script.Host's.
func (x *trier) Look() error {
	limit := x.node.scripts.tryFor
	if x.replying {
		limit *= 2 // most replies are short, and to move costs more
	}
	if x.parts > 1 || x.isLate(limit) {
		return script.ErrLong
	}
	return nil
}

func (x *trier) isLate(limit time.Duration) bool { return x.clock()-x.begun > limit }

// isLateFor reports whether there is no time left for a command. It looks once for a few quick ones, as a transaction
// does.
func (x *trier) isLateFor(c *command.Command) bool {
	limit := x.node.scripts.tryFor
	if c.Quick() {
		return len(x.done.calls)%commandsAtOnce == commandsAtOnce-1 && x.isLate(limit)
	}
	return x.isLate(limit / 2) // it may take a while
}

// Call is script.Host's.
func (x *trier) Call(args [][]byte, v resp.Version) (reply []byte, end error) {
	x.EndScripted() // of the command before
	x.BeginScripted(&x.conn, x.run.now)
	x.state.Version = v
	c := callOf(args)
	if text := x.refuse(args); text != "" {
		x.Out = resp.AppendError(x.Out, text)
		return x.note(c)
	}
	costly := x.Cmd.ID == command.Keys || isPublish(x.Cmd) && x.isCostly(args[1])
	if costly || c.isLong() || len(x.done.calls) == tryCalls || x.isLateFor(x.Cmd) {
		return nil, script.ErrLong
	}
	if mayWrite(x.Cmd) {
		if !x.reserve() {
			return nil, script.ErrLong
		}
		x.run.write()
	}
	x.Worker.Count.Commands[x.Cmd.ID]++
	switch x.execute(); {
	case x.later != nil:
		c.end = -1
		x.done.calls = append(x.done.calls, c)
		return nil, script.ErrLong
	case x.LacksRoom():
		return nil, script.ErrLong // a runner reads again
	}
	x.Out = x.run.pass(x.Out, mayWrite(x.Cmd))
	return x.note(c)
}

// isCostly reports whether a channel is compared with many patterns.
func (x *trier) isCostly(channel []byte) bool {
	return x.node.broker.Cost(pubsub.Channel, channel) > broker.MaxCost/8
}

// note notes the reply to a command, and returns it. Behind a long one the script goes on in a goroutine.
func (x *trier) note(c triedCall) (reply []byte, end error) {
	p := &x.done
	if long := len(x.Pins) > 0 || len(x.Out) > tryReplies; long {
		p.gave = true
		p.pending.Take(&x.Request, 0, 0)
		c.end = -1
		p.calls = append(p.calls, c)
		return nil, script.ErrLong
	}
	p.replies = append(p.replies, x.Out...)
	c.end = len(p.replies)
	if p.calls = append(p.calls, c); c.end > tryReplies {
		return nil, script.ErrLong
	}
	return x.Out, nil
}
