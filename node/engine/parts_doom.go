package engine

// A value with parts dies in one step: its root is freed, and its head joins the doomed. Those are
// freed in slices, by Sweep, and by a command that needs memory before it evicts anything
// (evict_spare.go). So to doom a value is a gain.

// doom ends the value whose root is in the cell, which the caller frees or writes over.
func (v *values) doom(ref handle, hdr header) {
	at := v.s.cells.headOf(ref, hdr)
	h := v.s.cells.head(at)
	if free := v.s.e.forms[h.typ].Free; free != nil {
		free(v.s.cells.body(ref, hdr)[hdr.keyLen()+rootSize:])
	}
	v.leave(at)
	if h.unfinished {
		v.forgetUnfinished(at)
	}
	h.root, h.ahead, h.due = 0, 0, 0
	if !v.pinnedDeath(at) {
		v.bury(at)
	}
}

// bury has a value freed that is dead and not pinned.
func (v *values) bury(at handle) {
	if v.doomed == 0 {
		v.doomed = at
		v.s.e.spares[doomedParts].Add(1)
	} else {
		v.s.cells.head(v.last).ahead = at
	}
	v.last = at
	v.s.gains++
}

// drain frees parts of doomed values, as far as the budget goes, and reports whether there
// were any.
func (v *values) drain(budget int) bool {
	if v.doomed == 0 {
		return false
	}
	for budget > 0 && v.doomed != 0 {
		at := v.doomed
		h := v.s.cells.head(at)
		for i := range h.planes {
			budget = v.drainPlane(h, &h.planes[i], budget)
		}
		if budget <= 0 {
			break
		}
		budget--
		v.doomed = h.ahead
		v.s.sums.Parts -= h.bytes
		v.s.slabs.put(at)
	}
	if v.doomed == 0 {
		v.s.e.spares[doomedParts].Add(-1)
	}
	return true
}

// drainPlane frees parts of a plane, the last ones first, and returns the rest of the budget: below
// 1 if there may be more parts.
func (v *values) drainPlane(h *valueHead, p *plane, budget int) int {
	for ; budget > 0 && p.span > 0; budget-- {
		bytes := int64(0)
		if at := v.s.cells.partAt(p, p.span-1); *at != 0 {
			bytes = v.freePart(*at)
			*at = 0
			p.parts--
		}
		budget -= int(bytes / drainBytes)
		bytes += v.retractNumber(p)
		h.bytes -= bytes
		v.s.sums.Parts -= bytes
	}
	return budget
}

// renounce forgets all values with parts, for a Reset.
func (v *values) renounce() {
	if v.doomed != 0 {
		v.s.e.spares[doomedParts].Add(-1)
	}
	v.dropStash()
	v.breakAll()
	*v = values{s: v.s, stash: v.stash, needs: v.needs}
	v.s.sums.Parts = 0
}

// disownParts gives up the extents of the parts on a page that no shard knows.
func (e *Engine) disownParts(pg uint32) {
	p := &e.pool.pages[pg]
	for h := (hand{page: pg}); h.cell < uint32(p.bump); {
		ref := e.step(&h)
		if w := partWord(*e.windowOf(pg).word(ref)); w.head() != 0 && w.away() {
			e.large.disown(*e.windowOf(pg).second(ref))
		}
	}
}
