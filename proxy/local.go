package proxy

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/ring"
)

// local answers a command that does not go to nodes as it is. raw is only needed for WATCH. local
// reports false if the command must wait.
func (s *client) local(cmd *command.Command, args [][]byte, raw []byte) bool {
	if !cmd.Quick() {
		s.w.turn.Ask()
	}
	switch cmd.ID {
	case command.Info:
		s.w.stats.Commands[cmd.ID]++
		s.answer(s.w.proxy.appendInfo(nil, s.state.Version, args[1:], figures.Info{}))
		return true
	case command.ConfigResetStat:
		return s.resetStats(cmd, args)
	case command.ConfigGet, command.ConfigSet:
		if config.Concerns(args) != config.Here {
			return s.everywhere(cmd, args)
		}
	case command.Select:
		if r := s.maySelect(args); r != reached {
			return r == below
		}
	case command.Watch:
		return s.watch(args, raw)
	case command.Exec:
		if s.queuesScript && !s.mayStartScript() || !s.exec() {
			return false
		}
		if s.queuesScript {
			s.queuesScript = false
			s.startedScript()
		}
		return true
	case command.Discard, command.Unwatch, command.Reset:
		if s.watching {
			return false
		}
		defer s.chargeOther()
	}
	if isTrackingOn(cmd, args) {
		if r := s.reach(ring.TrackingLevel, errTrackingLevel); r != reached {
			return r == below
		}
	}
	if cmd.Flags&command.EveryLoop != 0 && (s.Outstanding() > 0 || s.head < s.tail) {
		return false // one at a time, because each takes time in proportion to the number of clients
	}
	if cmd.ID == command.Monitor && s.head < s.tail {
		return false // MONITOR's lines must not come before outstanding replies
	}
	s.byServer(cmd, args)
	return true
}

// byServer has the session package answer a command.
func (s *client) byServer(cmd *command.Command, args [][]byte) {
	inOrder := s.head == s.tail && !s.muting
	dst := s.w.scratch[:0]
	if inOrder {
		dst = s.conn.Out() // no reply is due before this one
	}
	timed, begun := s.w.proxy.times(cmd), time.Duration(0)
	if timed {
		begun = s.w.loop.Clock()
	}
	out, action, ok := s.w.proxy.server.Do(s.state, cmd, args, dst)
	if timed {
		s.noteSlow(cmd, args, s.w.loop.Clock()-begun)
	}
	if !ok {
		s.answer(resp.AppendErrorBytes(nil, command.AppendUnknown(nil, args)))
		return
	}
	s.w.stats.Commands[cmd.ID]++
	if s.state.Begun() {
		s.mute() // CLIENT REPLY and RESET decide about their own replies
	}
	switch {
	case s.answersLater(action, args, out[len(dst):]):
	case inOrder:
		s.conn.SetOut(out)
		s.act(action)
	default:
		s.w.keepScratch(out)
		s.answer(out)
		s.act(action)
	}
}

// answersLater carries out an action that visits all loops or waits, and reports whether action is
// one.
func (s *client) answersLater(action session.Action, args [][]byte, reply []byte) bool {
	switch action {
	case session.ActionClientList, session.ActionClientKill, session.ActionPause, session.ActionClientUnblock:
		s.everyone(action, args)
	case session.ActionDelay:
		s.delay(reply)
	case session.ActionTracking:
		return s.track()
	default:
		return false
	}
	return true
}

// resetStats has INFO count from zero again, in this proxy and in all nodes.
func (s *client) resetStats(cmd *command.Command, args [][]byte) bool {
	if !s.everywhere(cmd, args) {
		return false
	}
	s.w.proxy.resetStats()
	return true
}

// act carries out the action that comes with a reply of package session.
func (s *client) act(action session.Action) {
	switch action {
	case session.ActionCloseAfterReply:
		s.closeWhenDone()
	case session.ActionClose:
		s.atLeast(closing) // what follows in the input is not executed
		s.conn.Close(nil)
	case session.ActionReset, session.ActionVersionChanged:
		s.limitInput()
		if !s.state.Monitor {
			s.w.feed.Remove(s.conn)
		}
		if action == session.ActionReset {
			s.leaveTopics()
			s.untrack()
		}
	case session.ActionMonitor:
		s.w.feed.Add(s.conn, s.state.Muted)
	case session.ActionNone, session.ActionClientList, session.ActionClientKill, session.ActionPause,
		session.ActionClientUnblock, session.ActionDelay, session.ActionTracking:
	}
	if s.state.Authenticated && s.limited {
		s.limitInput()
	}
}

// limitInput bounds the size of the client's requests, tightly before it has authenticated.
func (s *client) limitInput() {
	s.limited = !s.state.Authenticated
	limits := resp.DefaultLimits
	if s.limited {
		limits = resp.UnauthenticatedLimits
	}
	limits.Words = s.wordsOf
	s.parser.SetLimits(limits)
}

// appendInfo renders INFO: sums over the nodes, and the proxy's own view of its clients and of the
// commands that it answers itself.
func (p *Proxy) appendInfo(dst []byte, v resp.Version, sections [][]byte, in figures.Info) []byte {
	own := p.sinceReset()
	in.Clients, in.Trackers = p.clients.Load(), 0
	if own != nil {
		in.Trackers = int64(own.Trackers)
		in.Connections, in.Rejected, in.SlowReaders = int64(own.Accepted), int64(own.Rejected), int64(own.SlowReaders)
		in.Commands, in.OpsPerSec = int64(own.CommandsTotal()), own.OpsPerSec
		in.NetIn, in.NetOut = int64(own.ClientBytesIn), int64(own.ClientBytesOut)
		in.Errors += int64(own.Refused + own.ProtocolErrors)
		if in.Calls != nil {
			own.addLocal(in.Calls)
		}
	}
	return p.process.AppendInfo(dst, v, sections, in)
}

// addLocal adds the calls of commands that never reach a node.
func (s *Stats) addLocal(calls *figures.Calls) {
	for id, n := range s.Commands {
		if c := command.ByID(command.ID(id)); c != nil && c.Route == command.Local {
			calls.Commands[id].Calls += int64(n)
		}
	}
	if n := s.Refused + s.ProtocolErrors; n > 0 {
		calls.CountError("ERR", int64(n))
	}
}
