package engine

// The roots of values with parts have a clock of their own: they stand in a ring, and a hand goes
// round them as the hands of the other clocks go round pages. A value counts for as many pages as
// lie behind it, so the roots' hand takes its time with big values, and a round takes as long as
// one of any other clock if it frees as much. Parts have no uses: their cells are passed by no
// hand, and a root's cell only by this one.

const (
	// looksRoots is how many roots are looked at before the next one goes whether it was used or
	// not.
	looksRoots = 64
)

// values is what a shard has of values with parts.
type values struct {
	pages  int64  // of parts, directories and heads
	unused int64  // bytes of free cells of parts and directories
	sparse int    // class in which compact looked last
	hand   handle // the head that is judged next; 0: there is none
	passed int64  // bytes behind the hand that were not counted as a page yet
	doomed handle // list of the heads of values that are to be freed, the first and
	last   handle // the last one
}

func (v *values) adopted(k kind, bytes int64) {
	v.pages++
	if k == partCells {
		v.unused += bytes
	}
}

func (v *values) abandoned(k kind, bytes int64) {
	v.pages--
	if k == partCells {
		v.unused -= bytes
	}
}

// joinRoots puts a head right behind the hand, to be visited last.
func (s *shard) joinRoots(at handle) {
	h, v := s.cells.head(at), &s.values
	h.stamp = s.e.pool.tick.Load()
	if v.hand == 0 {
		h.ahead, h.behind, v.hand = at, at, at
		return
	}
	next := s.cells.head(v.hand)
	h.ahead, h.behind = v.hand, next.behind
	s.cells.head(next.behind).ahead = at
	next.behind = at
}

func (s *shard) leaveRoots(at handle) {
	h, v := s.cells.head(at), &s.values
	if h.ahead == at {
		v.hand = 0
		return
	}
	s.cells.head(h.behind).ahead, s.cells.head(h.ahead).behind = h.ahead, h.behind
	if v.hand == at {
		v.hand = h.ahead
	}
}

// rootsAge is how long the root that waits longest has not been visited, in visits of pages; 0 if
// there is none.
func (s *shard) rootsAge() uint32 {
	if s.values.hand == 0 {
		return 0
	}
	return s.e.pool.tick.Load() - s.cells.head(s.values.hand).stamp
}

// rootsAreColder reports whether the roots wait much longer than the class does, if any, that waits
// longest.
func (s *shard) rootsAreColder(class int) bool {
	return s.values.hand != 0 && (class == noClass || older(s.rootsAge(), s.clocks.age(class)))
}

// turnRoots moves the hand until a value is doomed, and reports whether one was.
func (s *shard) turnRoots() bool {
	for looks := 0; s.values.hand != 0 && looks < 2*looksRoots; looks++ {
		at := s.values.hand
		h := s.cells.head(at)
		hdr := s.cells.header(h.root)
		switch {
		case h.spared || h.root == s.pinned:
		case expired(s.cells.expireAt(h.root, hdr), s.now):
			s.expire(h.root)
			return true
		case hdr.uses() > 0 && looks < looksRoots:
			s.cells.setHeader(h.root, s.e.aged(hdr))
		default:
			s.evict(h.root)
			return true
		}
		s.values.passed += h.bytes
		size := int64(s.e.pool.pageSize)
		h.stamp = s.e.pool.tick.Add(uint32(s.values.passed / size))
		s.values.passed %= size
		s.values.hand = h.ahead
	}
	return false
}

// isSpared reports whether a record with header h is a root that making room must leave alone.
func (s *shard) isSpared(ref handle, h header) bool {
	return h.isRoot() && s.cells.head(s.cells.headOf(ref, h)).spared
}
