package engine

// A value with parts dies in one step: its root is freed, and its head joins the doomed. Those are
// freed in slices, by Sweep, and by a command that needs memory before it evicts anything
// (evict_spare.go). So to doom a value is a gain.

// doom ends the value whose root is in the cell, which the caller frees or writes over.
func (vs *values) doom(ref handle, hdr header) {
	at := vs.s.cells.headOf(ref, hdr)
	h := vs.s.cells.head(at)
	if free := vs.s.e.forms[h.typ].Free; free != nil {
		free(vs.s.cells.body(ref, hdr)[hdr.keyLen()+rootSize:])
	}
	vs.leave(at)
	if h.unfinished {
		vs.forgetUnfinished(at)
	}
	h.root, h.ahead, h.due = 0, 0, 0
	if vs.doomed == 0 {
		vs.doomed = at
		vs.s.e.spares[doomedParts].Add(1)
	} else {
		vs.s.cells.head(vs.last).ahead = at
	}
	vs.last = at
	vs.s.gains++
}

// drain frees parts of doomed values, as far as the budget goes, and reports whether there
// were any.
func (vs *values) drain(budget int) bool {
	if vs.doomed == 0 {
		return false
	}
	for budget > 0 && vs.doomed != 0 {
		at := vs.doomed
		h := vs.s.cells.head(at)
		for i := range h.planes {
			budget = vs.drainPlane(h, &h.planes[i], budget)
		}
		if budget <= 0 {
			break
		}
		budget--
		vs.doomed = h.ahead
		vs.s.sums.Parts -= h.bytes
		vs.s.slabs.put(at)
	}
	if vs.doomed == 0 {
		vs.s.e.spares[doomedParts].Add(-1)
	}
	return true
}

// drainPlane frees parts of a plane, the last ones first, and returns the rest of the budget: below
// 1 if there may be more parts.
func (vs *values) drainPlane(h *valueHead, p *plane, budget int) int {
	for ; budget > 0 && p.span > 0; budget-- {
		bytes := int64(0)
		if at := vs.s.cells.partAt(p, p.span-1); *at != 0 {
			bytes = vs.freePart(*at)
			*at = 0
			p.parts--
		}
		budget -= int(bytes / drainBytes)
		bytes += vs.retractNumber(p)
		h.bytes -= bytes
		vs.s.sums.Parts -= bytes
	}
	return budget
}

// renounce forgets all values with parts, for a Reset.
func (vs *values) renounce() {
	if vs.doomed != 0 {
		vs.s.e.spares[doomedParts].Add(-1)
	}
	vs.dropStash()
	*vs = values{s: vs.s, stash: vs.stash, needs: vs.needs}
	vs.s.sums.Parts = 0
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
