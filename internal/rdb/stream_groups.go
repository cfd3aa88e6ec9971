package rdb

import (
	"math"
	"unsafe"
)

// A payload has the pending entries of a group twice: all of them with their times, and behind them,
// for each consumer, the IDs of its own. A pending entry is complete only when its consumer is known.
// So the first list is passed over, the second ones are noted, and then both are read at once: the
// lowest ID among the heads of the consumers' lists is the next one of the group's list.
//
//	group's list    1 2 3 4 5 6 …      ──▶  3 of b
//	consumers'      a: ·1 ·2 4 6       b: 3 5
//
// A list that does not ascend, and an entry that belongs to no consumer or to two, differ from that.
type pels struct {
	all       reader   // where the group's list begins
	left      int      // pending entries of the group that are still to come
	last      StreamID // the one before
	some      bool     // there was one
	unowned   int      // pending entries of the group less those of its consumers
	consumers int      // still to come
	number    uint32   // of the next consumer
	heads     []pel    // a heap, the lowest ID on top, of the lists that have more
	base      reader   // offsets are from its beginning
}

// pel is a consumer's list of IDs. Payloads are shorter than 4 GiB.
type pel struct {
	at, end  uint32 // offsets in pels.base
	consumer uint32
}

func (p *pels) id(l pel) StreamID { return bigID(p.base[l.at:]) }

// Group reads a group. Its name is valid until the next call. Pending and Consumers are what the
// payload declares.
func (s *Stream) Group() (g StreamGroup, ok bool) {
	if s.err != nil || s.groups == 0 {
		return g, false
	}
	s.groups--
	name, err := s.string(&s.in, &s.group)
	if err != nil {
		s.fail(err)
		return g, false
	}
	g.Name = name
	if ok = s.readGroup(&g); !ok {
		s.fail(ErrFormat)
	}
	return g, ok
}

func (s *Stream) readGroup(g *StreamGroup) (ok bool) {
	if g.Last, ok = s.in.id(); !ok {
		return false
	}
	if s.code == typeStream {
		g.Read = s.found.readOf(g.Last)
	} else {
		read, ok := s.in.number()
		if g.Read = int64(read); !ok || g.Read < ReadUnknown {
			return false
		}
	}
	if g.Pending, ok = s.in.count(); !ok {
		return false
	}
	s.pels = pels{all: s.in, left: g.Pending, unowned: g.Pending, heads: s.pels.heads[:0]}
	for range g.Pending {
		if _, ok = s.in.next(streamIDSize + 8); ok {
			_, ok = s.in.number()
		}
		if !ok {
			return false
		}
	}
	g.Consumers, ok = s.in.count()
	s.pels.consumers, s.pels.base = g.Consumers, s.in
	return ok && int64(len(s.in)) <= math.MaxUint32
}

// Consumer reads a consumer of the group. Its name is valid until the next call. Without its own time
// a consumer was active when it was seen.
func (s *Stream) Consumer() (c StreamConsumer, ok bool) {
	p := &s.pels
	if s.err != nil || p.consumers == 0 {
		return c, false
	}
	p.consumers--
	name, err := s.string(&s.in, &s.consumer)
	if err == nil {
		c.Name = name
		err = s.readConsumer(&c)
	}
	if err == nil && p.consumers == 0 && p.unowned != 0 {
		err = ErrFormat
	}
	if err != nil {
		s.fail(err)
	}
	return c, err == nil
}

func (s *Stream) readConsumer(c *StreamConsumer) error {
	p := &s.pels
	var ok bool
	if c.Seen, ok = s.in.millis(); !ok || c.Seen < 0 {
		return ErrFormat
	}
	c.Active = c.Seen
	if s.code == typeStream3 {
		if c.Active, ok = s.in.millis(); !ok {
			return ErrFormat
		}
	}
	if c.Pending, ok = s.in.count(); !ok || c.Pending > len(s.in)/streamIDSize {
		return ErrFormat
	}
	at := len(p.base) - len(s.in)
	ids, _ := s.in.next(c.Pending * streamIDSize)
	if p.unowned -= c.Pending; len(ids) > 0 {
		if p.heads, ok = grow(&s.Memory, p.heads, int(unsafe.Sizeof(pel{}))); !ok {
			return ErrTooLong
		}
		p.heads = append(p.heads, pel{uint32(at), uint32(at + len(ids)), p.number})
		p.raise(len(p.heads) - 1)
	}
	p.number++
	return nil
}

// Pending reads a pending entry of the group. A group whose consumers do not own all of its pending
// entries is an error.
func (s *Stream) Pending() (x StreamPending, ok bool) {
	p := &s.pels
	if s.err != nil || p.left == 0 {
		return x, false
	}
	if x, ok = p.next(); !ok {
		s.fail(ErrFormat)
	}
	return x, ok
}

func (p *pels) next() (x StreamPending, ok bool) {
	p.left--
	id, _ := p.all.next(streamIDSize)
	x.ID = bigID(id)
	if x.Delivered, _ = p.all.millis(); x.Delivered < 0 {
		return x, false
	}
	x.Count, ok = p.all.small()
	if !ok || len(p.heads) == 0 || p.id(p.heads[0]) != x.ID || p.some && x.ID.Compare(p.last) <= 0 {
		return x, false
	}
	p.last, p.some = x.ID, true
	top := &p.heads[0]
	x.Consumer = int(top.consumer)
	if top.at += streamIDSize; top.at == top.end {
		n := len(p.heads) - 1
		p.heads[0] = p.heads[n]
		p.heads = p.heads[:n]
	}
	p.lower()
	return x, true
}

// raise moves list i up to its place in the heap.
func (p *pels) raise(i int) {
	for ; i > 0; i = (i - 1) / 2 {
		above := (i - 1) / 2
		if p.id(p.heads[above]).Compare(p.id(p.heads[i])) <= 0 {
			return
		}
		p.heads[above], p.heads[i] = p.heads[i], p.heads[above]
	}
}

// lower moves the list on top down to its place.
func (p *pels) lower() {
	for i := 0; ; {
		least := i
		for below := 2*i + 1; below <= 2*i+2 && below < len(p.heads); below++ {
			if p.id(p.heads[below]).Compare(p.id(p.heads[least])) < 0 {
				least = below
			}
		}
		if least == i {
			return
		}
		p.heads[i], p.heads[least] = p.heads[least], p.heads[i]
		i = least
	}
}
