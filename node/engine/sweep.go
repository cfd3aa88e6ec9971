package engine

const (
	// sweepHold is how many cells are looked at under one lock.
	sweepHold = 512
	// tidyAtOnce is how many partitions' indexes may shrink at a visit, by as many buckets each.
	tidyAtOnce = 8
)

// Sweep looks at up to about budget records, removes those that are expired and returns how many. It goes on where
// the last call ended. Memory that deletions left sparse shrinks by the way. Calls may overlap.
func (e *Engine) Sweep(nowMilli int64, budget int) (expired int) {
	for range e.shards {
		if budget <= 0 {
			break
		}
		s := &e.shards[int(e.sweepShard.Add(1))&(len(e.shards)-1)]
		s.mu.Lock()
		s.now = nowMilli
		looked, n := s.sweep(min(budget, sweepHold))
		s.tidyNext()
		s.mu.Unlock()
		budget -= looked
		expired += n
	}
	return expired
}

// sweep looks at the next cells of the ring, those of about n.
func (s *shard) sweep(n int) (looked, expired int) {
	for looked = 1; looked < n && s.sums.Volatile > 0; looked++ {
		ref := s.next(&s.sweeper)
		if ref == 0 {
			continue
		}
		if at := s.expireAt(ref, s.header(ref)); at != 0 && at <= s.now {
			s.expire(ref)
			expired++
		}
	}
	return looked, expired
}

// tidyNext lets the indexes of some partitions follow their counts.
func (s *shard) tidyNext() {
	for range tidyAtOnce {
		s.tidier = (s.tidier + 1) % len(s.partitions)
		s.tidy(&s.partitions[s.tidier], tidyAtOnce)
	}
}
