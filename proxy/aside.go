package proxy

import (
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
)

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

// block has the session wait, with unread commands of that many bytes, until unblock. A peer that has finished sending is
// believed to be gone, and not to want the answer.
func (s *client) block(unread int) {
	s.state.SetBlocked(true)
	s.conn.SetMaxInput(unread + session.KeepBlocked)
	if s.phase < ended {
		return
	}
	if s.state.Waiting != nil {
		s.wake([]byte{})
	}
	s.closeWhenDone()
}

// unblock goes on with the session's commands.
func (s *client) unblock() {
	s.state.SetBlocked(false)
	s.conn.SetMaxInput(0)
	s.resume()
}

// pauseClients obeys CLIENT PAUSE and UNPAUSE: the clients of this loop wait until the time that the server has now.
func (w *worker) pauseClients() {
	left := w.proxy.server.PauseLeft(w.loop.UnixMilli())
	for _, s := range w.clients {
		if s.state.SetPaused(left > 0) {
			s.unblock()
		}
	}
	if w.pauseTimer != nil {
		w.pauseTimer.Stop()
	}
	if left > 0 {
		w.pauseTimer = w.loop.After(left, w.pauseClients)
	}
}

// delay gives the command at hand its reply when State.Delay has passed. reply is copied.
func (s *client) delay(reply []byte) {
	timer := s.w.loop.After(s.state.Delay, func() { s.wake(nil) })
	s.issue()
	s.wait(session.Later(reply, timer.Stop))
}

// wait has the session wait until wake gives the command that was issued last its reply.
func (s *client) wait(w *session.Waiting) {
	s.state.Waiting, s.waits = w, s.tail-1
	s.block(0)
}

// wake ends what the session waits for; reply is as in EndWaiting.
func (s *client) wake(reply []byte) {
	reply = s.state.EndWaiting(reply)
	s.unblock()
	s.reply(s.waits, reply)
}

// clientUnblock ends a session's WAIT, if there is one.
func (s *client) clientUnblock(args [][]byte) {
	id, with := session.UnblockOf(args)
	var found atomic.Int64
	s.visitLoops(func(w *worker) {
		for _, other := range w.clients {
			if other.state.UnblockedBy(id) {
				other.wake(with)
				found.Add(1)
				return
			}
		}
	}, func() []byte { return resp.AppendInt(nil, found.Load()) })
}
