package engine

import "encoding/binary"

// The effects of a command that makes several changes, or of a transaction, form a unit: one effect
// that contains the others. So a receiver applies all of them or none (feed_unit_apply.go). The
// unit's word is logged before the first of them; its length is written when all are logged, under
// the same lock. A large value is not logged and so is in no unit: the unit ends before it, and
// another one begins behind it.

// maxUnit is the longest unit. The log of a longer one overflows, and its receiver gets the
// partition anew.
const maxUnit = 512 << 10

// BeginUnit makes one unit of all effects that are logged until EndUnit or Unlock. Members
// understand units from ring.EffectsLevel on; the caller begins none in a cluster below it.
func (t Txn) BeginUnit() {
	s := t.s
	if s.feeding && !s.feeds.unit {
		s.feeds.endView()
		s.feeds.unit, s.feeds.unitOf = true, t.number
	}
}

// EndUnit ends what BeginUnit began.
func (t Txn) EndUnit() {
	if t.s.feeds.unit {
		t.s.feeds.endView()
		t.s.feeds.endUnit()
	}
}

// openUnit begins a unit in a log, if the shard logs a unit, it has not begun there yet, and its
// partition is fed to the log's receiver. Other partitions' effects are in the log between the
// unit's if records of theirs are evicted.
func (f *shardFeeds) openUnit(l *feedLog) {
	if !f.unit || l.unit || !f.targetsOf(f.unitOf).has(l.to.number) {
		return
	}
	at := l.bytes
	if l.putParts(f.s, otherEffect(EffectUnit, f.unitOf, 0), 0, nil, nil); l.bytes > at {
		l.unit, l.unitAt = true, at
	}
}

// endUnit writes the length of the unit into each log that has it.
func (f *shardFeeds) endUnit() {
	f.unit = false
	for _, l := range f.logs {
		if l != nil {
			f.endUnitIn(l)
		}
	}
}

// endUnitIn ends the unit in a log, if it has one.
func (f *shardFeeds) endUnitIn(l *feedLog) {
	if !l.unit {
		return
	}
	l.unit = false
	n := l.bytes - l.unitAt - 2*wordSize
	if n > maxUnit {
		f.overflow(l)
		return
	}
	l.lengthenUnit(n)
}

// lengthenUnit writes the length into the word of the unit that was begun last.
func (l *feedLog) lengthenUnit(n int) {
	b, at := l.first, l.unitAt
	for ; at >= blockSize; at -= blockSize {
		b = l.blocks.next[b]
	}
	var word [wordSize]byte
	head := l.blocks.block(b)[at:]
	if k := copy(word[:], head); k < wordSize {
		copy(word[k:], l.blocks.block(l.blocks.next[b]))
	}
	h := header(binary.LittleEndian.Uint64(word[:]))
	binary.LittleEndian.PutUint64(word[:], uint64(h.withRest(n)))
	if k := copy(head, word[:]); k < wordSize {
		copy(l.blocks.block(l.blocks.next[b]), word[k:])
	}
}
