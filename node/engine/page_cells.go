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
	leaving    bool         // is being emptied: in no list, and its free cells are not counted
	life       uint32       // how often the page was taken into use
	soonest    atomic.Int64 // no record on the page expires before, unix milliseconds; others read it to pass the page
}

// newPage returns an empty page, 0 when there is none without making room. What is not urgent leaves
// those that are kept free.
func (sb *slabs) newPage(urgent bool) uint32 {
	leave := 0
	if !urgent || sb.s.frugal {
		leave = sb.e.pool.toKeep()
	}
	pg := sb.e.pool.take(sb.s.window, sb.s.upkeep, sb.all < ownPages, leave)
	if pg != 0 {
		sb.s.oweRoom()
	}
	return pg
}

// own makes pg, an empty page, one of this shard's.
func (sb *slabs) own(pg uint32, k kind) *page {
	if sb.all < ownPages {
		sb.e.pool.reserved.Add(-sb.e.pool.pageCost())
	}
	sb.all++
	p := &sb.e.pool.pages[pg]
	p.free, p.bump, p.live = 0, 0, 0
	p.kind = k
	p.leaving = false
	p.life++
	p.soonest.Store(never)
	p.setMark(sb.s.mark)
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

// slabs are the pages of a shard.
type slabs struct {
	s        *shard
	e        *Engine
	cells    *cells
	pages    int64 // pages of records, in both queues
	all      int64 // pages of all kinds
	unused   int64 // bytes of free cells of the main queue
	sparse   int   // class in which compact looked last
	emptying emptying
	kinds    [numSlabs]slab
}

func (c *cells) pageOf(h handle) uint32 { return c.firstPage + uint32(h)>>c.pageUnitsShift }

func (c *cells) firstCell(pg uint32) handle { return handle(pg & c.pageMask << c.pageUnitsShift) }

// step moves h over the cell that it stands at, which is there, and returns that cell.
func (e *Engine) step(h *hand) handle {
	first, p := e.cells.firstCell(h.page), &e.pool.pages[h.page]
	if p.kind == smallLog {
		ref := first + handle(h.cell)
		h.cell += e.classes.unitsFor(e.cellLen(header(*e.windowOf(h.page).word(ref))))
		return ref
	}
	ref := first + handle(h.cell*e.classes.units[p.class])
	h.cell++
	return ref
}

// take returns a cell of the class from the shard's pages or a new page, 0 when there is none
// without making room. Its first word is zero, so that the clock does not take it for a record; the
// rest is whatever was there.
func (sb *slabs) take(k kind, class int) handle { return sb.takeOr(k, class, true) }

// takeOr is take, but if it is not urgent, a class of records that has pages takes none of those that
// are kept free: it can evict from its own.
func (sb *slabs) takeOr(k kind, class int, urgent bool) handle {
	if sb.kinds[k].classes[class].room == 0 {
		pg := sb.newPage(urgent || k != mainCells || !sb.s.clocks.has(class))
		if pg == 0 {
			return 0
		}
		sb.adopt(pg, k, class)
	}
	return sb.takeFrom(k, class)
}

// takeFrom is take for a class that has a page with room.
func (sb *slabs) takeFrom(k kind, class int) handle {
	c := &sb.kinds[k].classes[class]
	p := &sb.e.pool.pages[c.room]
	h := p.free
	if h != 0 {
		p.free = handle(*sb.cells.word(h) >> 32)
	} else {
		h = sb.cells.firstCell(c.room) + handle(uint32(p.bump)*sb.e.classes.units[class])
		p.bump++
	}
	*sb.cells.word(h) = 0
	p.live++
	c.cells--
	switch k {
	case mainCells:
		sb.unused -= int64(sb.e.classes.size(class))
	case partCells:
		sb.s.values.unused -= int64(sb.e.classes.size(class))
	}
	if uint32(p.live) == sb.e.classes.perPage[class] {
		sb.unlinkRoom(c.room)
	}
	return h
}

// put frees a cell, and its page when it was the last.
func (sb *slabs) put(h handle) {
	pg := sb.cells.pageOf(h)
	p := &sb.e.pool.pages[pg]
	if p.kind == smallLog {
		sb.s.small.put(pg, h)
		return
	}
	if checked {
		sb.cells.spoil(h, sb.e.classes.size(int(p.class)))
	}
	c := &sb.kinds[p.kind].classes[p.class]
	*sb.cells.word(h) = uint64(p.free) << 32
	p.free = h
	if !p.leaving {
		if uint32(p.live) == sb.e.classes.perPage[p.class] {
			sb.linkRoom(pg)
		}
		c.cells++
	}
	p.live--
	switch p.kind {
	case mainCells:
		sb.unused += int64(sb.e.classes.size(int(p.class)))
	case partCells:
		sb.s.values.unused += int64(sb.e.classes.size(int(p.class)))
	}
	if p.live == 0 {
		sb.abandon(pg)
	}
}

// adopt makes pg a page of this shard with cells of the class.
func (sb *slabs) adopt(pg uint32, k kind, class int) {
	sb.own(pg, k).class = uint8(class)
	sb.kinds[k].classes[class].cells += sb.e.classes.perPage[class]
	sb.linkRoom(pg)
	switch k {
	case mainCells:
		sb.pages++
		sb.unused += sb.cellBytes(class)
		sb.s.clocks.join(pg)
	case index:
		sb.e.pool.indexPages.Add(1)
	default:
		sb.s.values.adopted(k, sb.cellBytes(class))
	}
}

// abandon gives an empty page back to the pool.
func (sb *slabs) abandon(pg uint32) {
	p := &sb.e.pool.pages[pg]
	if !p.leaving {
		sb.unlinkRoom(pg)
		sb.kinds[p.kind].classes[p.class].cells -= sb.e.classes.perPage[p.class]
	}
	if pg == sb.emptying.at.page {
		sb.emptying = emptying{}
	}
	switch p.kind {
	case mainCells:
		sb.pages--
		sb.unused -= sb.cellBytes(int(p.class))
		sb.s.clocks.leave(pg)
	case index:
		sb.e.pool.indexPages.Add(-1)
	default:
		sb.s.values.abandoned(p.kind, sb.cellBytes(int(p.class)))
	}
	sb.release(pg)
}

// cellBytes is how much of a page its cells take.
func (sb *slabs) cellBytes(class int) int64 {
	return int64(sb.e.classes.size(class)) * int64(sb.e.classes.perPage[class])
}

// release hands a page to the pool that is in no list any more.
func (sb *slabs) release(pg uint32) {
	sb.e.pool.pages[pg].setMark(0)
	sb.all--
	if sb.all < ownPages {
		sb.e.pool.reserved.Add(sb.e.pool.pageCost())
	}
	sb.s.gains++
	sb.e.pool.give(pg)
}

// leave takes a page out of its list, so that nothing comes to it while it is emptied.
func (sb *slabs) leave(pg uint32) {
	p := &sb.e.pool.pages[pg]
	free := sb.e.classes.perPage[p.class] - uint32(p.live)
	if free > 0 {
		sb.unlinkRoom(pg)
	}
	sb.kinds[p.kind].classes[p.class].cells -= free
	p.leaving = true
	if p.kind == mainCells {
		sb.s.clocks.pass(pg)
	}
}

// stay is the opposite of leave.
func (sb *slabs) stay(pg uint32) {
	p := &sb.e.pool.pages[pg]
	free := sb.e.classes.perPage[p.class] - uint32(p.live)
	if free > 0 {
		sb.linkRoom(pg)
	}
	sb.kinds[p.kind].classes[p.class].cells += free
	p.leaving = false
}

func (sb *slabs) linkRoom(pg uint32) {
	p := &sb.e.pool.pages[pg]
	c := &sb.kinds[p.kind].classes[p.class]
	p.prev, p.next = 0, c.room
	if c.room != 0 {
		sb.e.pool.pages[c.room].prev = pg
	}
	c.room = pg
}

func (sb *slabs) unlinkRoom(pg uint32) {
	p := &sb.e.pool.pages[pg]
	if p.prev != 0 {
		sb.e.pool.pages[p.prev].next = p.next
	} else {
		sb.kinds[p.kind].classes[p.class].room = p.next
	}
	if p.next != 0 {
		sb.e.pool.pages[p.next].prev = p.prev
	}
}
