package node

import (
	"slices"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// CLIENT LIST, KILL, UNBLOCK and PAUSE concern the connections of all loops, so a
// goroutine visits those.

// clientLine is one line of CLIENT LIST.
type clientLine struct {
	id   uint64
	text []byte
}

// clientList answers CLIENT LIST.
func (r *request) clientList() {
	n, version, filter := r.node, r.Version(), session.ClientFilterOf(r.Args, r.conn.State)
	r.answerLater(func() []byte {
		parts := make([][]clientLine, len(n.workers))
		err := n.cfg.Group.Each(func(l *netloop.Loop) {
			parts[l.Index()] = n.workers[l.Index()].clientLines(&filter)
		})
		if err != nil {
			return resp.AppendError(nil, exec.ErrBusy)
		}
		lines := slices.Concat(parts...)
		slices.SortFunc(lines, func(a, b clientLine) int { return int(a.id) - int(b.id) })
		var text []byte
		for _, l := range lines {
			text = append(text, l.text...)
		}
		return session.AppendClientList(nil, version, text)
	})
}

// matching calls f with the worker's clients that filter means. Members'
// connections are none.
func (w *worker) matching(filter *session.ClientFilter, f func(cn *conn)) {
	now := w.loop.UnixMilli()
	for cn := range w.conns {
		if cn.pipe == nil && !cn.peer && filter.Match(cn.State, now) {
			f(cn)
		}
	}
}

func (w *worker) clientLines(filter *session.ClientFilter) (lines []clientLine) {
	w.matching(filter, func(cn *conn) {
		cn.State.InBytes, cn.State.OutBytes = cn.unread, cn.Socket.Queued()
		lines = append(lines, clientLine{cn.State.ID, session.AppendClientLine(nil, cn.State, w.loop.UnixMilli())})
	})
	return lines
}

// clientKill answers CLIENT KILL. A client that means itself is closed behind
// the reply.
func (r *request) clientKill() {
	n, cn, filter, words := r.node, r.conn, session.ClientFilterOf(r.Args, r.conn.State), len(r.Args)
	suicide := false // of cn, known when all loops have answered
	r.answerLaterThen(func() []byte {
		killed := make([]int, len(n.workers))
		err := n.cfg.Group.Each(func(l *netloop.Loop) {
			n.workers[l.Index()].matching(&filter, func(other *conn) {
				killed[l.Index()]++
				if other == cn {
					suicide = true
					return
				}
				other.Closing = true
				other.Socket.Close(nil)
			})
		})
		if err != nil {
			return resp.AppendError(nil, exec.ErrBusy)
		}
		return session.AppendClientKill(nil, words, sum(killed))
	}, func() { cn.Closing = cn.Closing || suicide })
}

// clientPause answers CLIENT PAUSE and UNPAUSE, of which the server knows, when all loops obey it. This one does at once,
// lest what follows passes it.
func (r *request) clientPause() {
	n := r.node
	r.worker.pauseClients()
	r.answerLater(func() []byte {
		if n.cfg.Group.Each(func(l *netloop.Loop) { n.workers[l.Index()].pauseClients() }) != nil {
			return resp.AppendError(nil, exec.ErrBusy)
		}
		return []byte("+OK\r\n")
	})
}
