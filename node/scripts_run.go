package node

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/script"
)

// A script that is not short (scripts_try.go) is work of the transaction that holds its partition: of EXEC, or of one
// that consists of EVAL alone (Host.HoldOn). So tables, fences, clients that leave and followers see what they see of a
// slow EXEC.
//
//	loop     EVAL: hold ─┐ token            ·····························  completion: reply, end of the hold
//	runner               └ place ── Lua ── GET: lock, unlock ── Lua ── SET ─┘

const (
	// maxRun is how long a script may run, or all scripts of a transaction.
	maxRun = time.Minute
	// placeTurn is how long a script computes before another one has its turn.
	placeTurn = 2 * time.Millisecond
	// restAfter is how long a script has run when it begins to give way while loops are strained: those of
	// applications are shorter. Its garbage costs loops time as well.
	restAfter = 10 * time.Millisecond
	// checkPause is after how long a command asks again whether the script must end.
	checkPause = 100 * time.Microsecond
	// leftPause is after how long a script looks whether its client has left, and then again.
	leftPause = 200 * time.Millisecond
	// fencedPause is how long a script waits until it looks whether the node is fenced still.
	fencedPause = 5 * time.Millisecond
)

// scriptRun is a script while it is executed: an exec.Work.
type scriptRun struct {
	node      *Node
	script    *script.Script // nil: args[1] is the body, which must be compiled
	args      [][]byte
	input     *netloop.Buffer // not nil: in which they lie
	keys      int             // how many of the arguments are keys
	function  bool            // it is a function of a library
	keyed     bool            // it may use keys: those in partition
	partition uint16
	database  uint8 // with which it begins
	single    bool  // no EXEC is around it
	readOnly  bool
	version   resp.Version
	now       int64
	heap      exec.Heap
	charged   int64
	timing    timingLater
	took      time.Duration

	client *conn           // not nil: who waits for the reply, and may leave
	leaves context.Context // not nil, of a script without keys: ends with the connection, and so does the script
	ctx    context.Context
	steps  context.Context // of ctx
	begun  time.Time
	before time.Duration // for how long scripts of its transaction have run before it
	first  time.Time     // when it had its first place
	looked time.Time     // when it was last asked whether the client has left
	weighs time.Time     // when it weighs its partition next
	places *places
	placed bool
	turn   time.Time // since when it has its place
	ended  bool      // on the loop: it is answered
	state  atomic.Int32
	wrote  bool // a command was executed that may have changed something: it was not refused for lack of memory

	reply exec.Gathered
	text  string         // not empty: an error
	moved bool           // nothing was executed: the partition moves
	count *exec.Counters // of its commands; nil: a runner has executed none

	tried    time.Duration // how long it was tried on the loop
	moves    bool          // from there to a runner
	replay   replay        // what was executed there
	reserved bool          // charged has all that it needs to go on: it wrote there
}

// The states of a scriptRun. One that has written is not killed, and one that is killed does not write.
const (
	reads  int32 = iota // no command was executed that may have changed something
	writes              // one was
	killed              // by SCRIPT KILL
)

// write notes that the next command may change something. It reports false if the script was killed before.
func (w *scriptRun) write() bool { return w.state.CompareAndSwap(reads, writes) || w.hasWritten() }

// kill ends the script, and reports false if it has written.
func (w *scriptRun) kill() bool { return w.state.CompareAndSwap(reads, killed) || !w.hasWritten() }

// killedError returns why a script that was killed ends.
func (w *scriptRun) killedError() error {
	if w.function {
		return errCallKilled
	}
	return errScriptKilled
}

func (w *scriptRun) hasWritten() bool { return w.state.Load() == writes }

// pass returns the reply to a command as the script gets it. Clients take an error OOM for a sign that nothing was
// executed, because Redis answers none behind a write. So behind a write the script gets another code, with which it
// ends unless it catches the error.
func (w *scriptRun) pass(reply []byte, mayWrite bool) []byte {
	refused := bytes.HasPrefix(reply, refusedOOM)
	if refused && w.wrote {
		text := bytes.TrimSuffix(reply[1:], []byte("\r\n"))
		return resp.AppendError(nil, errWroteBefore+string(text))
	}
	w.wrote = w.wrote || mayWrite && !refused
	return reply
}

// refusedOOM is how a reply begins that says that there is no memory to execute a command.
var refusedOOM = []byte("-OOM ")

const errWroteBefore = "ERR the script has written already: "

var (
	errScriptGone   = errors.New("nobody waits for the script")
	errScriptMoved  = errors.New("the script's partition moves")
	errScriptKilled = &script.Error{Text: errKilled}
	errCallKilled   = &script.Error{Text: errFunctionKilled}
	errScriptLong   = &script.Error{Text: "ERR the script has run for more than a minute"}
	errScriptsLong  = &script.Error{Text: "ERR the scripts of this transaction have run for more than a minute"}
	errScriptLost   = &script.Error{Text: errHalfway}
	errScriptMemory = &script.Error{Text: exec.ErrOOM}
	errScriptHolds  = &script.Error{Text: "ERR the script was ended: others need the memory that the keys of its partition take"}
)

// Run executes the script, in a goroutine.
func (w *scriptRun) Run(ctx context.Context) {
	defer w.setEnded()
	if w.text != "" {
		return
	}
	w.ctx, w.looked = ctx, time.Now()
	if err := w.enter(false); err != nil {
		w.fail(err)
		return
	}
	w.first, w.weighs = w.turn, w.turn.Add(weighAfter)
	w.steps = exec.WithSteps(ctx, w.node.mayRest)
	defer func() {
		w.leave()
		w.took = w.tried + time.Since(w.first)
		if problem := recover(); problem != nil {
			w.node.log.Error("a script panics", "panic", problem, "stack", string(debug.Stack()))
			w.text = errInternal
			w.reply.End()
		}
	}()
	w.run()
}

func (w *scriptRun) run() {
	s := &w.node.scripts
	if w.script == nil {
		if w.script, w.text = s.compile(w.heap, w.args[1]); w.text != "" {
			return
		}
		s.library.Add(w.script)
	}
	if !w.reserved {
		if !w.heap.Charge(script.MachineBytes) {
			w.text = exec.ErrOOM
			return
		}
		defer w.heap.Refund(script.MachineBytes)
	}
	x := s.runners.Get().(*runner)
	x.begin(w)
	whole := false
	defer func() { x.end(whole) }()
	m := x.machine
	err := m.Run(script.Run{
		Script: w.script, Keys: w.args[3 : 3+w.keys], Args: w.args[3+w.keys:],
		ReadOnly: w.readOnly || w.script.Flags&script.NoWrites != 0, Host: x,
	})
	if err == nil {
		err = m.Reply(w.version, func(part []byte) bool { return w.reply.Append(w.heap, part) })
	}
	if err != nil {
		w.fail(err)
	}
	whole = true
}

// fail notes why the script has ended.
func (w *scriptRun) fail(err error) {
	w.reply.End()
	var thrown *script.Error
	switch {
	case errors.As(err, &thrown):
		w.text = thrown.Text
	case errors.Is(err, errScriptMoved):
		w.moved = true
	case errors.Is(err, errScriptGone):
		w.text = errCanceled
	default:
		w.text = "ERR " + err.Error()
	}
}

// Reply answers EVAL, on the loop.
func (w *scriptRun) Reply(r *exec.Request) {
	w.ended = true
	host := r.Host.(*request)
	if x := host.transaction; x != nil {
		x.scripted += time.Since(w.begun)
	}
	if w.count != nil {
		host.worker.Count.Add(w.count)
	}
	w.timing.end(w.took)
	switch {
	case w.moved:
		host.resend(w)
	case w.text != "":
		r.Fail(w.text)
	default:
		w.reply.Answer(r)
	}
}

// resend has the sender send EVAL again, of which nothing was executed: to the next owner, or here if the
// partition has come back.
func (r *request) resend(w *scriptRun) {
	var key []byte
	if w.keys > 0 {
		key = w.args[3]
	}
	slot := r.Placement.SlotOf(w.database, key)
	if r.conn.pipe == nil && r.view.Standing[w.partition] == ownership.Serving {
		r.Fail(errTakingOver)
		return
	}
	r.refuse(slot, w.partition)
}

// End frees what Reply has not used.
func (w *scriptRun) End() {
	w.setEnded() // also if it was not executed
	w.ended = true
	w.reply.End()
	w.replay.end()
	w.heap.Refund(w.charged)
	w.charged = 0
	w.input.Release()
	w.input = nil
}

// check returns why the script must end now, if it must.
func (w *scriptRun) check() error {
	work, held := w.ctx.(*workContext)
	wrote := w.hasWritten() && w.leaves == nil
	if w.client != nil && !wrote && time.Since(w.looked) > leftPause {
		w.looked = time.Now()
		w.client.worker.loop.Post(w.lookForClient)
	}
	switch {
	case w.state.Load() == killed:
		return w.killedError()
	case w.node.ctx.Err() != nil:
		return errScriptLost
	case w.ctx.Err() != nil && !wrote, w.leaves != nil && w.leaves.Err() != nil:
		return errScriptGone
	case held && work.isOverdue():
		return errScriptLost
	case held && w.single && !wrote && w.keyed && work.isLost():
		return errScriptMoved
	case w.before > w.node.scripts.maxRun:
		return errScriptsLong
	case w.before+time.Since(w.begun) > w.node.scripts.maxRun:
		return errScriptLong
	}
	return nil
}

// lookForClient ends the connection of a client that has left: it is paused, so nobody reads its end. Whoever has only
// finished sending counts as disconnected too once a script takes long, as behind a command that blocks.
func (w *scriptRun) lookForClient() {
	if cn := w.client; !w.ended && !cn.closed && cn.Socket.HasLeft() {
		cn.Socket.Close(io.EOF)
	}
}

// workContext returns what ends the work of a command: if the script has changed something, not that its client has
// gone.
func (w *scriptRun) workContext() context.Context {
	if !w.hasWritten() {
		return w.ctx
	}
	work, held := w.ctx.(*workContext)
	if !held {
		return w.node.ctx
	}
	return &workContext{
		Context: w.node.ctx, node: work.node, partition: work.partition, held: work.held, fences: work.fences,
	}
}
