package shape

import (
	"math/bits"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// Scan calls f for the entries of a ranked tree in some buckets of its index, whatever their ranks are
// meanwhile. It ends as scan does, whose cursors these are. weight is asked about entries of buckets that have long
// strings: it returns how many bytes f copies of one.
func (t *Tree) Scan(
	cursor uint64, full func(passed int) bool, weight func(x Entry) int, f func(x Entry),
) (next uint64) {
	n := t.V.Len(t.Index)
	return scan(t.V, t.Index, cursor, full, func(number int, s span) (visited span, passed int) {
		if t.V.Count(t.Away) > 0 && t.hasAwayIn(number, n) {
			c := s.cut()
			for done := false; !done; done = c.narrow() {
				t.eachIn(number, n, func(h uint32, x Entry) { c.add(h, weight(x)) })
			}
			s = c.span
		}
		t.eachIn(number, n, func(h uint32, x Entry) {
			if s.whole || s.has(h) {
				f(x)
			}
		})
		return s, 0
	})
}

// eachIn calls f for the entries in a bucket of an index of n, with their hashes. Entries of one
// leaf with one hash come several times.
func (t *Tree) eachIn(number, n int, f func(h uint32, x Entry)) {
	depth := depthOf(number, n)
	c := indexBlock(t.V.Part(t.Index, number))
	for i := range c.count() {
		h, b := c.hashOf(i, depth, number), block(t.V.Part(t.Leaves, leafOf(c.word(i), depth)))
		for e, at, w := 0, len(b)-b.slotLen()+rankFront, b.slotLen(); e < b.count(); e, at = e+1, at-w {
			if b[at] != c.tag(i) {
				continue
			}
			if off := b.offset(e); t.hashOf(b, e, off) == h {
				f(h, t.entry(b, e, off))
			}
		}
	}
}

// hasAwayIn reports whether the first string of an entry in a bucket of an index of n is a part. It looks at
// tags, not at hashes, so it may report true for an entry with the same tag in the same leaf.
func (t *Tree) hasAwayIn(number, n int) bool {
	depth := depthOf(number, n)
	c := indexBlock(t.V.Part(t.Index, number))
	for i := range c.count() {
		b := block(t.V.Part(t.Leaves, leafOf(c.word(i), depth)))
		for e, at, w := 0, len(b)-b.slotLen()+rankFront, b.slotLen(); e < b.count(); e, at = e+1, at-w {
			if b[at] == c.tag(i) && b[at+tagFront] == codeAway {
				return true
			}
		}
	}
	return false
}

// Dump appends a delta with the entries of a ranked tree from a place on, about atMost bytes of them,
// and returns the place where to go on. It is for engine.Form.Dump. add appends what a delta has of
// an entry.
//
// It goes in passes, as Table.Dump does, for the index of the tree that is made of the deltas. The
// tree may change between two calls: so a bucket is dumped again until its long entries are through,
// which go one hash at a time.
func (t *Tree) Dump(
	from engine.Place, dst []byte, atMost int, add func(dst []byte, x Entry) []byte,
) (delta []byte, next engine.Place, done bool) {
	p := decodePlace(from, t.Len(), atMost)
	for start := len(dst); ; p.pass, p.place = p.pass-1, 0 {
		if dst, done = t.dumpPass(&p, dst, start, atMost, add); !done {
			return dst, p.encode(), false
		}
		if p.pass == 0 {
			return dst, engine.Place{}, true
		}
	}
}

// dumpPass goes on with a pass, and reports whether it is done.
func (t *Tree) dumpPass(
	p *dumpPlace, dst []byte, start, atMost int, add func(dst []byte, x Entry) []byte,
) (delta []byte, done bool) {
	for n := t.V.Len(t.Index); n > 0 && p.place < scanEnd; {
		number, after := blockAt(p.place, n)
		t.eachIn(number, n, func(h uint32, x Entry) {
			if len(x.First.bytes) <= maxShort && p.hasHash(h) {
				dst = add(dst, x)
			}
		})
		for {
			place, found := t.nextLong(p, number, n)
			if !found {
				break
			}
			if p.place = place; len(dst)-start >= atMost {
				return dst, false
			}
			t.eachIn(number, n, func(h uint32, x Entry) {
				if len(x.First.bytes) > maxShort && orderOf(h) == place {
					dst = add(dst, x)
				}
			})
			p.place++
		}
		if after == 0 {
			break
		}
		p.place = after
		if p.blocks--; len(dst)-start >= atMost || p.blocks <= 0 {
			return dst, false
		}
	}
	return dst, true
}

// hasHash reports whether an entry with that hash belongs to the present pass.
func (p *dumpPlace) hasHash(h uint32) bool { return min(bits.LeadingZeros32(h), p.passes) == p.pass }

// nextLong finds the first place from the present one on where a bucket has a long entry that belongs to
// the pass.
func (t *Tree) nextLong(p *dumpPlace, number, n int) (place uint64, found bool) {
	if t.V.Count(t.Away) == 0 {
		return 0, false
	}
	t.eachIn(number, n, func(h uint32, x Entry) {
		at := orderOf(h)
		if len(x.First.bytes) > maxShort && at >= p.place && (!found || at < place) && p.hasHash(h) {
			place, found = at, true
		}
	})
	return place, found
}

// NoteSet adds to the delta in w that an entry of v has a value, as Table.NoteSet does.
func (w *Work) NoteSet(v engine.Parts, first, value []byte) {
	if v.Fed() {
		w.delta = AppendSet(w.delta, first, value)
	}
}

// NoteDelete adds to the delta in w that an entry of v was deleted.
func (w *Work) NoteDelete(v engine.Parts, first []byte) {
	if v.Fed() {
		w.delta = appendString(append(w.delta, deltaDelete), first)
	}
}

// AppendSet appends a change to a delta: an entry, or an element of a table of two items, has a value.
func AppendSet(dst, first, value []byte) []byte {
	return appendString(appendString(append(dst, deltaSet), first), value)
}
