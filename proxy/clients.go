package proxy

import (
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/session"
)

// clientsHere yields the clients of the worker's loop.
func (w *worker) clientsHere(yield func(session.Client) bool) {
	for _, s := range w.clients {
		if !yield(s) {
			return
		}
	}
}

// StateNow returns the state, with the present number of unsent bytes, and what has passed.
func (s *client) StateNow() *session.State {
	s.state.OutBytes = s.conn.Queued()
	s.state.NetIn, s.state.NetOut = s.conn.Traffic()
	return s.state
}

// Kill closes the session at once.
func (s *client) Kill() {
	s.atLeast(closing)
	s.conn.Close(nil)
}

// turnOut closes a session that has not authenticated in time, or has to make room. Any goroutine
// may call it.
func (s *client) turnOut() {
	s.w.loop.Post(func() {
		if s.state.IsGuest() {
			s.closeWhenDone()
		}
	})
}

// everyone answers CLIENT LIST, KILL, UNBLOCK and PAUSE, which concern the sessions of all loops. A
// posted function visits each loop, and the last one posts the results back to this session's loop.
func (s *client) everyone(action session.Action, args [][]byte) {
	home, seq, workers := s.w, s.tail, s.w.proxy.workers
	about := session.NewEveryone(action, s.state, args, len(workers))
	visit := func(w *worker) { about.Visit(w.loop.Index(), w.loop.Now(), w.clientsHere) }
	if action == session.ActionPause {
		visit = func(w *worker) { w.pause.Obey() }
		visit(home) // at once, so that the pause also covers the commands behind it
	}
	s.issue()
	home.order.Begin(&s.Session, s.Lane())
	var left atomic.Int32
	left.Store(int32(len(workers)))
	for _, w := range workers {
		w.loop.Post(func() {
			visit(w)
			if left.Add(-1) == 0 {
				home.loop.Post(func() {
					reply, suicide := about.Reply()
					s.End()
					if suicide {
						s.atLeast(closing)
					}
					s.reply(seq, reply)
				})
			}
		})
	}
}

// executeShown is execute while a client MONITORs: it also shows the command to that client.
func (s *client) executeShown(args [][]byte, raw []byte) bool {
	if !session.Monitored(s.state, args) {
		return s.execute(args, raw)
	}
	more, at := s.parser.Count()-len(args), time.Now().UnixMicro()
	line := session.AppendMonitorLine(nil, s.state, s.state.Database, args, more, at) // before the arguments may be given away
	was := s.state.Database
	if !s.execute(args, raw) {
		return false
	}
	if s.state.Database != was { // SELECT shows what it has selected, and gives nothing away
		line = session.AppendMonitorLine(line[:0], s.state, s.state.Database, args, more, at)
	}
	s.w.feed.Show(func(dst []byte) []byte { return append(dst, line...) })
	return true
}
