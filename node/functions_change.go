package node

import (
	"bytes"
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/script"
	"github.com/dunlin-cache/dunlin/ring"
)

// FUNCTION LOAD, DELETE, FLUSH and RESTORE change the settings document, which only the coordinator does. The node
// that is asked executes the code of new libraries, to learn which functions they register, and makes the change for
// the document that it has. The coordinator refuses the change if another one has come first; then the node makes it
// again for the new document:
//
//	client ── FUNCTION LOAD ─▶ node: register, Join ── DUNLIN CONFIGURE hash ─▶ coordinator ─▶ table ─▶ all members
//
// The reply comes when all members have applied the document, so whoever calls the function behind it finds it.

// functionChange is a change while it is executed: an exec.Work. The scriptRun is what executes new libraries.
type functionChange struct {
	scriptRun

	kind    command.ID
	mode    string // LOAD's and RESTORE's, in upper case
	word    []byte // what is loaded, deleted or restored
	answer  []byte
	problem error // its text is the reply
}

const (
	// maxDump is the longest payload of FUNCTION RESTORE, in bytes.
	maxDump = script.MaxLibrariesSize + 64<<10
	// copiesOfCode is how often the code of new libraries is copied: as it is, encoded, and in the request to the
	// coordinator.
	copiesOfCode = 3
	// changePause is how long a change waits until it looks whether the node has the document that came first.
	changePause = 5 * time.Millisecond
)

// changeFunctions begins a change.
func changeFunctions(r *request) {
	if r.Level() < ring.FunctionsLevel {
		r.Fail(errFunctionsLevel)
		return
	}
	n := r.node
	c := &functionChange{kind: r.Cmd.ID, scriptRun: scriptRun{node: n, heap: r.Heap, places: &n.scripts.keyless}}
	if text := c.parse(r.Args); text != "" {
		r.Fail(text)
		return
	}
	copies := int64(1)
	if c.kind == command.FunctionLoad {
		copies += copiesOfCode
	}
	if !c.charge(copies * int64(len(c.word))) {
		r.Fail(exec.ErrOOM)
		return
	}
	c.word = bytes.Clone(c.word)
	c.timing = r.timingLater()
	r.workLater(c, settles, unkeyed)
}

// charge takes memory until the change ends. It reports false if there is none.
func (c *functionChange) charge(bytes int64) bool {
	ok := c.heap.Charge(bytes)
	if ok {
		c.charged += bytes
	}
	return ok
}

// parse reads the arguments. text is an error.
func (c *functionChange) parse(args [][]byte) (text string) {
	switch c.kind {
	case command.FunctionLoad:
		for _, option := range args[2 : len(args)-1] {
			if !exec.Is(option, "REPLACE") {
				return "ERR Unknown option given: " + string(option[:min(len(option), shownBytes)])
			}
			c.mode = "REPLACE"
		}
		c.word = args[len(args)-1]
		if len(c.word) > command.MaxScript {
			return errLongLibrary
		}
	case command.FunctionDelete:
		c.word = args[2][:min(len(args[2]), command.MaxScript)]
	case command.FunctionFlush:
		if len(args) > 3 {
			return badArgs(args[1])
		}
		if len(args) == 3 && !exec.Is(args[2], "ASYNC") && !exec.Is(args[2], "SYNC") {
			return errFunctionFlush
		}
	case command.FunctionRestore:
		if len(args) > 4 {
			return badArgs(args[1])
		}
		c.mode = "APPEND"
		if len(args) == 4 {
			c.mode = strings.ToUpper(string(args[3][:min(len(args[3]), shownBytes)]))
		}
		if c.mode != "FLUSH" && c.mode != "APPEND" && c.mode != "REPLACE" {
			return errRestoreMode
		}
		if c.word = args[2]; len(c.word) > maxDump {
			return errLongDump
		}
	}
	return ""
}

func badArgs(subcommand []byte) string {
	return "ERR unknown subcommand or wrong number of arguments for '" + string(subcommand) + "'. Try FUNCTION HELP."
}

// Run executes the change, in a goroutine.
func (c *functionChange) Run(ctx context.Context) {
	n := c.node
	c.ctx, c.begun, c.looked = ctx, time.Now(), time.Now()
	defer func() {
		c.leave()
		c.took = time.Since(c.begun)
		if problem := recover(); problem != nil {
			n.log.Error("a library of functions panics", "panic", problem, "stack", string(debug.Stack()))
			c.problem = errors.New(errInternal)
		}
	}()
	more, err := c.libraries()
	if err == nil {
		c.leave()
		err = c.settle(more)
	}
	c.problem = err
}

// libraries executes the libraries that the change brings.
func (c *functionChange) libraries() (more []*script.FunctionLibrary, err error) {
	var codes []string
	switch c.kind {
	case command.FunctionLoad:
		codes = []string{string(c.word)}
	case command.FunctionRestore:
		codes, err = script.ReadDump(c.word, func(bytes int64) bool { return c.charge(copiesOfCode * bytes) })
		if errors.Is(err, script.ErrMemory) {
			err = errScriptMemory
		}
		if err != nil {
			return nil, err
		}
	default:
		return nil, nil
	}
	if err = c.enter(false); err != nil {
		return nil, c.ending(err)
	}
	c.first = c.turn
	c.steps = exec.WithSteps(c.ctx, c.node.mayRest)
	var all *script.FunctionSet
	for _, code := range codes {
		l, err := script.ParseLibrary(code)
		if err != nil {
			return nil, err
		}
		exists := all.Library(l.Name) != nil
		if c.kind == command.FunctionLoad && c.mode != "REPLACE" {
			exists = c.node.functions.set.Load().Library(l.Name) != nil
		}
		if exists {
			return nil, errors.New("ERR Library '" + l.Name + "' already exists")
		}
		if err = c.register(l); err != nil {
			return nil, err
		}
		if all, err = all.Join([]*script.FunctionLibrary{l}, false); err != nil {
			return nil, err
		}
	}
	return all.Libraries(), nil
}

// register compiles a library, and executes it.
func (c *functionChange) register(l *script.FunctionLibrary) (err error) {
	n, cost := c.node, script.CompileCost(len(l.Code))+script.MachineBytes
	if !c.heap.Charge(cost) {
		return errScriptMemory
	}
	defer c.heap.Refund(cost)
	if err = l.Compile(); err != nil {
		return err
	}
	defer l.Forget()
	x := n.scripts.runners.Get().(*runner)
	x.begin(&c.scriptRun)
	whole := false
	defer func() { x.end(whole) }()
	if err = x.machine.Register(l, x); err != nil {
		err = c.ending(err)
	}
	whole = true
	return err
}

// ending returns why a library has ended, as the text of a reply.
func (c *functionChange) ending(err error) error {
	c.fail(err)
	return errors.New(c.text)
}

// settle has the coordinator change the document.
func (c *functionChange) settle(more []*script.FunctionLibrary) error {
	n, until := c.node, time.Now().Add(settingsPatience)
	for {
		document, set := n.functions.latest()
		next, err := c.next(set, more)
		if err != nil {
			return err
		}
		changes := changesOf(set, next)
		if len(changes) == 0 {
			return nil
		}
		err = n.setFunctions(document, changes)
		if !errors.Is(err, ring.ErrSettingsChanged) || time.Now().After(until) {
			if err != nil {
				err = errors.New("ERR " + err.Error())
			}
			return err
		}
		for n.functions.document.Load() == document && time.Now().Before(until) && n.ctx.Err() == nil {
			n.pause(changePause)
		}
	}
}

// latest returns a document and its functions.
func (f *functions) latest() (*ring.Settings, *script.FunctionSet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.document.Load(), f.set.Load()
}

// next makes of a set what the change makes of it, and the answer.
func (c *functionChange) next(set *script.FunctionSet, more []*script.FunctionLibrary) (*script.FunctionSet, error) {
	c.answer = resp.AppendOK(nil)
	switch c.kind {
	case command.FunctionLoad:
		l := more[0]
		if c.mode != "REPLACE" && set.Library(l.Name) != nil {
			return nil, errors.New("ERR Library '" + l.Name + "' already exists")
		}
		c.answer = resp.AppendBulkString(nil, l.Name)
		return set.Join(more, true)
	case command.FunctionDelete:
		deleted := set.Library(string(c.word))
		if deleted == nil {
			return nil, errors.New(errNoLibrary)
		}
		var others []*script.FunctionLibrary
		for _, l := range set.Libraries() {
			if l != deleted {
				others = append(others, l)
			}
		}
		return script.NewFunctionSet(others), nil
	case command.FunctionRestore:
		if c.mode != "FLUSH" {
			return set.Join(more, c.mode == "REPLACE")
		}
	}
	return script.NewFunctionSet(more), nil
}

// changesOf returns the changes of the settings that make of one set another.
func changesOf(from, to *script.FunctionSet) map[string]string {
	changes := make(map[string]string)
	for _, l := range from.Libraries() {
		if to.Library(l.Name) == nil {
			changes[ring.FunctionPrefix+l.Name] = ""
		}
	}
	for _, l := range to.Libraries() {
		if from.Library(l.Name) != l {
			changes[ring.FunctionPrefix+l.Name] = l.Encode()
		}
	}
	return changes
}

// setFunctions changes the functions of a document: through the coordinator or, without a cluster, here.
func (n *Node) setFunctions(document *ring.Settings, changes map[string]string) error {
	if at := n.settingsSource.Load(); at != nil {
		based := document.ID().Hash
		return n.setSettings(*at, &based, changes)
	}
	f := &n.functions
	f.alone.Lock()
	defer f.alone.Unlock()
	if f.document.Load() != document {
		return ring.ErrSettingsChanged
	}
	next, err := document.With(document.ID().Version+1, changes)
	if err == nil {
		n.applyFunctions(next)
	}
	return err
}

// Reply answers, on the loop.
func (c *functionChange) Reply(r *exec.Request) {
	c.ended = true
	c.timing.end(c.took)
	if c.problem != nil {
		r.Fail(c.problem.Error())
		return
	}
	r.Out = append(r.Out, c.answer...)
}

// End frees what the change has taken.
func (c *functionChange) End() {
	c.ended = true
	c.heap.Refund(c.charged)
	c.charged, c.word = 0, nil
}

// The texts of Redis 7, but for errLongLibrary and errLongDump.
const (
	errNoLibrary     = "ERR Library not found"
	errFunctionFlush = "ERR FUNCTION FLUSH only supports SYNC|ASYNC option"
	errRestoreMode   = "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."
	errLongLibrary   = "ERR the library is longer than 1 MiB"
	errLongDump      = "ERR the payload has more than 4 MiB"
)
