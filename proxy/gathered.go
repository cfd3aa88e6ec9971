package proxy

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// A command whose keys lie in several slots goes to the owner of its home, if sessions may send
// such commands. That node borrows what the keys hold from the other owners (internal/member): no
// value passes through the proxy. Whatever the session has sent before is answered by then, because
// it may be about these keys, and nothing is sent behind the command before it is answered:
//
//	client   SADD a x ─▶ owner of a    SUNIONSTORE d a b    GET k
//	                ◀──                 ─▶ owner of d: GATHER ··· push ◀──    ─▶ owner of k

// maxGathered is how many bytes such a command takes at most: its loop copies it. That is enough
// for 1 MiB of arguments.
const maxGathered = order.HugeRequest + order.HugeRequest/8

// crossesSlots reports whether the session's commands may have keys of several slots.
func (s *client) crossesSlots() bool { return s.w.proxy.cfg.RelaxedSlots }

// crossSlot returns the error for a command whose keys may not lie in several slots. Sessions whose
// other commands may are told what to do.
func (s *client) crossSlot() []byte {
	if s.crossesSlots() {
		return errNotGathered
	}
	return errCrossSlot
}

// mayGather reports whether a command may be executed although its keys lie in several slots, if the cluster has the
// level.
func (s *client) mayGather(cmd *command.Command, args [][]byte) bool {
	return s.crossesSlots() && cmd.Gathered(args) != command.NotGathered
}

// forwardGathered sends a command whose keys lie in several slots to the owner of its home. It reports false if the
// command must wait.
func (s *client) forwardGathered(cmd *command.Command, args [][]byte) bool {
	level := uint8(ring.GatherLevel)
	if cmd.Gathered(args).Reserves() {
		level = ring.ReserveLevel
	}
	if r := s.reach(level, errCrossSlot); r != reached {
		return r == below
	}
	switch {
	case s.Outstanding() > 0:
		return false
	case sizeOf(args) > maxGathered:
		s.answer(errLongGathered)
		return true
	}
	raw := member.AppendGather(s.w.scratch[:0], args)
	s.w.keepScratch(raw)
	if !s.enterLane(s.laneFor(len(raw), false)) {
		return false
	}
	r := order.Request{Session: &s.Session, Seq: s.tail, Origin: s.origin(ring.PartitionOf(args[cmd.Home(args)]))}
	if !s.submit(r, raw) {
		return false
	}
	s.awaitRead(cmd, args)
	s.issueCounted(cmd)
	s.blocking, s.gathers, s.mutes, s.waits = true, true, true, s.tail-1
	if s.w.order.HasActions() {
		s.w.act()
	}
	return true
}
