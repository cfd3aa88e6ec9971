package engine

// tidyAtOnce is by how many buckets in all the indexes of a shard may shrink in one Sweep.
const tidyAtOnce = 256

// Sweep looks at about budget records, a page of them under one lock, removes those that are expired and returns how
// many. It goes on where the last call ended. Indexes that expiry and eviction left sparse shrink by the way. Calls
// may overlap.
func (e *Engine) Sweep(nowMilli int64, budget int) (expired int) {
	e.tidyNext()
	for range e.pool.inUse() {
		if budget <= 0 {
			break
		}
		budget-- // a page that has nothing to look at is not for free either
		pg := e.nextPage()
		p := &e.pool.pages[pg]
		owner := p.mark().shard()
		if owner < 0 {
			continue
		}
		s := &e.shards[owner]
		s.mu.Lock()
		if s.sums.Volatile > 0 && p.mark() == s.mark && p.kind != index {
			s.now = nowMilli
			looked, n := s.sweepPage(pg)
			budget -= looked
			expired += n
		}
		s.mu.Unlock()
	}
	return expired
}

// nextPage is the number of the page that Sweep looks at next.
func (e *Engine) nextPage() uint32 {
	return 1 + e.sweeper.Add(1)%uint32(max(1, e.pool.inUse()))
}

// sweepPage removes what is expired on the page.
func (s *shard) sweepPage(pg uint32) (looked, expired int) {
	h := hand{page: pg}
	// With its last record the page goes, and may be another shard's at once: the count of records says when to stop.
	p := &s.e.pool.pages[pg]
	for left, bump := p.live, uint32(p.bump); left > 0 && h.cell < bump; looked++ {
		ref := s.next(&h)
		if ref == 0 {
			continue
		}
		left--
		if at := s.expireAt(ref, s.header(ref)); at != 0 && at <= s.now {
			s.expire(ref)
			expired++
		}
	}
	return looked, expired
}

// tidyNext lets the indexes of the next shard follow their counts.
func (e *Engine) tidyNext() {
	s := &e.shards[e.tidier.Add(1)&uint32(len(e.shards)-1)]
	s.mu.Lock()
	defer s.mu.Unlock()
	steps := tidyAtOnce
	for i := range s.partitions {
		steps -= s.tidy(&s.partitions[i], steps)
	}
}
