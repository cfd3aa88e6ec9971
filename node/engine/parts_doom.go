package engine

// A value with parts dies in one step, whoever ends it: its root is freed, and its head joins the
// doomed. Those are freed in slices, by Sweep, and by whoever needs memory before anything is
// evicted (evict_spare.go). So to doom a value is a gain.

// doomValue ends the value whose root is in the cell, which the caller frees or writes over.
func (s *shard) doomValue(ref handle, hdr header) {
	at := s.cells.headOf(ref, hdr)
	h := s.cells.head(at)
	if free := s.e.forms[h.typ].Free; free != nil {
		free(s.cells.body(ref, hdr)[hdr.keyLen()+rootSize:])
	}
	s.leaveRoots(at)
	h.root, h.ahead, h.due = 0, 0, 0
	v := &s.values
	if v.doomed == 0 {
		v.doomed = at
		s.e.spares[doomedParts].Add(1)
	} else {
		s.cells.head(v.last).ahead = at
	}
	v.last = at
	s.gains++
}

// drainValues frees parts of doomed values, as far as the budget goes, and reports whether there
// were any.
func (s *shard) drainValues(budget int) bool {
	v := &s.values
	if v.doomed == 0 {
		return false
	}
	for budget > 0 && v.doomed != 0 {
		at := v.doomed
		h := s.cells.head(at)
		for i := range h.planes {
			budget = s.drainPlane(h, &h.planes[i], budget)
		}
		if budget <= 0 {
			break
		}
		budget--
		v.doomed = h.ahead
		s.sums.Parts -= h.bytes
		s.put(at)
	}
	if v.doomed == 0 {
		s.e.spares[doomedParts].Add(-1)
	}
	return true
}

// drainPlane frees parts of a plane, the last ones first, and returns what is left of the budget:
// below 1 if there may be more.
func (s *shard) drainPlane(h *valueHead, p *plane, budget int) int {
	for ; budget > 0 && p.span > 0; budget-- {
		bytes := int64(0)
		if at := s.cells.partAt(p, p.span-1); *at != 0 {
			bytes = s.freePart(*at)
			*at = 0
			p.parts--
		}
		budget -= int(bytes / drainBytes)
		bytes += s.retractNumber(p)
		h.bytes -= bytes
		s.sums.Parts -= bytes
	}
	return budget
}

// renounceValues forgets all values with parts, for a Reset.
func (s *shard) renounceValues() {
	if s.values.doomed != 0 {
		s.e.spares[doomedParts].Add(-1)
	}
	s.dropStash()
	s.values = values{}
	s.sums.Parts = 0
}

// disownParts gives up the extents of the parts on a page that no shard knows.
func (e *Engine) disownParts(pg uint32) {
	p := &e.pool.pages[pg]
	for h := (hand{page: pg}); h.cell < uint32(p.bump); {
		ref := e.step(&h)
		if w := partWord(*e.cells.word(ref)); w.head() != 0 && w.away() {
			e.large.disown(*e.cells.second(ref))
		}
	}
}
