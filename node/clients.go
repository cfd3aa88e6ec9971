package node

import (
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// clients yields the clients of the worker's loop. Members' connections are none.
func (w *worker) clients(yield func(session.Client) bool) {
	for cn := range w.conns {
		if cn.pipe == nil && !cn.peer && !yield(cn) {
			return
		}
	}
}

// StateNow returns the state with the present sizes of the buffers.
func (cn *conn) StateNow() *session.State {
	cn.State.InBytes, cn.State.OutBytes = cn.unread, cn.Socket.Queued()
	return cn.State
}

// Kill closes the connection at once.
func (cn *conn) Kill() {
	cn.Closing = true
	cn.Socket.Close(nil)
}

// everyone answers CLIENT LIST, KILL, UNBLOCK and PAUSE, which concern the clients of all loops: a
// goroutine visits those.
func (r *request) everyone(action session.Action) {
	n, cn := r.node, r.conn
	about := session.NewEveryone(action, cn.State, r.Args, len(n.workers))
	visit := func(w *worker) { about.Visit(w.loop.Index(), w.loop.UnixMilli(), w.clients) }
	if action == session.ActionPause {
		visit = (*worker).pauseClients
		visit(r.worker) // now, lest what follows passes it
	}
	suicide := false
	r.answerLaterThen(func() (reply []byte) {
		if n.cfg.Group.Each(func(l *netloop.Loop) { visit(n.workers[l.Index()]) }) != nil {
			return resp.AppendError(nil, exec.ErrBusy)
		}
		reply, suicide = about.Reply()
		return reply
	}, func() { cn.Closing = cn.Closing || suicide })
}

// pauseClients obeys CLIENT PAUSE and UNPAUSE.
func (w *worker) pauseClients() {
	again := w.node.session.ObeyPause(w.loop.UnixMilli(), w.clients)
	if w.pauseTimer != nil {
		w.pauseTimer.Stop()
	}
	if again > 0 {
		w.pauseTimer = w.loop.After(again, w.pauseClients)
	}
}
