package node

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/hoard"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/internal/tracking"
	"github.com/dunlin-cache/dunlin/node/crew"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/measure"
	"github.com/dunlin-cache/dunlin/node/stream"
)

// conn is one connection. It begins as a client's, and a DUNLIN command can make it a pipe or a
// member's.
type conn struct {
	exec.Conn
	node   *Node
	worker *worker
	parser resp.Parser

	pipe  *pipe  // not nil: a proxy's pipe
	peer  bool   // a member that proved to know the secret
	nonce []byte // what its proof must be about, from DUNLIN CHALLENGE

	outOfTurn bool // a message of another node was refused: those behind it are, too, until DUNLIN CHALLENGE

	queued *queuePlace   // not nil: a request waits for a hold, or for a move
	held   exec.Work     // not nil: executes what was set aside, which is neither in the input nor an upload
	waited time.Duration // Request.Waited of the request that comes next
	inVain uint64        // the newest epoch in which a request has waited for a move in vain

	reserved *reserved // not nil: it has reserved partitions for another node's command

	stream *stream.Connection // not nil: another node's, of what its partitions hold
	topics *subscriber        // not nil: the client has subscribed to something

	tracker *tracking.Client // not nil: the client tracks
	behind  []byte           // invalidations that wait for a reply
	visit   *visit           // not nil: its command visits all clients
	forgets bool             // behind its reply the client is to forget all

	follows      []string // prefixes that its loop follows for it
	followCharge int      // bytes that these take, or those of a pipe

	probation bool // there is no place, or no memory, for another client: a member, or it is refused
	noMemory  bool // it is on probation for want of memory
	pace      hoard.Pace
	paced     *exec.Upload  // what pace is about; nil: what the client reads
	unread    int           // bytes of input that the last OnData left
	stopped   bool          // OnData left requests because replies pile up
	ended     bool          // the peer sends no more: close when all is answered
	looked    time.Duration // when a command began behind which the client rests; 0: it does not
	closed    bool
	gone      atomic.Bool // closed, for other loops

	blockedCharge int // bytes of its commands that wait for keys
	jobs          jobs
	queue         crew.Queue // of their work
}

// flushStep is after how many bytes of replies OnData checks whether the peer still reads them.
const flushStep = 64 << 10

// OnData executes the whole requests of the input. It stops early when replies pile up, or when a
// request must wait for a goroutine. netloop offers the rest again once enough was sent, or after
// Resume.
func (cn *conn) OnData(c *netloop.Conn, in []byte) (used int) {
	if cn.Answering || cn.Closing {
		return 0
	}
	r := cn.worker.begin(cn)
	r.reading = true
	ahead, batch, last := &cn.worker.ahead, 0, 0
	for used < len(in) && !cn.Answering && !cn.Closing && !r.longEnough && r.Room(exec.LineRoom) {
		if (used == 0 || r.Produced() > flushStep) && r.Full() {
			cn.stopped = true
			c.Wake() // when this iteration's flush has made room, or later
			break
		}
		if cn.Upload != nil && cn.Upload.Left > 0 {
			used += cn.Upload.Write(in[used:])
			continue
		}
		s := ahead.take(cn, in[used:])
		if r.together != nil && (s == nil || !r.joins(s)) {
			break
		}
		if s != nil {
			used, last = used+s.length, s.length
			r.Database = s.database
			r.execute(s)
			r.Waited = 0
			batch++
			continue
		}
		p, prefix, ok := cn.prefix(in[used:])
		if !ok {
			r.Fail(errBadDatabase)
			cn.Closing = true
			break
		}
		r.Database, r.aged = p.Database, p.Waited
		outcome := cn.parser.Parse(in[used+prefix:])
		if outcome == resp.NeedMore {
			c.Want(prefix + cn.parser.Need())
			break
		}
		if outcome == resp.LargeBulk {
			if value := r.beginValue(); value > 0 {
				used += prefix + value
			}
			continue
		}
		if outcome == resp.Malformed {
			r.failProtocol()
			cn.Closing = true
			break
		}
		last = cn.parser.Len()
		used += prefix + last
		if cn.Upload != nil {
			r.endUpload(cn.parser.Args())
			r.Waited = 0
			batch++
		} else if r.Args = cn.parser.Args(); len(r.Args) > 0 {
			r.raw = in[used-last : used]
			r.dispatch()
			r.raw, r.Waited, r.aged = nil, 0, 0
			batch++
		}
	}
	r.endTogether()
	if used -= r.unused; r.putBack {
		used -= last
	}
	cn.unread = len(in) - used
	if r.longEnough && cn.unread > 0 {
		cn.stopped = true
		c.Wake()
	}
	cn.worker.end(r, used, batch)
	return used
}

// begin prepares the worker's request for the input of a connection.
func (w *worker) begin(cn *conn) *request {
	r := &w.request
	w.ahead.forget() // a handler that panicked leaves something
	r.conn = cn
	r.Begin(&cn.Conn, w.loop.UnixMilli())
	// In this order: once fenced is false, the view is at least as new as the one that ended the
	// fence.
	r.fenced = w.node.isFenced(w.loop.Now())
	r.view = w.node.view.Load()
	if p := w.node.placing.Load(); p != r.placing || r.view.Table != r.placedBy {
		r.placing, r.placedBy = p, r.view.Table
		r.Placement, r.Closed = p.Placement, p.closed(r.view.Table)
	}
	r.careful = r.gate().Careful(r.view, r.fenced)
	r.timedFrom = int(w.node.timing.Load())
	r.sampled = false
	if w.untilSample--; w.untilSample <= 0 {
		r.timedFrom = 0
		if !w.feed.On() { // otherwise every input is, and so shown
			w.untilSample, r.sampled = measure.SampleInputs, true
		}
	}
	r.Waited, cn.waited = cn.waited, 0
	r.unused, r.putBack, r.reading, r.transaction, r.planned, r.job, r.together = 0, false, false, nil, nil, nil, nil
	cn.State.LastUsed = w.loop.Now()
	cn.stopped = false
	r.longEnough, r.spent, r.tried, r.compared, r.Actor, r.aged = false, 0, 0, 0, 0, 0
	r.Database = cn.State.Database
	return r
}

// end hands the replies to the socket, and counts what was done.
func (w *worker) end(r *request, used, batch int) {
	cn := r.conn
	cn.waited = max(cn.waited, r.Waited) // if it was not executed now either
	w.Count.Input(used, batch)
	if cn.State.Commands += uint64(batch); r.putBack {
		cn.State.Commands-- // it comes again
	}
	w.Count.Output(r.Finish())
	w.ahead.forget()
	cn.chargeParser()
	idle := !cn.Answering && !cn.stopped && cn.owesNothing()
	if cn.Closing || (cn.ended && idle) {
		cn.Closing = true
		cn.dropUpload()
		cn.Socket.CloseAfterFlush()
		return
	}
	cn.restBehindLook()
}

// limitRequests gives the parser the limits that fit the peer: little memory for a peer that has
// not authenticated.
func (cn *conn) limitRequests() {
	limits := resp.DefaultLimits
	limits.LargeBulk = uploadFrom
	if !cn.State.Authenticated && !cn.peer {
		limits = resp.UnauthenticatedLimits
	} else {
		cn.State.Proved()
	}
	limits.Words = cn.wordsOf
	cn.parser.SetLimits(limits)
}

// IsNew reports whether a client has to prove who it is, or waits for its first reply.
func (cn *conn) IsNew() bool {
	return cn.pipe == nil && !cn.peer && (cn.State.IsGuest() || cn.State.LastCmd == 0)
}

// IsUrgent reports whether a member seems to ask. Members do not wait behind clients. A client that
// asks like a member is refused a little sooner, a few times.
func (cn *conn) IsUrgent(first []byte) bool { return member.IsRequest(first) }

// turnOut closes a connection that has not proved who it is in time, or has to make room. Any
// goroutine may call it.
func (cn *conn) turnOut() {
	cn.worker.loop.Post(func() {
		if !cn.State.IsGuest() {
			return // it has proved who it is at the last moment
		}
		if cn.probation && !cn.closed {
			cn.worker.Count.Rejected++
			cn.Socket.SetOut(cn.appendRefusal(cn.Socket.Out()))
		}
		cn.Closing = true
		cn.Socket.CloseAfterFlush()
	})
}

// beginProbation lets a connection execute DUNLIN only. Because it is not authenticated, it does not
// take the fast path.
func (cn *conn) beginProbation() {
	cn.probation = true
	cn.State.Authenticated = false
	cn.State.EnterLobby(cn.node.reserve, cn.Socket.RemoteIP(), cn.turnOut)
}

// appendRefusal appends what a client on probation is told.
func (cn *conn) appendRefusal(out []byte) []byte {
	if cn.noMemory {
		return resp.AppendError(out, exec.ErrOOM)
	}
	return session.AppendTooManyClients(out)
}

// resume continues a connection that waited for a goroutine. f answers the request, or has it wait
// for another goroutine.
func (cn *conn) resume(f func(r *request)) {
	cn.Answering = false
	if cn.closed {
		return
	}
	panics := true
	defer func() { cn.closeIf(panics) }()
	r := cn.worker.begin(cn)
	start := len(r.Out)
	pins := len(r.Pins)
	f(r)
	if len(r.Pins) > pins {
		r.ticketed(start, pins)
	}
	r.endAside(start)
	cn.worker.Count.Output(r.Finish())
	panics = false
	switch {
	case cn.Answering:
	case cn.Closing || (cn.ended && cn.unread == 0):
		cn.Closing = true
		cn.Socket.CloseAfterFlush()
	default:
		cn.Socket.Resume()
		cn.restBehindLook()
	}
}

// closeIf closes the connection if a handler panics in a turn that goes on with its request, and
// forgets what the worker's request has of that. If a handler panics in OnData, the loop does so, and
// there is nothing to forget.
func (cn *conn) closeIf(panics bool) {
	if panics {
		r := &cn.worker.request
		r.Rest, r.Rewrite, r.listed, r.Listed, r.resumed, r.took = nil, nil, nil, false, nil, 0
		r.InOne, r.ArgsTake = false, 0
		cn.Socket.Close(errPanicked)
	}
}

// OnEOF keeps a connection whose peer has finished sending until all its requests are answered:
// `printf … | nc` is a client too.
func (cn *conn) OnEOF(*netloop.Conn) bool {
	cn.ended = true
	if cn.State.Blocked {
		return false
	}
	return cn.Answering || cn.stopped
}

// IsWaiting reports whether a client waits in CLIENT PAUSE or for a delay: who leaves meanwhile
// counts as disconnected, however much of its input is unread.
func (cn *conn) IsWaiting(*netloop.Conn) bool { return cn.State.Blocked }

// OnClose ends the connection.
func (cn *conn) OnClose(_ *netloop.Conn, err error) {
	cn.closed = true
	cn.gone.Store(true)
	if cn.hasWaits() {
		cn.worker.blocked.reviewAll()
	}
	cn.dropJobs()
	cn.visit.withdraw(cn.node)
	cn.dropUpload()
	cn.dropHeld()
	cn.dropReserved()
	switch {
	case errors.Is(err, netloop.ErrSlowReader):
		cn.worker.Count.SlowReaders++
	case errors.Is(err, netloop.ErrNoMemory):
		cn.worker.Count.Starved++
		cn.node.starved.Add(1)
	}
	cn.State.Leave()
	cn.dropTopics()
	cn.untrack()
	cn.worker.remove(cn)
	cn.stream.Close()
	if cn.State.Monitor {
		cn.worker.feed.Remove(cn.Socket)
	}
	if cn.pipe != nil && cn.pipe.listener != nil {
		cn.pipe.listener.end()
	}
	if cn.pipe != nil && cn.pipe.tickets {
		cn.node.tickets.Close(cn.pipe)
	}
	cn.endPipe()
}
