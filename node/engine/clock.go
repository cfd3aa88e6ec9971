package engine

// The clocks: the pages of each class of records stand in a ring of their own, and a hand goes round them, cell by
// cell. A record that was used since the hand's last visit is spared and has to be used again until the next; another
// one goes. So a class that is written to finds room in itself, one record for one.
//
// How memory gets to where it is needed: a page is stamped when a hand leaves it. A class whose hand comes to pages
// of a much later stamp than others wait with has too few of them; it then takes a page from the one that waits
// longest, in this shard or another one. All hands thereby take about the same time for a round, as one clock for the
// whole node would.

// hand is a place in a ring.
type hand struct {
	page uint32 // 0: the ring is empty
	cell uint32 // next one to look at
}

const (
	// So many cells are looked at in one shard before it is given up: evicting a whole page used or not, if that
	// is allowed, else trying elsewhere. 16 Ki cells take about 0.1 ms.
	looksOwn       = 16 << 10
	looksElsewhere = 1 << 10
	// Of this many records that expire, the one that expires first goes (VolatileTTL).
	ttlSample = 16
)

// joinClock puts the page right behind the hand of its class, to be visited last.
func (s *shard) joinClock(pg uint32) {
	pages := s.e.pool.pages
	p := &pages[pg]
	p.stamp = s.e.pool.tick.Load()
	h := &s.hands[p.class]
	if h.page == 0 {
		p.ahead, p.behind = pg, pg
		*h = hand{page: pg}
		return
	}
	last := pages[h.page].behind
	p.ahead, p.behind = h.page, last
	pages[last].ahead, pages[h.page].behind = pg, pg
}

func (s *shard) leaveClock(pg uint32) {
	pages := s.e.pool.pages
	p := &pages[pg]
	h := &s.hands[p.class]
	if p.ahead == pg {
		*h = hand{}
		return
	}
	pages[p.behind].ahead, pages[p.ahead].behind = p.ahead, p.behind
	if h.page == pg {
		*h = hand{page: p.ahead}
	}
}

// next steps the hand over one cell and returns the record in it, 0 if it holds none or the hand left the page.
func (s *shard) next(h *hand) handle {
	p := &s.e.pool.pages[h.page]
	if h.cell >= uint32(p.bump) {
		p.stamp = s.e.pool.tick.Add(1)
		*h = hand{page: p.ahead}
		return 0
	}
	ref := s.e.step(h)
	if !s.header(ref).live() || ref == s.pinned {
		return 0
	}
	return ref
}

// age is for how many pages' visits, all over the node, the page that waits longest in the ring has not been visited.
func (s *shard) age(class int) uint32 {
	return s.e.pool.tick.Load() - s.e.pool.pages[s.hands[class].page].stamp
}

// coldest is the class whose hand's page waits for the longest time, or the preferred one if that is hardly less.
func (s *shard) coldest(preferred int) int {
	best, bestAge := noClass, uint32(0)
	for class := range s.hands {
		if s.hands[class].page == 0 {
			continue
		}
		if age := s.age(class); best == noClass || age > bestAge {
			best, bestAge = class, age
		}
	}
	s.coldStamp.Store(s.e.pool.tick.Load() - bestAge)
	if preferred != noClass && s.hands[preferred].page != 0 && !older(bestAge, s.age(preferred)) {
		return preferred
	}
	return best
}

// older says whether one age is so much higher than another that memory should move.
func older(one, other uint32) bool { return one > other+other/4+8 }

// betweenPages says whether the hand of the class is about to visit a page, which is the time to ask whether it should.
func (s *shard) betweenPages(class int) bool {
	return class == noClass || s.hands[class].page == 0 || s.hands[class].cell == 0
}

// reclaim moves a hand until a cell of the class wanted is free or the budget has gained.
func (s *shard) reclaim(want, maxLooks int) bool {
	if s.e.Policy() != AllKeys && s.sums.Volatile == 0 {
		return s.compact()
	}
	class := want
	if s.betweenPages(want) {
		class = s.coldest(want)
	}
	if class == noClass {
		return false
	}
	gains, h := s.gains, &s.hands[class]
	for range maxLooks {
		if h.cell == 0 && s.evacuate(h.page) {
			return true
		}
		if ref := s.next(h); ref != 0 && s.judge(ref, h) && (class == want || s.gains != gains) {
			return true
		}
	}
	return s.e.Policy() == AllKeys && s.evictPage(h)
}

// judge removes the record under the hand, or another one in its place, if it is its time to go.
func (s *shard) judge(ref handle, h *hand) bool {
	hdr := s.header(ref)
	at := s.expireAt(ref, hdr)
	switch {
	case expired(at, s.now):
		s.expire(ref)
		return true
	case s.e.Policy() == NoEviction:
		return false
	case s.e.Policy() == VolatileTTL:
		return at != 0 && s.evictSoonest(ref, at, h)
	case hdr.used():
		s.setHeader(ref, hdr&^usedBit)
		return false
	}
	s.evict(ref)
	return true
}

// evictSoonest is VolatileTTL's judgement over the record under the hand and the next few on its page that expire.
func (s *shard) evictSoonest(soonest handle, at int64, h *hand) bool {
	for sample := 1; sample < ttlSample && h.cell < uint32(s.e.pool.pages[h.page].bump); {
		ref := s.next(h)
		if ref == 0 {
			continue
		}
		if a := s.expireAt(ref, s.header(ref)); a != 0 {
			sample++
			if a < at {
				soonest, at = ref, a
			}
		}
	}
	s.evict(soonest)
	return true
}

// evictPage empties the page under the hand whether its records were used or not; it tries the next one too, in case a
// record is pinned in the first.
func (s *shard) evictPage(h *hand) bool {
	for range 2 {
		pg, gains := h.page, s.gains
		if pg == 0 {
			return false
		}
		h.cell = 0
		for h.page == pg && h.cell < uint32(s.e.pool.pages[pg].bump) {
			if ref := s.next(h); ref != 0 {
				s.evict(ref)
			}
		}
		if s.gains != gains {
			return true
		}
		*h = hand{page: s.e.pool.pages[pg].ahead}
	}
	return false
}

func (s *shard) evict(ref handle) { s.discard(ref, &s.sums.Evicted) }

func (s *shard) expire(ref handle) { s.discard(ref, &s.sums.Expired) }

// discard removes a record that was found by its cell and counts it, unless it went with its partition before.
func (s *shard) discard(ref handle, count *int64) {
	p, tag := s.recordTag(ref, s.header(ref))
	if len(s.doomed) == 0 || !s.isDoomed(p) {
		*count++
	}
	s.erase(p, tag, s.slotOf(p, tag, ref))
	s.changes++
}

// recordTag is the index that names a stored record, and its tag.
func (s *shard) recordTag(ref handle, h header) (*partition, uint32) {
	tag := tagOf(s.seed, s.body(ref, h)[:h.keyLen()])
	return s.indexOf(h.partition(), tag, ref), tag
}
