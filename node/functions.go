package node

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/glob"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/script"
	"github.com/dunlin-cache/dunlin/ring"
)

// Functions are settings of the cluster: each library is a value of the settings document. So all members have the
// same ones, also those that join later. FCALL executes a function as EVAL does a script (scripts_run.go);
// functions_change.go changes the document.

// functions are those of the cluster, as this node has applied its settings.
type functions struct {
	set      atomic.Pointer[script.FunctionSet]
	document atomic.Pointer[ring.Settings]
	bytes    atomic.Int64  // that the libraries take
	retries  atomic.Bool   // libraries for which there was no memory are being compiled, or that failed just now
	rest     time.Duration // functionsRest, but in tests

	alone  sync.Mutex // without a cluster: one change at a time
	mu     sync.Mutex // one document is applied at a time
	loaded map[string]loadedLibrary
}

// loadedLibrary is a library of the document.
type loadedLibrary struct {
	*script.FunctionLibrary
	value   string // of the document
	charged int64  // 0: it is not compiled, because there was no memory
}

// functionsRest is how long nobody tries to compile libraries again after there was no memory for one: a try decodes
// all that are not compiled.
const functionsRest = time.Second

// applyFunctions makes the functions of a document those that clients call. It compiles libraries, so it is not for
// loops.
func (n *Node) applyFunctions(s *ring.Settings) {
	f := &n.functions
	f.mu.Lock()
	defer f.mu.Unlock()
	n.applyFunctionsLocked(s)
}

// applyFunctionsLocked is applyFunctions for those who hold f.mu. It reports whether there was memory to compile all
// libraries.
func (n *Node) applyFunctionsLocked(s *ring.Settings) (compiled bool) {
	f := &n.functions
	compiled = true
	loaded, bytes := make(map[string]loadedLibrary), int64(0)
	var libraries []*script.FunctionLibrary
	for name, value := range s.Libraries() {
		l, has := f.loaded[name]
		if !has || l.value != value || l.charged == 0 {
			var err error
			if l, err = n.loadLibrary(name, value); err != nil {
				n.log.Warn("a library of functions cannot be used", "name", name, "error", err)
				continue
			}
		}
		compiled = compiled && l.charged > 0
		bytes += l.charged
		loaded[name] = l
		libraries = append(libraries, l.FunctionLibrary)
	}
	for name, l := range f.loaded {
		if loaded[name].FunctionLibrary != l.FunctionLibrary {
			heapBudget{n}.Refund(l.charged)
		}
	}
	f.loaded = loaded
	f.bytes.Store(bytes)
	f.set.Store(script.NewFunctionSet(libraries))
	f.document.Store(s)
	return compiled
}

// loadLibrary compiles a library of the document.
func (n *Node) loadLibrary(name, value string) (l loadedLibrary, err error) {
	l.value = value
	if l.FunctionLibrary, err = script.DecodeLibrary(name, value); err != nil {
		return l, err
	}
	heap, cost := heapBudget{n}, script.CompileCost(len(value))
	if !heap.Charge(cost) {
		n.log.Warn("there is no memory to compile a library of functions", "name", name)
		return l, nil
	}
	if err = l.Compile(); err != nil {
		heap.Refund(cost)
		return l, err
	}
	l.charged = min(cost, l.Size())
	heap.Refund(cost - l.charged)
	return l, nil
}

// compileAgain compiles libraries for which there was no memory, in the background. It does nothing while that goes on,
// and for functionsRest after it has failed.
func (n *Node) compileAgain() {
	f := &n.functions
	if !f.retries.CompareAndSwap(false, true) {
		return
	}
	n.goJob(func() {
		defer f.retries.Store(false)
		if !n.applyFunctionsAgain() {
			n.pause(f.rest)
		}
	})
}

// applyFunctionsAgain applies the present document once more. It reports whether there was memory to compile all
// libraries.
func (n *Node) applyFunctionsAgain() (compiled bool) {
	f := &n.functions
	f.mu.Lock()
	defer f.mu.Unlock()
	// The document is read under the lock: a newer one that is applied while this waits for the lock must stay.
	return n.applyFunctionsLocked(f.document.Load())
}

// knowsFunctions reports whether the cluster has functions, and this node those that its table names. Otherwise it
// answers the request.
func (r *request) knowsFunctions() bool {
	if r.Level() < ring.FunctionsLevel {
		r.Fail(errFunctionsLevel)
		return false
	}
	return r.hasFunctions()
}

// hasFunctions reports whether this node has the functions that its table names. Otherwise it has the sender try again.
func (r *request) hasFunctions() bool {
	n := r.node
	t := r.view.Table
	if n.settingsSource.Load() == nil || t == nil || n.functions.document.Load().ID() == t.Settings {
		return true
	}
	if r.transaction != nil {
		r.Fail(errTakingOver)
		return false
	}
	r.replyWait()
	r.latchKeys()
	return false
}

// fcall: FCALL function numkeys key... arg..., FCALL_RO
func fcall(r *request) {
	n := r.node
	if r.Level() < ring.FunctionsLevel {
		r.Fail(errFunctionsLevel)
		return
	}
	f := n.functions.set.Load().Function(r.Args[1])
	if f == nil {
		if r.hasFunctions() {
			r.Fail(errNoFunction)
		}
		return
	}
	w := &scriptRun{
		node: n, readOnly: r.Cmd.ID == command.FCallRO, version: r.Version(), heap: r.Heap, now: r.Now,
		single: r.transaction == nil, function: true, script: f.Script(),
	}
	keys, ok := resp.ParseInt(r.Args[2])
	switch {
	case !ok:
		r.Fail(errFunctionKeys)
	case keys > int64(len(r.Args)-3):
		r.Fail(errManyScriptKeys)
	case keys < 0:
		r.Fail(errNegativeKeys)
	case w.readOnly && f.Flags&script.NoWrites == 0:
		r.Fail(errMayWrite)
	case w.script == nil:
		n.compileAgain()
		r.Fail(exec.ErrOOM)
	default:
		w.keys = int(keys)
		w.start(r)
	}
}

// killFunctions: FUNCTION KILL
func killFunctions(r *request) { r.kill(true) }

const (
	// shownWords and shownBytes are how much of the command of a function FUNCTION STATS shows: so many words, and of
	// each so many bytes.
	shownWords, shownBytes = 32, 128
)

// runningFunction is what FUNCTION STATS shows of a function.
type runningFunction struct {
	name  string
	words [][]byte
	since time.Time
}

// longestFunction returns the function that runs for longest.
func (s *scripting) longestFunction() (f runningFunction, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var longest *scriptRun
	for w := range s.running {
		if w.function && (longest == nil || w.begun.Before(longest.begun)) {
			longest = w
		}
	}
	if longest == nil {
		return f, false
	}
	f.name, f.since = longest.script.SHA, longest.begun
	words := longest.args // valid while it is in s.running
	for _, word := range words[:min(len(words), shownWords)] {
		f.words = append(f.words, append([]byte(nil), word[:min(len(word), shownBytes)]...))
	}
	return f, true
}

// functionStats: FUNCTION STATS
func functionStats(r *request) {
	r.Cover()
	if !r.Room(shownWords * (shownBytes + exec.LineRoom)) {
		return
	}
	v, set := r.Version(), r.node.functions.set.Load()
	out := resp.AppendBulkString(resp.AppendMap(r.Out, v, 2), "running_script")
	if f, found := r.node.scripts.longestFunction(); found {
		out = resp.AppendBulkStrings(resp.AppendMap(out, v, 3), "name", f.name, "command")
		out = resp.AppendArray(out, len(f.words))
		for _, word := range f.words {
			out = resp.AppendBulk(out, word)
		}
		out = resp.AppendInt(resp.AppendBulkString(out, "duration_ms"), time.Since(f.since).Milliseconds())
	} else {
		out = resp.AppendNull(out, v)
	}
	out = resp.AppendMap(resp.AppendBulkString(out, "engines"), v, 1)
	out = resp.AppendMap(resp.AppendBulkString(out, "LUA"), v, 2)
	out = resp.AppendInt(resp.AppendBulkString(out, "libraries_count"), int64(len(set.Libraries())))
	r.Out = resp.AppendInt(resp.AppendBulkString(out, "functions_count"), int64(set.Count()))
}

// listFunctions: FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE]
func listFunctions(r *request) {
	if !r.knowsFunctions() {
		return
	}
	var pattern *glob.Pattern
	withCode := false
	for args := r.Args[2:]; len(args) > 0; args = args[1:] {
		switch {
		case !withCode && exec.Is(args[0], "WITHCODE"):
			withCode = true
		case pattern == nil && exec.Is(args[0], "LIBRARYNAME"):
			if len(args) == 1 {
				r.Fail(errNoLibraryName)
				return
			}
			var err error
			if pattern, err = glob.Compile(args[1]); err != nil {
				r.Fail(err.Error())
				return
			}
			args = args[1:]
		default:
			r.FailQuoting("ERR Unknown argument ", args[0])
			return
		}
	}
	set, v, heap := r.node.functions.set.Load(), r.Version(), r.Heap
	r.gatherLater(rests, unkeyed, func(ctx context.Context, reply *exec.Gathered) {
		var libraries []*script.FunctionLibrary
		for _, l := range set.Libraries() {
			if pattern == nil || pattern.Match([]byte(l.Name)) {
				libraries = append(libraries, l)
			}
		}
		reply.Head = resp.AppendArray(nil, len(libraries))
		for _, l := range libraries {
			if exec.Step(ctx) != nil || !appendLibrary(reply, heap, v, l, withCode) {
				return
			}
		}
	}, nil)
}

// appendLibrary adds what FUNCTION LIST says of a library. It reports false if there was no memory for it.
func appendLibrary(
	reply *exec.Gathered, heap exec.Heap, v resp.Version, l *script.FunctionLibrary, withCode bool,
) bool {
	fields := 3
	if withCode {
		fields++
	}
	b := resp.AppendMap(nil, v, fields)
	b = resp.AppendBulkStrings(b, "library_name", l.Name, "engine", "LUA", "functions")
	b = resp.AppendArray(b, len(l.Functions))
	for _, f := range l.Functions {
		b = resp.AppendBulkStrings(resp.AppendMap(b, v, 3), "name", f.Name, "description")
		if f.Described {
			b = resp.AppendBulkString(b, f.Description)
		} else {
			b = resp.AppendNull(b, v)
		}
		names := f.Flags.Names()
		b = resp.AppendSet(resp.AppendBulkString(b, "flags"), v, len(names))
		for _, name := range names {
			b = resp.AppendSimple(b, name)
		}
		if !reply.Append(heap, b) {
			return false
		}
		b = b[:0]
	}
	if !withCode {
		return true
	}
	b = resp.AppendBulkHeader(resp.AppendBulkString(b, "library_code"), len(l.Code))
	return reply.Append(heap, b) && reply.Append(heap, []byte(l.Code)) && reply.Append(heap, []byte("\r\n"))
}

// dumpFunctions: FUNCTION DUMP
func dumpFunctions(r *request) {
	if !r.knowsFunctions() {
		return
	}
	set, heap := r.node.functions.set.Load(), r.Heap
	size := int64(0)
	for _, l := range set.Libraries() {
		size += int64(len(l.Code)) + 64
	}
	r.gatherLater(rests, unkeyed, func(_ context.Context, reply *exec.Gathered) {
		if !heap.Charge(size) {
			reply.Head = resp.AppendError(nil, exec.ErrOOM)
			return
		}
		defer heap.Refund(size)
		payload := set.Dump()
		reply.Head = resp.AppendBulkHeader(nil, len(payload))
		_ = reply.Append(heap, payload) && reply.Append(heap, []byte("\r\n"))
	}, nil)
}

// The texts of Redis 7, but for errFunctionsLevel.
const (
	errNoFunction    = "ERR Function not found"
	errFunctionKeys  = "ERR Bad number of keys provided"
	errMayWrite      = "ERR Can not execute a script with write flag using *_ro command."
	errNoLibraryName = "ERR library name argument was not given"
)

var errFunctionsLevel = "ERR functions need protocol level " + strconv.Itoa(ring.FunctionsLevel) +
	", and this cluster speaks less: upgrade all members"
