package engine

import "sync/atomic"

// The small queue is where new records prove themselves while memory is full (S3-FIFO, Yang et al.,
// "FIFO queues are all you need for cache eviction", SOSP 2023): a first-in-first-out log with a
// share of the shard's memory. A record that has been used when its turn comes moves to the main
// queue, the clocks; one that has not goes, and leaves a ghost. So what is asked for once, a scan
// for example, never drives out what is asked for again.
//
// Records of all sizes lie behind one another on the log's pages, each in a cell of its own length.
// What dies there leaves a hole until its page has been judged as a whole, which is soon.
type small struct {
	head, tail uint32 // the page that is being filled, and the oldest; 0: no page. They are linked by page.ahead and page.behind
	at         hand   // what is judged next
	pages      int64
	large      int64 // bytes of the large bodies of its records
}

const (
	// moveUses is how many uses a record needs to move to the main queue.
	moveUses = 1
	// Memory is full when less than one in so many bytes of it is left.
	tightShare = 32
	// judgeAhead is how many bytes are judged for each that is written, so that room is there
	// before it is needed and no command waits until a whole page is judged.
	judgeAhead = 2
)

// balance is the small queue's share of memory, the same in all shards. It begins with the tenth
// that suits fixed popularities best, and follows what returns after it was evicted: if that is
// rather what the small queue threw out, the working set shifts, and new records should stay
// longer; if it is what the main queue threw out, they should not.
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
	// Above this share the working set shifts: what was used some time ago tells little, and the
	// clocks forget it at once.
	shiftShare = 200
	// Above this one ghosts open no door: what returns stays long enough in the small queue, as in
	// an LRU list.
	doorShare = 500
	// A record of more than so many times the mean length goes through the small queue even if it
	// returns: for the room that it takes others bring more hits. On long-tailed lengths that is
	// worth 2 to 4 points of the hit ratio.
	heavyTimes = 2
)

// adapt notes what is known of a record that comes in.
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

// entrance is where a new record goes: to the main queue as long as there is room for everything,
// spare memory included, or if its key was evicted not long ago.
func (s *shard) entrance(p uint16, tag uint32, h header) kind {
	if s.e.Policy() != AllKeys || !s.e.pool.tight() || s.frugal || s.e.haveSpares() {
		return mainCells
	}
	known := s.ghosts.take(ghostOf(p, tag))
	s.e.balance.adapt(known)
	if known == unknown || s.heavy(h) || s.e.balance.share.Load() > doorShare {
		return smallLog
	}
	return mainCells
}

// heavy reports whether a record is much longer than others.
func (s *shard) heavy(h header) bool { return h.recordLen()*s.records > heavyTimes*s.sums.Values }

// overfull reports whether the small queue has more than its share.
func (s *shard) overfull() bool {
	q := &s.small
	size := int64(s.e.pool.pageSize)
	return q.pages > 1 && whole*(q.pages*size+q.large) > int64(s.e.balance.share.Load())*(s.pages*size+s.large)
}

// takeSmall returns a cell for n bytes at the end of the small queue, 0 when there is none without
// making room.
func (s *shard) takeSmall(n int) handle {
	q := &s.small
	units := s.e.classes.unitsFor(n)
	if q.head == 0 || uint32(s.e.pool.pages[q.head].bump)+units > s.e.classes.pageUnits {
		s.growGhosts()
		pg := s.e.pool.take(s.upkeep)
		if pg == 0 {
			return 0
		}
		s.joinSmall(pg)
	}
	p := &s.e.pool.pages[q.head]
	h := s.cells.firstCell(q.head) + handle(p.bump)
	p.bump += uint16(units)
	p.live++
	return h
}

// joinSmall makes pg the page of the small queue that is being filled.
func (s *shard) joinSmall(pg uint32) {
	q, pages := &s.small, s.e.pool.pages
	p := s.own(pg, smallLog)
	p.ahead, p.behind = 0, q.head
	if q.head != 0 {
		pages[q.head].ahead = pg
	} else {
		q.tail = pg
	}
	q.head = pg
	q.pages++
	s.pages++
}

// putSmall frees a cell of the small queue, and its page when it was the last that lived there.
func (s *shard) putSmall(pg uint32, h handle) {
	if checked {
		s.cells.spoil(h, s.e.cellLen(s.cells.header(h)))
	}
	*s.cells.word(h) &^= typeMask
	p := &s.e.pool.pages[pg]
	p.live--
	if p.live > 0 {
		return
	}
	q, pages := &s.small, s.e.pool.pages
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
	s.pages--
	s.release(pg)
}

// reshape gives a record that keeps its cell another header. In the small queue, what it no longer
// needs of the cell becomes a dead one.
func (s *shard) reshape(ref handle, old, h header) {
	s.cells.setHeader(ref, h)
	had, has := s.e.classes.unitsFor(s.e.cellLen(old)), s.e.classes.unitsFor(s.e.cellLen(h))
	if had > has && s.cells.queueOf(ref) == smallLog {
		left := int(had-has) << s.cells.grainShift
		s.cells.setHeader(ref+handle(has), s.e.makeHeader(TypeNone, 0, 0, left-wordSize, false))
	}
}

// judgeSmall judges the oldest records of the small queue, so many bytes of them or until the
// budget gained something. It reports whether that happened.
func (s *shard) judgeSmall(bytes int) bool {
	gains := s.gains
	for bytes > 0 && s.gains == gains {
		var batch [judgeBatch]candidate
		n, passed := s.candidates(&batch)
		if passed == 0 {
			break // there is nothing older than what is being filled
		}
		bytes -= passed
		for i := range n {
			s.judgeNew(&batch[i])
		}
	}
	return s.gains != gains
}

// judgeBatch is how many records are looked up in the index together: their cache misses then
// overlap.
const judgeBatch = 8

// candidate is a record at the end of the small queue.
type candidate struct {
	ref handle
	p   *partition
	tag uint32
}

// candidates takes the next records to be judged, and says how many bytes of the queue it passed.
// Live records keep their pages where they are, and whoever judges one of a batch neither moves nor
// frees another.
func (s *shard) candidates(batch *[judgeBatch]candidate) (n, passed int) {
	q := &s.small
	for n < len(batch) {
		if q.at.page == 0 {
			q.at = hand{page: q.tail}
		}
		p := &s.e.pool.pages[q.at.page]
		if q.at.page == 0 {
			break
		}
		if q.at.cell >= uint32(p.bump) && p.ahead == 0 {
			if s.e.Policy() == AllKeys {
				q.at = hand{} // what was passed and stayed, pinned or under another policy, has its turn next time
			}
			break
		}
		if q.at.cell >= uint32(p.bump) {
			q.at = hand{page: p.ahead}
			continue
		}
		before := q.at.cell
		ref := s.next(&q.at)
		passed += int(q.at.cell-before) << s.cells.grainShift
		if ref != 0 {
			p, tag := s.recordTag(ref, s.cells.header(ref))
			batch[n] = candidate{ref, p, tag}
			s.touched += s.indexes.home(p, tag).tags[0]
			n++
		}
	}
	return n, passed
}

// judgeNew decides about a record that reached the end of the small queue.
func (s *shard) judgeNew(c *candidate) {
	h := s.cells.header(c.ref)
	at := s.cells.expireAt(c.ref, h)
	switch policy := s.e.Policy(); {
	case expired(at, s.now):
		s.discard(c.ref, c.p, c.tag, &s.sums.Expired)
	case policy == VolatileTTL && at == 0, policy == NoEviction:
		s.promote(c)
	case policy == AllKeys && h.uses() >= moveUses && s.promote(c):
	default:
		if policy == AllKeys && !s.dropped.isDoomed(c.p) {
			s.ghosts.add(ghostOf(h.partition(), c.tag), smallLog)
		}
		s.discard(c.ref, c.p, c.tag, &s.sums.Evicted)
	}
}

// promote moves a record from the small queue to the main one, if there is room.
func (s *shard) promote(c *candidate) bool {
	h := s.cells.header(c.ref)
	class := s.e.classes.of(s.e.cellLen(h))
	to := s.take(mainCells, class)
	if to == 0 && s.e.Policy() == AllKeys && s.makeMainRoom(class) {
		to = s.take(mainCells, class)
	}
	if to == 0 {
		return false
	}
	if s.cells.isLarge(h) {
		s.small.large -= largeCost(h.bodyLen())
	}
	s.move(c.ref, to, c.p, c.tag)
	s.cells.setHeader(to, h&^usesMask)
	return true
}
