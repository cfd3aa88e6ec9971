package engine

// Free cells are memory that only records of about their size can use. When they take more than
// their share of a shard, sparse pages are emptied into the free cells of others, which may be a
// little larger than their records need.

const (
	// wasteShare of a shard's pages may be free cells: one byte in so many.
	wasteShare = 24
	// maxSparse is how many pages of a class are looked at for one to be emptied.
	maxSparse = 4
)

// wasteful reports whether free cells take more than their share.
func (s *shard) wasteful() bool {
	return wasteShare*s.unused > s.pages*int64(s.e.pool.pageSize)
}

// near reports whether what has cells of a class may use those of another one: records up to a
// quarter as large again. Parts stay in their class, since nothing tells the way back. So do
// records while cells are reserved: else the pages of two classes could be emptied into one another
// for ever, each time to be had again for what is reserved of them.
func (s *shard) near(k kind, class, up int) bool {
	c := &s.e.classes
	return up == class || k == mainCells && len(s.values.needs) == 0 && up < numClasses && 4*c.units[up] <= 5*c.units[class]
}

// takeNear returns a free cell for a record, or part, of the class, from a page that the shard has;
// 0 if there is none.
func (s *shard) takeNear(k kind, class int) handle {
	for up := class; s.near(k, class, up); up++ {
		if c := &s.slabs[k].classes[up]; c.room != 0 && (len(s.values.needs) == 0 || c.cells > s.values.wanted(k, up)) {
			return s.takeFrom(k, up)
		}
	}
	return 0
}

// evacuate moves the records of a page into free cells on other pages, and frees it, if there seem
// to be enough. It reports whether there were.
func (s *shard) evacuate(pg uint32) bool {
	p := &s.e.pool.pages[pg]
	class, k := int(p.class), p.kind
	perPage := s.e.classes.perPage[class]
	if p.live == 0 { // reserved, and perhaps not needed
		free := s.slabs[k].classes[class].cells - perPage
		if free >= s.values.wanted(k, class) {
			s.abandon(pg)
			return true
		}
		return false
	}
	need := int(perPage) // its own free cells do not count
	for up := class; s.near(k, class, up) && need > 0; up++ {
		need -= int(s.slabs[k].classes[up].cells)
		if len(s.values.needs) > 0 {
			need += int(s.values.wanted(k, up))
		}
	}
	if need > 0 || s.pinned != 0 && s.cells.pageOf(s.pinned) == pg {
		return false
	}
	if uint32(p.live) < perPage {
		s.unlinkRoom(pg) // so that nothing is moved to where it comes from
	}
	s.evacuating = pg
	defer func() { s.evacuating = 0 }()
	// With the last record the page is gone, perhaps already another shard's: p is not looked at
	// again.
	ref, units := s.cells.firstCell(pg), handle(s.e.classes.units[class])
	for left := p.live; left > 0; ref += units {
		live, size := s.cellUse(k, class, ref)
		if !live {
			continue
		}
		to := s.takeNear(k, size)
		if to == 0 {
			if uint32(left) < perPage {
				s.linkRoom(pg)
			}
			return false
		}
		if k == partCells {
			s.values.movePart(ref, to)
		} else {
			p, tag := s.recordTag(ref, s.cells.header(ref))
			s.move(ref, to, p, tag)
		}
		left--
	}
	return true
}

// cellUse reports whether the cell has a record, or part, and of which class that is.
func (s *shard) cellUse(k kind, class int, ref handle) (live bool, needs int) {
	if k == partCells {
		return s.cells.partWord(ref).head() != 0, class
	}
	h := s.cells.header(ref)
	if !h.live() {
		return false, class
	}
	return true, s.e.classes.of(s.e.cellLen(h))
}

// compact frees a page of records that is at most half full, if those find other cells.
func (s *shard) compact() bool { return s.compactKind(mainCells, &s.sparse) }

// compactParts is compact for parts.
func (vs *values) compactParts() bool { return vs.s.compactKind(partCells, &vs.sparse) }

// wastefulParts is wasteful for parts.
func (vs *values) wastefulParts() bool {
	return wasteShare*vs.unused > vs.pages*int64(vs.s.e.pool.pageSize)
}

func (s *shard) compactKind(k kind, sparse *int) bool {
	for range numClasses {
		*sparse = (*sparse + 1) % numClasses
		pg := s.slabs[k].classes[*sparse].room
		for looks := 0; pg != 0 && looks < maxSparse; looks++ {
			p := &s.e.pool.pages[pg]
			if 2*uint32(p.live) <= s.e.classes.perPage[*sparse] && s.evacuate(pg) {
				return true
			}
			pg = p.next
		}
	}
	return false
}

// move moves a record to the cell to.
func (s *shard) move(ref, to handle, p *partition, tag uint32) {
	h := s.cells.header(ref)
	n := s.e.cellLen(h)
	copy(s.cells.view(to, 0, n), s.cells.view(ref, 0, n))
	s.cells.expiresAt(to, s.cells.expireAt(ref, h))
	sl := s.indexes.slotOf(p, tag, ref)
	sl.b.refs[sl.i] = to
	if h.isRoot() {
		s.values.reroot(to, h)
	}
	if s.feeds.view == ref {
		s.feeds.view = to
	}
	s.changes++
	s.put(ref)
}

// reroot notes that the root of a value with parts is in the cell to from now on.
func (vs *values) reroot(to handle, h header) {
	head := vs.s.cells.head(vs.s.cells.headOf(to, h))
	head.root = to
	vs.s.cells.expiresAt(to, head.due)
}

// movePart moves a part, or a node of a directory, to the cell to of the same class.
func (vs *values) movePart(ref, to handle) {
	size, w := vs.s.cells.partSize(ref), vs.s.cells.partWord(ref)
	copy(vs.s.cells.view(to, 0, size), vs.s.cells.view(ref, 0, size))
	h := vs.s.cells.head(w.head())
	at := vs.s.cells.nodeAt(&h.planes[w.plane()], w.level(), w.number())
	if *at != ref {
		panic("BUG: a part is not where its head finds it")
	}
	*at = to
	vs.s.put(ref)
}
