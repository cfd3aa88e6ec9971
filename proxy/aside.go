package proxy

import (
	"bytes"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
)

// keepBlocked is how much more input is read of a session whose command waits, to see whether its peer is still there.
const keepBlocked = 64 << 10

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
		if left <= 0 && s.state.Blocked && s.delayed == nil {
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

// delayed is a command that waits: for the time of its reply, or for what others do.
type delayed struct {
	seq   uint64
	reply func() []byte // if it ends now
	stop  func()
}

// delay gives the command at hand its reply when State.Delay has passed. reply is copied.
func (s *client) delay(reply []byte) {
	reply = bytes.Clone(reply)
	timer := s.w.loop.After(s.state.Delay, func() { s.wake(nil) })
	s.delayed = &delayed{seq: s.tail, reply: func() []byte { return reply }, stop: timer.Stop}
	s.issue()
	s.block(0)
}

// wake ends delay; with another reply, unless that is nil.
func (s *client) wake(reply []byte) {
	d := s.delayed
	s.delayed = nil
	d.stop()
	if reply == nil {
		reply = d.reply()
	}
	s.unblock()
	s.reply(d.seq, reply)
}

// clientUnblock ends a session's WAIT, if there is one.
func (s *client) clientUnblock(args [][]byte) {
	id, with := session.UnblockOf(args)
	found := make([]int64, len(s.w.proxy.workers))
	s.visitLoops(func(w *worker) {
		for _, other := range w.clients {
			if int64(other.state.ID) == id && other.delayed != nil && other.state.LastCmd == command.Wait {
				other.wake(with)
				found[w.loop.Index()]++
				return
			}
		}
	}, func() []byte {
		sum := int64(0)
		for _, n := range found {
			sum += n
		}
		return resp.AppendInt(nil, sum)
	})
}
