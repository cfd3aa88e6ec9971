package engine

import "runtime"

// noClass asks for any gain in the budget, where otherwise a cell of some class of records is wanted.
const noClass = -1

const (
	// Once in so many times room is made where a random page is, so that memory flows to the shards that insert most.
	elsewhereEvery = 64
	// A shard without anything of its own waits for others that are locked just now; each holds its lock for
	// microseconds, and gives up the processor's turn at most this often.
	maxWaits = 20000
)

// obtain returns a cell, making room if it must; 0 if that is impossible.
func (s *shard) obtain(k kind, class int) handle {
	if h := s.take(k, class); h != 0 {
		return h
	}
	want := noClass
	if k == records {
		want = class
	}
	for waits := 0; waits < maxWaits; {
		if s.makeRoom(want) {
			if h := s.take(k, class); h != 0 {
				return h
			}
			continue // another shard was faster
		}
		if s.e.policy != AllKeys {
			return 0
		}
		waits++
		runtime.Gosched()
	}
	return 0
}

// takeIndex returns a cell for n bytes of index, 0 if there is none. It may evict.
func (s *shard) takeIndex(n int) handle {
	if n > s.e.pool.pageSize {
		return 0
	}
	class := s.e.classes.of(n)
	h := s.obtain(index, class)
	if h != 0 {
		s.sums.Index += int64(s.e.classes.size(class))
	}
	return h
}

// takeIndexQuietly is takeIndex without eviction.
func (s *shard) takeIndexQuietly(n int) handle {
	class := s.e.classes.of(n)
	h := s.take(index, class)
	if h != 0 {
		s.sums.Index += int64(s.e.classes.size(class))
	}
	return h
}

func (s *shard) putIndex(h handle, n int) {
	s.sums.Index -= int64(s.e.classes.size(s.e.classes.of(n)))
	s.put(h)
}

// chargeLarge takes n bytes of the budget for a large body that has held already, making room if it must.
func (s *shard) chargeLarge(n, held int64) bool {
	pool := &s.e.pool
	for waits := 0; waits < maxWaits; {
		if pool.charge(n) || pool.chillWarm() && pool.charge(n) {
			return true
		}
		if n+held > s.e.reclaimable() {
			return false
		}
		if s.makeRoom(noClass) {
			continue
		}
		if s.e.policy != AllKeys {
			return false
		}
		waits++
		runtime.Gosched()
	}
	return false
}

// reclaimable is how many bytes of the budget a large body could get if everything else were evicted: all but the
// indexes, and two pages a shard.
func (e *Engine) reclaimable() int64 {
	kept := e.pool.indexPages.Load() + 2*int64(len(e.shards))
	return e.pool.max.Load() - e.fixed - kept*e.pool.pageCost()
}

// makeRoom evicts, or moves records together, until there is a free cell of the class wanted in this shard or more
// room in the budget. It says whether it gained something; another shard may take that first.
//
// Lock order: a shard's lock is held here, and others are only tried, so that two shards that want room from each
// other cannot wait for each other.
func (s *shard) makeRoom(want int) bool {
	if s.e.policy == NoEviction {
		return s.reclaim(want) // a shard's own expired records and sparse pages are all there is
	}
	s.turns++
	if want != noClass && s.turns%elsewhereEvery != 0 && s.reclaim(want) {
		return true
	}
	if victim, ok := s.e.pool.owner(s.random()); ok && s.reclaimFrom(&s.e.shards[victim]) {
		return true
	}
	if s.reclaim(want) {
		return true
	}
	first := int(s.random())
	for i := range s.e.shards {
		if s.reclaimFrom(&s.e.shards[(first+i)&(len(s.e.shards)-1)]) {
			return true
		}
	}
	return false
}

// reclaimFrom makes room in another shard, if its lock is free.
func (s *shard) reclaimFrom(victim *shard) bool {
	if victim == s {
		return s.reclaim(noClass)
	}
	if !victim.mu.TryLock() {
		return false
	}
	defer victim.mu.Unlock()
	return victim.reclaim(noClass)
}

// random is a step of xorshift32: victims need no better.
func (s *shard) random() uint32 {
	s.dice ^= s.dice << 13
	s.dice ^= s.dice >> 17
	s.dice ^= s.dice << 5
	return s.dice
}
