package node

import (
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
)

// executeAside executes a request of a client that is paused, or may not want the reply.
func (r *request) executeAside(s *step) {
	if r.mustWait(s.args) {
		r.unused = s.length
		r.conn.block(s.length)
		return
	}
	start := len(r.out)
	r.conn.state.Begin()
	s.look(r.conn)
	r.execute(s)
	r.endAside(start)
}

// endAside ends a request that executeAside began, unless a goroutine is going to answer it. Its reply begins at start.
func (r *request) endAside(start int) {
	cn := r.conn
	if !cn.state.Begun() || cn.answering {
		return
	}
	if cn.state.Muted() {
		r.takeBack(start)
	}
	cn.state.End(true)
}

// failProtocol answers what is no request.
func (r *request) failProtocol() {
	r.cmd = nil
	start := len(r.out)
	r.fail(r.conn.parser.Err())
	if r.conn.state.Muted() {
		r.takeBack(start)
	}
}

// mustWait tells whether a request must wait because of CLIENT PAUSE. Members' connections begin as clients'.
func (r *request) mustWait(args [][]byte) bool {
	cn := r.conn
	if cn.pipe != nil || cn.peer {
		cn.state.SetPaused(false)
		return false
	}
	return cn.state.Aside() && r.node.session.Holds(cn.state, args)
}

// block has a client wait, with that many bytes of unread requests, until unblock. A client that has finished sending is
// believed to be gone, as in Redis.
func (cn *conn) block(unread int) {
	cn.answering = true
	cn.state.SetBlocked(true)
	cn.socket.SetMaxInput(unread + session.KeepBlocked)
	cn.closing = cn.closing || cn.ended
}

// unblock goes on with the client's requests.
func (cn *conn) unblock() {
	cn.state.SetBlocked(false)
	cn.socket.SetMaxInput(0)
	if cn.upload == nil || !cn.upload.held {
		cn.answering = false
		cn.socket.Wake()
		return
	}
	cn.worker.loop.Post(func() { // lest it is executed in the middle of the request that ended the pause
		if !cn.closed {
			cn.resume(func(r *request) { r.endUpload(nil) })
			cn.socket.Wake()
		}
	})
}

// pauseClients obeys CLIENT PAUSE and UNPAUSE: the clients of this loop wait until the time that the server has now.
func (w *worker) pauseClients() {
	left := w.node.session.PauseLeft(w.loop.UnixMilli())
	for cn := range w.conns {
		if cn.pipe == nil && !cn.peer && cn.state.SetPaused(left > 0) {
			cn.unblock()
		}
	}
	if w.pauseTimer != nil {
		w.pauseTimer.Stop()
	}
	if left > 0 {
		w.pauseTimer = w.loop.After(left, w.pauseClients)
	}
}

// delay answers when State.Delay has passed. reply is copied.
func (r *request) delay(reply []byte) {
	cn := r.conn
	timer := r.worker.loop.After(cn.state.Delay, func() { cn.wake(nil) })
	r.wait(session.Later(reply, timer.Stop))
}

// wait has the client wait until wake.
func (r *request) wait(w *session.Waiting) {
	r.mayWait()
	r.conn.state.Waiting = w
	r.conn.block(0)
}

// wake ends what the client waits for; reply is as in EndWaiting. It must not be called in the middle of a request.
func (cn *conn) wake(reply []byte) {
	reply = cn.state.EndWaiting(reply)
	cn.unblock()
	cn.answer(reply)
}

// clientUnblock ends a client's WAIT, if there is one.
func (r *request) clientUnblock() {
	n := r.node
	id, with := session.UnblockOf(r.args)
	r.answerLater(func() []byte {
		found := make([]int, len(n.workers))
		err := n.cfg.Group.Each(func(l *netloop.Loop) {
			for cn := range n.workers[l.Index()].conns {
				if cn.state.UnblockedBy(id) {
					cn.wake(with)
					found[l.Index()]++
				}
			}
		})
		if err != nil {
			return resp.AppendError(nil, errBusy)
		}
		return resp.AppendInt(nil, int64(sum(found)))
	})
}
