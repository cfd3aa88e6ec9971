package engine

// Sums are what a shard counts, or all of them together. Counters never fall; the others are of
// now, and have what Drop has yet to free.
type Sums struct {
	Volatile int64 // records that expire
	Values   int64 // bytes of records: headers, expiries, keys and values
	Parts    int64 // bytes of cells and extents of values with parts, besides their roots
	Index    int64 // bytes of cells that indexes have
	Ghosts   int64 // bytes of what is remembered of evicted keys

	Hits, Misses int64 // of Find
	Evicted      int64
	Expired      int64
	Recorded     int64 // records made and removed, each change of a record's length included

	EvictedCopies int64 // not among Evicted
	Holds         int64 // begun so far
}

// Stats is the state of an Engine.
type Stats struct {
	Sums
	Keys    int64 // in all partitions, expired ones included that nothing has met yet
	Used    int64 // bytes counted towards the limit; never above Max
	Max     int64
	Fixed   int64 // part of Used: what an empty engine has, more once it had keys in other databases than 0
	Outside int64 // part of Used: what Charge took for the caller's own memory
	Feeds   int64 // part of Used: logs of changes for receivers
	Staged  int64 // part of Used: large values that are being written, and replies being gathered
	Pinned  int64 // large values that are pinned; part of Values, or of Leaving
	Leaving int64 // part of Used: large values that are gone, but pinned or not yet given back to the system
	Slack   int64 // part of Used: free cells, unused ends of cells and pages, empty pages kept for reuse
}

// Stats sums up the shards, one after the other.
func (e *Engine) Stats() Stats {
	st := Stats{Max: e.limit.Load(), Fixed: e.fixed.Load(), Outside: e.pool.outside.Load()}
	for i := range e.shards {
		s := &e.shards[i]
		s.mu.Lock()
		st.add(s.sums)
		st.Keys += s.keys()
		s.mu.Unlock()
	}
	st.Used = e.pool.used.Load()
	st.Feeds = e.feeds.charged.Load()
	st.Staged, st.Pinned, st.Leaving = e.large.staged.Load(), e.large.pinned.Load(), e.large.leaving.Load()
	st.Slack = max(0, st.Used-st.Values-st.Parts-st.Index-st.Ghosts-st.Fixed-st.Outside-st.Feeds-st.Staged-st.Leaving)
	return st
}

// keys is how many keys the partitions have.
func (s *shard) keys() (n int64) {
	for d := range uint8(Databases) {
		for i := range s.tableInUse(d) {
			n += int64(s.table(d)[i].count)
		}
	}
	return n - int64(len(s.values.unfinished))
}

// Refused counts the large values that found no memory, the calls of Charge that found none beside large
// values, and the pins that were given up. Unlike Stats it takes no lock.
func (e *Engine) Refused() int64 { return e.large.refused.Load() }

// Replies is how many bytes the parts of replies have that are not sent yet, see StageReply.
func (e *Engine) Replies() int64 { return e.large.replies.Load() }

// PinsCrowd reports whether pinned values have a quarter of the memory that large values could
// have.
func (e *Engine) PinsCrowd() bool { return 4*e.large.pinned.Load() > e.reclaimable() }

// MaxBytes is the limit in force. While SetMaxBytes frees memory for a lower limit, it comes down
// to Limit. Unlike Stats it takes no lock.
func (e *Engine) MaxBytes() int64 { return e.pool.max.Load() }

// Limit is the limit that was set last.
func (e *Engine) Limit() int64 { return e.limit.Load() }

// Used is how many bytes are counted towards the limit. Unlike Stats it takes no lock.
func (e *Engine) Used() int64 { return e.pool.used.Load() }

func (s *Sums) add(o Sums) {
	s.Volatile += o.Volatile
	s.Values += o.Values
	s.Parts += o.Parts
	s.Index += o.Index
	s.Ghosts += o.Ghosts
	s.Hits += o.Hits
	s.Misses += o.Misses
	s.Evicted += o.Evicted
	s.EvictedCopies += o.EvictedCopies
	s.Expired += o.Expired
	s.Recorded += o.Recorded
	s.Holds += o.Holds
}
