package proxy

import "github.com/dunlin-cache/dunlin/internal/session"

// executeAside is execute for a client that is paused, or that has switched off some replies.
func (s *client) executeAside(args [][]byte, raw []byte) bool {
	if s.state.Blocked {
		return false
	}
	if s.w.proxy.server.Pauses(s.state, args) {
		s.block(len(raw))
		return false
	}
	s.state.Begin()
	s.mute()
	done := false
	if s.tracker != nil {
		done = s.executeTracked(args, raw)
	} else {
		done = s.execute(args, raw)
	}
	s.state.End(done)
	s.muting = false
	return done
}

// mute makes the turn of the next command muted, if the client has switched its reply off.
func (s *client) mute() {
	s.muting = s.state.Muted()
	s.mutes = s.mutes || s.muting
}

// isMuted reports whether the reply to an outstanding command is to be dropped.
func (s *client) isMuted(seq uint64) bool { return s.turns[seq&uint64(len(s.turns)-1)].muted }

// block makes the session wait until Unblock. Its input keeps the given number of bytes of unread
// commands. A peer that has finished sending counts as disconnected: the session closes.
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

// Unblock lets the session continue with its commands.
func (s *client) Unblock() {
	s.state.SetBlocked(false)
	s.conn.SetMaxInput(0)
	s.resume()
	s.conn.Wake() // the beginning of a long command may have filled the input, and nobody has stalled
}

// delay answers the current command after State.Delay. reply is copied.
func (s *client) delay(reply []byte) {
	timer := s.w.loop.After(s.state.Delay, func() { s.Wake(nil) })
	s.issue()
	s.wait(session.Later(reply, timer.Stop))
}

// wait makes the session wait until Wake answers the command that was issued last.
func (s *client) wait(w *session.Waiting) {
	s.state.Waiting, s.waits = w, s.tail-1
	s.block(0)
}

// WakeThen is Wake for a session.Everyone. The node that has a blocking command knows how its wait ends: it may have
// served the command already.
func (s *client) WakeThen(reply []byte, then func(ended bool)) {
	waits := s.blocking && s.woken == nil
	if waits {
		s.decided = then
	}
	if ended := s.Wake(reply); !waits {
		then(ended)
	}
}

// Wake ends the wait of the session, as State.EndWaiting does.
func (s *client) Wake(reply []byte) (ended bool) {
	if s.blocking {
		return s.cancelBlocking(reply)
	}
	if reply, ended = s.state.EndWaiting(reply); ended {
		s.Unblock()
		s.reply(s.waits, reply)
	}
	return ended
}
