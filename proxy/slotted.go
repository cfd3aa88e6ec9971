package proxy

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// slotted is a command of more than maxKeys keys that must all lie in one slot. Its loop compares
// their slots in turns, and then sends the command as it is.
type slotted struct {
	longRequest
	keys     command.KeyRuns
	last     int // place among the arguments of the last key
	place    int // of the argument at next
	slot     uint16
	first    bool // no key was looked at
	crossing bool // there are keys of several slots
}

// forwardInTurns is forward for a command of many arguments. It reports false if few of them are
// keys: then nothing has happened.
func (s *client) forwardInTurns(cmd *command.Command, args [][]byte, raw []byte) bool {
	if hasOneKey(cmd) {
		return false
	}
	keys := cmd.KeyRuns(args)
	if keys.Count() <= maxKeys {
		return false
	}
	l, ok := s.newLongRequest(cmd, args, raw)
	if !ok {
		return true
	}
	s.issueCounted(cmd)
	c := &slotted{longRequest: l, keys: keys, last: keys.Last(), place: 1, first: true}
	s.long = c
	c.goOn()
	return true
}

func (c *slotted) goOn() {
	s := c.s
	if !c.queued && s.long == c && s.waitsFor == nil && (c.place <= c.last || s.enterLane(c.lane())) {
		c.queued = true
		s.w.turns.take(s.w.loop, c)
	}
}

func (c *slotted) turn() {
	switch c.queued = false; {
	case c.s.long != c: // the client has gone
	case c.place <= c.last:
		if c.look(); c.crossing {
			c.end()
			c.s.reply(c.seq, c.s.crossSlot())
			return
		}
		c.goOn()
	default:
		c.s.sendWhole(&c.longRequest, ring.Partition(c.slot))
	}
}

// look compares the slots of the next keys with that of those before.
func (c *slotted) look() {
	for end := min(c.place+maxKeys, c.last+1); c.place < end; c.place++ {
		arg, next := resp.DecodeArgument(c.raw, c.next)
		if c.keys.Has(c.place) {
			slot := c.s.slotOf(arg)
			if c.crossing = !c.first && slot != c.slot; c.crossing {
				return
			}
			c.slot, c.first = slot, false
		}
		c.next = next
	}
}

func (l *longRequest) lane() order.Lane {
	return l.s.laneFor(len(l.raw), l.cmd.Flags&command.Heavy != 0)
}

// sendWhole sends a long command as it is.
func (s *client) sendWhole(l *longRequest, partition uint16) {
	if !s.enterLane(l.lane()) {
		return
	}
	r := order.Request{Session: &s.Session, Seq: l.seq, Origin: s.origin(partition)}
	if !s.submit(r, l.raw) {
		return
	}
	s.long.end()
	s.w.act()
	s.progress()
}

func (c *slotted) take([]byte) order.Body { return c.give() }

func (c *slotted) end() {
	c.s.long = nil
	c.drop()
}
