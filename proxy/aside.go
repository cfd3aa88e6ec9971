package proxy

import "github.com/dunlin-cache/dunlin/internal/session"

// executeAside is execute for a client that is paused, or does not want all replies.
func (s *client) executeAside(args [][]byte, raw []byte) bool {
	if s.state.Blocked {
		return false
	}
	if s.w.proxy.server.Holds(s.state, args) {
		s.block(len(raw))
		return false
	}
	s.state.Begin()
	s.mute()
	done := s.execute(args, raw)
	s.state.End(done)
	s.muting = false
	return done
}

// mute has what is issued next be muted if the client wants that.
func (s *client) mute() {
	s.muting = s.state.Muted()
	s.mutes = s.mutes || s.muting
}

// isMuted reports whether the reply to an outstanding command is to be dropped.
func (s *client) isMuted(seq uint64) bool { return s.turns[seq&uint64(len(s.turns)-1)].muted }

// block has the session wait, with unread commands of that many bytes, until unblock. A peer that
// has finished sending is believed to be gone, and not to want the answer.
func (s *client) block(unread int) {
	s.state.SetBlocked(true)
	s.conn.SetMaxInput(unread + session.KeepBlocked)
	if s.phase < ended {
		return
	}
	if s.state.Waiting != nil {
		s.Wake([]byte{})
	}
	s.closeWhenDone()
}

// Unblock goes on with the session's commands.
func (s *client) Unblock() {
	s.state.SetBlocked(false)
	s.conn.SetMaxInput(0)
	s.resume()
}

// delay gives the command at hand its reply when State.Delay has passed. reply is copied.
func (s *client) delay(reply []byte) {
	timer := s.w.loop.After(s.state.Delay, func() { s.Wake(nil) })
	s.issue()
	s.wait(session.Later(reply, timer.Stop))
}

// wait has the session wait until wake gives the command that was issued last its reply.
func (s *client) wait(w *session.Waiting) {
	s.state.Waiting, s.waits = w, s.tail-1
	s.block(0)
}

// Wake ends what the session waits for; reply is that of EndWaiting.
func (s *client) Wake(reply []byte) {
	reply = s.state.EndWaiting(reply)
	s.Unblock()
	s.reply(s.waits, reply)
}
