package shape

import (
	"encoding/binary"
	"math/bits"
)

// A mark is where a key was found last: a leaf, and an entry of it. It is a part of the map, and lasts from one
// command to the next: a key that is asked for again is found without a search, and so is the one behind a
// key that was taken. A type gives each kind of its keys a mark, from 0 on.
//
// When a page comes or goes, all marks are forgotten, because leaves may have got other keys (addTurn). So the
// leaf of a mark is there, and has the keys between its first and its last one. Its entries may have changed.

// OrderedMarks is how many marks a map has.
const OrderedMarks = 6

const (
	markLen   = 8
	entryBits = 16
)

// mark returns where a mark is; ok is false if it is nowhere.
func (s orderedState) mark(m int) (leaf, e int, ok bool) {
	at := binary.LittleEndian.Uint64(s[stateMarks+markLen*m:])
	return int(at>>entryBits) - 1, int(at & (1<<entryBits - 1)), at != 0
}

func (s orderedState) setMark(m, leaf, e int) {
	binary.LittleEndian.PutUint64(s[stateMarks+markLen*m:], uint64(leaf+1)<<entryBits|uint64(e))
}

// markedAt returns where a key stands in the leaf of a mark; ok is false if it may belong to another leaf.
func (o *Ordered) markedAt(s orderedState, m int, key []byte) (leaf, e int, found, ok bool) {
	if leaf, e, ok = s.mark(m); !ok {
		return leaf, e, false, false
	}
	p := o.leaf(leaf)
	if e < p.count() && p.is(e, key) {
		return leaf, e, true, true
	}
	if e, found = p.search(key, 0); found {
		s.setMark(m, leaf, e)
	}
	return leaf, e, found, found || e > 0 && e < p.count()
}

// GetAt is Get at a mark.
func (o *Ordered) GetAt(m int, key []byte) (value []byte, found bool) {
	leaf, e, found := o.findAt(m, key)
	if !found {
		return nil, false
	}
	return o.leaf(leaf).value(e), true
}

// EditAt is Edit at a mark.
func (o *Ordered) EditAt(m int, key []byte) (value []byte, found bool) {
	leaf, e, found := o.findAt(m, key)
	if !found {
		return nil, false
	}
	return page(o.V.Edit(o.Leaves, leaf)).value(e), true
}

func (o *Ordered) findAt(m int, key []byte) (leaf, e int, found bool) {
	s := o.state()
	if s.count() == 0 {
		return 0, 0, false
	}
	if leaf, e, found, ok := o.markedAt(s, m, key); ok {
		return leaf, e, found
	}
	var w orderedWay
	found = o.search(&w, key)
	s.setMark(m, w.leaf, w.entry)
	return w.leaf, w.entry, found
}

// TakeAt is Take at a mark. It merges a leaf only when that has got below a quarter of the most bytes, an
// eighth and so on, so that keys that go in their order are mostly taken without the way down.
func (o *Ordered) TakeAt(m int, key, dst []byte) (value []byte, found bool) {
	s := o.state()
	if s.count() == 0 {
		return dst, false
	}
	var w orderedWay
	leaf, e, found, ok := o.markedAt(s, m, key)
	if !ok {
		found = o.search(&w, key)
		leaf, e = w.leaf, w.entry
	}
	if !found {
		return dst, false
	}
	s.setMark(m, leaf, e)
	p := page(o.V.Edit(o.Leaves, leaf))
	value = append(dst, p.value(e)...)
	need := p.need()
	if after := need - (p.end(e) - p.begin(e)) - pageSlot; p.count() > 1 && !thinner(need, after) {
		p.cut(e, e+1)
		s.addCount(-1)
		o.fit(p, o.Leaves, leaf, false)
		return value, true
	}
	if ok {
		o.search(&w, key)
	}
	o.remove(&w, e+1)
	return value, true
}

// thinner reports whether a leaf that needs fewer bytes than before is to be merged.
func thinner(before, after int) bool {
	const few = maxOrderedLeaf / 64
	return after < 16*few && bits.Len(uint(before/few)) > bits.Len(uint(after/few))
}
