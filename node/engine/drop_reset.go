package engine

// A Reset takes everything from the shards at once, one shard after the other, by letting each
// begin a new generation: its indexes, lists and sums are cleared, and the pages it had bear an
// older mark than its own. Nobody finds or touches them any more but the Reset, which needs no lock
// to free them.

// mark says on a page whose it is: a shard's number + 1, below that shard's generation. 0:
// nobody's.
type mark uint32

const (
	markShardBits = 13
	generation    = 1 << markShardBits
)

// shard is the number of the shard that the mark is or was of; -1 for nobody's.
func (m mark) shard() int { return int(m&(generation-1)) - 1 }

// Reset drops everything and uses another seed from now on. Others wait for moments only, and see
// the shards emptied one after the other: what they write meanwhile is gone or stays. The memory of
// one shard is free before the next one is emptied, since only that shard's writers may lack it.
// When Reset returns, all memory of before is free.
func (e *Engine) Reset(seed uint64) {
	e.resetMu.Lock()
	defer e.resetMu.Unlock()
	for i := range e.shards {
		e.shards[i].renounce(seed)
		e.freeRenounced(&e.shards[i])
	}
	for range maxWarmPages {
		e.pool.chillWarm()
	}
	for e.large.chill() {
	}
	e.large.settle()
	e.large.forget()
}

// renounce leaves the shard with nothing, in a new generation.
func (s *shard) renounce(seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feeds.clear()
	s.mark += generation
	s.seed.Store(seed)
	for d := range uint8(Databases) {
		clear(s.tableInUse(d))
		s.eras[d]++
	}
	s.e.spares[doomedRecords].Add(-int32(len(s.dropped.list)))
	s.dropped.list = nil
	s.slabs.kinds, s.slabs.emptying = [numSlabs]slab{}, emptying{}
	s.e.pool.reserved.Add(min(s.slabs.all, ownPages) * s.e.pool.pageCost())
	s.slabs.all = 0
	s.indexes.spare, s.indexes.spares = 0, 0
	s.indexes.gathering = false
	s.values.renounce()
	s.awaits.retag(seed)
	s.takings = takings{}
	s.clocks.hands, s.clocks.squeezed = [numClasses]hand{}, noClass
	s.small, s.slabs.pages, s.records, s.large, s.slabs.unused = small{s: s}, 0, 0, 0, 0
	s.dropGhosts()
	s.sums.Volatile, s.sums.Values, s.sums.Parts, s.sums.Index = 0, 0, 0, 0
	s.sums.Recorded++
}

// freeRenounced frees all pages of a shard's older generations. The caller holds resetMu, so the
// shard's mark stays what it is.
func (e *Engine) freeRenounced(s *shard) {
	w := &e.pool.windows[s.window]
	for pg := w.first + 1; pg < w.fresh.Load(); pg++ {
		if m := e.pool.pages[pg].mark(); m.shard() == s.number && m != s.mark {
			e.freePage(pg)
		}
	}
}

// freePage gives a page back that no shard knows, and the large bodies of its records.
func (e *Engine) freePage(pg uint32) {
	p, c := &e.pool.pages[pg], e.windowOf(pg)
	switch p.kind {
	case index:
		e.pool.indexPages.Add(-1)
	case partCells:
		e.disownParts(pg)
	case valueHeads:
	default:
		for h := (hand{page: pg}); h.cell < uint32(p.bump); {
			ref := e.step(&h)
			if head := header(*c.word(ref)); head.live() && head.bodyLen() > c.maxInline {
				e.large.disown(*c.third(ref))
			}
		}
	}
	p.setMark(0)
	e.pool.chill(pg)
}
