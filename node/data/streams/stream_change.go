package streams

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// change begins a change. The block of a small stream is copied: maxPart bytes are there for it.
func (s *stream) change() {
	if s.spare != nil {
		return
	}
	s.spare = spares.Get().(*spare)
	if !s.isBig && s.small.blk != nil {
		b := block(s.spare.small[:])
		copy(b, s.small.blk)
		s.small.blk = b
	}
}

// close ends the changes under one lock: it stores or notes them. After an error of a change close is
// called too: that change has left the stream as it was.
func (s *stream) close() (err error) {
	if s.spare == nil {
		return nil
	}
	if s.changed {
		if s.isBig {
			s.closeBig()
		} else {
			s.spare.record = s.small.append(s.spare.record[:0])
			err = s.txn.Set(s.key, s.spare.record, engine.TypeStream, s.expireAt)
		}
	}
	if s.unit {
		s.txn.EndUnit()
	}
	giveSpare(s.spare)
	s.spare, s.unit, s.changed = nil, false, false
	return err
}

func (s *stream) closeBig() {
	s.flush()
	if s.renewed && s.big.v.Fed() {
		s.note(appendMeta(s.spare.delta, s.big.meta()))
	}
	s.send()
	if s.shrinks {
		s.pack()
	}
}

// note takes over the delta in the scratch memory, to which a change was appended.
func (s *stream) note(delta []byte) { s.spare.delta = delta }

// send notes the changes since the last call.
func (s *stream) send() {
	v, delta := s.big.v, s.spare.delta
	switch {
	case s.tooLong || len(delta) > engine.MaxNote:
		v.NoteTooLong()
	case len(delta) > 0:
		v.Note(delta)
	default:
		v.Note(nil)
	}
	s.spare.delta, s.tooLong = delta[:0], false
}

// beginUnit makes one unit of all that is noted until close.
func (s *stream) beginUnit() {
	if !s.unit {
		s.unit = true
		s.txn.BeginUnit()
	}
}

// pack makes a small stream of a big one that has become small. Then s is not to be used any more. Without
// memory it stays big.
func (s *stream) pack() {
	if s.big.groups() > 0 || s.gone() != 0 || s.len() > mostInBlock/2 || s.big.v.Count(planeBlocks) > 1 || s.big.v.Count(planeAway) > 0 {
		return
	}
	to := small{meta: s.big.meta()}
	if tail, ok := s.tail(); ok {
		blk := block(s.big.v.Part(planeBlocks, tail))
		if blk.used()-blk.dead() > shape.MaxPacked/2 {
			return
		}
		to.blk = initBlock(s.spare.small[:], blk.first())
		blk.compact(to.blk)
	}
	s.spare.record = to.append(s.spare.record[:0])
	_ = s.txn.Set(s.key, s.spare.record, engine.TypeStream, s.expireAt)
}

// grow makes the stream one with parts, or a new one if there is none. After an error it is as it was.
func (s *stream) grow() error {
	if s.isBig {
		return nil
	}
	var old []byte
	if s.found {
		s.spare.record = s.small.append(s.spare.record[:0])
		old = s.spare.record
	}
	// All memory is taken here: without it the record might not find its own again.
	room := engine.Room{Roots: []int{len(s.key) + ownSize}}
	if s.small.blk != nil {
		var key mapKey
		leaf := shape.FirstLeaf(len(key.block(s.small.blk.first())), partNumber)
		room.Parts = []int{s.small.roomOf(), leaf}
	}
	if err := s.txn.Reserve(room); err != nil {
		return err
	}
	s.beginUnit()
	v, err := shape.Rebuild(s.txn, s.key, engine.TypeStream, ownSize, s.expireAt, old, func(v engine.Parts) error {
		b := big{v: v, spare: s.spare}
		return b.unpack(&s.small)
	})
	if err != nil {
		return err
	}
	s.big.v, s.isBig, s.found, s.changed, s.renewed = v, true, true, true, true
	if v.Fed() && s.small.blk != nil {
		s.small.blk.eachPayload(s.spare.block[:0], func(id ID, payload []byte) {
			s.note(appendAdd(s.spare.delta, id, payload))
		})
	}
	return nil
}

// unpack gives an empty big stream what a small one has.
func (b *big) unpack(s *small) error {
	b.setMeta(s.meta)
	if s.len() == 0 {
		return nil
	}
	number, err := b.addBlock(s.blk.first(), s.roomOf())
	if err != nil {
		return err
	}
	copy(b.v.Edit(planeBlocks, number), s.blk[:s.blk.used()])
	b.addLen(s.len())
	b.setTail(number)
	return nil
}

// drop deletes a stream that grow has made of none, since there is no memory for what it is to have.
func (s *stream) drop() {
	s.txn.Delete(s.key)
	s.isBig, s.found, s.changed = false, false, false
}

// setInfo sets last, maxDeleted and added, as XSETID does. The stream is there.
func (s *stream) setInfo(i info) error {
	s.change()
	m := s.meta()
	m.last, m.maxDeleted, m.added = i.last, i.maxDeleted, i.added
	s.setMeta(m)
	return nil
}

func (s *stream) setMeta(m meta) {
	s.changed, s.renewed = true, true
	if s.isBig {
		s.big.setMeta(m)
	} else {
		s.small.meta = m
	}
}
