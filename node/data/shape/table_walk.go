package shape

import (
	"math/bits"
)

// Each calls f for all elements of a block, those that have expired left out. Blocks have numbers
// from 0 on; a table with a pin had Pin.Len(t.Blocks) of them, and each is read once.
func (t *Table) Each(number int, f func(e Element)) {
	b := block(t.part(t.Blocks, number))
	if len(b) == 0 {
		return
	}
	for e, off := 0, blockHead; e < b.count(); e++ {
		at := place{e, off}
		if x := t.element(b, at); !t.isDue(x.ExpireAt) {
			f(x)
		}
		off += b.size(e)
	}
	if t.Pin != nil {
		t.Pin.Done(t.Blocks, number)
	}
}

// Scan calls f for the elements of some blocks, at least one block and about count elements, from a
// cursor on, and returns the cursor where to go on: 0 at the end. The first cursor is 0. An element
// that stays from the first call to the last is seen, however the table grows and shrinks meanwhile,
// in this node or another one. An element may be seen twice.
//
// A cursor is a place in the order of the hashes with their bits reversed. The elements of a block
// are neighbours in that order, whatever the number of blocks is.
func (t *Table) Scan(cursor uint64, count int, f func(e Element)) (next uint64) {
	n := t.V.Len(t.Blocks)
	if n == 0 || cursor >= scanEnd {
		return 0
	}
	for seen, blocks := 0, 0; seen < count && blocks < max(count, 1) || blocks == 0; blocks++ {
		number, next := blockAt(cursor, n)
		t.Each(number, func(e Element) {
			seen++
			f(e)
		})
		if next == 0 {
			return 0
		}
		cursor = next
	}
	return cursor
}

// scanEnd is behind all cursors.
const scanEnd = 1 << 32

// blockAt is the block of a table of n in which a scan goes on at a cursor, and the cursor behind
// that block, 0 if it is the last one in the order.
func blockAt(cursor uint64, n int) (number int, next uint64) {
	level := bits.Len(uint(n)) - 1
	number = bucket(uint64(bits.Reverse32(uint32(cursor))), n)
	depth := level
	if number&(1<<level-1) < n-1<<level {
		depth++ // it has been split
	}
	size := uint64(1) << (32 - depth)
	if next = cursor&^(size-1) + size; next >= scanEnd {
		next = 0
	}
	return number, next
}

// maxDraws bounds the draws of Random.
const maxDraws = 512

// Random returns an element, each with the same probability. draw returns a random number below n.
// false: there is none, or so many have expired that none was found.
func (t *Table) Random(draw func(n uint32) uint32) (e Element, ok bool) {
	n, most := t.span(), t.state().most()
	if t.Len() == 0 {
		return e, false
	}
	for range maxDraws {
		b := block(t.part(t.Blocks, int(draw(uint32(n)))))
		i := int(draw(uint32(most)))
		if i >= b.count() {
			continue
		}
		e = t.element(b, place{i, b.offset(i)})
		if !t.isDue(e.ExpireAt) {
			return e, true
		}
	}
	return t.any()
}

// span is how many blocks the table has.
func (t *Table) span() int {
	if t.Pin != nil {
		return t.Pin.Len(t.Blocks)
	}
	return t.V.Len(t.Blocks)
}

// any returns some element. Random has missed maxDraws times; a walk from a random place would find
// the same few blocks.
func (t *Table) any() (e Element, ok bool) {
	for number := range min(maxDraws, t.span()) {
		t.Each(number, func(x Element) { e, ok = x, true })
		if ok {
			break
		}
	}
	return e, ok
}

// expireShrinks is how often Expire shrinks the table for one block, at most.
const expireShrinks = 8

// Expire removes what has expired from some blocks, from a cursor on, and returns the cursor where to
// go on: 0 at the end. It is a cursor of Scan: elements of a table that changes meanwhile are not
// missed. gone is called with each element before it is removed. Expire takes no memory. soonest is
// the time when the next element of these blocks expires, 0 if none does.
func (t *Table) Expire(cursor uint64, blocks int, gone func(e Element)) (next uint64, soonest int64) {
	if t.V.Len(t.Blocks) == 0 || cursor >= scanEnd {
		return 0, 0
	}
	for ; blocks > 0; blocks-- {
		number, next := blockAt(cursor, t.V.Len(t.Blocks))
		if b := block(t.V.Part(t.Blocks, number)); b.items() > t.Items {
			before := t.Len()
			soonest = earlier(soonest, t.expireIn(number, gone))
			// The fewer blocks there are, the fewer are visited. If few were merged for each, a table
			// that has lost nearly all of its elements would keep many blocks, and Random find nothing.
			for range min(before-t.Len(), expireShrinks) {
				t.shrink()
			}
		}
		if next == 0 {
			return 0, soonest
		}
		cursor = next
	}
	return cursor, soonest
}

func (t *Table) expireIn(number int, gone func(e Element)) (soonest int64) {
	b := block(t.V.Part(t.Blocks, number))
	edited := false
	for e, off := 0, blockHead; e < b.count(); {
		at := place{e, off}
		expireAt := t.expireAt(b, at)
		if !t.isDue(expireAt) {
			soonest = earlier(soonest, expireAt)
			off += b.size(e)
			e++
			continue
		}
		gone(t.element(b, at))
		if !edited {
			b, edited = t.V.Edit(t.Blocks, number), true
		}
		t.remove(b, at)
	}
	if edited {
		fit(t.V, t.Blocks, number)
	}
	return soonest
}

// earlier is the earlier of two times, of which 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
