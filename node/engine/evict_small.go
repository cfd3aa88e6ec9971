package engine

import "sync/atomic"

// The small queue is where new records prove themselves while memory is full (S3-FIFO, Yang et al.,
// "FIFO queues are all you need for cache eviction", SOSP 2023): a first-in-first-out log with a
// share of the shard's memory. At the end of the log a record that has been used moves to the main
// queue, the clocks. A record that has not been used is evicted, and leaves a ghost. So keys that
// are read once, by a scan for example, never evict keys that are read again.
//
// Records of all sizes lie behind one another on the log's pages, each in a cell of its own length.
// A record that dies there leaves a hole until its whole page has been judged, which is soon.
type small struct {
	s          *shard
	head, tail uint32 // the page that is being filled, and the oldest; 0: no page. They are linked by page.ahead and page.behind
	at         hand   // what is judged next
	pages      int64
	large      int64 // bytes of the large bodies of its records
}

const (
	// moveUses is how many uses a record needs to move to the main queue.
	moveUses = 1
	// Memory is full when less than a tightShare-th of it is left.
	tightShare = 32
	// judgeAhead is how many bytes are judged for each byte that is written. Room is then there
	// before it is needed, and no command waits until a whole page is judged.
	judgeAhead = 2
)

// balance is the small queue's share of memory, the same in all shards. It begins with the tenth
// that suits fixed popularities best, and follows the keys that return after their eviction. If
// most of them were evicted from the small queue, the working set shifts, and new records should
// stay longer; if most were evicted from the main queue, new records should leave sooner.
type balance struct {
	share       atomic.Int32 // in thousandths
	small, main atomic.Int32 // what returned since the last step
}

const (
	whole      = 1000
	startShare = 100
	minShare   = 10
	maxShare   = 900
	shareStep  = 20
	stepEvery  = 100 // returns
)

const (
	// Above this share the working set shifts: uses of some time ago tell little, and the clocks
	// forget them at once.
	shiftShare = 200
	// Above this share a ghost does not admit its key to the main queue: a key that returns stays
	// long enough in the small queue, as in an LRU list.
	doorShare = 500
	// A record of more than heavyTimes the mean length goes through the small queue even if its key
	// returns: other records bring more hits for the same room. On long-tailed lengths that is
	// worth 2 to 4 points of the hit ratio.
	heavyTimes = 2
)

// adapt lets the share follow what the ghosts know of a new record's key.
func (b *balance) adapt(h haunted) {
	switch h {
	case recentSmall:
		b.small.Add(1)
	case recentMain:
		b.main.Add(1)
	default:
		return
	}
	// Two shards may both step, or lose a few returns: neither matters.
	if small, main := b.small.Load(), b.main.Load(); small+main >= stepEvery {
		b.small.Store(0)
		b.main.Store(0)
		share := b.share.Load()
		if small > main {
			share += shareStep
		} else {
			share -= shareStep
		}
		b.share.Store(min(max(share, minShare), maxShare))
	}
}

// entrance returns the queue that a new record enters: the main queue if there is room for
// everything, spare memory included, or if its key was evicted recently; else the small queue.
func (s *shard) entrance(section uint16, tag uint32, h header) kind {
	if s.e.Policy() != AllKeys || !s.e.pool.tight() || s.frugal || s.e.haveSpares() {
		return mainCells
	}
	known := s.ghosts.take(ghostOf(section, tag))
	s.e.balance.adapt(known)
	if known == unknown || s.heavy(h) || s.e.balance.share.Load() > doorShare {
		return smallLog
	}
	return mainCells
}

// heavy reports whether a record is much longer than others.
func (s *shard) heavy(h header) bool { return h.recordLen()*s.records > heavyTimes*s.sums.Values }

// overfull reports whether the small queue has more than its share.
func (q *small) overfull() bool {
	size := int64(q.s.e.pool.pageSize)
	return q.pages > 1 && whole*(q.pages*size+q.large) > int64(q.s.e.balance.share.Load())*(q.s.slabs.pages*size+q.s.large)
}

// take returns a cell for n bytes at the end of the small queue, 0 when there is none without
// making room.
func (q *small) take(n int) handle {
	units := q.s.e.classes.unitsFor(n)
	if q.head == 0 || uint32(q.s.e.pool.pages[q.head].bump)+units > q.s.e.classes.pageUnits {
		q.s.growGhosts()
		pg := q.s.slabs.newPage(true)
		if pg == 0 {
			return 0
		}
		q.join(pg)
	}
	p := &q.s.e.pool.pages[q.head]
	h := q.s.cells.firstCell(q.head) + handle(p.bump)
	p.bump += uint16(units)
	p.live++
	return h
}

// join makes pg the page of the small queue that is being filled.
func (q *small) join(pg uint32) {
	pages := q.s.e.pool.pages
	p := q.s.slabs.own(pg, smallLog)
	p.ahead, p.behind = 0, q.head
	if q.head != 0 {
		pages[q.head].ahead = pg
	} else {
		q.tail = pg
	}
	q.head = pg
	q.pages++
	q.s.slabs.pages++
}

// put frees a cell of the small queue, and its page when it was the last that lived there.
func (q *small) put(pg uint32, h handle) {
	if checked {
		q.s.cells.spoil(h, q.s.e.cellLen(q.s.cells.header(h)))
	}
	*q.s.cells.word(h) &^= typeMask
	p := &q.s.e.pool.pages[pg]
	p.live--
	if p.live > 0 {
		return
	}
	pages := q.s.e.pool.pages
	if p.ahead != 0 {
		pages[p.ahead].behind = p.behind
	} else {
		q.head = p.behind
	}
	if p.behind != 0 {
		pages[p.behind].ahead = p.ahead
	} else {
		q.tail = p.ahead
	}
	if q.at.page == pg {
		q.at = hand{}
	}
	q.pages--
	q.s.slabs.pages--
	q.s.slabs.release(pg)
}

// reshape gives a record that keeps its cell another header. In the small queue, the unused rest of
// the cell becomes a dead cell.
func (s *shard) reshape(ref handle, old, h header) {
	s.cells.setHeader(ref, h)
	had, has := s.e.classes.unitsFor(s.e.cellLen(old)), s.e.classes.unitsFor(s.e.cellLen(h))
	if had > has && s.cells.queueOf(ref) == smallLog {
		left := int(had-has) << s.cells.grainShift
		s.cells.setHeader(ref+handle(has), s.e.makeHeader(TypeNone, 0, 0, left-wordSize, false))
	}
}

// judge judges the oldest records of the small queue: about bytes bytes of them, or fewer if the
// budget gains something first. It reports whether the budget gained.
func (q *small) judge(bytes int) bool {
	gains := q.s.gains
	for bytes > 0 && q.s.gains == gains {
		if q.s.steps < judgeSteps {
			q.s.steps = 0
			break
		}
		var batch [judgeBatch]candidate
		n, passed := q.candidates(&batch)
		if passed == 0 {
			break // there is nothing older than what is being filled
		}
		bytes -= passed
		for i := range n {
			q.judgeNew(&batch[i])
		}
	}
	return q.s.gains != gains
}

// judgeBatch is how many records are looked up in the index together: their cache misses then
// overlap.
const judgeBatch = 8

// judgeSteps is what a batch takes of a slice if all of its records move, each into the place of
// another.
const judgeSteps = 2 * judgeBatch

// candidate is a record at the end of the small queue.
type candidate struct {
	ref handle
	p   *partition
	tag uint32
}

// candidates takes the next records to be judged and returns how many bytes of the queue it passed.
// Live records keep their pages where they are, and to judge one record of a batch neither moves
// nor frees another.
func (q *small) candidates(batch *[judgeBatch]candidate) (n, passed int) {
	for n < len(batch) {
		if q.at.page == 0 {
			q.at = hand{page: q.tail}
		}
		p := &q.s.e.pool.pages[q.at.page]
		if q.at.page == 0 {
			break
		}
		if q.at.cell >= uint32(p.bump) && p.ahead == 0 {
			if q.s.e.Policy() == AllKeys {
				q.at = hand{} // what was passed and stayed, pinned or under another policy, has its turn next time
			}
			break
		}
		if q.at.cell >= uint32(p.bump) {
			q.at = hand{page: p.ahead}
			continue
		}
		before := q.at.cell
		ref := q.s.clocks.next(&q.at)
		passed += int(q.at.cell-before) << q.s.cells.grainShift
		if ref != 0 {
			p, tag := q.s.recordTag(ref, q.s.cells.header(ref))
			batch[n] = candidate{ref, p, tag}
			q.s.touched += q.s.indexes.home(p, tag).tags[0]
			n++
		}
	}
	return n, passed
}

// judgeNew decides about a record that reached the end of the small queue.
func (q *small) judgeNew(c *candidate) {
	h := q.s.cells.header(c.ref)
	at := q.s.cells.expireAt(c.ref, h)
	switch policy := q.s.e.Policy(); {
	case q.s.isDue(h.partition(), at):
		q.s.discard(c.ref, c.p, c.tag, &q.s.sums.Expired)
	case policy == VolatileTTL && at == 0, policy == NoEviction:
		q.promote(c)
	case policy == AllKeys && h.uses() >= moveUses && q.promote(c):
	default:
		if policy == AllKeys && !q.s.dropped.isDoomed(c.p) {
			q.s.ghosts.add(ghostOf(q.s.cells.section(c.ref, h), c.tag), smallLog)
		}
		q.s.discard(c.ref, c.p, c.tag, &q.s.sums.Evicted)
	}
}

// promote moves a record from the small queue to the main one, if there is room.
func (q *small) promote(c *candidate) bool {
	h := q.s.cells.header(c.ref)
	class := q.s.e.classes.of(q.s.e.cellLen(h))
	to := q.s.slabs.takeOr(mainCells, class, false)
	if to == 0 && q.s.e.Policy() == AllKeys && q.s.makeMainRoom(class) {
		to = q.s.slabs.take(mainCells, class)
	}
	if to == 0 {
		return false
	}
	if q.s.cells.isLarge(h) {
		q.large -= largeCost(h.bodyLen())
	}
	q.s.slabs.move(c.ref, to, c.p, c.tag)
	q.s.cells.setHeader(to, h&^usesMask)
	return true
}
