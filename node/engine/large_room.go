package engine

import "runtime"

// newLarge takes an extent for a body of n bytes, charged, making room if it must.
func (s *shard) newLarge(n int) (off uint64, ok bool) {
	l, cost := s.e.large, largeCost(n)
	if !s.await(cost+extentSize, func() bool {
		off, ok = s.takeWarm(n)
		return ok || s.chargeOrChill(cost+extentSize)
	}) {
		l.refused.Add(1)
		return 0, false
	}
	if s.e.pool.tight() {
		s.oweRoom()
	}
	if ok {
		return off, true
	}
	if off, ok = l.take(n); !ok {
		s.e.pool.refund(cost)
		return 0, false
	}
	if !l.grow(off, cost) {
		l.untake(off)
		s.e.pool.refund(cost)
		l.refused.Add(1)
		return 0, false
	}
	if cost >= populateFrom && cost <= populateTo {
		l.populate(off, int(cost))
	}
	return off, true
}

// takeWarm takes a warm extent for a body of n bytes and charges what it lacks.
func (s *shard) takeWarm(n int) (off uint64, ok bool) {
	l := s.e.large
	if off, ok = l.takeWarm(n); !ok {
		return 0, false
	}
	x := l.extent(off)
	lacks := largeCost(n) - int64(x.pages)*osPage
	if lacks > 0 && !s.chargeOrChill(lacks) {
		l.disown(off)
		return 0, false
	}
	if lacks > 0 && !l.grow(off, largeCost(n)) {
		s.e.pool.refund(lacks)
		l.disown(off)
		return 0, false
	}
	return off, true
}

func (s *shard) chargeOrChill(n int64) bool {
	return s.e.pool.charge(n) || s.e.pool.chillWarm() && s.e.pool.charge(n)
}

// dropLarge ends a body that a record had.
func (s *shard) dropLarge(off uint64) {
	if s.e.large.disown(off) {
		s.gains++
	}
}

// countLarge notes that the large body of a record has n bytes more.
func (s *shard) countLarge(ref handle, n int64) {
	s.large += n
	if s.cells.queueOf(ref) == smallLog {
		s.small.large += n
	}
}

// replaceLarge gives a large record another body, which is not yet a record's, and the header and
// expiry that go with it.
func (s *shard) replaceLarge(ref handle, h header, expireAt int64, body uint64) {
	old := s.cells.header(ref)
	s.account(old, s.cells.expireAt(ref, old), -1)
	s.account(h, expireAt, 1)
	s.countLarge(ref, largeCost(h.bodyLen())-largeCost(old.bodyLen()))
	s.dropLarge(*s.cells.third(ref))
	s.cells.setHeader(ref, h.usedLike(old))
	s.cells.setExpireAt(ref, h, expireAt)
	*s.cells.third(ref) = body
}

// isShared reports whether the body of a large record is pinned, so that it must not be written to.
func (c *cells) isShared(ref handle) bool { return c.e.large.isShared(*c.third(ref)) }

// reuses reports whether the body for header h may take the place of the one that a large record has.
func (s *shard) reuses(ref handle, old, h header) bool {
	return extentShift(old.bodyLen()) == extentShift(h.bodyLen()) &&
		old.bodyLen()-h.bodyLen() <= releasePiece && // the end is given back under the lock
		!s.cells.isShared(ref)
}

// resizeLarge makes the body of a large record, which is not shared, n bytes long, which remains
// large. The header is the caller's to change.
func (s *shard) resizeLarge(ref handle, old header, n int) error {
	before, after := largeCost(old.bodyLen()), largeCost(n)
	more := max(0, after-before)
	s.pinned = ref
	ok := s.await(more+extentSize+before, func() bool { return s.chargeOrChill(more + extentSize) })
	s.pinned = 0
	if !ok {
		return s.e.lack(n)
	}
	offset := s.cells.third(ref)
	off, ok := s.e.large.resize(*offset, old.bodyLen(), n)
	if !ok {
		s.e.pool.refund(more)
		return ErrMemory
	}
	*offset = off
	s.countLarge(ref, after-before)
	if after < before {
		s.e.pool.refund(before - after)
		s.gains++
	}
	return nil
}

// await makes room until try succeeds, which takes n bytes of the budget, unless they can never be
// had.
func (s *shard) await(n int64, try func() bool) bool {
	for waits := 0; waits < maxWaits; {
		if try() {
			return true
		}
		if n > s.e.reclaimable()-s.e.large.held() {
			return false
		}
		gained, busy := s.makeBudgetRoom(noClass)
		if gained {
			continue
		}
		if !busy {
			break
		}
		waits++
		runtime.Gosched()
	}
	return try() // since it failed, somebody may have given back the last of what was to be had
}

// lack is the error when there is no memory for a body of n bytes: with less in the engine there
// may be, or there never is.
func (e *Engine) lack(n int) error {
	if largeCost(n) > e.reclaimable() {
		return ErrNeverFits
	}
	return ErrMemory
}

// reclaimable is how many bytes of the budget a large body could get if everything else were
// evicted: all but what is outside, the logs of feeds, and pages for indexes and small records.
func (e *Engine) reclaimable() int64 {
	limit, pages := e.pool.max.Load(), e.pool.indexPages.Load()+int64(ownPages*len(e.shards))
	return limit - e.fixed.Load() - e.pool.outside.Load() - max(pages*e.pool.pageCost(), limit/smallShare) - e.large.overhead.Load() - e.feeds.charged.Load()
}

// smallShare: a smallShare-th of the limit at least is left for indexes and small records by large
// values that are being written or read, by what is outside, and by logs.
const smallShare = 32

// leavesRoom reports whether what nobody can evict leaves the shards their pages. Whoever takes
// such memory counts it first and then asks: of two who take the last of it at least one sees the
// other's, and gives its own back.
func (e *Engine) leavesRoom() bool { return e.large.held() <= e.reclaimable() }
