package node

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// With more keys than fit the processor's caches, a command on keys mostly waits for memory. So the
// node parses the requests of a pipeline some way ahead, and engine.Touch loads all their keys at
// the same time, before the first is executed.

// lookahead has the requests that were parsed ahead of the present one. Each worker has one.
type lookahead struct {
	steps       [exec.MaxAhead]step
	next, known int      // steps[next:known] are not executed yet
	args        [][]byte // of all steps: views into the input
}

// step is one request.
type step struct {
	cmd      *command.Command // nil: unknown; with a plan, a subcommand's own row
	plan     *plan            // nil: not simply a command on keys for a handler
	args     [][]byte
	length   int    // in the input
	firstKey int    // in args; 0: none
	slot     uint16 // of the first key
}

// take returns the next request of in, or nil if it is not a small one that has arrived whole.
func (a *lookahead) take(cn *conn, in []byte) *step {
	if a.next == a.known {
		if a.read(cn, in); a.known == 0 {
			return nil
		}
	}
	a.next++
	return &a.steps[a.next-1]
}

// read parses small requests, up to one that may change how the next is read.
func (a *lookahead) read(cn *conn, in []byte) {
	a.forget()
	for a.known < exec.MaxAhead {
		before := len(a.args)
		args, length := cn.parser.AppendSmall(a.args, in)
		if length == 0 {
			break
		}
		in = in[length:]
		a.args = args
		s := &a.steps[a.known]
		a.known++
		s.args, s.length = args[before:], length
		if s.look(cn); s.plan == nil {
			break
		}
	}
	if a.known > 1 {
		a.touch(cn.worker)
	}
}

// look classifies the request s.args.
func (s *step) look(cn *conn) {
	s.cmd, s.plan = command.Lookup(s.args[0]), nil
	if s.cmd == nil {
		return
	}
	cmd := s.cmd
	if cmd.Subs != nil {
		cmd = command.Row(s.args)
	}
	plan := &plans[cmd.ID]
	if plan.handler == nil || !cmd.ArityOK(len(s.args)) || !cn.State.Authenticated || cn.State.Apart {
		return
	}
	s.cmd, s.plan = cmd, plan
	if s.firstKey = s.cmd.FirstKey(s.args); s.firstKey != 0 {
		s.slot = ring.Slot(s.args[s.firstKey])
	}
}

func (a *lookahead) touch(w *worker) {
	n := 0
	for i := range a.steps[:a.known] {
		if s := &a.steps[i]; s.plan != nil && s.firstKey != 0 {
			w.Probes[n] = engine.Probe{Partition: ring.Partition(s.slot), Key: s.args[s.firstKey]}
			n++
		}
	}
	w.node.engine.Touch(w.Probes[:n])
	clear(w.Probes[:n])
}

// forget drops the requests that were not executed, which are parsed again, and all views of an
// input.
func (a *lookahead) forget() {
	if a.known > 0 {
		a.next, a.known = 0, 0
		clear(a.args)
		a.args = a.args[:0]
	}
}
