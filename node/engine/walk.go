package engine

import "math/bits"

// WalkEnd is the cursor behind the last position.
const WalkEnd = 1 << 32

// Walk visits items of partition p from the cursor on, beginning with 0, until atLeast items were visited, f
// returned false, or all are done; then next is WalkEnd. It goes on at next.
//
// A cursor is a position in the order of the keys' hashes, the low 32 bits of a hash read backwards: the entries of a
// bucket are then neighbours, and those of the two halves of a split one still are. So every item that is there from
// the first call of a walk to the last is visited, however the index grows or shrinks in between, on any engine
// with the same seed; one that is not overwritten is visited once. Items of a bucket are visited together, even when f
// returns false among them.
//
// f runs under the shard's lock: it must be short and must not call the engine, but for Charge. It gets no expired items.
func (e *Engine) Walk(p uint16, cursor uint64, atLeast int, nowMilli int64, f func(Item) bool) (next uint64, done bool) {
	const bucketsAnyway = 16 // a nearly empty index is no reason for endless calls
	s := e.shardOf(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	part := s.partition(p)
	if part.count == 0 {
		return WalkEnd, true
	}
	visited, goOn := 0, true
	for n := 0; cursor < WalkEnd && goOn && visited < atLeast && n < atLeast+bucketsAnyway; n++ {
		i, end := part.bucketFrom(uint32(cursor))
		for b := s.bucketAt(part, i); b != nil; b = s.cells.bucket(b.next, 0) {
			for j, ref := range b.refs {
				if ref == 0 || uint64(bits.Reverse32(b.tags[j])) < cursor {
					continue
				}
				item := s.item(ref)
				if !expired(item.expireAt, nowMilli) {
					visited++
					goOn = f(item) && goOn
				}
			}
		}
		cursor = end
	}
	return cursor, cursor >= WalkEnd
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
