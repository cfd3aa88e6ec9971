package engine

import (
	"math"
	"runtime"
)

// The sweep finds expired records that nobody reads. Each page of records has a time before which
// nothing on it expires; the sweep does not even lock a page whose time has not come. On other
// pages it looks at all records, in the order of their addresses, and determines the page's time
// anew.

const (
	never = math.MaxInt64 // a page's time when nothing on it expires

	// A slice, under one lock, removes up to expireAtOnce records and looks at up to lookAtOnce
	// cells: up to 50 µs.
	expireAtOnce = 128
	lookAtOnce   = 4096
	// sweepBatch is how many records are looked up in the index together: their cache misses then
	// overlap.
	sweepBatch = 16
	// tidyAtOnce is by how many buckets all indexes of a shard together may shrink in one Sweep.
	tidyAtOnce = 256
)

// expiresAt notes that a record on the page of cell ref expires at a time, if it is not 0.
func (c *cells) expiresAt(ref handle, at int64) {
	p := &c.e.pool.pages[c.pageOf(ref)]
	if at != 0 && at < p.soonest.Load() {
		p.soonest.Store(at)
	}
}

// Pages is how many pages there are for Sweep to look at in a round.
func (e *Engine) Pages() int { return e.pool.inUse() }

// Sweep looks at the next pages, removes the expired records on them and returns how many. It goes
// on where the last call ended. Indexes shrink with their records; indexes that eviction left
// sparse shrink, too. No lock is held for longer than a slice. Calls may overlap.
func (e *Engine) Sweep(nowMilli int64, pages int) (expired int) {
	e.drainForgotten()
	e.tidyNext()
	for range min(pages, e.pool.inUse()) {
		pg := e.nextToSweep()
		p := &e.pool.pages[pg]
		if owner := p.mark().shard(); owner >= 0 && p.soonest.Load() <= nowMilli {
			expired += e.shards[owner].sweepPage(pg, nowMilli)
		}
	}
	return expired
}

// nextToSweep moves the sweep on to the next page, and returns that. A page that is used for the first time meanwhile
// delays it by that page at most, which a count of steps, modulo the pages in use, would not: it leaps back by a page for
// each round so far.
func (e *Engine) nextToSweep() uint32 {
	for {
		at := e.sweeper.Load()
		if next := e.pool.after(at); e.sweeper.CompareAndSwap(at, next) {
			return next
		}
	}
}

// pageSweep is a walk over the records of one page.
type pageSweep struct {
	at    hand
	life  uint32 // of the page, see page.life
	now   int64
	batch [sweepBatch]candidate
	n     int // records in it
}

func (s *shard) sweepPage(pg uint32, now int64) (expired int) {
	w := pageSweep{at: hand{page: pg}, now: now}
	for {
		n, more := s.sweepSlice(&w)
		expired += n
		if !more {
			return expired
		}
		runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
	}
}

// sweepSlice goes on with w, and reports whether there is more to do.
func (s *shard) sweepSlice(w *pageSweep) (expired int, more bool) {
	s.mu.Lock()
	defer s.unlockServing()
	p := &s.e.pool.pages[w.at.page]
	if p.mark() != s.mark || !p.kind.hasRecords() || w.at.cell > 0 && p.life != w.life {
		return 0, false // the page has become another one
	}
	if w.at.cell == 0 {
		p.soonest.Store(never) // and from here on what is found
		w.life = p.life
	}
	s.now = w.now
	// With its last record the page goes, and may be another shard's at once: the count says when
	// to stop.
	left, bump, soonest := int(p.live), uint32(p.bump), int64(never)
	for looked := 0; looked < lookAtOnce && expired < expireAtOnce && w.at.cell < bump; looked++ {
		here := w.at
		ref := s.e.step(&w.at)
		h := s.cells.header(ref)
		if !h.live() {
			continue
		}
		if s.keeps(h) {
			soonest = w.now // come again
			continue
		}
		if h.isRoot() {
			due, gone, again := s.values.expireParts(ref, h)
			if again {
				w.at = here
				break
			}
			if gone {
				if left--; left == 0 {
					s.expireBatch(w)
					return expired, false
				}
				continue
			}
			soonest = min(soonest, due)
		}
		switch at := s.cells.expireAt(ref, h); {
		case at == 0:
		case !s.isDue(h.partition(), at):
			soonest = min(soonest, at)
		default:
			expired++
			left--
			if s.expireLater(w, ref, h); left == 0 {
				s.expireBatch(w)
				return expired, false
			}
		}
	}
	s.expireBatch(w)
	if soonest < p.soonest.Load() {
		p.soonest.Store(soonest)
	}
	return expired, w.at.cell < bump
}

// expireLater puts an expired record into the batch, which goes when it is full.
func (s *shard) expireLater(w *pageSweep, ref handle, h header) {
	p, tag := s.recordTag(ref, h)
	s.touched += s.indexes.home(p, tag).tags[0]
	w.batch[w.n] = candidate{ref, p, tag}
	if w.n++; w.n == sweepBatch {
		s.expireBatch(w)
	}
}

// expireParts removes the elements that are due from a value with parts. It returns when the next
// element is due, or that the value is gone, or that there is more to be removed. In a copy nothing
// is removed: that is the owner's.
func (v *values) expireParts(ref handle, h header) (due int64, gone, again bool) {
	at := v.s.cells.headOf(ref, h)
	head := v.s.cells.head(at)
	if head.due == 0 {
		return never, false, false
	}
	expire := v.s.e.forms[head.typ].Expire
	if head.due <= v.s.now && expire != nil && !v.s.copies.has(h.partition()) {
		section := v.s.cells.section(ref, h)
		t := Txn{s: v.s, p: v.s.dropped.indexOf(section, v.s.tagOfRecord(ref, h), ref), section: section}
		if v.s.dropped.isDoomed(t.p) {
			return never, false, false
		}
		expire(Parts{t, at})
		if head.root == 0 {
			return 0, true, false
		}
		again = head.due != 0 && head.due <= v.s.now
	}
	if head.due == 0 {
		return never, false, false
	}
	return head.due, false, again
}

// expireBatch removes the records in the batch. The indexes follow.
func (s *shard) expireBatch(w *pageSweep) {
	for _, c := range w.batch[:w.n] {
		s.discard(c.ref, c.p, c.tag, &s.sums.Expired)
		if !s.dropped.isDoomed(c.p) {
			s.indexes.tidy(c.p, 2)
		}
	}
	w.n = 0
}

// tidyNext lets the indexes of the next shard follow their counts, and their pages follow the
// indexes. It returns by how many buckets they shrank, tidyAtOnce at most.
func (e *Engine) tidyNext() (steps int) {
	s := &e.shards[e.tidier.Add(1)&uint32(len(e.shards)-1)]
	s.mu.Lock()
	s.values.dropStash()
	s.slabs.stopEmptying() // nobody may need room any more
	for d := range uint8(Databases) {
		for i := range s.tableInUse(d) {
			steps += s.indexes.tidy(&s.table(d)[i], tidyAtOnce-steps)
		}
	}
	s.mu.Unlock()
	s.indexes.gather()
	return steps
}
