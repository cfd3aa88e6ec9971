package node

import (
	"bytes"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
)

// keepBlocked is how much more input is read of a client whose command waits, to see whether it is still there.
const keepBlocked = 64 << 10

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
	cn.socket.SetMaxInput(unread + keepBlocked)
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
	left := min(w.node.session.PausedUntil()-w.loop.UnixMilli(), maxPauseMillis)
	for cn := range w.conns {
		if cn.pipe != nil || cn.peer {
			continue
		}
		cn.state.SetPaused(left > 0)
		if left <= 0 && cn.state.Blocked && cn.delayed == nil {
			cn.unblock()
		}
	}
	if w.pauseTimer != nil {
		w.pauseTimer.Stop()
		w.pauseTimer = nil
	}
	if left > 0 {
		w.pauseTimer = w.loop.After(time.Duration(left)*time.Millisecond, w.pauseClients)
	}
}

// maxPauseMillis is after what time a worker looks again how long the pause is.
const maxPauseMillis = 3600_000

// delayed is a command that waits: for the time of its reply, or for what others do.
type delayed struct {
	reply func() []byte // if it ends now
	stop  func()
}

// delay answers when State.Delay has passed. reply is copied.
func (r *request) delay(reply []byte) {
	r.mayWait()
	cn := r.conn
	reply = bytes.Clone(reply)
	timer := r.worker.loop.After(cn.state.Delay, func() { cn.wake(nil) })
	cn.delayed = &delayed{reply: func() []byte { return reply }, stop: timer.Stop}
	cn.block(0)
}

// wake ends delay; with another reply, unless that is nil. It must not be called in the middle of a request.
func (cn *conn) wake(reply []byte) {
	d := cn.delayed
	cn.delayed = nil
	d.stop()
	if reply == nil {
		reply = d.reply()
	}
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
				if int64(cn.state.ID) == id && cn.delayed != nil && cn.state.LastCmd == command.Wait {
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
