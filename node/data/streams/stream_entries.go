package streams

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// add appends an entry whose ID is above the last one, and makes the stream if the key has none. fields are
// fields and values in turn. After an error nothing has changed.
func (s *stream) add(id ID, fields [][]byte) error {
	s.change()
	if s.staged != nil || !isShort(fields) {
		return s.addLong(id, fields)
	}
	s.spare.payload, _ = appendPayload(s.spare.payload[:0], fields, nil)
	return s.addShort(id, s.spare.payload)
}

// isShort reports whether the payload of fields surely stands in a block.
func isShort(fields [][]byte) bool {
	n := 0
	for _, s := range fields {
		if n += len(s) + 1; len(s) >= paddedFrom {
			n += padding
		}
		if n > maxInside-2 {
			return false
		}
	}
	return true
}

// From so many bytes on, a coded string may have so many bytes of padding.
const (
	paddedFrom = 192
	padding    = 16
)

// addShort adds an entry whose payload stands in a block.
func (s *stream) addShort(id ID, payload []byte) error {
	if !s.isBig && s.addSmall(id, payload) {
		return nil
	}
	return s.addBig(id, func() error {
		if err := s.append(id, payload); err != nil {
			return err
		}
		if s.big.v.Fed() {
			s.note(appendAdd(s.spare.delta, id, payload))
		}
		return nil
	})
}

// addSmall adds an entry to a small stream, and reports whether it has room.
func (s *stream) addSmall(id ID, payload []byte) bool {
	next := s.small
	next.last = id
	next.added++
	if next.blk == nil {
		next.blk = initBlock(s.spare.small[:], id)
	}
	room := shape.MaxPacked - next.metaLen()
	if !next.blk[:room].add(id, payload, nil, s.spare.block[:]) {
		return false
	}
	s.small, s.found, s.changed = next, true, true
	return true
}

// addBig adds an entry to a big stream, which it makes of a small one, or of none.
func (s *stream) addBig(id ID, add func() error) error {
	isNew := !s.found
	if err := s.grow(); err != nil {
		return err
	}
	if err := add(); err != nil {
		if s.shrinks = true; isNew {
			s.drop()
		}
		return err
	}
	m := s.meta()
	m.last = id
	m.added++
	s.setMeta(m)
	return nil
}

// addLong adds an entry whose payload may be too long for a block.
func (s *stream) addLong(id ID, fields [][]byte) error {
	var payload []byte
	var own [][]byte
	if s.staged != nil {
		payload, own = s.staged.view(), s.staged.own(fields)
	} else {
		payload, own = appendPayload(s.spare.payload[:0], fields, nil)
		s.spare.payload = payload
	}
	if len(payload) <= maxInside && len(own) == 0 {
		return s.addShort(id, payload)
	}
	l := longOf(payload, own)
	return s.addBig(id, func() error {
		if err := s.appendLong(id, &l); err != nil {
			return err
		}
		s.noteLong(id, &l)
		return nil
	})
}

// noting is a long entry of which some bytes are noted.
type noting struct {
	id     ID
	offset int // in the payload, and behind it in the strings
	all    int // bytes; 0: there is no such entry
}

// noteLong notes an entry with a long payload. Who holds the partition notes its bytes then, in runs (noteMore).
func (s *stream) noteLong(id ID, l *long) {
	switch all := l.all(); {
	case !s.big.v.Fed():
	case all > engine.MaxNote:
		s.tooLong = true
	case all <= maxPiece && len(l.own) == 0:
		s.note(appendAdd(s.spare.delta, id, l.payload))
	default:
		s.beginUnit()
		s.note(appendStub(s.spare.delta, id, l))
		s.noting = noting{id: id, all: all}
		if s.r == nil || s.r.Hold == nil {
			s.noteMore(all)
		}
	}
}

// noteMore notes so many bytes of a long entry, or a few more.
func (s *stream) noteMore(most int) {
	x := &s.noting
	if x.all == 0 {
		return
	}
	_, e, _ := s.find(x.id)
	l := s.longAt(&e)
	for end := x.offset + most; x.offset < min(end, x.all); {
		s.send()
		piece := l.piece(x.offset, maxPiece)
		s.note(appendFill(s.spare.delta, x.id, x.offset, piece))
		x.offset += len(piece)
	}
	if x.offset == x.all {
		*x = noting{}
	}
}

// delete removes an entry and reports whether it was there.
func (s *stream) delete(id ID) (deleted bool) {
	if !s.has(id) {
		return false
	}
	s.change()
	if s.isBig {
		if s.remove(id); s.big.v.Fed() {
			s.note(appendDelete(s.spare.delta, id))
		}
	} else {
		x, _ := s.small.blk.find(id)
		s.small.blk.kill(&x)
		s.compactSmall()
	}
	m := s.meta()
	if m.maxDeleted.less(id) {
		m.maxDeleted = id
	}
	s.shrinks = true
	s.setMeta(m)
	return true
}

// compactSmall takes dead entries out of a small stream.
func (s *stream) compactSmall() {
	if s.small.blk.live() == 0 {
		s.small.blk = nil
		return
	}
	s.compactBlock(s.small.blk)
}

// trim removes entries from the front, in so many steps, or a few more, and returns how many it has removed
// (see trimSteps). done: there is nothing more to do. t.limit is of all calls together: the caller takes
// off what was removed.
func (s *stream) trim(t trimming, steps int) (removed int, done bool) {
	if s.len() == 0 {
		return 0, true
	}
	if !s.isBig {
		return s.trimSmall(&t), true
	}
	s.change()
	removed, upTo, done := s.big.trim(&t, steps)
	if removed > 0 {
		s.changed, s.shrinks = true, true
		if s.big.v.Fed() {
			s.note(appendTrim(s.spare.delta, upTo))
		}
	}
	return removed, done
}

func (s *stream) trimSmall(t *trimming) (removed int) {
	live := s.small.len()
	if t.approx && (t.keeps(s.small.blk.last().id, 1) || t.limit > 0 && live > t.limit) {
		return 0
	}
	s.change()
	b := s.small.blk
	for at, end := b.begin(), b.used(); at < end; removed++ {
		x := b.entry(at)
		if t.keeps(x.id, live-removed) {
			break
		}
		b.kill(&x)
		at = x.end
	}
	if removed > 0 {
		s.compactSmall()
		s.changed = true
	}
	return removed
}
