package engine

import (
	"runtime"
	"slices"
)

// A partition is dropped in two steps. Under one short lock its index is taken away whole, so that the partition is
// empty at once. Then the records in that index are freed in slices, with the lock let go in between. Meanwhile
// eviction, expiry and compaction may meet a doomed record by its cell, and find its entry as they would any other's.

// doomed is the index of a dropped partition until all its records are freed. Its number of buckets stays what it was,
// so that tags lead to the same ones.
type doomed struct {
	partition
	number uint16 // of the partition that it belonged to
	left   uint32 // buckets from here on are freed
}

const (
	// drainAtOnce is the cost of a slice, in records: some 50 µs when none of them is in a cache.
	drainAtOnce = 256
	// drainBytes of a large body cost as much to free as a record.
	drainBytes = 4 << 10
)

// Drop removes everything from the partition and returns how many keys that were. The partition is empty at once, for
// everyone; what is written from then on stays. The memory of what it had is free when Drop returns. Others wait for a
// slice of that work at most.
func (e *Engine) Drop(p uint16) (keys int) {
	s := e.shardOf(p)
	d, keys := s.doom(p)
	for d != nil && !s.drainSlice(d, drainAtOnce) {
		runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
	}
	return keys
}

// doom takes the index of a partition away; nil if it has none.
func (s *shard) doom(p uint16) (d *doomed, keys int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	part := s.partition(p)
	if part.buckets == 0 {
		return nil, 0
	}
	d = &doomed{partition: *part, number: p, left: part.buckets}
	*part = partition{}
	s.doomed = append(s.doomed, d)
	return d, int(d.count)
}

// drainSlice frees records in d that cost as much as budget, from the last bucket on, and says whether none is left.
func (s *shard) drainSlice(d *doomed, budget int) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.doomed, d) {
		return true // a Reset took everything
	}
	for budget > 0 && d.left > 0 {
		b := s.bucketAt(&d.partition, d.left-1)
		if h := b.next; h != 0 {
			// The second of the chain goes first: the last one would have to be searched for.
			second := s.cells.bucket(h, 0)
			b.next = second.next
			budget -= s.freeEntries(d, second)
			s.putIndex(h, bucketSize)
			continue
		}
		budget -= 1 + s.freeEntries(d, b)
		d.left--
		s.freeStorage(d)
	}
	if d.left > 0 {
		return false
	}
	i := slices.Index(s.doomed, d)
	s.doomed = slices.Delete(s.doomed, i, i+1)
	return true
}

// freeEntries frees the records that a bucket names and returns what that cost.
func (s *shard) freeEntries(d *doomed, b *bucket) (cost int) {
	for i, ref := range b.refs {
		if ref == 0 {
			break
		}
		cost++
		if h := s.header(ref); s.isLarge(h) {
			cost += h.bodyLen() / drainBytes
		}
		b.tags[i], b.refs[i] = 0, 0
		d.count--
		s.free(ref)
	}
	return cost
}

// indexOf is the index that names the record of partition number in cell ref: the partition's, or a dropped one.
func (s *shard) indexOf(number uint16, tag uint32, ref handle) *partition {
	p := s.partition(number)
	if len(s.doomed) == 0 || s.entry(p, tag, ref).found() {
		return p
	}
	for _, d := range s.doomed {
		if d.number == number && s.entry(&d.partition, tag, ref).found() {
			return &d.partition
		}
	}
	return p
}

// isDoomed says whether p is the index of a dropped partition.
func (s *shard) isDoomed(p *partition) bool {
	return slices.ContainsFunc(s.doomed, func(d *doomed) bool { return &d.partition == p })
}
