package proxy

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
)

// local answers a command that needs no node. False: it must wait.
func (s *client) local(cmd *command.Command, args [][]byte) bool {
	if cmd.ID == command.Info {
		s.w.stats.Commands[cmd.ID]++
		s.answer(s.w.proxy.appendInfo(nil, s.state.Version, args[1:], session.Counters{}, 0))
		return true
	}
	if cmd.ID == command.ConfigGet || cmd.ID == command.ConfigSet {
		switch session.ConfigForNodes(args) {
		case session.ConfigShow, session.ConfigSetAll:
			return s.everywhere(cmd, args)
		case session.ConfigRefused:
			s.answer(resp.AppendError(s.w.scratch[:0], session.ErrMixedConfig))
			return true
		}
	}
	inOrder := s.head == s.tail
	dst := s.w.scratch[:0]
	if inOrder {
		dst = s.conn.Out() // no reply is due before this one
	}
	out, action, ok := s.w.proxy.server.Do(s.state, cmd, args, dst)
	if !ok {
		s.answer(resp.AppendErrorBytes(nil, command.AppendUnknown(nil, args)))
		return true
	}
	s.w.stats.Commands[cmd.ID]++
	switch {
	case concernsAll(action) && s.remote > 0:
		return false // one at a time: each is as long as there are clients
	case action == session.ActionClientList:
		s.clientList(args)
		return true
	case action == session.ActionClientKill:
		s.clientKill(args)
		return true
	case inOrder:
		s.conn.SetOut(out)
	default:
		s.w.keepScratch(out)
		s.answer(out)
	}
	s.act(action)
	return true
}

// act does what a reply of the session package entails.
func (s *client) act(action session.Action) {
	switch action {
	case session.ActionCloseAfterReply:
		s.closeWhenDone()
	case session.ActionClose:
		s.closing = true // what follows in the input is not executed
		s.conn.Close(nil)
	case session.ActionReset, session.ActionVersionChanged:
		s.limitInput()
	case session.ActionNone, session.ActionClientList, session.ActionClientKill:
	}
	if s.state.Authenticated && s.limited {
		s.limitInput()
	}
}

// limitInput sets what the client may send: little before it has authenticated.
func (s *client) limitInput() {
	s.limited = !s.state.Authenticated
	if s.limited {
		s.parser.SetLimits(resp.UnauthenticatedLimits)
		return
	}
	s.parser.SetLimits(resp.DefaultLimits)
}

// appendInfo renders INFO: sums over the nodes, and the proxy's own view of its clients.
func (p *Proxy) appendInfo(dst []byte, v resp.Version, sections [][]byte, sum session.Counters, nodes int) []byte {
	own := p.cached.Load()
	sum.Clients = p.clients.Load()
	if own != nil {
		sum.Connections, sum.Rejected, sum.SlowReaders = int64(own.Accepted), int64(own.Rejected), int64(own.SlowReaders)
		sum.Commands, sum.OpsPerSec = int64(own.CommandsTotal()), own.OpsPerSec
		sum.NetIn, sum.NetOut = int64(own.ClientBytesIn), int64(own.ClientBytesOut)
	}
	return p.server.AppendInfo(dst, v, sections, session.Info{Counters: sum, Nodes: nodes})
}
