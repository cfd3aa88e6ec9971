package engine

// newRecord takes a cell, and a slot for a large body, for a record with header h, and writes all but the body. It may
// evict. The record belongs to nobody yet: until it is in an index, nothing else may be allocated.
func (s *shard) newRecord(h header, expireAt int64) (handle, error) {
	var body uint64
	large := s.isLarge(h)
	if large {
		cost := largeCost(h.bodyLen())
		if !s.chargeLarge(cost, 0) {
			return 0, ErrMemory
		}
		body = s.e.large.slot(h.bodyLen())
	}
	ref := s.obtain(records, s.e.classes.of(s.cellLen(h)))
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
	}
	return ref, nil
}

// fits says whether a record with header h may take the place of old in its cell, without wasting much of it.
func (s *shard) fits(ref handle, old, h header) bool {
	if s.isLarge(old) || s.isLarge(h) {
		return false
	}
	size := s.e.classes.size(int(s.e.pool.pages[s.pageOf(ref)].class))
	n := s.cellLen(h)
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
		s.dropLarge(*s.cells.third(ref), h.bodyLen())
	}
	s.put(ref)
}

func (s *shard) dropLarge(offset uint64, n int) {
	s.e.large.drop(offset, n)
	s.e.pool.refund(largeCost(n))
	s.gains++
}
