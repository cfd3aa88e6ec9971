package proxy

import "time"

// keepBlocked is how much more input is read of a session whose command waits, to see whether its peer is still there.
const keepBlocked = 64 << 10

// executeAside is execute for a client that is paused, or does not want all replies.
func (s *client) executeAside(args [][]byte, raw []byte) bool {
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
func (s *client) isMuted(seq uint64) bool { return s.slots[seq&uint64(len(s.slots)-1)].muted }

// block has the session wait, with unread commands of that many bytes, until unblock. A peer that has finished sending is
// believed to be gone.
func (s *client) block(unread int) {
	s.state.SetBlocked(true)
	s.conn.SetMaxInput(unread + keepBlocked)
	if s.ended {
		s.closeWhenDone()
	}
}

// unblock goes on with the session's commands.
func (s *client) unblock() {
	s.state.SetBlocked(false)
	s.conn.SetMaxInput(0)
	s.resume()
}

// pauseClients obeys CLIENT PAUSE and UNPAUSE: the clients of this loop wait until the time that the server has now.
func (w *worker) pauseClients() {
	left := min(w.proxy.server.PausedUntil()-w.loop.UnixMilli(), maxPauseMillis)
	for _, s := range w.clients {
		s.state.SetPaused(left > 0)
		if left <= 0 && s.state.Blocked {
			s.unblock()
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
