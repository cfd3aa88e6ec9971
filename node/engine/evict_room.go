package engine

import (
	"runtime"
	"time"
)

// noClass asks for any gain in the budget; otherwise a cell of some class of records is wanted.
const noClass = -1

const (
	// A shard that has nothing of its own to evict waits for shards that are locked, usually for
	// microseconds: first by yielding, then by sleeping, since a holder may have lost its
	// processor.
	maxWaits  = 5000
	shortWait = 100
	longWait  = 100 * time.Microsecond
)

// obtain returns a cell for n bytes, making room if it must; 0 if that is impossible.
func (s *shard) obtain(k kind, n int) handle {
	if h := s.cell(k, n); h != 0 || s.quiet {
		return h
	}
	want := noClass
	if k == mainCells {
		want = s.e.classes.of(n)
	}
	for waits := 0; waits < maxWaits; {
		if s.makeRoom(want) {
			if h := s.cell(k, n); h != 0 {
				return h
			}
			continue // another shard was faster
		}
		if s.e.Policy() != AllKeys || s.frugal {
			return 0
		}
		waits++
		wait(waits)
	}
	return 0
}

// cell returns a cell for n bytes if there is one.
func (s *shard) cell(k kind, n int) handle {
	if k == smallLog {
		return s.small.take(n)
	}
	return s.slabs.take(k, s.e.classes.of(n))
}

func wait(times int) {
	if times < shortWait {
		runtime.Gosched()
	} else {
		time.Sleep(longWait)
	}
}

// makeRoom evicts, or moves records together, until there is a free cell of the class wanted in
// this shard or more room in the budget. It reports whether it gained something; another shard may
// take that first.
//
// Lock order: a shard's lock is held here, and others are only tried, so that two shards that want
// room from each other cannot wait for each other.
func (s *shard) makeRoom(want int) bool {
	if s.e.large.reclaim() || s.reclaimSpares(want) {
		return true
	}
	if s.frugal {
		return s.slabs.wasteful() && s.slabs.compact()
	}
	if want == noClass && s.small.overfull() && s.small.judge(s.e.pool.pageSize) {
		return true
	}
	if s.clocks.betweenPages(want) && s.reclaimColder() || s.reclaim(want, looksOwn) {
		return true
	}
	first := int(s.random())
	for i := range s.e.shards {
		if s.reclaimFrom(&s.e.shards[(first+i)&(len(s.e.shards)-1)], looksElsewhere) {
			return true
		}
	}
	return false
}

// makeMainRoom is makeRoom for a record that moves to the main queue from the small one: it judges
// no small queue.
func (s *shard) makeMainRoom(class int) bool {
	return s.clocks.betweenPages(class) && s.reclaimColder() || s.reclaimMain(class, looksOwn) || s.reclaimMain(noClass, looksOwn)
}

// reclaimColder makes room in another shard, picked at random, if its clocks have waited much
// longer for it.
func (s *shard) reclaimColder() bool {
	picked := s.e.pool.owner(s.random())
	if picked < 0 || picked == s.number {
		return false
	}
	victim, now := &s.e.shards[picked], s.e.pool.tick.Load()
	if !older(now-victim.clocks.coldStamp.Load(), now-s.clocks.coldStamp.Load()) || !victim.mu.TryLock() {
		return false
	}
	defer victim.mu.Unlock()
	return victim.reclaimMain(noClass, looksOwn)
}

// reclaimFrom makes room in another shard, if its lock is free.
func (s *shard) reclaimFrom(victim *shard, maxLooks int) bool {
	if victim == s {
		return s.reclaim(noClass, maxLooks)
	}
	if !victim.mu.TryLock() {
		return false
	}
	defer victim.mu.Unlock()
	return victim.reclaim(noClass, maxLooks)
}

// random is a step of xorshift32: victims need no better.
func (s *shard) random() uint32 {
	s.dice ^= s.dice << 13
	s.dice ^= s.dice >> 17
	s.dice ^= s.dice << 5
	return s.dice
}
