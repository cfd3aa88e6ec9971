package engine

import "runtime"

// charge takes n bytes of the budget if they are there.
func (p *pool) charge(n int64) bool { return p.chargeUpTo(n, p.limit(false)) }

// chargeUpTo is where the memory limit is enforced: used and reserved together never exceed limit,
// except by the page that a shard is just taking or giving back, and by pieces of dead values that the
// system is about to get. It takes n bytes of the budget and reports whether they were there.
func (p *pool) chargeUpTo(n, limit int64) bool {
	for {
		used := p.used.Load()
		if used+n+p.reserved.Load() > limit {
			return false
		}
		if !p.used.CompareAndSwap(used, used+n) {
			continue
		}
		// A shard that gives a page back reserves it before it is refunded, so that nobody else
		// has it in between.
		if used+n+p.reserved.Load() <= limit {
			return true
		}
		p.used.Add(-n)
		return false
	}
}

// ownPages is how many pages each shard can always have, whatever others hold: for its index, in a
// few classes, and for some records. Those that it does not have yet are reserved for it.
const ownPages = 4

// tight reports whether memory is full, or nearly so: a new record then has to evict another.
func (p *pool) tight() bool {
	limit := p.max.Load()
	return p.used.Load()+p.reserved.Load() > limit-limit/tightShare
}

// IsTight reports whether memory is full, or nearly so.
func (e *Engine) IsTight() bool { return e.pool.tight() }

func (p *pool) refund(n int64) { p.used.Add(-n) }

// Charge takes n bytes of the limit for memory of the caller's own, such as buffers of connections,
// and makes room as Set would: in slices, so that no shard is locked for long. It returns false if
// there is no room. After the caller has freed its memory, Refund gives the bytes back. A caller
// may hold a Txn: other shards are only tried, and its own is left alone, so that an Item stays
// valid.
func (e *Engine) Charge(n int64) bool { return e.chargeBy(n, e.makeRoomElsewhere) }

// ChargeAlone is Charge for a caller that has no Txn: it waits for shards that are locked.
func (e *Engine) ChargeAlone(n int64) bool { return e.chargeBy(n, e.makeRoom) }

// chargeBy is Charge that makes room by makeRoom. If that finds none, it looks once more, as in shard.await.
func (e *Engine) chargeBy(n int64, makeRoom func() (further bool)) bool {
	for further := true; !e.pool.chargeOutside(n); {
		if n > e.reclaimable()-e.large.held() {
			e.large.refused.Add(1)
			return false
		}
		if !further {
			return false
		}
		further = makeRoom()
	}
	if e.leavesRoom() {
		return true
	}
	e.pool.refundOutside(n)
	e.large.refused.Add(1)
	return false
}

// makeRoomElsewhere is makeRoom for a caller that may have a shard locked, in which it makes none.
// It waits a little for the others.
func (e *Engine) makeRoomElsewhere() bool {
	for range maxWaits {
		further, locked := e.reclaimAnywhere()
		if further || !locked {
			return further
		}
		runtime.Gosched()
	}
	return false
}

// Outside is how many bytes Charge took that are not refunded.
func (e *Engine) Outside() int64 { return e.pool.outside.Load() }

// Refund gives back n bytes that Charge took.
func (e *Engine) Refund(n int64) { e.pool.refundOutside(n) }

// reclaimAnywhere makes room in a shard that is not locked, beginning at a random one. It reports
// whether it gained, and otherwise whether a shard was locked.
func (e *Engine) reclaimAnywhere() (further, locked bool) {
	if e.large.reclaim() || e.reclaimAnySpare() {
		return true, false
	}
	first := e.firstVictim()
	for i := range e.shards {
		s := &e.shards[(first+i)&(len(e.shards)-1)]
		if !s.mu.TryLock() {
			locked = true
			continue
		}
		further, _ = s.roomSlice(true)
		s.mu.Unlock()
		if further {
			return true, false
		}
	}
	return false, locked
}

// diceStep makes a sequence whose high bits are spread evenly: 2³² over the golden ratio.
const diceStep = 0x9E3779B9

func (p *pool) chargeOutside(n int64) bool {
	p.outsideMu.Lock()
	defer p.outsideMu.Unlock()
	if !p.chargeUpTo(n, p.limit(true)) {
		return false
	}
	p.outside.Add(n)
	return true
}

func (p *pool) refundOutside(n int64) {
	p.outsideMu.Lock()
	defer p.outsideMu.Unlock()
	if p.outside.Add(-n) < 0 {
		panic("BUG: more is refunded than was charged")
	}
	p.refund(n)
}
