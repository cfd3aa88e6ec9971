package engine

// Some memory can be freed without a loss: dropped partitions that are not freed yet, dead values
// with parts, and then copies. It is taken first, from all shards, before anything else is evicted.

// spareKind is one of these, in their order.
type spareKind uint8

const (
	doomedRecords spareKind = iota
	doomedParts
	copiedRecords
	numSpares
)

// drainForRoom is the cost of one step that frees dropped partitions or dead values when memory is
// needed.
const drainForRoom = 32

// haveSpare reports whether any shard may have memory of a kind.
func (e *Engine) haveSpare(k spareKind) bool { return e.spares[k].Load() > 0 }

func (e *Engine) haveSpares() bool {
	return e.haveSpare(doomedRecords) || e.haveSpare(doomedParts) || e.haveSpare(copiedRecords)
}

// reclaimSpare frees some memory of a kind in this shard, until a cell of the class wanted is free,
// or the budget has gained, or a step is done. It reports whether it freed something.
func (s *shard) reclaimSpare(k spareKind, want int) bool {
	switch k {
	case copiedRecords:
		return s.copies.reclaim(want)
	case doomedParts:
		return s.values.drain(drainForRoom)
	}
	if len(s.dropped.list) == 0 {
		return false
	}
	s.dropped.drain(s.dropped.list[0], drainForRoom)
	return true
}

// reclaimSpares is reclaimSpare for all kinds, here and then in other shards that are not locked.
func (s *shard) reclaimSpares(want int) bool {
	for k := range numSpares {
		if !s.e.haveSpare(k) {
			continue
		}
		if s.reclaimSpare(k, want) {
			return true
		}
		if further, _ := s.e.reclaimSpareElsewhere(k, s); further {
			return true
		}
	}
	return false
}

// reclaimSpareElsewhere frees memory of a kind in a shard other than one, nil for none, that is not
// locked. It reports whether it did, and otherwise whether one was locked.
func (e *Engine) reclaimSpareElsewhere(k spareKind, but *shard) (further, locked bool) {
	first := int(e.dice.Add(diceStep) >> 16)
	for i := range e.shards {
		s := &e.shards[(first+i)&(len(e.shards)-1)]
		if s == but {
			continue
		}
		if !s.mu.TryLock() {
			locked = true
			continue
		}
		s.beginSlice()
		further = s.reclaimSpare(k, noClass)
		s.endSlice()
		s.mu.Unlock()
		if further {
			return true, false
		}
	}
	return false, locked
}

// reclaimAnySpare is reclaimSpares for a caller that holds no shard.
func (e *Engine) reclaimAnySpare() bool {
	for k := range numSpares {
		if e.haveSpare(k) {
			if further, _ := e.reclaimSpareElsewhere(k, nil); further {
				return true
			}
		}
	}
	return false
}
