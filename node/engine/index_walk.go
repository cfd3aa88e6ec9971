package engine

import "math/bits"

// WalkEnd is the cursor behind the last position.
const WalkEnd = 1 << 32

// Walk visits items of a section from the cursor on, which is 0 at first, until it has visited
// atLeast items, f has returned false, or all are done; then next is WalkEnd. The next call goes on
// at next.
//
// A cursor is a position in the order of the keys' hashes, the low 32 bits of a hash read
// backwards: the entries of a bucket are then neighbours, and those of the two halves of a split
// one still are. So every item that is there from the first call of a walk to the last is visited,
// however the index grows or shrinks in between, on any engine with the same seed; one that is not
// overwritten is visited once. Items of a bucket are visited together, even when f returns false
// among them.
//
// f runs under the shard's lock: it must be short and must not call the engine, but for Charge. It
// gets no expired items, but those of copies.
func (e *Engine) Walk(section uint16, cursor uint64, atLeast int, nowMilli int64, f func(Item) bool) (next uint64, done bool) {
	w := walk{s: e.shardOf(section), section: section, from: cursor, now: nowMilli}
	return w.run(atLeast, f)
}

// WalkUnheld is Walk for those who must not see what a holder has half done: it visits nothing while
// the partition is held, and returns the hold. The next call goes on at next when that has ended. Items
// in the crowd, of which there are few, may be visited nevertheless.
func (e *Engine) WalkUnheld(section uint16, cursor uint64, atLeast int, nowMilli int64, f func(Item) bool) (next uint64, done bool, held *Hold) {
	w := walk{s: e.shardOf(section), section: section, from: cursor, now: nowMilli, unheld: true}
	next, done = w.run(atLeast, f)
	return next, done, w.held
}

// run is Walk.
func (w *walk) run(atLeast int, f func(Item) bool) (next uint64, done bool) {
	w.visit, w.goOn = f, true
	if w.buckets(atLeast) {
		for at := uint64(0); at < WalkEnd; {
			at = w.crowd(at)
		}
	}
	return w.to, w.to >= WalkEnd
}

// walk is one call of Walk: over the positions from one to another.
type walk struct {
	s        *shard
	section  uint16
	from, to uint64
	now      int64
	visit    func(Item) bool
	visited  int
	goOn     bool

	unfinished bool // visit values too whose snapshot has not ended

	unheld bool  // visit nothing while the partition is held
	held   *Hold // by this
}

// buckets visits items from w.from on, sets w.to, and reports whether others in between may be in the
// crowd.
func (w *walk) buckets(atLeast int) (crowded bool) {
	const bucketsAnyway = 16 // a nearly empty index is no reason for endless calls
	s, part := w.s, w.s.partition(w.section)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.to = w.from
	if w.unheld {
		if w.held = s.holder(w.section); w.held != nil {
			return false
		}
	}
	if part.count == 0 {
		w.to = WalkEnd
	}
	for n := 0; w.to < WalkEnd && w.goOn && w.visited < atLeast && n < atLeast+bucketsAnyway; n++ {
		i, end := part.bucketFrom(uint32(w.to))
		first := s.cells.bucketAt(part, i)
		crowded = crowded || first.crowded != 0
		for b := first; b != nil; b = s.cells.bucket(b.next, 0) {
			for j, ref := range b.refs {
				if ref != 0 && uint64(bits.Reverse32(b.tags[j])) >= w.to {
					w.meet(ref)
				}
			}
		}
		w.to = end
	}
	return crowded
}

// crowd visits the items in the crowd between w.from and w.to, all that belong to a bucket
// together, but not under one lock: a walk through the crowd, which has an order of its own. It
// returns where to go on there.
func (w *walk) crowd(at uint64) (next uint64) {
	const atOnce = 64
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.cells.crowd(s.partition(w.section))
	if c == nil {
		return WalkEnd
	}
	for n := 0; at < WalkEnd && n < atOnce; n++ {
		i, end := c.bucketFrom(uint32(at))
		for b := s.cells.bucketAt(c, i); b != nil; b = s.cells.bucket(b.next, 0) {
			for j, ref := range b.refs {
				if ref != 0 && w.covers(b.tags[j]) && uint64(bits.Reverse32(s.indexes.crowdTag(s.cells.key(ref)))) >= at {
					w.meet(ref)
				}
			}
		}
		at = end
	}
	return at
}

func (w *walk) covers(tag uint32) bool {
	position := uint64(bits.Reverse32(tag))
	return w.from <= position && position < w.to
}

func (w *walk) meet(ref handle) {
	item := w.s.cells.item(ref)
	if gone := expired(item.expireAt, w.now) && !w.s.copies.has(w.section); !gone && (w.unfinished || !item.header.isRoot() || !w.s.values.isUnfinished(ref, item.header)) {
		w.visited++
		w.goOn = w.visit(item) && w.goOn
	}
}

// bucketFrom is the bucket that has the position, and the position where it ends.
func (p *partition) bucketFrom(position uint32) (i uint32, end uint64) {
	if p.mask == 0 {
		return 0, WalkEnd
	}
	top := (p.mask + 1) / 2
	depth := bits.Len32(p.mask)
	i = bits.Reverse32(position) & p.mask
	if i&^top+top >= p.buckets { // not split yet: both halves are one
		i &^= top
		depth--
	}
	size := uint64(1) << (32 - depth)
	return i, uint64(position)&^(size-1) + size
}
