package streams

import (
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// dumpLooks is how many keys and entries one call of dump looks at, at most.
const dumpLooks = 512

// snapshot is a call of dump.
type snapshot struct {
	big
	at    place
	dst   []byte
	most  int // bytes of dst
	looks int
}

// dump appends a delta with what a stream has from a place on.
func dump(v engine.Parts, from engine.Place, dst []byte, atMost int) (delta []byte, next engine.Place, done bool) {
	s := snapshot{big: big{v: v}, at: readPlace(from), dst: dst, most: len(dst) + atMost, looks: dumpLooks}
	if s.at.stage == stageMeta {
		s.dst = appendMeta(s.dst, s.meta())
		s.at.stage = stageFirst
	}
	if (s.at.stage == stageFirst || s.at.stage == stageEntries) && s.entries() {
		s.at = place{stage: stageGroups}
	}
	if s.at.stage == stageGroups && s.allGroups() {
		s.at = place{stage: stageConsumers}
	}
	if s.at.stage == stageConsumers && s.consumers() {
		s.at = place{stage: stagePending}
	}
	done = s.at.stage == stagePending && s.allPending()
	return s.dst, s.at.place(), done
}

// full reports whether the delta has enough, and counts what is looked at.
func (s *snapshot) full() bool {
	s.looks--
	return len(s.dst) >= s.most || s.looks < 0
}

// entries appends entries, and reports whether there are no more. So do the others.
func (s *snapshot) entries() (done bool) {
	if s.len() == 0 {
		return true
	}
	from := s.at.id
	if s.at.stage == stageEntries && s.at.bytes == 0 {
		next, ok := from.next()
		if !ok {
			return true
		}
		from = next
	}
	m := s.keys()
	for c := s.seekBlock(&m, from); c.HasPrefix(blockPrefix); c.Next() {
		blk := block(s.part(planeBlocks, int(binary.LittleEndian.Uint32(c.Value()))))
		for at, end := blk.begin(), blk.used(); at < end; {
			x := blk.entry(at)
			at = x.end
			if x.kind == kindDead || x.id.less(from) {
				continue
			}
			if s.full() || !s.entry(blk, &x) {
				return false
			}
		}
	}
	return true
}

// entry appends an entry, or a piece of one. It reports whether that was all of it.
func (s *snapshot) entry(blk block, x *packedEntry) (whole bool) {
	var buf [maxInside]byte
	offset := 0
	if x.id == s.at.id {
		offset = s.at.bytes
	}
	s.at = place{stage: stageEntries, id: x.id}
	switch x.kind {
	case kindNames:
		s.dst = appendAdd(s.dst, x.id, x.body)
		return true
	case kindSame:
		s.dst = appendAdd(s.dst, x.id, blk.payload(buf[:0], x.body))
		return true
	}
	l := s.longAt(x)
	if all := l.all(); all > maxPiece || len(l.own) > 0 {
		if offset == 0 {
			s.dst = appendStub(s.dst, x.id, &l)
		}
		piece := l.piece(offset, maxPiece)
		s.dst = appendFill(s.dst, x.id, offset, piece)
		if offset += len(piece); offset < all {
			s.at.bytes = offset
			return false
		}
		return true
	}
	s.dst = appendAdd(s.dst, x.id, l.payload)
	return true
}

// longAt is the long payload of an entry.
func (b *big) longAt(x *packedEntry) long {
	payload := shape.AwayString(b.part(planeAway, int(binary.LittleEndian.Uint32(x.body))))
	var own [][]byte
	for numbers := x.body[awayBody:]; len(numbers) > 0; numbers = numbers[partNumber:] {
		own = append(own, shape.AwayString(b.part(planeAway, int(binary.LittleEndian.Uint32(numbers)))))
	}
	return longOf(payload, own)
}

func (s *snapshot) allGroups() (done bool) {
	full, looks := false, dumpLooks
	next := s.eachNumber(s.at.group+1, &looks, func(g group) bool {
		if full = s.full(); full {
			return false
		}
		s.at.group = g.number
		s.dst = appendGroup(s.dst, &g)
		return true
	})
	if !full && next != 0 {
		s.at.group = next - 1
	}
	return next == 0
}

// consumers goes through the keys of consumers, and passes over those of groups that are gone.
func (s *snapshot) consumers() (done bool) {
	m := s.keys()
	var key, at mapKey
	alive := uint32(0)
	for c := m.Seek(key.consumer(s.at.group, s.at.number+1)); c.HasPrefix([]byte{keyConsumer}); c.Next() {
		if s.full() {
			return false
		}
		k := c.AppendKey(at[:0])
		group, number := binary.BigEndian.Uint32(k[1:]), binary.BigEndian.Uint32(k[5:])
		if alive != group {
			if _, found := s.numbered(group); !found {
				s.at.group, s.at.number = group, 1<<32-2
				return false
			}
			alive = group
		}
		s.at.group, s.at.number = group, number
		r := consumerRecord(c.Value())
		s.dst = appendConsumer(s.dst, group, &consumer{number: number, name: r[consumerName:]},
			int64(binary.LittleEndian.Uint64(r[consumerSeen:])), int64(binary.LittleEndian.Uint64(r[consumerActive:])))
	}
	return true
}

func (s *snapshot) allPending() (done bool) {
	m := s.keys()
	var key, at mapKey
	alive := uint32(0)
	for c := m.Seek(key.pending(s.at.group, s.at.id)); c.HasPrefix([]byte{keyPending}); c.Next() {
		k := c.AppendKey(at[:0])
		group, id := binary.BigEndian.Uint32(k[1:]), keyID(k[5:])
		if group == s.at.group && id == s.at.id {
			continue
		}
		if s.full() {
			return false
		}
		if alive != group {
			if _, found := s.numbered(group); !found {
				s.at.group, s.at.id = group, maxID
				return false
			}
			alive = group
		}
		s.at.group, s.at.id = group, id
		p := s.pendingAt(id, c.Value())
		s.dst = appendSetPending(s.dst, group, &p, p.delivered-s.base())
	}
	return true
}
