package engine

// The clock: a shard's pages of records stand in a ring, and a hand goes round them, cell by cell. A record that was
// used since the hand's last visit loses one of its chances; one without a chance goes. Classes of cells share the
// ring, so each loses what is cold in it; a page that has become so sparse that its records fit into the free cells of
// its class elsewhere is emptied by moving them, which is how memory gets from one class to another.

// hand is a place in the ring.
type hand struct {
	page uint32 // 0: the ring is empty
	cell uint32 // next one to look at
}

const (
	// A visit looks at this many cells before it stops caring for chances: 16 Ki cells take about 0.1 ms.
	maxLook = 16 << 10
	// Of this many records that expire, the one that expires first goes (VolatileTTL).
	ttlSample = 16
)

// joinClock puts the page right behind the hand, to be visited last.
func (s *shard) joinClock(pg uint32) {
	pages := s.e.pool.pages
	if s.hand.page == 0 {
		pages[pg].ahead, pages[pg].behind = pg, pg
		s.hand, s.sweeper = hand{page: pg}, hand{page: pg}
		return
	}
	at := s.hand.page
	last := pages[at].behind
	pages[pg].ahead, pages[pg].behind = at, last
	pages[last].ahead, pages[at].behind = pg, pg
}

func (s *shard) leaveClock(pg uint32) {
	pages := s.e.pool.pages
	ahead, behind := pages[pg].ahead, pages[pg].behind
	if ahead == pg {
		s.hand, s.sweeper = hand{}, hand{}
		return
	}
	pages[behind].ahead, pages[ahead].behind = ahead, behind
	if s.hand.page == pg {
		s.hand = hand{page: ahead}
	}
	if s.sweeper.page == pg {
		s.sweeper = hand{page: ahead}
	}
}

// next steps the hand over one cell and returns the record in it, 0 if it holds none or the hand came to a new page.
func (s *shard) next(h *hand) handle {
	p := &s.e.pool.pages[h.page]
	if h.cell >= uint32(p.bump) {
		*h = hand{page: p.ahead}
		return 0
	}
	ref := s.firstCell(h.page) + handle(h.cell*s.e.classes.units[p.class])
	h.cell++
	if !s.header(ref).live() {
		return 0
	}
	return ref
}

// reclaim moves the hand until a cell of the class wanted is free or the budget has gained.
func (s *shard) reclaim(want int) bool {
	if s.e.policy != AllKeys && s.sums.Volatile == 0 {
		return s.compact()
	}
	gains := s.gains
	for looks := 0; looks < maxLook && s.hand.page != 0; looks++ {
		if s.hand.cell == 0 && s.evacuate(s.hand.page) {
			return true
		}
		ref := s.next(&s.hand)
		if ref == 0 || ref == s.pinned {
			continue
		}
		class := s.e.pool.pages[s.pageOf(ref)].class
		if s.judge(ref) && (int(class) == want || s.gains != gains) {
			return true
		}
	}
	return s.e.policy == AllKeys && s.evictPage()
}

// judge removes the record under the hand, or another one in its place, if it is its time to go.
func (s *shard) judge(ref handle) bool {
	h := s.header(ref)
	at := s.expireAt(ref, h)
	switch {
	case expired(at, s.now):
		s.expire(ref)
		return true
	case s.e.policy == NoEviction:
		return false
	case s.e.policy == VolatileTTL:
		return at != 0 && s.evictSoonest(ref, at)
	case h.use() > 0:
		s.setHeader(ref, h-1<<useShift)
		return false
	}
	s.evict(ref)
	return true
}

// evictSoonest is VolatileTTL's judgement over the record under the hand and the next few that expire.
func (s *shard) evictSoonest(soonest handle, at int64) bool {
	page := s.hand.page
	for sample := 1; sample < ttlSample && s.hand.page == page && s.hand.cell != 0; {
		ref := s.next(&s.hand)
		if ref == 0 || ref == s.pinned {
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

// evictPage empties the page under the hand whatever chances its records have; it tries the next one too, in case a
// record is pinned in the first.
func (s *shard) evictPage() bool {
	for range 2 {
		pg, gains := s.hand.page, s.gains
		if pg == 0 {
			return false
		}
		s.hand.cell = 0
		for s.hand.page == pg && s.hand.cell < uint32(s.e.pool.pages[pg].bump) {
			if ref := s.next(&s.hand); ref != 0 && ref != s.pinned {
				s.evict(ref)
			}
		}
		if s.gains != gains {
			return true
		}
		s.hand = hand{page: s.e.pool.pages[pg].ahead}
	}
	return false
}

func (s *shard) evict(ref handle) {
	s.sums.Evicted++
	s.discard(ref)
}

func (s *shard) expire(ref handle) {
	s.sums.Expired++
	s.discard(ref)
}

// discard removes a record that was found by its cell.
func (s *shard) discard(ref handle) {
	h := s.header(ref)
	p, tag := s.recordTag(ref, h)
	s.erase(p, tag, s.slotOf(p, tag, ref))
	s.changes++
}

// recordTag is the partition and the tag of a stored record.
func (s *shard) recordTag(ref handle, h header) (*partition, uint32) {
	return s.partition(h.partition()), tagOf(s.seed, s.body(ref, h)[:h.keyLen()])
}
