package engine

import "sync/atomic"

// page is the bookkeeping of one page of cells. All of it but owner is protected by the lock of the
// shard that has the page, or by the pool's while no shard has it. Pages are linked by their
// numbers; 0 is no page.
type page struct {
	next, prev uint32        // neighbours in the list of its class's pages with room; in the pool, next only
	ahead      uint32        // neighbours in the ring of the class's clock; in the small queue, the next younger page
	behind     uint32        // and the next older one
	stamp      uint32        // tick of the last visit of the clock's hand
	free       handle        // first free cell that was used before
	bump       uint16        // cells from here on were never used; grains in the small queue
	live       uint16        // cells in use
	owner      atomic.Uint32 // a mark; others read it to pick a victim
	class      uint8
	kind       kind
	leaving    bool         // of an index, and to be emptied: in no list, see index_gather.go
	life       uint32       // how often the page was taken into use
	soonest    atomic.Int64 // no record on the page expires before, unix milliseconds; others read it to pass the page
}

// own makes pg, an empty page, one of this shard's.
func (s *shard) own(pg uint32, k kind) *page {
	p := &s.e.pool.pages[pg]
	p.free, p.bump, p.live = 0, 0, 0
	p.kind = k
	p.leaving = false
	p.life++
	p.soonest.Store(never)
	p.setMark(s.mark)
	return p
}

func (p *page) mark() mark     { return mark(p.owner.Load()) }
func (p *page) setMark(m mark) { p.owner.Store(uint32(m)) }

type kind uint8

const (
	mainCells  kind = iota // records of one class of sizes: the main queue
	index                  // parts of indexes, of one class
	partCells              // parts of values and their directories, of one class
	valueHeads             // heads of values with parts
	numSlabs
	smallLog = numSlabs // records of all sizes behind one another: the small queue
)

// hasRecords reports whether pages of this kind have records.
func (k kind) hasRecords() bool { return k == mainCells || k == smallLog }

// slab is a shard's pages of one kind.
type slab struct {
	classes [numClasses]struct {
		room  uint32 // list of pages with a free cell
		cells uint32 // free cells in them
	}
}

func (c *cells) pageOf(h handle) uint32 { return uint32(h) >> c.pageUnitsShift }

func (c *cells) firstCell(pg uint32) handle { return handle(pg << c.pageUnitsShift) }

// step moves h over what it stands at on its page, which is there, and returns that cell.
func (e *Engine) step(h *hand) handle {
	first, p := handle(h.page<<e.cells.pageUnitsShift), &e.pool.pages[h.page]
	if p.kind == smallLog {
		ref := first + handle(h.cell)
		h.cell += e.classes.unitsFor(e.cellLen(header(*e.cells.word(ref))))
		return ref
	}
	ref := first + handle(h.cell*e.classes.units[p.class])
	h.cell++
	return ref
}

// take returns a cell of the class from the shard's pages or a new page, 0 when there is none
// without making room. Its first word is zero, so that the clock does not take it for a record; the
// rest is whatever was there.
func (s *shard) take(k kind, class int) handle {
	if s.slabs[k].classes[class].room == 0 {
		pg := s.e.pool.take(s.upkeep)
		if pg == 0 {
			return 0
		}
		s.adopt(pg, k, class)
	}
	return s.takeFrom(k, class)
}

// takeFrom is take for a class that has a page with room.
func (s *shard) takeFrom(k kind, class int) handle {
	c := &s.slabs[k].classes[class]
	p := &s.e.pool.pages[c.room]
	h := p.free
	if h != 0 {
		p.free = handle(*s.cells.word(h) >> 32)
	} else {
		h = s.cells.firstCell(c.room) + handle(uint32(p.bump)*s.e.classes.units[class])
		p.bump++
	}
	*s.cells.word(h) = 0
	p.live++
	c.cells--
	switch k {
	case mainCells:
		s.unused -= int64(s.e.classes.size(class))
	case partCells:
		s.values.unused -= int64(s.e.classes.size(class))
	}
	if uint32(p.live) == s.e.classes.perPage[class] {
		s.unlinkRoom(c.room)
	}
	return h
}

// put frees a cell, and its page when it was the last.
func (s *shard) put(h handle) {
	pg := s.cells.pageOf(h)
	p := &s.e.pool.pages[pg]
	if p.kind == smallLog {
		s.small.put(pg, h)
		return
	}
	if checked {
		s.cells.spoil(h, s.e.classes.size(int(p.class)))
	}
	c := &s.slabs[p.kind].classes[p.class]
	*s.cells.word(h) = uint64(p.free) << 32
	p.free = h
	if uint32(p.live) == s.e.classes.perPage[p.class] && pg != s.evacuating {
		s.linkRoom(pg)
	}
	p.live--
	c.cells++
	switch p.kind {
	case mainCells:
		s.unused += int64(s.e.classes.size(int(p.class)))
	case partCells:
		s.values.unused += int64(s.e.classes.size(int(p.class)))
	}
	if p.live == 0 {
		s.abandon(pg)
	}
}

// adopt makes pg a page of this shard with cells of the class.
func (s *shard) adopt(pg uint32, k kind, class int) {
	s.own(pg, k).class = uint8(class)
	s.slabs[k].classes[class].cells += s.e.classes.perPage[class]
	s.linkRoom(pg)
	switch k {
	case mainCells:
		s.pages++
		s.unused += s.cellBytes(class)
		s.clocks.join(pg)
	case index:
		s.e.pool.indexPages.Add(1)
	default:
		s.values.adopted(k, s.cellBytes(class))
	}
}

// abandon gives an empty page back to the pool.
func (s *shard) abandon(pg uint32) {
	p := &s.e.pool.pages[pg]
	if pg != s.evacuating && !p.leaving {
		s.unlinkRoom(pg)
	}
	s.slabs[p.kind].classes[p.class].cells -= s.e.classes.perPage[p.class]
	switch p.kind {
	case mainCells:
		s.pages--
		s.unused -= s.cellBytes(int(p.class))
		s.clocks.leave(pg)
	case index:
		s.e.pool.indexPages.Add(-1)
	default:
		s.values.abandoned(p.kind, s.cellBytes(int(p.class)))
	}
	s.release(pg)
}

// cellBytes is how much of a page its cells take.
func (s *shard) cellBytes(class int) int64 {
	return int64(s.e.classes.size(class)) * int64(s.e.classes.perPage[class])
}

// release hands a page to the pool that is in no list any more.
func (s *shard) release(pg uint32) {
	s.e.pool.pages[pg].setMark(0)
	s.gains++
	s.e.pool.give(pg)
}

func (s *shard) linkRoom(pg uint32) {
	p := &s.e.pool.pages[pg]
	c := &s.slabs[p.kind].classes[p.class]
	p.prev, p.next = 0, c.room
	if c.room != 0 {
		s.e.pool.pages[c.room].prev = pg
	}
	c.room = pg
}

func (s *shard) unlinkRoom(pg uint32) {
	p := &s.e.pool.pages[pg]
	if p.prev != 0 {
		s.e.pool.pages[p.prev].next = p.next
	} else {
		s.slabs[p.kind].classes[p.class].room = p.next
	}
	if p.next != 0 {
		s.e.pool.pages[p.next].prev = p.prev
	}
}
