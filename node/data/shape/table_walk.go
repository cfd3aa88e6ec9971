package shape

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

// Scan calls f for the elements of some blocks from a cursor on, those that have expired left out. It
// ends as scan does, whose cursors these are. weight is asked about elements of blocks that have long strings: it
// returns how many bytes f copies of one.
func (t *Table) Scan(
	cursor uint64, full func(passed int) bool, weight func(e Element) int, f func(e Element),
) (next uint64) {
	return scan(t.V, t.Blocks, cursor, full, func(number int, s span) (visited span, passed int) {
		b := block(t.V.Part(t.Blocks, number))
		if t.V.Count(t.Away) > 0 && b.hasAway() {
			c := s.cut()
			for done := false; !done; done = c.narrow() {
				b.each(func(at place) { c.add(t.hashOf(b, at), weight(t.element(b, at))) })
			}
			s = c.span
		}
		b.each(func(at place) {
			if !s.whole && !s.has(t.hashOf(b, at)) {
				return
			}
			if x := t.element(b, at); t.isDue(x.ExpireAt) {
				passed++
			} else {
				f(x)
			}
		})
		return s, passed
	})
}

// expireShrinks is how often Expire shrinks the table for one block, at most.
const expireShrinks = 8

// Expire removes what has expired from some blocks, from a cursor on, and returns the cursor where to
// go on: 0 at the end. Its cursors are places of blockAt: elements of a table that changes meanwhile
// are not missed. gone is called with each element before it is removed. Expire takes no memory. soonest is
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
