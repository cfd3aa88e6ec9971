package proxy

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/session"
)

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
