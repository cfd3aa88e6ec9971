package engine

import (
	"math"
	"runtime"
)

// To free a page, all records on it have to go, and there may be thousands. A command makes room
// under its own lock one record for one, and finds pages that were emptied before (evict_ahead.go).
// Whoever makes room in another way does it in slices, each under a lock of its own: it judges,
// evicts or moves some records. What a slice has begun the next one goes on with, whoever needs
// room then. The hands and the small queue keep their places anyway, and a page that is being
// emptied is in no list, so that nothing comes to it between two slices.

const (
	// A slice evicts or moves up to roomAtOnce records or parts: up to 50 µs.
	roomAtOnce = 128
	// unlimited is how many a command may evict and move where nothing else helps.
	unlimited = math.MaxInt
)

// emptying is a page of which all records are evicted, or moved to other pages.
type emptying struct {
	at     hand // what is looked at next; page 0: no page is being emptied
	evicts bool
}

// spent reports whether the slice is over.
func (s *shard) spent() bool { return s.steps <= 0 }

// beginSlice limits what is evicted and moved in this shard until endSlice.
func (s *shard) beginSlice() { s.steps = roomAtOnce }

// endSlice reports whether the slice was over before all was done.
func (s *shard) endSlice() (spent bool) {
	spent = s.spent()
	s.steps = unlimited
	return spent
}

// roomSlice makes room, or gets closer to it: records may have to go from several pages before one
// of them is empty. It reports whether it did either, and whether more slices would do more.
// Warm pages are room only for what is not made of pages.
func (s *shard) roomSlice(chill bool) (further, cut bool) {
	discards := s.discards
	s.beginSlice()
	further = chill && s.e.pool.chillWarm() || s.reclaim(noClass, looksElsewhere)
	if cut = s.endSlice() && !further; cut {
		s.e.cut.Store(int32(s.number) + 1)
	} else {
		s.e.cut.CompareAndSwap(int32(s.number)+1, 0)
	}
	return further || cut || s.discards != discards, cut
}

// firstVictim is the number of the shard in which to look for room first: the one where a slice was
// cut off, or one picked at random.
func (e *Engine) firstVictim() int {
	if cut := int(e.cut.Load()); cut > 0 {
		return cut - 1
	}
	return max(0, e.pool.owner(e.dice.Add(diceStep)))
}

// makeRoom is a shard's makeRoom for a caller that holds no lock.
func (e *Engine) makeRoom() bool {
	for range slicesAtOnce {
		further, cut := e.makeRoomSlice()
		if !cut {
			return further
		}
		runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
	}
	return true
}

// slicesAtOnce is how many slices makeRoom takes at most: more than a page of the smallest records
// does.
const slicesAtOnce = maxPageSize / (2 * wordSize) / roomAtOnce

// makeRoomSlice is a slice of makeRoom, in one shard.
func (e *Engine) makeRoomSlice() (further, cut bool) {
	if e.large.reclaim() || e.reclaimAnySpare() {
		return true, false
	}
	first := e.firstVictim()
	for i := range e.shards {
		s := &e.shards[(first+i)&(len(e.shards)-1)]
		s.mu.Lock()
		further, cut = s.roomSlice(true)
		s.mu.Unlock()
		if further {
			break
		}
	}
	return further, cut
}

// evictFrom goes on with the page that is being emptied, or else begins to evict all records but
// roots from page pg. It reports whether a page is free.
func (sb *slabs) evictFrom(pg uint32) bool {
	if sb.emptying.at.page == 0 {
		sb.leave(pg)
		sb.emptying = emptying{at: hand{page: pg}, evicts: true}
	}
	return sb.empty()
}

// empty goes on with the page that is being emptied, and reports whether it is free now.
func (sb *slabs) empty() bool {
	pg := sb.emptying.at.page
	if pg == 0 || sb.isPinned(pg) && !sb.emptying.evicts {
		return false
	}
	// With the last record the page is gone, perhaps already another shard's: p is not looked at
	// again.
	p, at := &sb.e.pool.pages[pg], &sb.emptying.at
	for at.page == pg && at.cell < uint32(p.bump) {
		switch {
		case sb.s.spent():
			return false
		case !sb.emptying.evicts:
			if !sb.moveNext(p) {
				sb.stopEmptying()
				return false
			}
		case sb.e.Policy() != AllKeys:
			sb.stopEmptying()
			return false
		default:
			if ref := sb.s.clocks.next(at); ref != 0 && !sb.cells.header(ref).isRoot() {
				sb.s.evict(ref)
			}
		}
	}
	if at.page != pg {
		return true
	}
	sb.stopEmptying() // something had to stay
	return false
}

// stopEmptying has the page that is being emptied stay with what is on it.
func (sb *slabs) stopEmptying() {
	if pg := sb.emptying.at.page; pg != 0 {
		sb.emptying = emptying{}
		sb.stay(pg)
	}
}

// moveNext moves the next record, or part, of page p, which is being emptied, if there is one in
// its cell. It reports false if there is no cell for it elsewhere.
func (sb *slabs) moveNext(p *page) bool {
	k := p.kind
	ref := sb.e.step(&sb.emptying.at)
	live, class := sb.cellUse(k, int(p.class), ref)
	if !live {
		return true
	}
	to := sb.takeNear(k, class)
	if to == 0 && class < int(p.class) {
		to = sb.takeNear(k, int(p.class)) // its cell is larger than it needs, and so may the next one be
	}
	switch {
	case to == 0:
		return false
	case k == partCells:
		sb.s.values.movePart(ref, to)
	default:
		in, tag := sb.s.recordTag(ref, sb.cells.header(ref))
		sb.move(ref, to, in, tag)
	}
	return true
}
