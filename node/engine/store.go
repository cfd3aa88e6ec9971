package engine

// newRecord takes a cell in the queue k, and a slot for a large body, for a record with header h, and writes all but the
// body. It may evict. The record belongs to nobody yet: until it is in an index, nothing else may be allocated.
func (s *shard) newRecord(h header, expireAt int64, k kind) (handle, error) {
	var body uint64
	large := s.isLarge(h)
	if large {
		cost := largeCost(h.bodyLen())
		if !s.chargeLarge(cost, 0) {
			return 0, ErrMemory
		}
		body = s.e.large.slot(h.bodyLen())
	}
	n := s.e.cellLen(h)
	if k == smallLog && s.overfull() {
		s.judgeSmall(judgeAhead * n)
	}
	ref := s.obtain(k, n)
	if ref == 0 {
		if large {
			s.dropLarge(body, h.bodyLen())
		}
		return 0, ErrMemory
	}
	s.setHeader(ref, h)
	if h.hasExpiry() {
		*s.cells.second(ref) = uint64(expireAt)
	}
	if large {
		*s.cells.third(ref) = body
		s.countLarge(ref, largeCost(h.bodyLen()))
	}
	return ref, nil
}

// fits says whether a record with header h may take the place of old in its cell, without wasting much of it.
func (s *shard) fits(ref handle, old, h header) bool {
	if s.isLarge(old) || s.isLarge(h) {
		return false
	}
	n := s.e.cellLen(h)
	p := &s.e.pool.pages[s.pageOf(ref)]
	if p.kind == smallLog {
		return s.e.classes.unitsFor(n) <= s.e.classes.unitsFor(s.e.cellLen(old))
	}
	size := s.e.classes.size(int(p.class))
	return n <= size && size-n <= size/4+wordSize
}

// resizeLarge makes the body of a large record n bytes long, which remains large. The header is the caller's to change.
func (s *shard) resizeLarge(ref handle, old header, n int) error {
	before, after := largeCost(old.bodyLen()), largeCost(n)
	if after > before {
		s.pinned = ref
		ok := s.chargeLarge(after-before, before)
		s.pinned = 0
		if !ok {
			return ErrMemory
		}
	}
	s.countLarge(ref, after-before)
	offset := s.cells.third(ref)
	*offset = s.e.large.resize(*offset, old.bodyLen(), n)
	if after < before {
		s.e.pool.refund(before - after)
		s.gains++
	}
	return nil
}

// erase removes the record in sl from the index and frees it.
func (s *shard) erase(p *partition, tag uint32, sl slot) {
	ref := sl.ref()
	s.remove(p, tag, sl)
	s.free(ref)
}

// free gives back all that a record has.
func (s *shard) free(ref handle) {
	h := s.header(ref)
	s.account(h, s.expireAt(ref, h), -1)
	if s.isLarge(h) {
		s.countLarge(ref, -largeCost(h.bodyLen()))
		s.dropLarge(*s.cells.third(ref), h.bodyLen())
	}
	s.put(ref)
}

// queueOf is the queue that the record is in.
func (s *shard) queueOf(ref handle) kind { return s.e.pool.pages[s.pageOf(ref)].kind }

// countLarge notes that the large body of a record has n bytes more.
func (s *shard) countLarge(ref handle, n int64) {
	s.large += n
	if s.queueOf(ref) == smallLog {
		s.small.large += n
	}
}

func (s *shard) dropLarge(offset uint64, n int) {
	s.e.large.drop(offset, n)
	s.e.pool.refund(largeCost(n))
	s.gains++
}
