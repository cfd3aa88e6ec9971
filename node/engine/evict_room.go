package engine

import "runtime"

// noClass asks for any gain in the budget; otherwise a cell of some class of records is wanted.
const noClass = -1

// maxWaits is how often a caller yields that finds nothing to evict except in shards that are
// locked: their holders need microseconds. It never waits for longer, because it may hold a
// shard itself. A shard has ownPages in any case, unless its window was full before it had them.
const maxWaits = 20

// obtain returns a cell for n bytes, making room if it must; 0 if that is impossible.
func (s *shard) obtain(k kind, n int) handle {
	if h := s.cell(k, n, s.quiet); h != 0 || s.quiet {
		return h
	}
	want := noClass
	if k == mainCells {
		want = s.e.classes.of(n)
	}
	for waits := 0; waits < maxWaits; {
		gained, busy := s.makeRoom(want)
		if gained {
			if h := s.cell(k, n, true); h != 0 {
				return h
			}
			continue // another shard was faster
		}
		if !busy {
			break
		}
		waits++
		runtime.Gosched()
	}
	return s.cell(k, n, true) // as in await
}

// cell returns a cell for n bytes if there is one.
func (s *shard) cell(k kind, n int, urgent bool) handle {
	if k == smallLog {
		return s.small.take(n)
	}
	return s.slabs.takeOr(k, s.e.classes.of(n), urgent)
}

// makeRoom evicts, or moves records together, until there is a free cell of the class wanted in
// this shard or more room in the budget. It reports whether it gained something, which another
// shard may take first. If not, it reports whether there may be something in a moment: in a shard
// that is locked, or from a body that is just being given back. A caller that wants no page calls
// makeBudgetRoom.
//
// Lock order: a shard's lock is held here, and others are only tried, so that two shards that want
// room from each other cannot wait for each other.
func (s *shard) makeRoom(want int) (gained, busy bool) {
	if s.e.pool.isFull(s.window) {
		return s.makeWindowRoom(want)
	}
	return s.makeBudgetRoom(want)
}

// makeBudgetRoom is makeRoom when a shard's next page depends on the budget alone, or when the
// caller wants something else of the budget.
func (s *shard) makeBudgetRoom(want int) (gained, busy bool) {
	if s.e.large.reclaim() || s.e.pool.chillElsewhere(s.window) || s.reclaimSpares(want) {
		return true, false
	}
	if s.frugal {
		return s.slabs.wasteful() && s.slabs.compact(), false
	}
	if want == noClass && s.small.overfull() && s.small.judge(s.e.pool.pageSize) {
		return true, false
	}
	s.beginSlice()
	made := s.makeCellRoom(want)
	s.endSlice()
	if made {
		return true, false
	}
	if s.clocks.betweenPages(want) && s.reclaimColder() || s.reclaim(want, looksOwn) {
		return true, false
	}
	first := int(s.random())
	for i := range s.e.shards {
		gained, locked := s.reclaimFrom(&s.e.shards[(first+i)&(len(s.e.shards)-1)], looksElsewhere)
		if gained {
			return true, false
		}
		busy = busy || locked
	}
	return false, s.e.Policy() == AllKeys && (busy || s.e.large.isReleasing())
}

// makeWindowRoom is makeRoom when all pages of the shard's window are taken: there is room in the
// budget, perhaps, and others' pages do not help.
func (s *shard) makeWindowRoom(want int) (gained, busy bool) {
	if s.frugal {
		return s.slabs.wasteful() && s.slabs.compact(), false
	}
	if s.reclaim(want, looksOwn) {
		return true, false
	}
	for i := s.window; i < len(s.e.shards); i += len(s.e.windows) {
		gained, locked := s.reclaimFrom(&s.e.shards[i], looksElsewhere)
		if gained {
			return true, false
		}
		busy = busy || locked
	}
	return false, busy && s.e.Policy() == AllKeys
}

// makeMainRoom is makeRoom for a record that moves to the main queue from the small one: it judges
// no small queue.
func (s *shard) makeMainRoom(class int) bool {
	return s.makeCellRoom(class) || s.clocks.betweenPages(class) && s.reclaimColder() || s.reclaimMain(class, looksOwn) || s.reclaimMain(noClass, looksOwn)
}

// makeCellRoom makes room for a cell of a class that has pages: when the slice is over, from those
// alone. If another shard's have waited much longer for a hand, a page of theirs is emptied once
// this shard is unlocked.
func (s *shard) makeCellRoom(class int) bool {
	if class == noClass || s.e.Policy() != AllKeys || !s.clocks.has(class) {
		return false
	}
	if s.clocks.betweenPages(class) {
		if victim := s.colder(s.random()); victim != nil {
			s.owes, s.ending, s.victim = true, true, victim.number+1
		}
	}
	return s.reclaimMain(class, looksOwn)
}

// reclaimColder makes room in a shard that is colder, if that is not locked.
func (s *shard) reclaimColder() bool {
	victim := s.colder(s.random())
	if victim == nil || !victim.mu.TryLock() {
		return false
	}
	defer victim.mu.Unlock()
	return victim.reclaimMain(noClass, looksOwn)
}

// colder is another shard, picked by r, if its clocks have waited much longer for a hand; else nil.
// It needs no lock.
func (s *shard) colder(r uint32) *shard {
	picked := s.e.pool.owner(r)
	if picked < 0 || picked == s.number {
		return nil
	}
	victim, now := &s.e.shards[picked], s.e.pool.tick.Load()
	if !older(now-victim.clocks.coldStamp.Load(), now-s.clocks.coldStamp.Load()) {
		return nil
	}
	return victim
}

// reclaimFrom makes room in another shard, and reports whether its lock is not free.
func (s *shard) reclaimFrom(victim *shard, maxLooks int) (gained, locked bool) {
	if victim == s {
		return s.reclaim(noClass, maxLooks), false
	}
	if !victim.mu.TryLock() {
		return false, true
	}
	defer victim.mu.Unlock()
	return victim.reclaim(noClass, maxLooks), false
}

// random is a step of xorshift32: victims need no better.
func (s *shard) random() uint32 {
	s.dice ^= s.dice << 13
	s.dice ^= s.dice >> 17
	s.dice ^= s.dice << 5
	return s.dice
}
