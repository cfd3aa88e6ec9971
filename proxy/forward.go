package proxy

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// A command whose keys share a slot is sent as it came to the owner of their partition.

// forward sends a command whose keys must all lie in one slot to the node that owns it.
func (s *client) forward(cmd *command.Command, args [][]byte, raw []byte) bool {
	if len(args) > maxKeys && s.forwardInTurns(cmd, args, raw) {
		return true
	}
	first := cmd.FirstKey(args)
	switch {
	case first == 0 && cmd.IsScript() && s.w.order.Placement().Pins(s.state.Database): // it may use any key
		return s.forwardTo(s.origin(s.partitionOf(nil)), cmd, args, raw)
	case first == 0: // a script without keys, or a malformed count of them
		return s.forwardTo(s.w.order.Anywhere(), cmd, args, raw)
	}
	slot, same := s.slotOfAll(cmd, args, first)
	switch {
	case !same && isRead(cmd):
		if r := s.reach(ring.StreamsLevel, errCrossSlot); r != reached {
			return r == below
		}
		return s.read(cmd, args)
	case !same && s.mayGather(cmd, args):
		return s.forwardGathered(cmd, args)
	case !same:
		s.answer(s.crossSlot())
		return true
	}
	return s.forwardTo(s.origin(ring.Partition(slot)), cmd, args, raw)
}

// origin is that of a request of the command at hand.
func (s *client) origin(partition uint16) order.Origin {
	return order.Origin{Partition: partition, Database: s.state.Database}
}

// forwardTo sends a command to the owner of its partition.
func (s *client) forwardTo(origin order.Origin, cmd *command.Command, args [][]byte, raw []byte) bool {
	if !s.enterLane(s.laneFor(len(raw), cmd.Flags&command.Heavy != 0)) {
		return false
	}
	if s.parser.Inline() {
		raw = resp.AppendRequest(s.w.scratch[:0], args...)
		s.w.keepScratch(raw)
	}
	origin.Database = s.state.Database
	r := order.Request{Session: &s.Session, Seq: s.tail, Origin: origin}
	if !s.submit(r, raw) {
		return false
	}
	s.issueCounted(cmd)
	if s.w.order.HasActions() { // carried out only now: a request that cannot be parked is answered at once
		s.w.act()
	}
	return true
}

// slotOf returns the slot of a key of the session's database.
func (s *client) slotOf(key []byte) uint16 {
	return s.w.order.Placement().SlotOf(s.state.Database, key)
}

// partitionOf returns the partition of a key of the session's database.
func (s *client) partitionOf(key []byte) uint16 {
	return s.w.order.Placement().PartitionOf(s.state.Database, key)
}

// slotOfAll returns the slot of a command's first key, or of what decides in its place and lies in no database. It
// reports whether all keys share it.
func (s *client) slotOfAll(cmd *command.Command, args [][]byte, first int) (slot uint16, same bool) {
	if cmd.OnChannel() || s.state.Database == 0 && hasOneKey(cmd) { // database 0, the usual one, is never pinned
		return ring.Slot(args[first]), true
	}
	slot = s.slotOf(args[first])
	if hasOneKey(cmd) {
		return slot, true
	}
	keys, _ := cmd.AppendKeys(s.w.keys[:0], args)
	s.w.keys = keys
	for _, k := range keys {
		if s.slotOf(args[k]) != slot {
			return slot, false
		}
	}
	return slot, true
}

func hasOneKey(cmd *command.Command) bool {
	return cmd.First == cmd.Last && cmd.Flags&command.MovableKeys == 0
}

// laneFor returns the lane of a request of size bytes. A heavy command uses the large lane. There,
// nothing small waits behind it at a node that does not answer later, and a long silence of that node
// does not count as a broken pipe.
func (s *client) laneFor(size int, heavy bool) order.Lane {
	l := order.Lane{Kind: member.Common, Version: s.state.Version}
	if s.state.NoTouch {
		l.NoTouch = s.w.order.Level() >= ring.NoTouchLevel
	}
	if t := s.state.Tracking; t != nil {
		l.Tracks = !t.BCast || t.NoLoop // NOLOOP needs AS, which only such pipes understand
	}
	switch {
	case size > order.HugeRequest:
		l.Kind = member.Huge
	case size > largeRequest, heavy:
		l.Kind = member.Large
	}
	return l
}

// enterLane reports whether a request may be sent on that lane now.
func (s *client) enterLane(l order.Lane) bool { return s.w.order.Enter(&s.Session, l) }

// submit sends a request to the owner of its partition, or has it parked. It reports false if the
// pipe is full: then the session waits for that pipe. Otherwise the caller issues the command and
// then calls act.
func (s *client) submit(r order.Request, raw []byte) bool {
	w := s.w
	p, ok := w.order.Submit(&s.Session, r, raw, w.loop.Now())
	switch {
	case !ok:
		s.waitFor(p)
		return false
	case p != nil:
		w.write(p)
	}
	return true
}

func (s *client) waitFor(full *order.Pipe) {
	if p := s.w.shellOf(full); s.waitsFor != p {
		s.waitsFor = p
		p.waiters = append(p.waiters, s)
	}
}
