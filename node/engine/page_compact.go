package engine

// Free cells are memory that only records of about their size can use. When free cells take more
// than their share of a shard, sparse pages are emptied into the free cells of other pages, which
// may be a little larger than their records need.

const (
	// wasteful: free cells may take a wasteShare-th of a shard's pages.
	wasteShare = 24
	// maxSparse is how many pages of a class are looked at for one to be emptied.
	maxSparse = 4
)

// wasteful reports whether free cells take more than their share.
func (sb *slabs) wasteful() bool {
	return wasteShare*sb.unused > sb.pages*int64(sb.e.pool.pageSize)
}

// near reports whether records or parts of a class may move to cells of another class: records to
// cells up to a quarter larger. Parts stay in their class, since nothing would lead them back. So
// do records while cells are reserved: otherwise the pages of two classes could be emptied into one
// another for ever, each time taken again for the reservation.
func (sb *slabs) near(k kind, class, up int) bool {
	c := &sb.e.classes
	return up == class || k == mainCells && len(sb.s.values.needs) == 0 && up < numClasses && 4*c.units[up] <= 5*c.units[class]
}

// takeNear returns a free cell for a record, or part, of the class, from a page that the shard has;
// 0 if there is none.
func (sb *slabs) takeNear(k kind, class int) handle {
	for up := class; sb.near(k, class, up); up++ {
		if c := &sb.kinds[k].classes[up]; c.room != 0 && (len(sb.s.values.needs) == 0 || c.cells > sb.s.values.wanted(k, up)) {
			return sb.takeFrom(k, up)
		}
	}
	return 0
}

// evacuate frees a page by moving its records into free cells on other pages, if there seem to be
// enough. If a page is being emptied that way, it goes on with that one. It reports whether one is
// free.
func (sb *slabs) evacuate(pg uint32) bool {
	if sb.emptying.at.page != 0 {
		return !sb.emptying.evicts && sb.empty()
	}
	p := &sb.e.pool.pages[pg]
	class, k := int(p.class), p.kind
	perPage := sb.e.classes.perPage[class]
	if p.live == 0 { // reserved, and perhaps not needed
		free := sb.kinds[k].classes[class].cells - perPage
		if free >= sb.s.values.wanted(k, class) {
			sb.abandon(pg)
			return true
		}
		return false
	}
	need := int(perPage) // its own free cells do not count
	for up := class; sb.near(k, class, up) && need > 0; up++ {
		need -= int(sb.kinds[k].classes[up].cells)
		if len(sb.s.values.needs) > 0 {
			need += int(sb.s.values.wanted(k, up))
		}
	}
	if need > 0 || sb.s.spent() || sb.isPinned(pg) {
		return false
	}
	sb.leave(pg)
	sb.emptying = emptying{at: hand{page: pg}}
	return sb.empty()
}

// isPinned reports whether the record that is being resized is on the page.
func (sb *slabs) isPinned(pg uint32) bool {
	return sb.s.pinned != 0 && sb.cells.pageOf(sb.s.pinned) == pg
}

// cellUse reports whether the cell has a record, or part, and of which class that is.
func (sb *slabs) cellUse(k kind, class int, ref handle) (live bool, needs int) {
	if k == partCells {
		return sb.cells.partWord(ref).head() != 0, class
	}
	h := sb.cells.header(ref)
	if !h.live() {
		return false, class
	}
	return true, sb.e.classes.of(sb.e.cellLen(h))
}

// compact frees a page of records that is at most half full, if those find other cells.
func (sb *slabs) compact() bool { return sb.compactKind(mainCells, &sb.sparse) }

// compactParts is compact for parts.
func (v *values) compactParts() bool { return v.s.slabs.compactKind(partCells, &v.sparse) }

// wastefulParts is wasteful for parts.
func (v *values) wastefulParts() bool {
	return wasteShare*v.unused > v.pages*int64(v.s.e.pool.pageSize)
}

func (sb *slabs) compactKind(k kind, sparse *int) bool {
	for range numClasses {
		*sparse = (*sparse + 1) % numClasses
		pg := sb.kinds[k].classes[*sparse].room
		for looks := 0; pg != 0 && looks < maxSparse; looks++ {
			p := &sb.e.pool.pages[pg]
			if 2*uint32(p.live) <= sb.e.classes.perPage[*sparse] && sb.evacuate(pg) {
				return true
			}
			pg = p.next
		}
	}
	return false
}

// move moves a record to the cell to.
func (sb *slabs) move(ref, to handle, p *partition, tag uint32) {
	h := sb.cells.header(ref)
	n := sb.e.cellLen(h)
	copy(sb.cells.view(to, 0, n), sb.cells.view(ref, 0, n))
	sb.cells.expiresAt(to, sb.cells.expireAt(ref, h))
	en := sb.s.indexes.mustFind(p, tag, ref)
	en.b.refs[en.i] = to
	if h.isRoot() {
		sb.s.values.reroot(to, h)
	}
	if sb.s.feeds.view == ref {
		sb.s.feeds.view = to
	}
	sb.s.changes++
	sb.s.steps--
	sb.put(ref)
}

// reroot notes that the root of a value with parts is in the cell to from now on.
func (v *values) reroot(to handle, h header) {
	head := v.s.cells.head(v.s.cells.headOf(to, h))
	head.root = to
	v.s.cells.expiresAt(to, head.due)
}

// movePart moves a part, or a node of a directory, to the cell to of the same class.
func (v *values) movePart(ref, to handle) {
	size, w := v.s.cells.partSize(ref), v.s.cells.partWord(ref)
	copy(v.s.cells.view(to, 0, size), v.s.cells.view(ref, 0, size))
	h := v.s.cells.head(w.head())
	at := v.s.cells.nodeAt(&h.planes[w.plane()], w.level(), w.number())
	if *at != ref {
		panic("BUG: a part is not where its head finds it")
	}
	*at = to
	v.s.steps--
	v.s.slabs.put(ref)
}
