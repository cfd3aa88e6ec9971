package engine

// Free cells are memory that only records of about their size can use. When they take more than their share of a shard,
// sparse pages are emptied into the free cells of others, which may be a little larger than their records need.

const (
	// wasteShare of a shard's pages may be free cells: one byte in so many.
	wasteShare = 24
	// maxSparse is how many pages of a class are looked at for one to be emptied.
	maxSparse = 4
)

// wasteful says whether free cells take more than their share.
func (s *shard) wasteful() bool {
	return wasteShare*s.unused > s.pages*int64(s.e.pool.pageSize)
}

// near says whether records of a class may use the cells of another one, up to a quarter as large again.
func (c *classes) near(class, up int) bool {
	return up < numClasses && 4*c.units[up] <= 5*c.units[class]
}

// takeNear returns a free cell for a record of the class, from a page that the shard has; 0 if there is none.
func (s *shard) takeNear(class int) handle {
	for up := class; s.e.classes.near(class, up); up++ {
		if s.slabs[mainCells].classes[up].room != 0 {
			return s.takeFrom(mainCells, up)
		}
	}
	return 0
}

// evacuate moves the records of a page into free cells on other pages, and frees it, if there seem to be enough. It says
// whether there were.
func (s *shard) evacuate(pg uint32) bool {
	p := &s.e.pool.pages[pg]
	class := int(p.class)
	perPage := s.e.classes.perPage[class]
	need := int(perPage) // its own free cells do not count
	for up := class; s.e.classes.near(class, up) && need > 0; up++ {
		need -= int(s.slabs[mainCells].classes[up].cells)
	}
	if need > 0 || s.pinned != 0 && s.pageOf(s.pinned) == pg {
		return false
	}
	if uint32(p.live) < perPage {
		s.unlinkRoom(pg) // so that nothing is moved to where it comes from
	}
	s.evacuating = pg
	defer func() { s.evacuating = 0 }()
	// With the last record the page is gone, perhaps already another shard's: p is not looked at again.
	ref, units := s.firstCell(pg), handle(s.e.classes.units[class])
	for left := p.live; left > 0; ref += units {
		h := s.header(ref)
		if !h.live() {
			continue
		}
		to := s.takeNear(s.e.classes.of(s.e.cellLen(h)))
		if to == 0 {
			if uint32(left) < perPage {
				s.linkRoom(pg)
			}
			return false
		}
		p, tag := s.recordTag(ref, h)
		s.move(ref, to, p, tag)
		left--
	}
	return true
}

// compact frees a page that is at most half full, if the records on it find other cells.
func (s *shard) compact() bool {
	for range numClasses {
		s.sparse = (s.sparse + 1) % numClasses
		pg := s.slabs[mainCells].classes[s.sparse].room
		for looks := 0; pg != 0 && looks < maxSparse; looks++ {
			p := &s.e.pool.pages[pg]
			if 2*uint32(p.live) <= s.e.classes.perPage[s.sparse] && s.evacuate(pg) {
				return true
			}
			pg = p.next
		}
	}
	return false
}

// move moves a record to the cell to.
func (s *shard) move(ref, to handle, p *partition, tag uint32) {
	h := s.header(ref)
	n := s.e.cellLen(h)
	copy(s.cells.view(to, 0, n), s.cells.view(ref, 0, n))
	s.expiresAt(to, s.expireAt(ref, h))
	sl := s.slotOf(p, tag, ref)
	sl.b.refs[sl.i] = to
	if s.view == ref {
		s.view = to
	}
	s.changes++
	s.put(ref)
}
