package engine

// maxCompact bounds how many pages of a class one failing allocation looks at where nothing may be evicted.
const maxCompact = 16

// evacuate moves all records of a page into free cells of their class on other pages, if there are enough, and frees it.
func (s *shard) evacuate(pg uint32) bool {
	p := &s.e.pool.pages[pg]
	class := int(p.class)
	perPage := s.e.classes.perPage[class]
	elsewhere := s.slabs[mainCells].classes[class].cells - (perPage - uint32(p.live))
	if elsewhere < uint32(p.live) || s.pinned != 0 && s.pageOf(s.pinned) == pg {
		return false
	}
	if uint32(p.live) < perPage {
		s.unlinkRoom(pg) // so that nothing is moved to where it comes from
	}
	s.evacuating = pg
	// With the last record the page is gone, perhaps already another shard's: p is not looked at again.
	ref, units := s.firstCell(pg), handle(s.e.classes.units[class])
	for left := p.live; left > 0; ref += units {
		if s.header(ref).live() {
			p, tag := s.recordTag(ref, s.header(ref))
			s.move(ref, s.take(mainCells, class), p, tag)
			left--
		}
	}
	s.evacuating = 0
	return true
}

// move moves a record to the cell to.
func (s *shard) move(ref, to handle, p *partition, tag uint32) {
	n := s.e.cellLen(s.header(ref))
	copy(s.cells.view(to, 0, n), s.cells.view(ref, 0, n))
	sl := s.slotOf(p, tag, ref)
	sl.b.refs[sl.i] = to
	s.changes++
	s.put(ref)
}

// compact frees one page of the shard by moving records together, if some class has a page's worth of free cells.
func (s *shard) compact() bool {
	for class := range s.hands {
		h := &s.hands[class]
		if h.page == 0 || s.slabs[mainCells].classes[class].cells < s.e.classes.perPage[class] {
			continue
		}
		for range maxCompact {
			if s.evacuate(h.page) {
				return true
			}
			*h = hand{page: s.e.pool.pages[h.page].ahead}
		}
	}
	return false
}
