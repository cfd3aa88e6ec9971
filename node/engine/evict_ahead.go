package engine

import "runtime"

// Some pages are kept free while memory is full, for those who cannot do without one: the small
// queue, the first records of a class, indexes, values with parts and large bodies. Whoever takes one
// of them empties another page once the shard is unlocked, in slices, and whoever has the shard next
// goes on. So a command finds its page, and no lock is held until one is empty. A class that has
// pages evicts from these, and it gets another page when more than the ones to be kept are free.

const (
	// minAhead is how many pages are kept free at least, and aheadShare the part of the limit that
	// they may take.
	minAhead   = 4
	aheadShare = 64
	// aheadAtOnce is how many slices one command pays for at most, for each page that is missing: 0.4
	// ms. A page of the smallest records takes four times as many.
	aheadAtOnce = 8
)

// toKeep is how many pages are to be kept free. Where not all keys may be evicted it is none, since
// nothing may be refused, or expire sooner, for the sake of others.
func (p *pool) toKeep() int {
	if Policy(p.policy.Load()) != AllKeys {
		return 0
	}
	return min(p.ahead, int(p.max.Load()/(aheadShare*p.pageCost())))
}

// freeLocked is how many pages there are without making room.
func (p *pool) freeLocked() int {
	left := p.limit(false) - p.used.Load() - p.reserved.Load()
	if left < 0 {
		return 0
	}
	return p.warms + int(left/p.pageCost())
}

func (p *pool) free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.freeLocked()
}

// oweRoom notes that a page is to be emptied after this lock, if too few are free.
func (s *shard) oweRoom() {
	if !s.frugal && s.e.pool.free() < s.e.pool.toKeep() {
		s.owes, s.ending = true, true
	}
}

// makeAhead empties pages until enough are free, for one who has just unlocked shard s. If victim
// is not 0, one more shall be free, and shard victim-1 is the first one in which to look for it.
func (e *Engine) makeAhead(s *shard, victim int) {
	pages, first := e.pool.toKeep(), s.number
	if victim > 0 {
		pages++
		first = victim - 1
	} else if colder := s.colder(e.dice.Add(diceStep)); colder != nil {
		first = colder.number
	}
	for range min(aheadAtOnce*(pages-e.pool.free()), slicesAtOnce) {
		if e.pool.free() >= pages || !e.makeAheadSlice(first) {
			return
		}
		runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
	}
	if e.pool.free() < pages && s.mu.TryLock() { // whoever has this shard next goes on
		s.owes, s.ending, s.victim = true, true, victim
		s.mu.Unlock()
	}
}

// makeAheadSlice is a slice of makeAhead. It reports whether it got further.
func (e *Engine) makeAheadSlice(first int) bool {
	if e.large.reclaim() || e.reclaimAnySpare() {
		return true
	}
	if cut := int(e.cut.Load()); cut > 0 {
		first = cut - 1 // where a page is being emptied
	}
	for i := range e.shards {
		s := &e.shards[(first+i)&(len(e.shards)-1)]
		if !s.mu.TryLock() {
			continue
		}
		further, _ := s.roomSlice(false)
		s.mu.Unlock()
		if further {
			return true
		}
	}
	return false
}
