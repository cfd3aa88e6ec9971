package node

import (
	"fmt"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// request is a command while it is executed: what its handler sees, and what only the node knows
// about it. Each worker has one.
type request struct {
	exec.Request
	node   *Node
	worker *worker

	// Set once for all requests of one input.
	conn   *conn
	view   *ownership.View
	fenced bool
	// placing and the table of the view are what Placement and Closed are made of.
	placing  *placing
	placedBy *ring.Table
	// careful reports that the fence or a latch of the pipe forbids some partition that the view
	// serves. It is one flag, for the fast path.
	careful bool
	// timedFrom is the number of arguments from which a command is timed, see timing.go. In a
	// sampled input it is 0.
	timedFrom int
	sampled   bool // the keys of the input count for HOTKEYS

	// longEnough: this input has used its share of the loop's time. The rest of it is read in the
	// next iteration.
	longEnough bool
	unused     int           // bytes of the present request, if it is to be read again
	putBack    bool          // the present request is to be read again, because its partition is held or moves
	spent      time.Duration // what its commands that are not quick have taken of the loop's time
	tried      time.Duration // how long its scripts were tried
	compared   int           // what its messages may have cost with patterns, see publish
	reading    bool          // the present request is at the front of the connection's input
	raw        []byte        // the present request, if the parser has read it and not lookahead
	aged       time.Duration // how long it has waited elsewhere, if its proxy says so
	listed     *listing      // not nil: the present request, whose arguments were listed in turns
	planned    *planning     // not nil: the present request is an EXEC that was planned

	together *publication // not nil: messages of the input that are sent when no other one follows

	announces bool // the present command is answered by pushes, which CLIENT REPLY does not suppress

	wanted ring.PartitionSet // by an EACH that is executed

	deferred    bool          // the present command is answered later
	job         *job          // by which it is
	resumed     *job          // not nil: the present command, which a goroutine has worked on
	popped      uint64        // the token for what it has popped; 0: none
	ahead       [48]byte      // what comes in front of its reply
	took        time.Duration // by the present command before this turn
	transaction *transaction  // not nil: the present command is one of its commands
}

// own turns a function that needs the node into a handler.
func own(h func(r *request)) exec.Handler {
	return func(r *exec.Request) { h(r.Host.(*request)) }
}

// dispatch executes one request: r.args.
func (r *request) dispatch() {
	s := step{args: r.Args, length: r.conn.parser.Len(), database: r.Database}
	s.look(r.conn)
	r.executeWhole(&s)
}

// executeWhole is execute for a request that need not be small: one of many arguments is listed first.
// If it has several keys, admitKeys sees to that.
func (r *request) executeWhole(s *step) {
	if s.plan != nil && s.plan.keys == oneKey && r.isUnlisted() {
		r.named(s.cmd.ID)
		r.listLater(r.raw)
		return
	}
	r.execute(s)
}

// execute executes one request that look has classified.
func (r *request) execute(s *step) {
	r.Args = s.args
	if s.plan == nil {
		if r.conn.State.Aside() {
			r.executeAside(s)
		} else {
			r.dispatchOther(s.cmd)
		}
		return
	}
	r.Cmd = s.cmd
	r.worker.Count.Commands[s.cmd.ID]++
	r.conn.State.LastCmd = s.cmd.ID
	if r.Database != 0 && s.plan.usesKeys(s.cmd) && !r.admitDatabase(r.Database) {
		return
	}
	if s.plan.keys == oneKey {
		if !r.admitSlot(s.slot) {
			return
		}
	} else if !r.admit(s.plan.keys) {
		return
	}
	start, pins := len(r.Out), len(r.Pins)
	if s.plan.looks {
		r.beginLook()
	}
	if s.plan.timed || len(s.args) >= r.timedFrom {
		if r.isFirst() {
			r.show()
			if r.sampled {
				r.noteKeys(s)
			}
		}
		r.timed(s.plan.handler)
	} else {
		s.plan.handler(&r.Request)
	}
	if len(r.Pins) > pins {
		r.judgePins(start, pins)
	}
}

// judgePins limits what the reply that begins at Out[start] pins, and has it wait at the node if it is large. What a
// proxy may still give back, because nobody waits for what was popped, stays whole.
func (r *request) judgePins(start, firstPin int) {
	if member.PoppedLen(r.Out[start:]) == 0 {
		r.LimitPins(start, firstPin)
	}
	if len(r.Pins) > firstPin && r.transaction == nil {
		r.NoteAlone(start, firstPin)
		r.ticketed(start, firstPin)
	}
}

// dispatchOther handles requests that are wrong, internal, or the session's.
func (r *request) dispatchOther(c *command.Command) {
	cn := r.conn
	if c != nil && c.ID == command.Dunlin {
		r.dispatchInternal()
		return
	}
	if cn.probation {
		r.worker.Count.Rejected++
		r.Out = cn.appendRefusal(r.Out)
		cn.Closing = true
		return
	}
	out, action, refused := r.node.session.Refuse(cn.State, c, r.Args, r.Out)
	if refused {
		r.reject(out[len(r.Out):])
		r.Out = out
		r.obey(action)
		return
	}
	r.Cmd = command.Row(r.Args)
	if c.ID == command.Watch && r.isUnlisted() {
		r.named(command.Watch)
		r.listLater(r.raw)
		return
	}
	if r.isFirst() {
		r.show()
	}
	switch {
	case cn.State.Queues(c):
		r.enqueue(c)
		return
	case isConfigSet(c, r.Args):
		r.configureLater()
		return
	case c.ID == command.Watch:
		watch(r)
		return
	case c.ID == command.Exec:
		execute(r)
		return
	case r.subscription():
		return
	}
	answer := answerLocally
	if c.ID == command.Select {
		answer = selectDatabase
	}
	if r.Cmd.Flags&command.Secret == 0 && (!r.Cmd.Quick() || len(r.Args) >= r.timedFrom) {
		r.timed(answer)
		return
	}
	answer(&r.Request)
}

// selectDatabase: SELECT database. Within a transaction it concerns the commands behind it, and behind EXEC the client.
func selectDatabase(e *exec.Request) {
	r := e.Host.(*request)
	r.named(command.Select)
	database, ok := r.DatabaseArg(1)
	if !ok {
		return
	}
	if r.conn.pipe == nil && r.Placement.Pins(database) && !r.node.cfg.Whole {
		r.Fail(fmt.Sprintf(errPinned, database))
		return
	}
	r.Select(database)
	if r.transaction != nil {
		r.transaction.database = database
	}
	if r.conn.pipe == nil {
		r.conn.State.Database = database
	}
	r.ReplyOK()
}

// answerLocally wraps request.answerLocally as a handler.
func answerLocally(r *exec.Request) { own((*request).answerLocally)(r) }

// answerLocally executes a command that internal/session answers.
func (r *request) answerLocally() {
	cn := r.conn
	start, tracked := len(r.Out), cn.State.Tracking
	out, action, ok := r.node.session.Do(cn.State, r.Cmd, r.Args, r.Out)
	if !ok {
		panic("BUG: nobody executes " + r.Cmd.Name)
	}
	r.Out = out
	if cn.pipe == nil {
		r.worker.Count.Commands[cn.State.LastCmd]++
	} else {
		r.worker.Count.Internal++ // a proxy's PING asks whether this node lives
	}
	if action == session.ActionDelay {
		r.Out = out[:start]
		r.delay(out[start:])
		return
	}
	if len(out) > start && resp.IsError(out[start:]) {
		r.CountFailure(string(out[start:]))
	}
	if action == session.ActionTracking {
		if refusal := cn.track(); refusal != "" {
			cn.State.SetTracking(tracked) // and track has left what it did
			r.Out = r.Out[:start]
			r.Fail(refusal)
		}
	}
	r.obey(action)
}

// reject counts a request that was refused, with or without a reply.
func (r *request) reject(reply []byte) {
	id := command.ID(0)
	if row := command.Row(r.Args); row != nil {
		id = row.ID
	}
	r.worker.Count.Reject(id, string(reply))
}

// obey does what the session asks for besides its reply.
func (r *request) obey(action session.Action) {
	cn := r.conn
	switch action {
	case session.ActionCloseAfterReply:
		cn.Closing = true
	case session.ActionClose:
		cn.Closing = true
		cn.Socket.Close(nil)
	case session.ActionClientList, session.ActionClientKill, session.ActionClientUnblock, session.ActionPause:
		r.everyone(action)
	case session.ActionMonitor:
		r.worker.feed.Add(cn.Socket, cn.State.Muted)
	case session.ActionReset:
		r.worker.feed.Remove(cn.Socket)
		cn.dropTopics()
		cn.untrack()
	}
	// AUTH and HELLO may have authenticated the client, and RESET may have undone that. The check
	// is cheap enough for every command of the session.
	cn.limitRequests()
}

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
	database uint8
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
		database := cn.State.Database
		if length == 0 {
			p, prefix, ok := cn.prefix(in)
			if prefix == 0 || p.Waited > 0 || !ok {
				break
			}
			database = p.Database
			if args, length = cn.parser.AppendSmall(a.args, in[prefix:]); length == 0 {
				break
			}
			length += prefix
		}
		in = in[length:]
		a.args = args
		s := &a.steps[a.known]
		a.known++
		s.args, s.length, s.database = args[before:], length, database
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
	if plan.handler == nil || !cmd.Fits(s.args) || !cn.State.Authenticated || cn.State.Apart {
		return
	}
	s.cmd, s.plan = cmd, plan
	if s.firstKey = s.cmd.FirstKey(s.args); s.firstKey == 0 {
		return
	}
	key := s.args[s.firstKey]
	if s.database == 0 { // which is never pinned; slotOf is not inlined
		s.slot = ring.Slot(key)
	} else {
		s.slot = cn.worker.request.slotOf(s.cmd, s.database, key)
	}
}

func (a *lookahead) touch(w *worker) {
	n := 0
	for i := range a.steps[:a.known] {
		if s := &a.steps[i]; s.plan != nil && s.firstKey != 0 {
			w.Probes[n] = engine.Probe{Section: engine.Section(ring.Partition(s.slot), s.database), Key: s.args[s.firstKey]}
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
