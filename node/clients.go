package node

import (
	"context"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// StateNow returns the state with the present sizes of the buffers, and what has passed.
func (cn *conn) StateNow() *session.State {
	cn.State.InBytes, cn.State.OutBytes = cn.unread, cn.Socket.Queued()
	cn.State.NetIn, cn.State.NetOut = cn.Socket.Traffic()
	return cn.State
}

// Kill closes the connection at once.
func (cn *conn) Kill() {
	cn.Closing = true
	cn.Socket.Close(nil)
}

// everyone answers CLIENT LIST, KILL, UNBLOCK and PAUSE, which concern the clients of all loops. When it
// is their turn, a goroutine visits the loops in rounds.
func (r *request) everyone(action session.Action) {
	cn := r.conn
	about := session.NewEveryone(action, cn.State, r.Args, len(r.node.workers))
	cn.visit = &visit{about: about}
	if action == session.ActionPause {
		for _, w := range r.node.workers {
			w.loop.Post(w.pause.Obey)
		}
	}
	heap, suicide := r.Heap, false
	r.gatherLater(visits, unkeyed, func(ctx context.Context, reply *exec.Gathered) {
		if problem := cn.node.visitAll(ctx, about, heap, reply); problem != "" {
			reply.End()
			reply.Head = resp.AppendError(nil, problem)
			return
		}
		reply.Head, suicide = about.Reply()
	}, func() {
		cn.visit = nil
		cn.Socket.SetOther(cn.otherBytes())
		cn.Closing = cn.Closing || suicide
	})
}

// visit is a command of a connection that visits all clients, or waits for its turn.
type visit struct {
	about *session.Everyone
	work  func() // carries it out
}

// begin carries the command out when it is its turn.
func (v *visit) begin(n *Node, work func()) {
	v.work = work
	all := n.session.Visits()
	all.Enter(v.about, func() {
		n.goJob(func() {
			defer all.Leave(v.about)
			work()
		})
	})
}

// withdraw ends the command of a connection that is closed, if it waits: the work finds that the context has
// ended. Otherwise the goroutine finds it.
func (v *visit) withdraw(n *Node) {
	if v != nil && v.work != nil && n.session.Visits().Withdraw(v.about) {
		v.work()
	}
}

// visitAll carries out a command on all clients. It gathers the lines of CLIENT LIST.
func (n *Node) visitAll(ctx context.Context, about *session.Everyone, heap exec.Heap, reply *exec.Gathered) (problem string) {
	for more := true; more; {
		err := n.cfg.Group.Each(func(l *netloop.Loop) {
			about.Turn(l.Index(), &n.workers[l.Index()].pause)
		})
		if err != nil || ctx.Err() != nil {
			return exec.ErrBusy
		}
		var lines []byte
		if lines, more = about.Gather(); !n.hasListRoom(len(lines)) || !reply.Append(heap, lines) {
			return exec.ErrOOM
		}
	}
	return ""
}

// listParts are the parts of what connections may use that CLIENT LIST leaves to others, see memberPart: three
// quarters. Clients that ask for lists and do not read them would otherwise take all that clients may have, and
// others' requests would find no memory.
const listParts = 6

// hasListRoom reports whether a list may have so many bytes more.
func (n *Node) hasListRoom(bytes int) bool {
	return bytes == 0 || memberBudget{n}.hasBeside(listParts, int64(bytes))
}

// executeAside executes a request of a client that is paused, or that has switched off some
// replies.
func (r *request) executeAside(s *step) {
	if r.mustWait(s.args) {
		r.unused = s.length
		r.conn.waited = r.Waited
		r.conn.block(s.length)
		return
	}
	start := len(r.Out)
	r.announces = false
	r.conn.State.Begin()
	s.look(r.conn)
	if r.conn.State.Tracking != nil {
		r.trackRead(s)
	}
	r.executeWhole(s)
	r.Actor = 0
	r.endAside(start)
}

// endAside ends a request that executeAside began, unless a goroutine will answer it. Its reply
// begins at start.
func (r *request) endAside(start int) {
	cn := r.conn
	if !cn.State.Begun() || cn.Answering {
		return
	}
	if cn.State.Muted() && !r.announces {
		r.Undo(start)
	}
	cn.State.End(true)
	cn.endTracked()
}

// failProtocol answers input that is no request.
func (r *request) failProtocol() {
	r.Cmd = nil
	start := len(r.Out)
	r.Fail(r.conn.parser.Err())
	if r.conn.State.Muted() {
		r.Undo(start)
	}
}

// mustWait reports whether a request must wait because of CLIENT PAUSE. What goes on after a stop
// has begun before: its bytes are not in the input any more. A member's connection begins as a
// client's.
func (r *request) mustWait(args [][]byte) bool {
	cn := r.conn
	if cn.pipe != nil || cn.peer {
		cn.State.SetPaused(false)
		return false
	}
	goesOn := r.transaction != nil || r.Rest != nil || r.listed != nil || r.Rewrite != nil
	return !goesOn && cn.State.Aside() && r.node.session.Pauses(cn.State, args)
}

// block has a client wait until Unblock. unread is the length of its unread requests, in bytes. As
// in Redis, a client that has finished sending counts as disconnected.
func (cn *conn) block(unread int) {
	cn.Answering = true
	cn.State.SetBlocked(true)
	cn.Socket.SetMaxInput(unread + session.KeepBlocked)
	cn.Closing = cn.Closing || cn.ended
}

// Unblock goes on with the client's requests.
func (cn *conn) Unblock() {
	cn.State.SetBlocked(false)
	cn.Socket.SetMaxInput(0)
	if cn.Upload == nil || !cn.Upload.Paused {
		cn.Answering = false
		cn.Socket.Wake()
		return
	}
	cn.worker.loop.Post(func() { // not in the middle of the request that ended the pause
		if !cn.closed {
			cn.resume(func(r *request) { r.endUpload(nil) })
			cn.Socket.Wake()
		}
	})
}

// delay answers after State.Delay. It copies reply.
func (r *request) delay(reply []byte) {
	cn := r.conn
	timer := r.worker.loop.After(cn.State.Delay, func() { cn.Wake(nil) })
	r.wait(session.Later(reply, timer.Stop))
}

// wait has the client wait until Wake.
func (r *request) wait(w *session.Waiting) {
	r.MayWait()
	r.conn.State.Waiting = w
	r.conn.block(0)
}

// Wake ends the client's wait, as State.EndWaiting does. It must not be called in the middle of a
// request.
func (cn *conn) Wake(reply []byte) (ended bool) {
	if reply, ended = cn.State.EndWaiting(reply); ended {
		cn.Unblock()
		cn.resume(func(r *request) { r.answer(&exec.Gathered{Head: reply}) })
	}
	return ended
}

// WakeThen is Wake for a session.Everyone. A node knows at once how a wait ends.
func (cn *conn) WakeThen(reply []byte, then func(ended bool)) { then(cn.Wake(reply)) }
