package proxy

import (
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/session"
)

// CLIENT LIST, KILL, UNBLOCK and PAUSE concern the sessions of all loops. Each loop is visited by a posted function; the last one
// sends what was found home.

// visitLoops calls visit on every loop with that loop's worker, then gives the command at hand the reply on its own.
func (s *client) visitLoops(visit func(w *worker), reply func() []byte) {
	seq := s.tail
	s.issue()
	home := s.w
	home.order.Begin(&s.Session, s.Lane())
	workers := home.proxy.workers
	var left atomic.Int32
	left.Store(int32(len(workers)))
	for _, w := range workers {
		w.loop.Post(func() {
			visit(w)
			if left.Add(-1) == 0 {
				home.loop.Post(func() {
					s.End()
					s.reply(seq, reply())
				})
			}
		})
	}
}

// matching calls f with the worker's sessions that filter means.
func (w *worker) matching(filter *session.ClientFilter, f func(s *client)) {
	now := w.loop.UnixMilli()
	for _, s := range w.clients {
		if filter.Match(s.state, now) {
			f(s)
		}
	}
}

func (s *client) clientList(args [][]byte) {
	filter, version := session.ClientFilterOf(args, s.state), s.state.Version
	lines := make([][]byte, len(s.w.proxy.workers))
	s.visitLoops(func(w *worker) {
		w.matching(&filter, func(s *client) {
			s.state.OutBytes = s.conn.Queued()
			lines[w.loop.Index()] = session.AppendClientLine(lines[w.loop.Index()], s.state, w.loop.UnixMilli())
		})
	}, func() []byte {
		var all []byte
		for _, l := range lines {
			all = append(all, l...)
		}
		return session.AppendClientList(nil, version, all)
	})
}

// clientKill closes sessions at once, but the asking one, if it means itself, behind the reply.
func (s *client) clientKill(args [][]byte) {
	filter := session.ClientFilterOf(args, s.state)
	words := len(args)
	var killed atomic.Int32
	suicide := false // on the loop of s
	s.visitLoops(func(w *worker) {
		w.matching(&filter, func(other *client) {
			killed.Add(1)
			if other == s {
				suicide = true
				return
			}
			other.atLeast(closing)
			other.conn.Close(nil)
		})
	}, func() []byte {
		if suicide {
			s.atLeast(closing)
		}
		return session.AppendClientKill(nil, words, int(killed.Load()))
	})
}

// clientPause has all loops obey the server's present pause; this one at once, lest what follows passes it.
func (s *client) clientPause() {
	s.w.pauseClients()
	s.visitLoops((*worker).pauseClients, func() []byte { return []byte("+OK\r\n") })
}

// executeShown is execute while somebody has said MONITOR.
func (s *client) executeShown(args [][]byte, raw []byte) bool {
	if !session.Monitored(s.state, args) {
		return s.execute(args, raw)
	}
	line := session.AppendMonitorLine(nil, s.state, args, time.Now().UnixMicro()) // the arguments may be given away
	if !s.execute(args, raw) {
		return false
	}
	s.w.feed.Show(func(dst []byte) []byte { return append(dst, line...) })
	return true
}
