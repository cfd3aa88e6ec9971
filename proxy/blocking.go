package proxy

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/ring"
)

// A blocking command goes to its node like any other. If it finds nothing, it waits there (see
// order.Session.Waits), and the session here is Blocked until the reply comes:
//
//	client   BLPOP q 0 ─▶ forwardBlocking ─▶ node: token ─▶ blocked ··· push: reply ─▶ unblocked
//
// The node alone decides how the wait ends. Whoever wants to end it otherwise (CLIENT UNBLOCK, the end of
// the client) has the node cancel it, and gives the client another reply only if the node has not served
// the command meanwhile. CLIENT UNBLOCK is answered when that is known. While no node has the command, it waits all
// the same: package order ends it then.

// forwardBlocking sends a blocking command. It reports false if the command must wait.
func (s *client) forwardBlocking(cmd *command.Command, args [][]byte, raw []byte) bool {
	w := s.w
	if r := s.reach(ring.BlockingLevel, errBlocking); r != reached {
		return r == below
	}
	s.state.LastCmd = cmd.ID
	if at, _ := cmd.Limit(args); at == 0 { // an XREAD, which does not wait
		return s.dispatch(cmd, args, raw)
	}
	if s.crosses(cmd, args) {
		limit, waits, valid := claimable(cmd, args)
		switch {
		case valid && waits:
			return s.claim(cmd, args, limit)
		case valid:
			return s.read(cmd, args)
		}
		args = naming(cmd, args, args[cmd.FirstKey(args)], nil) // its node says best what is wrong
		raw = resp.AppendRequest(nil, args...)
	}
	limit, waits, valid := claimable(cmd, args)
	if !waits || !valid {
		limit = 0 // until a node says what is wrong, or what it takes the limit for
	}
	s.Block(s.tail, limit, w.loop.Now())
	before := s.Outstanding()
	if !s.forward(cmd, args, raw) {
		return false
	}
	if s.Outstanding() > before {
		s.awaitRead(cmd, args)
		s.blocking, s.mutes, s.waits, s.popsLast = true, true, s.tail-1, popsLast(cmd, args)
		if s.WaitsParked() {
			s.blocked()
		}
	}
	return true
}

// popsLast reports whether a blocking command pops the ends of lists.
func popsLast(cmd *command.Command, args [][]byte) bool {
	if cmd.ID != command.BLMPop {
		return cmd.ID == command.BRPop
	}
	keys, _ := resp.ParseInt(args[2])
	at := 3 + int(keys)
	return 3 < at && at < len(args) && command.EqualFold(args[at], "right")
}

// blocked is the event that the command waits, at its node or to be sent there.
func (s *client) blocked() {
	if s.state.Waiting != nil || s.isClosed() {
		return
	}
	if s.timed.seq == s.waits {
		s.timed.seq = noCommand // how long it waits is no latency
	}
	s.state.Waiting = &session.Waiting{Stop: func() {}}
	s.block(0)
	s.conn.Resume() // a blocked session keeps reading, to notice that its peer disconnects
	s.tellBehind()
}

// cancelBlocking has the command that waits answer reply, or null if that is nil, unless its node has
// served it. It reports false if somebody has done so before.
func (s *client) cancelBlocking(reply []byte) (canceled bool) {
	if s.woken != nil {
		return false
	}
	if s.woken = reply; reply == nil {
		s.woken = resp.AppendNullArray(nil, s.state.Version)
	}
	if c := s.claims; c != nil && !c.IsPopping() {
		s.decide(true)
		c.finish(s.woken)
		return true
	}
	s.w.order.CancelWait(&s.Session)
	s.w.act()
	return true
}

// unblocked ends the wait of command seq, if it is the blocking one, and returns its reply.
func (s *client) unblocked(seq uint64, reply []byte) []byte {
	if !s.blocking || s.waits != seq {
		return reply
	}
	s.haveRead(seq, s.state.Waiting != nil || s.claims != nil || s.gathers)
	if s.claims != nil {
		s.claims.end()
	}
	if bytes.Equal(reply, errCrossSlot) { // its keys were in one slot when it was sent: their database was pinned then
		reply = errUnblocked
	}
	ended := bytes.Equal(reply, canceled)
	if ended {
		if reply = s.woken; reply == nil { // order has canceled it: there was no memory
			reply = outOfMemory
		}
	}
	s.decide(ended)
	s.blocking, s.gathers, s.woken = false, false, nil
	if s.state.Waiting != nil {
		s.state.Waiting = nil
		s.Unblock()
	}
	return reply
}

// decide tells whoever wanted the wait to end whether it has ended thus.
func (s *client) decide(ended bool) {
	if then := s.decided; then != nil {
		s.decided = nil
		then(ended)
	}
}

// waitOver returns the reply to the blocking command, or to a part of it, whose wait has ended at no node. Beside
// other parts, one has found nothing.
func (s *client) waitOver(part bool) []byte {
	if s.woken != nil && !part {
		return canceled
	}
	return resp.AppendNullArray(nil, s.state.Version)
}

// canceled is what a node answers to a command that was canceled, and outOfMemory what a client reads if
// there was no memory for its wait.
var (
	canceled    = wire(member.Canceled)
	outOfMemory = wire("OOM command not allowed when used memory > 'maxmemory'.")
)
