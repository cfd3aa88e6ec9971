package engine

import "sync/atomic"

// The main queue is a set of clocks. The pages of each class of records form a ring, and a hand
// goes round it, cell by cell. A record that was used since the last round is spared, as many times
// as it was used, up to three; a record that was not used is evicted. So a class that is written to
// finds room in itself, one record for one. A queue would move a spared record to its end; in a
// clock it stays where it is.
//
// How memory gets to where it is needed: a page is stamped when a hand leaves it. A class whose
// hand comes to pages of a much later stamp than others wait with has too few of them; it then
// takes a page from the one that waits longest, in this shard or another one. All hands thereby
// take about the same time for a round, as one clock for the whole node would.

// hand is a place in a ring.
type hand struct {
	page uint32 // 0: the ring is empty
	cell uint32 // next one to look at
}

const (
	// looksOwn and looksElsewhere are how many cells are looked at in one shard. After that a
	// record is evicted whether it was used or not, if the policy allows it, or another shard is
	// tried.
	looksOwn       = 1 << 10
	looksElsewhere = 1 << 10
	// evictUsed is how many records then go from a class that wants a cell.
	evictUsed = 16
	// looksSqueeze is how many cells are looked at for each record that needs a cell, while the
	// class whose pages wait longest is squeezed for a page.
	looksSqueeze = 64
	// ttlSample is how many expiring records VolatileTTL compares, to evict the one that expires
	// first.
	ttlSample = 16
)

// clocks are the rings of a shard's pages of records, and their hands. All of it but coldStamp is
// protected by the shard's lock.
type clocks struct {
	s         *shard
	pool      *pool
	hands     [numClasses]hand
	squeezed  int           // class whose hand makes pages free for others; noClass if none
	coldStamp atomic.Uint32 // stamp of the page that has waited longest for a hand; other shards read it
}

// join puts the page right behind the hand of its class, to be visited last.
func (c *clocks) join(pg uint32) {
	pages := c.pool.pages
	p := &pages[pg]
	p.stamp = c.pool.tick.Add(1)
	h := &c.hands[p.class]
	if h.page == 0 {
		p.ahead, p.behind = pg, pg
		*h = hand{page: pg}
		return
	}
	last := pages[h.page].behind
	p.ahead, p.behind = h.page, last
	pages[last].ahead, pages[h.page].behind = pg, pg
}

// leave takes the page out of its ring.
func (c *clocks) leave(pg uint32) {
	pages := c.pool.pages
	p := &pages[pg]
	h := &c.hands[p.class]
	if p.ahead == pg {
		*h = hand{}
		return
	}
	pages[p.behind].ahead, pages[p.ahead].behind = p.ahead, p.behind
	if h.page == pg {
		*h = hand{page: p.ahead}
	}
}

// pass takes the hand off a page that is being emptied. It passes the page until that is over: no
// record comes into a cell that is freed there.
func (c *clocks) pass(pg uint32) {
	p := &c.pool.pages[pg]
	if h := &c.hands[p.class]; h.page == pg {
		p.stamp = c.pool.tick.Add(1)
		*h = hand{page: p.ahead}
	}
}

// visit steps the hand of a clock as next does, and from one page to the next one.
func (c *clocks) visit(h *hand) handle {
	p := &c.s.e.pool.pages[h.page]
	if h.cell >= uint32(p.bump) || h.cell == 0 && (p.leaving || c.keepsAll(p)) {
		p.stamp = c.s.e.pool.tick.Add(1)
		*h = hand{page: p.ahead}
		return 0
	}
	return c.next(h)
}

// next steps the hand over one cell, which is there, and returns the record in it, 0 if it holds
// none.
func (c *clocks) next(h *hand) handle {
	ref := c.s.e.step(h)
	if h := c.s.cells.header(ref); !h.live() || ref == c.s.pinned || c.s.withholds(h) || c.s.values.isSpared(ref, h) {
		return 0
	}
	return ref
}

// age returns how many pages have been visited, on the whole node, since the last visit of the page
// that waits longest in the ring.
func (c *clocks) age(class int) uint32 {
	return c.pool.tick.Load() - c.pool.pages[c.hands[class].page].stamp
}

// has reports whether the class has pages.
func (c *clocks) has(class int) bool { return c.hands[class].page != 0 }

// coldest is the class whose hand's page waits for the longest time, or the preferred one if that
// is hardly less. Other shards learn that time, or that of the roots, which have waited for
// rootsAge.
func (c *clocks) coldest(preferred int, rootsAge uint32) int {
	best, bestAge := noClass, uint32(0)
	for class := range c.hands {
		if !c.has(class) {
			continue
		}
		if age := c.age(class); best == noClass || age > bestAge {
			best, bestAge = class, age
		}
	}
	c.coldStamp.Store(c.pool.tick.Load() - max(bestAge, rootsAge))
	if preferred != noClass && c.has(preferred) && !older(bestAge, c.age(preferred)) {
		return preferred
	}
	return best
}

// older reports whether one age exceeds the other by so much that memory should move.
func older(one, other uint32) bool { return one > other+other/4+8 }

// betweenPages reports whether the hand of the class is about to visit a page, which is the time to
// ask whether it should.
func (c *clocks) betweenPages(class int) bool {
	return class == noClass || !c.has(class) || c.hands[class].cell == 0
}

// reclaim makes room in this shard until a cell of the class wanted is free or the budget has
// gained: by judging the small queue if that has more than its share and any gain will do, else by
// the clocks.
func (s *shard) reclaim(want, maxLooks int) bool {
	if want == noClass && s.small.overfull() && s.small.judge(s.e.pool.pageSize) {
		return true
	}
	if s.spent() {
		return false
	}
	return s.reclaimMain(want, maxLooks) || want == noClass && s.small.judge(s.e.pool.pageSize)
}

// reclaimMain moves the hand of a clock until a cell of the class wanted is free or the budget has
// gained.
func (s *shard) reclaimMain(want, maxLooks int) bool {
	if want == noClass && s.slabs.empty() {
		return true
	}
	policy := s.e.Policy()
	if (s.slabs.wasteful() || policy == NoEviction) && s.slabs.compact() || (s.values.wastefulParts() || policy == NoEviction) && s.values.compactParts() {
		return true
	}
	if want == noClass && s.spent() {
		return false
	}
	if policy != AllKeys {
		return s.sums.Volatile > 0 && s.clocks.reclaimVolatile(want, maxLooks)
	}
	if s.clocks.betweenPages(want) {
		s.clocks.squeezed = s.clocks.coldest(want, s.values.rootsAge())
		if s.values.rootsAreColder(s.clocks.squeezed) && s.values.turnRoots() {
			return true
		}
	}
	if want == noClass {
		return s.clocks.squeezed != noClass && s.clocks.turn(s.clocks.squeezed, noClass, maxLooks) || !s.spent() && s.values.turnRoots()
	}
	if s.clocks.squeezed != want && s.clocks.squeezed != noClass && s.clocks.has(s.clocks.squeezed) && s.clocks.turn(s.clocks.squeezed, want, looksSqueeze) {
		s.clocks.squeezed = want
		return true
	}
	return s.clocks.has(want) && s.clocks.turn(want, want, maxLooks) || s.values.turnRoots()
}

// keepsAll reports whether nothing on the page may go.
func (c *clocks) keepsAll(p *page) bool {
	switch c.s.e.Policy() {
	case VolatileTTL:
		return p.soonest.Load() == never
	case NoEviction:
		return p.soonest.Load() > c.s.now
	}
	return false
}

// reclaimVolatile moves the hands of one class after the other, since keys that expire may be in
// any of them.
func (c *clocks) reclaimVolatile(want, maxLooks int) bool {
	if want != noClass && c.has(want) && c.turn(want, want, maxLooks) {
		return true
	}
	for range c.hands {
		c.squeezed = (c.squeezed + 1) % numClasses
		if c.has(c.squeezed) && c.turn(c.squeezed, want, maxLooks) {
			return true
		}
	}
	return false
}

// turn moves the hand of a class over up to maxLooks cells, until a record of the class wanted is
// gone or the budget has gained. It reports whether it did either.
func (c *clocks) turn(class, want, maxLooks int) bool {
	gains, h := c.s.gains, &c.hands[class]
	start, once := h.page, c.s.e.Policy() != AllKeys // who asks again finds nothing that was not found at first
	own := class == want                             // one record is enough, also at the end of a slice
	for looks := 0; looks < maxLooks && (own || !c.s.spent()); looks++ {
		if h.cell == 0 && c.s.slabs.evacuate(h.page) {
			return true
		}
		if ref := c.visit(h); ref != 0 && c.judge(ref, h) && (own || c.s.gains != gains) {
			return true
		}
		if once && h.page == start && h.cell == 0 {
			return false
		}
	}
	switch {
	case c.s.e.Policy() != AllKeys || maxLooks < looksOwn:
		return false
	case own:
		return c.evictNext(h)
	}
	return c.evictPage(h)
}

// judge evicts the record under the hand, or another one in its place, if the policy says so.
func (c *clocks) judge(ref handle, h *hand) bool {
	hdr := c.s.cells.header(ref)
	at := c.s.cells.expireAt(ref, hdr)
	switch {
	case c.s.isDue(hdr.partition(), at):
		c.s.expire(ref)
		return true
	case c.s.e.Policy() == NoEviction:
		return false
	case c.s.e.Policy() == VolatileTTL:
		return at != 0 && c.evictSoonest(ref, at, h)
	case hdr.isRoot():
		return false // it has a clock of its own
	case hdr.uses() > 0:
		c.s.cells.setHeader(ref, c.s.e.aged(hdr))
		return false
	}
	c.s.evict(ref)
	return true
}

// aged is h of a record that a hand has spared, because it was used.
func (e *Engine) aged(h header) header {
	if e.balance.share.Load() > shiftShare {
		return h &^ usesMask
	}
	return h.halfUsed()
}

// evictSoonest is VolatileTTL's judgement over the record under the hand and the next few on its
// page that expire.
func (c *clocks) evictSoonest(soonest handle, at int64, h *hand) bool {
	for sample := 1; sample < ttlSample && h.cell < uint32(c.s.e.pool.pages[h.page].bump); {
		ref := c.next(h)
		if ref == 0 {
			continue
		}
		if a := c.s.cells.expireAt(ref, c.s.cells.header(ref)); a != 0 {
			sample++
			if a < at {
				soonest, at = ref, a
			}
		}
	}
	c.s.evict(soonest)
	return true
}

// evictNext evicts the next few records but roots, used or not. It reports whether there were any on
// the next two pages.
func (c *clocks) evictNext(h *hand) bool {
	evicted := 0
	for pages := 0; pages < 3 && evicted < evictUsed && h.page != 0; {
		if h.cell == 0 {
			pages++
		}
		if ref := c.visit(h); ref != 0 && !c.s.cells.header(ref).isRoot() {
			c.s.evict(ref)
			evicted++
		}
	}
	return evicted > 0
}

// evictPage evicts all records but roots from the page under the hand, used or not. If a pinned
// record keeps the page, it tries the next one, too.
func (c *clocks) evictPage(h *hand) bool {
	for range 2 {
		if h.page == 0 {
			return false
		}
		if c.s.slabs.evictFrom(h.page) {
			return true
		}
		if c.s.spent() {
			return false
		}
	}
	return false
}

func (s *shard) evict(ref handle) {
	h := s.cells.header(ref)
	p, tag := s.recordTag(ref, h)
	if s.e.Policy() == AllKeys && !s.dropped.isDoomed(p) {
		s.ghosts.add(ghostOf(s.cells.section(ref, h), tag), mainCells)
	}
	s.discard(ref, p, tag, &s.sums.Evicted)
}

func (s *shard) expire(ref handle) {
	p, tag := s.recordTag(ref, s.cells.header(ref))
	s.discard(ref, p, tag, &s.sums.Expired)
}

// discard removes a record that was found by its cell and counts it, unless it went with its
// partition before.
func (s *shard) discard(ref handle, p *partition, tag uint32, count *int64) {
	if !s.dropped.isDoomed(p) {
		*count++
		if count == &s.sums.Evicted {
			s.announce(ref, Evicted)
		} else {
			s.announce(ref, Expired)
		}
	}
	s.eraseUnasked(p, tag, s.indexes.mustFind(p, tag, ref))
	s.discards++
	s.changes++
	s.steps--
}

// recordTag is the index that names a stored record, and its tag.
func (s *shard) recordTag(ref handle, h header) (*partition, uint32) {
	tag := s.tagOfRecord(ref, h)
	return s.dropped.indexOf(s.cells.section(ref, h), tag, ref), tag
}

func (s *shard) tagOfRecord(ref handle, h header) uint32 {
	return tagOf(s.seed.Load(), s.cells.body(ref, h)[:h.nameLen()])
}
