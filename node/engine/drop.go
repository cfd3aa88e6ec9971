package engine

import (
	"runtime"
	"slices"
)

// A partition is dropped in two steps. Under one short lock its index is taken away whole, so that
// the partition is empty at once. Then the records in that index are freed in slices, with the lock
// let go in between, by Drop, or after Forget by Sweep; and by who needs memory, before anything is
// evicted. Meanwhile eviction, expiry and compaction may meet a doomed record by its cell, and find
// its entry as they would any other's.

// doomed is the index of a dropped partition until it is freed: first all its records, then, when
// nobody looks for any in it any more, its buckets.
type doomed struct {
	partition
	number  uint16  // of the partition that it belonged to
	mark    mark    // of the shard then
	emptied bool    // of all records
	left    uint32  // buckets from here on are emptied, or freed if all are emptied
	beside  *doomed // the partition's crowd
}

const (
	// drainAtOnce is the cost of a slice, in records: some 50 µs when none of them is in a cache.
	drainAtOnce = 256
	// drainBytes of a large body cost as much to free as a record.
	drainBytes = 4 << 10
)

// Drop removes everything from the partition and returns how many keys that were. The partition is
// empty at once, for everyone; what is written from then on stays. The memory of what it had is
// free when Drop returns. Others wait for a slice of that work at most.
func (e *Engine) Drop(p uint16) (keys int) {
	s := e.shardOf(p)
	d, keys := s.doom(p)
	s.drainAll(d)
	return keys
}

// Forget is Drop for who does not wait: the partition is empty at once, and the memory of what it
// had becomes free when it is needed, or by Sweep.
func (e *Engine) Forget(p uint16) { e.shardOf(p).doom(p) }

// drainSlices is how many slices Sweep frees of what was forgotten.
const drainSlices = 64

// drainForgotten frees some of what is dropped, in all shards.
func (e *Engine) drainForgotten() {
	for i, left := 0, drainSlices; i < len(e.shards) && left > 0 && (e.haveSpare(doomedRecords) || e.haveSpare(doomedParts)); i++ {
		s := &e.shards[i]
		for ; left > 0 && s.drainFirst(drainAtOnce); left-- {
			runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
		}
	}
}

// drainFirst goes on with freeing what was dropped first, or of the values that died, and says
// whether there was something.
func (s *shard) drainFirst(budget int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.doomed) == 0 {
		return s.drainValues(budget)
	}
	s.drain(s.doomed[0], budget)
	return true
}

// drainAll frees d, if there is one.
func (s *shard) drainAll(d *doomed) {
	for d != nil && !s.drainSlice(d, drainAtOnce) {
		runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
	}
}

// doom takes the index of a partition away; nil if it has none.
func (s *shard) doom(p uint16) (d *doomed, keys int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doomLocked(p)
}

func (s *shard) doomLocked(p uint16) (d *doomed, keys int) {
	part := s.partition(p)
	if part.buckets == 0 {
		return nil, 0
	}
	s.logClear(p)
	keys = int(part.count)
	d = s.doomIndex(p, *part)
	if c := s.cells.crowd(part); c != nil {
		d.count -= c.count
		d.crowd = 0
		d.beside = s.doomIndex(p, *c)
		s.indexes.put(part.crowd, int(partitionSize))
	}
	*part = partition{}
	s.era++
	return d, keys
}

func (s *shard) doomIndex(number uint16, p partition) *doomed {
	d := &doomed{partition: p, number: number, mark: s.mark, left: p.buckets}
	s.doomed = append(s.doomed, d)
	s.e.spares[doomedRecords].Add(1)
	return d
}

// drainSlice goes on with freeing d, as far as the budget goes, in records, and reports whether it is
// at the end.
func (s *shard) drainSlice(d *doomed, budget int) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.mark != s.mark {
		return true // a Reset took everything
	}
	return s.drain(d, budget) && (d.beside == nil || s.drain(d.beside, budget))
}

func (s *shard) drain(d *doomed, budget int) (done bool) {
	for budget > 0 && d.left > 0 && !d.emptied {
		b := s.cells.bucketAt(&d.partition, d.left-1)
		budget = s.emptyChain(d, b, budget)
		if b.refs[0] != 0 {
			return false // there is more in the chain
		}
		d.left--
		budget--
	}
	if d.left == 0 && !d.emptied {
		d.emptied, d.left = true, d.buckets
	}
	for ; budget > 0 && d.left > 0; budget-- {
		d.left--
		s.indexes.freeStorage(d)
	}
	if d.left > 0 {
		return false
	}
	if i := slices.Index(s.doomed, d); i >= 0 { // or it was at its end before
		s.doomed = slices.Delete(s.doomed, i, i+1)
		s.e.spares[doomedRecords].Add(-1)
	}
	return true
}

// emptyChain frees the records of the chain that begins at b and returns what is left of the
// budget.
func (s *shard) emptyChain(d *doomed, b *bucket, budget int) int {
	for h := b.next; h != 0 && budget > 0; h = b.next {
		// The second bucket of the chain goes first: the last one would have to be searched for.
		second := s.cells.bucket(h, 0)
		b.next = second.next
		budget -= s.freeEntries(d, second)
		s.indexes.put(h, bucketSize)
	}
	if budget > 0 {
		budget -= s.freeEntries(d, b)
	}
	return budget
}

// freeEntries frees the records that a bucket names and returns what that cost.
func (s *shard) freeEntries(d *doomed, b *bucket) (cost int) {
	for i, ref := range b.refs {
		if ref == 0 {
			break
		}
		cost++
		if h := s.cells.header(ref); s.cells.isLarge(h) {
			cost += h.bodyLen() / drainBytes
		}
		b.tags[i], b.refs[i] = 0, 0
		d.count--
		s.free(ref)
	}
	return cost
}

// indexOf is the index that names the record of partition number in cell ref: the partition's, or a
// dropped one.
func (s *shard) indexOf(number uint16, tag uint32, ref handle) *partition {
	p := s.partition(number)
	if len(s.doomed) == 0 || s.indexes.entry(p, tag, ref).found() {
		return p
	}
	for _, d := range s.doomed {
		if d.number == number && !d.emptied && s.indexes.entry(&d.partition, tag, ref).found() {
			return &d.partition
		}
	}
	return p
}

// isDoomed reports whether p is the index of a dropped partition.
func (s *shard) isDoomed(p *partition) bool {
	return slices.ContainsFunc(s.doomed, func(d *doomed) bool { return &d.partition == p })
}
