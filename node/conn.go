package node

import (
	"errors"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
)

// conn is one connection. It begins as a client's, and becomes a pipe or a
// member's by a DUNLIN command.
type conn struct {
	node   *Node
	worker *worker
	socket *netloop.Conn
	parser resp.Parser
	state  *session.State

	pipe  *pipe  // not nil: a proxy's pipe
	peer  bool   // a member that proved to know the secret
	nonce []byte // what its proof must be about, from DUNLIN CHALLENGE

	upload *upload // not nil: in the middle of a request with large values
	stream *stream // not nil: another node's, of what its partitions hold

	probation bool   // over MaxClients: a member, or it is refused
	unread    int    // bytes of input that the last OnData left
	answering bool   // a goroutine makes the next reply; nothing is executed meanwhile
	onAnswer  func() // called once that is over, even if the connection is closed by then
	stopped   bool   // OnData left requests because replies pile up
	ended     bool   // the peer sends no more: close when all is answered
	closing   bool   // nothing more is executed; close when all is sent
	closed    bool
}

// flushStep is after how many bytes of replies OnData looks whether the peer
// still reads them.
const flushStep = 64 << 10

// OnData executes the whole requests of the input. It stops early when replies
// pile up or one must wait for a goroutine. netloop offers the rest again when
// enough was sent, or after Resume.
func (cn *conn) OnData(c *netloop.Conn, in []byte) (used int) {
	if cn.answering || cn.closing {
		return 0
	}
	r := cn.worker.begin(cn)
	ahead, batch := &cn.worker.ahead, 0
	for used < len(in) && !cn.answering && !cn.closing && !r.longEnough && r.room(lineRoom) {
		if (used == 0 || r.produced() > flushStep) && r.full() {
			cn.stopped = true
			c.Wake() // when this iteration's flush has made room, or later
			break
		}
		if cn.upload != nil && cn.upload.left > 0 {
			used += cn.upload.take(in[used:])
			continue
		}
		if s := ahead.take(cn, in[used:]); s != nil {
			used += s.length
			r.execute(s)
			batch++
			continue
		}
		outcome := cn.parser.Parse(in[used:])
		if outcome == resp.NeedMore {
			c.Want(cn.parser.Need())
			break
		}
		if outcome == resp.LargeBulk {
			used += r.beginValue()
			continue
		}
		if outcome == resp.Malformed {
			r.failProtocol()
			cn.closing = true
			break
		}
		used += cn.parser.Len()
		if cn.upload != nil {
			r.endUpload(cn.parser.Args())
			batch++
		} else if r.args = cn.parser.Args(); len(r.args) > 0 {
			r.dispatch()
			batch++
		}
	}
	used -= r.unused
	cn.unread = len(in) - used
	if r.longEnough && cn.unread > 0 {
		cn.stopped = true
		c.Wake()
	}
	cn.worker.end(r, used, batch)
	return used
}

// begin sets the request up for the input of a connection.
func (w *worker) begin(cn *conn) *request {
	r := &w.request
	w.ahead.forget() // a handler that panicked leaves something
	if len(r.pins) > 0 || r.upload != nil {
		r.takeBack(0)
		r.upload, r.rewrite = nil, nil
	}
	r.conn = cn
	// In this order: when fenced is over, the view is at least as new as what
	// ended it.
	r.fenced = w.node.fenced.Load()
	r.view = w.node.view.Load()
	r.careful = r.fenced || (cn.pipe != nil && (cn.pipe.latched != nil || cn.pipe.era < r.view.Newest))
	r.now = w.loop.UnixMilli()
	r.timedFrom = int(w.node.timing.Load())
	r.sampled = false
	if w.untilSample--; w.untilSample <= 0 {
		r.timedFrom = 0
		if !w.feed.On() { // otherwise every input is, and so shown
			w.untilSample, r.sampled = sampleInputs, true
		}
	}
	r.out = cn.socket.Out()
	r.begun, r.sent, r.unused = len(r.out), 0, 0
	cn.state.LastMilli = r.now
	cn.stopped = false
	r.longEnough = false
	return r
}

// end hands the replies over and counts what was done.
func (w *worker) end(r *request, used, batch int) {
	cn := r.conn
	w.count.input(used, batch)
	r.finish()
	w.ahead.forget()
	cn.chargeParser()
	idle := !cn.answering && !cn.stopped
	if cn.closing || (cn.ended && idle) {
		cn.closing = true
		cn.dropUpload()
		cn.socket.CloseAfterFlush()
	}
}

// finish hands the replies over.
func (r *request) finish() {
	r.handOver()
	r.worker.count.output(r.sent)
	r.out, r.args = nil, nil
}

// full hands the replies so far to the socket and tells whether they pile up
// unread there.
func (r *request) full() bool {
	r.handOver()
	socket := r.conn.socket
	r.out = socket.Out()
	r.begun = len(r.out)
	return socket.Full()
}

// dispatch executes one request: r.args.
func (r *request) dispatch() {
	s := step{args: r.args, length: r.conn.parser.Len()}
	s.look(r.conn)
	r.execute(&s)
}

// execute executes one request that was looked at.
func (r *request) execute(s *step) {
	r.args = s.args
	if s.plan == nil {
		if r.conn.state.Aside() {
			r.executeAside(s)
		} else {
			r.dispatchOther(s.cmd)
		}
		return
	}
	r.cmd = s.cmd
	r.worker.count.commands[s.cmd.ID]++
	r.conn.state.LastCmd = s.cmd.ID
	if s.plan.keys == oneKey {
		if !r.admitSlot(s.slot) {
			return
		}
	} else if !r.admit(s.plan.keys) {
		return
	}
	start, pins := len(r.out), len(r.pins)
	if s.plan.heavy || len(s.args) >= r.timedFrom {
		r.show()
		if r.sampled {
			r.noteKeys(s)
		}
		r.timed(s.plan.handler)
	} else {
		s.plan.handler(r)
	}
	if len(r.pins) > pins && !r.holding {
		r.ticketed(start, pins)
	}
}

// dispatchOther treats what is wrong, internal, or the session's.
func (r *request) dispatchOther(c *command.Command) {
	cn := r.conn
	if c != nil && c.ID == command.Dunlin {
		r.dispatchInternal()
		return
	}
	if cn.probation {
		r.worker.count.rejected++
		r.out = session.AppendTooManyClients(r.out)
		cn.closing = true
		return
	}
	out, action, refused := r.node.session.Refuse(cn.state, c, r.args, r.out)
	if refused {
		r.reject(out[len(r.out):])
		r.out = out
		r.obey(action)
		return
	}
	r.cmd = command.Row(r.args)
	r.show()
	switch {
	case cn.state.Queues(c):
		r.out = cn.state.Enqueue(c, r.args, r.out)
		return
	case isConfigSet(c, r.args):
		r.configureLater()
		return
	case c.ID == command.Watch:
		watch(r)
		return
	case c.ID == command.Exec:
		exec(r)
		return
	}
	if !hasSecret(r.cmd) && (isHeavy(r.cmd) || len(r.args) >= r.timedFrom) {
		r.timed((*request).answerLocally)
		return
	}
	r.answerLocally()
}

// answerLocally executes a command of the session's.
func (r *request) answerLocally() {
	cn := r.conn
	start := len(r.out)
	out, action, ok := r.node.session.Do(cn.state, r.cmd, r.args, r.out)
	if !ok {
		panic("BUG: nobody executes " + r.cmd.Name)
	}
	r.out = out
	r.worker.count.commands[cn.state.LastCmd]++
	if action == session.ActionDelay {
		r.out = out[:start]
		r.delay(out[start:])
		return
	}
	if len(out) > start && resp.IsError(out[start:]) {
		r.countFailure(string(out[start:]))
	}
	r.obey(action)
}

// reject counts a request that was refused with a reply, or none.
func (r *request) reject(reply []byte) {
	id := command.ID(0)
	if row := command.Row(r.args); row != nil {
		id = row.ID
	}
	r.worker.count.reject(id, string(reply))
}

// obey does what the session asked for besides its reply.
func (r *request) obey(action session.Action) {
	cn := r.conn
	switch action {
	case session.ActionCloseAfterReply:
		cn.closing = true
	case session.ActionClose:
		cn.closing = true
		cn.socket.Close(nil)
	case session.ActionClientList:
		r.clientList()
	case session.ActionClientKill:
		r.clientKill()
	case session.ActionClientUnblock:
		r.clientUnblock()
	case session.ActionPause:
		r.clientPause()
	case session.ActionMonitor:
		r.worker.feed.Add(cn.socket, cn.state.Muted)
	case session.ActionReset:
		r.worker.feed.Remove(cn.socket)
	}
	// AUTH and HELLO may have let the client in, RESET out again. Cheap enough to
	// look after every command of the session.
	cn.limitRequests()
}

// limitRequests gives the parser the limits that fit what is known of the peer:
// little memory for somebody who may not even know the password.
func (cn *conn) limitRequests() {
	limits := resp.DefaultLimits
	limits.LargeBulk = uploadFrom
	if !cn.state.Authenticated && !cn.peer {
		limits = resp.UnauthenticatedLimits
	}
	cn.parser.SetLimits(limits)
}

// beginProbation keeps a connection over MaxClients from all but DUNLIN. Not being
// authenticated takes it off the fast path.
func (cn *conn) beginProbation() {
	cn.probation = true
	cn.state.Authenticated = false
	cn.limitRequests()
}

// answerLater stops the connection, runs f in a goroutine, and appends what it
// returns as the reply. f must hold no views of the request, and end soon
// after the node closes.
func (r *request) answerLater(f func() []byte) { r.answerLaterThen(f, func() {}) }

// answerLaterThen is answerLater that calls then on the loop, before the reply is appended.
func (r *request) answerLaterThen(f func() []byte, then func()) {
	r.mayWait()
	cn := r.conn
	cn.answering = true
	cn.socket.Pause()
	timing := r.timingLater()
	cn.node.goJob(func() {
		begun := time.Now()
		reply := f()
		took := time.Since(begun)
		cn.worker.loop.Post(func() {
			timing.end(took)
			then()
			cn.answer(reply)
		})
	})
}

// answer ends answerLater, on the loop.
func (cn *conn) answer(reply []byte) {
	cn.resume(func(r *request) {
		if resp.IsError(reply) {
			r.countFailure(string(reply))
		}
		if r.room(len(reply)) {
			r.out = append(r.out, reply...)
		}
	})
}

// resume goes on with a connection that waited for a goroutine: f answers the request, or
// has it wait for another one.
func (cn *conn) resume(f func(r *request)) {
	cn.answering = false
	if done := cn.onAnswer; done != nil {
		cn.onAnswer = nil
		done()
	}
	if cn.closed {
		return
	}
	r := cn.worker.begin(cn)
	start := len(r.out)
	f(r)
	r.endAside(start)
	r.finish()
	switch {
	case cn.answering:
	case cn.closing || (cn.ended && cn.unread == 0):
		cn.closing = true
		cn.socket.CloseAfterFlush()
	default:
		cn.socket.Resume()
	}
}

// OnEOF keeps a connection whose peer has finished sending until all its
// requests are answered: `printf … | nc` is a client too.
func (cn *conn) OnEOF(*netloop.Conn) bool {
	cn.ended = true
	if cn.state.Blocked {
		return false
	}
	return cn.answering || cn.stopped
}

// OnClose ends the connection.
func (cn *conn) OnClose(_ *netloop.Conn, err error) {
	cn.closed = true
	cn.dropUpload()
	switch {
	case errors.Is(err, netloop.ErrSlowReader):
		cn.worker.count.slowReaders++
	case errors.Is(err, netloop.ErrNoMemory):
		cn.worker.count.starved++
	}
	cn.state.Leave()
	cn.worker.remove(cn)
	if cn.stream != nil {
		cn.stream.closed(cn)
	}
	if cn.state.Monitor {
		cn.worker.feed.Remove(cn.socket)
	}
	if cn.pipe != nil {
		cn.node.pipes.closed(cn.pipe, time.Now())
		if cn.pipe.tickets {
			cn.node.tickets.close(cn.pipe)
		}
	}
}
