package node

import (
	"bytes"
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/script"
	"github.com/dunlin-cache/dunlin/ring"
)

// EVAL and SCRIPT. scripts_run.go has a run, scripts_runner.go what executes it, and node/script knows the language.

// scripting is what a node has for scripts.
type scripting struct {
	library *script.Library
	runners sync.Pool // of *runner
	// newTrier is Node.newTrier, to which eval must not refer: it refers to all handlers.
	newTrier func(w *worker) *trier
	holding  places // of those scripts that hold a partition: they do not wait for keyless ones
	keyless  places
	lines    lineLimit
	tryFor   time.Duration // how long a script may take on a loop: lockSlice, but in tests
	maxRun   time.Duration // how long a script may run: maxRun, but in tests

	granted atomic.Int64 // bytes that scripts have taken while they run

	mu      sync.Mutex
	running map[*scriptRun]struct{}
	holders [ring.Partitions]atomic.Pointer[scriptRun] // that run in a hold on the partition
}

const (
	// libraryShare is the share of the node's memory that scripts may take, and libraryBytes the most.
	libraryShare, libraryBytes = 16, 64 << 20
	// grantedShare is the share of the node's memory that all scripts together may take while they run:
	// others' commands shall find some.
	grantedShare = 4
)

func (n *Node) startScripting() {
	s := &n.scripts
	heap := heapBudget{n}
	s.library = script.NewLibrary(min(n.cfg.Memory/libraryShare, libraryBytes), heap.Charge, heap.Refund)
	half := runtime.NumCPU() / 2
	s.keyless.free = max(1, half/2)
	s.holding.free = max(1, half-half/2)
	s.running = make(map[*scriptRun]struct{})
	s.runners.New, s.newTrier = n.newRunner, n.newTrier
	s.maxRun, s.tryFor = maxRun, lockSlice
	n.functions.rest = functionsRest
}

// grant takes memory for scripts that run. It reports false if there is none, or if they have their share.
func (n *Node) grant(bytes int64) bool {
	all := &n.scripts.granted
	if all.Add(bytes) <= n.cfg.Memory/grantedShare && (scratchBudget{n}).Charge(bytes) {
		return true
	}
	all.Add(-bytes)
	return false
}

// ungrant gives it back.
func (n *Node) ungrant(bytes int64) {
	n.scripts.granted.Add(-bytes)
	scratchBudget{n}.Refund(bytes)
}

// eval: EVAL script numkeys key... arg..., EVALSHA sha1 numkeys key... arg..., and their forms that only read.
func eval(r *request) {
	if r.Level() < ring.ScriptsLevel {
		r.Fail(errScriptsLevel)
		return
	}
	n := r.node
	w := r.worker.newRun()
	*w = scriptRun{
		node: n, readOnly: r.Cmd.Flags&command.ReadOnly != 0, version: r.Version(), heap: r.Heap,
		now: r.Now, single: r.transaction == nil,
	}
	if bySHA := r.Cmd.ID == command.EvalSha || r.Cmd.ID == command.EvalShaRO; bySHA {
		if w.script = n.scripts.library.Get(r.Args[1]); w.script == nil {
			r.Fail(errNoScript)
			return
		}
	} else if len(r.Args[1]) > command.MaxScript {
		r.Fail(errLongScript)
		return
	} else {
		w.script = n.scripts.library.Find(r.Args[1])
	}
	switch keys, ok := resp.ParseInt(r.Args[2]); {
	case !ok:
		r.Fail(exec.ErrNotInteger)
		return
	case keys > int64(len(r.Args)-3):
		r.Fail(errManyScriptKeys)
		return
	case keys < 0:
		r.Fail(errNegativeKeys)
		return
	default:
		w.keys = int(keys)
	}
	w.start(r)
}

// start has the script executed: in the transaction that it is part of, in a hold on its partition, or in none.
func (w *scriptRun) start(r *request) {
	n := r.node
	w.database = r.Database
	if x := r.transaction; x != nil {
		w.keyed, w.partition = x.keyed, x.partition
		if x.wrote {
			w.write() // EXEC is executed to its end
		}
	} else if w.keyed = w.keys > 0 || r.Placement.Pins(r.Database); w.keyed {
		w.partition = r.Partition
	}
	if w.places = &n.scripts.keyless; w.keyed {
		w.places = &n.scripts.holding
	}
	if !w.single || !w.keyed {
		w.begin(r)
		return
	}
	if w.script == nil && !w.compileNow(r) {
		return
	}
	x := r.worker.trierFor(w.script, r.Args)
	switch t, ok := r.Lock(); {
	case !ok:
	case w.tryOrHold(r, x, t):
		*w = scriptRun{}
		r.worker.spareRun = w
	default:
		w.begin(r)
	}
}

// newRun returns memory for a script that begins: that of the last one, if it has ended on the loop.
func (w *worker) newRun() (run *scriptRun) {
	if run = w.spareRun; run == nil {
		return new(scriptRun)
	}
	w.spareRun = nil
	return run
}

// compileNow compiles the body if it is short, so that the script can be tried. It reports false if it is wrong: that
// is the answer then.
func (w *scriptRun) compileNow(r *request) (ok bool) {
	body, s := r.Args[1], &w.node.scripts
	if len(body) > maxCompiledNow {
		return true
	}
	begun, text := r.worker.loop.Clock(), ""
	if w.script, text = s.compile(w.heap, body); text != "" {
		r.Fail(text)
		return false
	}
	s.library.Add(w.script)
	r.spendTrying(r.worker.loop.Clock() - begun)
	return true
}

// tryOrHold has the trier, if there is one, execute the script under the lock of t, and unlocks. It reports whether
// that has answered EVAL; otherwise the script holds the partition.
func (w *scriptRun) tryOrHold(r *request, x *trier, t engine.Txn) (done bool) {
	defer t.Unlock()
	if x != nil && x.try(w, t) {
		return true
	}
	r.HoldOn(t)
	return false
}

// setBegun notes when the script has begun: others are told from then on how long it takes.
func (w *scriptRun) setBegun() {
	s := &w.node.scripts
	w.begun = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[w] = struct{}{}
	if w.keyed {
		s.holders[w.partition].Store(w)
	}
}

// setEnded notes that the script has ended.
func (w *scriptRun) setEnded() {
	s := &w.node.scripts
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, w)
	if w.keyed {
		s.holders[w.partition].CompareAndSwap(w, nil)
	}
}

// begin hands the script to a runner.
func (w *scriptRun) begin(r *request) {
	w.charged = int64(len(r.Args))*argCost + w.replay.size()
	w.args = r.Args
	if w.input = r.keepInput(); w.input == nil {
		for _, arg := range r.Args {
			w.charged += int64(len(arg))
		}
	}
	if w.reserved {
		w.charged += script.MachineBytes
		w.heap.Refund(moveBytes - w.charged)
	} else if !w.heap.Charge(w.charged) {
		w.text, w.args, w.charged = exec.ErrOOM, nil, 0
	}
	if w.input == nil {
		w.args = exec.CloneArgs(w.args)
	}
	if r.conn.pipe == nil {
		w.client = r.conn
	}
	if !w.keyed {
		w.leaves = r.conn.context()
	}
	if x := r.transaction; x != nil {
		w.before = x.scripted
	}
	w.timing = r.timingLater()
	if w.input != nil {
		r.Args = r.Args[:1]
	}
	w.setBegun()
	r.workLater(w, waits, unkeyed)
}

// loadScript: SCRIPT LOAD body
func loadScript(r *request) {
	if !r.mayScript() {
		return
	}
	n := r.node
	if len(r.Args[2]) > command.MaxScript {
		r.Cover()
		r.Fail(errLongScript)
		return
	}
	body := bytes.Clone(r.Args[2])
	r.coverLater(computes, func(context.Context, *ring.PartitionSet) []byte {
		s, text := n.scripts.compile(heapBudget{n}, body)
		if text == "" && !n.scripts.library.Add(s) {
			text = exec.ErrOOM
		}
		if text != "" {
			return resp.AppendError(nil, text)
		}
		return resp.AppendBulkString(nil, s.SHA)
	})
}

// compile compiles a body. text is an error.
func (s *scripting) compile(heap exec.Heap, body []byte) (compiled *script.Script, text string) {
	cost := script.CompileCost(len(body))
	if !heap.Charge(cost) {
		return nil, exec.ErrOOM
	}
	defer heap.Refund(cost)
	compiled, err := script.Compile(string(body))
	if err != nil {
		return nil, err.Error()
	}
	return compiled, ""
}

// mayScript reports whether the cluster knows scripts. Otherwise it answers an error.
func (r *request) mayScript() bool {
	if r.Level() >= ring.ScriptsLevel {
		return true
	}
	r.Cover()
	r.Fail(errScriptsLevel)
	return false
}

// scriptExists: SCRIPT EXISTS sha1... Commands without keys have a bounded number of arguments.
func scriptExists(r *request) {
	r.Cover()
	names := r.Args[2:]
	if r.Room(len(names)*4 + exec.LineRoom) {
		r.Out = resp.AppendArray(r.Out, len(names))
		r.Out = r.node.scripts.library.AppendHas(r.Out, names)
	}
}

// flushScripts: SCRIPT FLUSH [ASYNC|SYNC]
func flushScripts(r *request) {
	r.Cover()
	if len(r.Args) > 3 || len(r.Args) == 3 && !exec.Is(r.Args[2], "ASYNC") && !exec.Is(r.Args[2], "SYNC") {
		r.Fail(errScriptFlush)
		return
	}
	r.node.scripts.library.Flush()
	r.ReplyOK()
}

// showScript: SCRIPT SHOW sha1
func showScript(r *request) {
	r.Cover()
	if s := r.node.scripts.library.Get(r.Args[2]); s != nil {
		r.ReplyBulk([]byte(s.Body))
	} else {
		r.Fail(errNoScript)
	}
}

// killScripts: SCRIPT KILL
func killScripts(r *request) { r.kill(false) }

// kill ends the functions, or other scripts, that others would be told to kill.
func (r *request) kill(functions bool) {
	r.Cover()
	s := &r.node.scripts
	some, wrote, others := false, false, false
	s.mu.Lock()
	for w := range s.running {
		switch {
		case !w.isBusy():
		case w.function != functions:
			others = true
		case w.kill():
			some = true
		default:
			wrote = true
		}
	}
	s.mu.Unlock()
	switch {
	case some:
		r.ReplyOK()
	case wrote:
		r.Fail(errUnkillable)
	case others:
		r.Fail(busyText(!functions))
	default:
		r.Fail(errNotBusy)
	}
}

// isBusy reports whether the script has run for so long that others are told so: a little less long than they wait,
// because a proxy gives up by itself what has waited for as long.
func (w *scriptRun) isBusy() bool { return time.Since(w.begun) >= w.node.holdPatience/10*9 }

// busyScript returns what others are told if a script that has run for long has the hold, and otherwise "". Whoever
// finds a partition held asks this.
func (n *Node) busyScript(h *engine.Hold) (text string) {
	if w := n.scripts.holders[h.Partition()].Load(); w != nil && w.isBusy() {
		return busyText(w.function)
	}
	return ""
}

func busyText(function bool) string {
	if function {
		return errBusyFunction
	}
	return errBusyScript
}

// The texts of Redis 7, but for errLongScript and errScriptsLevel.
const (
	errNoScript       = "NOSCRIPT No matching script. Please use EVAL."
	errManyScriptKeys = "ERR Number of keys can't be greater than number of args"
	errNegativeKeys   = "ERR Number of keys can't be negative"
	errScriptFlush    = "ERR SCRIPT FLUSH only support SYNC|ASYNC option"
	errNotBusy        = "NOTBUSY No scripts in execution right now."
	errUnkillable     = "UNKILLABLE Sorry the script already executed write commands against the dataset. " +
		"You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
	errBusyScript      = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	errBusyFunction    = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
	errKilled          = "ERR Script killed by user with SCRIPT KILL."
	errFunctionKilled  = "ERR Script killed by user with FUNCTION KILL."
	errUnknown         = "ERR Unknown Redis command called from script"
	errWrongArgs       = "ERR Wrong number of args calling Redis command from script"
	errNoScripts       = "ERR This Redis command is not allowed from script"
	errReadOnly        = "ERR Write commands are not allowed from read-only scripts."
	errNotLocal        = "ERR Script attempted to access a non local key in a cluster node"
	errNotLocalChannel = "ERR Script attempted to publish to a channel of another node"
	errLongScript      = "ERR the script is longer than 1 MiB"
)

var errScriptsLevel = "ERR scripts need protocol level " + strconv.Itoa(ring.ScriptsLevel) +
	", and this cluster speaks less: upgrade all members"
