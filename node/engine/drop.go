package engine

import (
	"math/bits"
	"runtime"
	"slices"
)

// A partition is dropped in two steps. Under one short lock its indexes are taken away whole, so that
// the partition is empty at once, in all databases. Then the records in those indexes are freed in slices, and the lock
// is released in between: by Drop, by Sweep after Forget, and by a command that needs memory,
// before it evicts anything. Meanwhile eviction, expiry and compaction may meet a doomed record by
// its cell, and find its entry like any other's.

// doomed is the index of a dropped section until it is freed: first all its records, then, when
// nobody looks for any in it any more, its buckets.
type doomed struct {
	partition
	section uint16  // that it belonged to
	mark    mark    // of the shard then
	emptied bool    // of all records
	left    uint32  // buckets from here on are emptied, or freed if all are emptied
	beside  *doomed // the index's crowd
}

// dropped are the doomed indexes of a shard.
type dropped struct {
	s    *shard
	list []*doomed // in the order in which they were dropped
}

const (
	// drainAtOnce is the cost of a slice, in records: some 50 µs when none of them is in a cache.
	drainAtOnce = 256
	// drainBytes of a large body cost as much to free as a record.
	drainBytes = 4 << 10
)

// sections are some of one partition: those of the databases from one up to another, which is not
// meant.
type sections struct {
	partition uint16
	from, to  uint8
}

// allOf is all sections of a partition.
func allOf(p uint16) sections { return sections{p, 0, Databases} }

// onlyOf is a section as sections.
func onlyOf(section uint16) sections {
	return sections{PartitionOf(section), DatabaseOf(section), DatabaseOf(section) + 1}
}

// Drop removes everything from the partition, in all databases, and returns how many keys that were.
// The partition is empty at once for everyone, and later writes stay. When Drop returns, the memory of
// its old content is free. Others wait for one slice of that work at most.
func (e *Engine) Drop(p uint16) (keys int) { return e.drop(allOf(p)) }

// Clear is Drop of one section.
func (e *Engine) Clear(section uint16) (keys int) { return e.drop(onlyOf(section)) }

func (e *Engine) drop(of sections) (keys int) {
	s := e.shardOf(of.partition)
	s.mu.Lock()
	s.takings.forgetAll(of)
	all, keys := s.dropped.doomAll(of)
	s.mu.Unlock()
	s.dropped.drainAll(all)
	return keys
}

// DropUnheld is Drop, unless the partition is held: then it does nothing, and returns the hold. It does
// nothing either if still, which is called under the shard's lock, says so: what is written behind a
// change of its answer is not dropped.
func (e *Engine) DropUnheld(p uint16, still func() bool) *Hold { return e.dropUnheld(allOf(p), still) }

// ClearUnheld is DropUnheld of one section. The hold is on its partition.
func (e *Engine) ClearUnheld(section uint16, still func() bool) *Hold {
	return e.dropUnheld(onlyOf(section), still)
}

func (e *Engine) dropUnheld(of sections, still func() bool) *Hold {
	s := e.shardOf(of.partition)
	s.mu.Lock()
	h := s.holder(of.partition)
	var all []*doomed
	if h == nil && still() {
		s.takings.loseAll(of)
		all, _ = s.dropped.doomAll(of)
		for _, d := range all {
			s.noteAllLost(d.section)
		}
	}
	s.unlockServing()
	s.dropped.drainAll(all)
	return h
}

// Forget is Drop for a caller that does not wait: the partition is empty at once, and the memory of
// its old content becomes free when it is needed, or by Sweep.
func (e *Engine) Forget(p uint16) {
	s := e.shardOf(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takings.forgetAll(allOf(p))
	s.dropped.doomAll(allOf(p))
}

// drainSlices is how many slices of forgotten partitions one Sweep frees.
const drainSlices = 64

// drainForgotten frees some memory of dropped partitions and dead values, in all shards.
func (e *Engine) drainForgotten() {
	for i, left := 0, drainSlices; i < len(e.shards) && left > 0 && (e.haveSpare(doomedRecords) || e.haveSpare(doomedParts)); i++ {
		s := &e.shards[i]
		for ; left > 0 && s.dropped.drainFirst(drainAtOnce); left-- {
			runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
		}
	}
}

// drainFirst goes on freeing the partition that was dropped first, or dead values, and reports
// whether there was anything to free.
func (dr *dropped) drainFirst(budget int) bool {
	dr.s.mu.Lock()
	defer dr.s.mu.Unlock()
	if len(dr.list) == 0 {
		return dr.s.values.drain(budget)
	}
	dr.drain(dr.list[0], budget)
	return true
}

// drainAll frees doomed indexes.
func (dr *dropped) drainAll(all []*doomed) {
	for _, d := range all {
		for !dr.drainSlice(d, drainAtOnce) {
			runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
		}
	}
}

// doomAll takes the indexes of sections away, and logs that they have no keys any more. Those that
// are empty have none. The shard is locked.
func (dr *dropped) doomAll(of sections) (all []*doomed, keys int) {
	for left := dr.s.e.tablesInUse.Load() & (1<<of.to - 1<<of.from); left != 0; left &= left - 1 {
		if d, n := dr.doom(Section(of.partition, uint8(bits.TrailingZeros32(left)))); d != nil {
			all, keys = append(all, d), keys+n
		}
	}
	if len(all) > 0 {
		dr.s.feeds.logClear(of)
	}
	return all, keys
}

// doom takes the index of a section away; nil if it has none. The shard is locked.
func (dr *dropped) doom(section uint16) (d *doomed, keys int) {
	part := dr.s.partition(section)
	if part.buckets == 0 {
		return nil, 0
	}
	keys = int(part.count) - dr.s.values.countUnfinished(section)
	dr.s.values.leaveUnfinished(section)
	d = dr.doomIndex(section, *part)
	if c := dr.s.cells.crowd(part); c != nil {
		d.count -= c.count
		d.crowd = 0
		d.beside = dr.doomIndex(section, *c)
		dr.s.indexes.put(part.crowd, int(partitionSize))
	}
	*part = partition{}
	dr.s.eras[DatabaseOf(section)]++
	return d, keys
}

func (dr *dropped) doomIndex(section uint16, p partition) *doomed {
	d := &doomed{partition: p, section: section, mark: dr.s.mark, left: p.buckets}
	dr.list = append(dr.list, d)
	dr.s.e.spares[doomedRecords].Add(1)
	return d
}

// drainSlice goes on with freeing d, as far as the budget goes, in records, and reports whether it is
// at the end.
func (dr *dropped) drainSlice(d *doomed, budget int) (done bool) {
	dr.s.mu.Lock()
	defer dr.s.mu.Unlock()
	if d.mark != dr.s.mark {
		return true // a Reset took everything
	}
	return dr.drain(d, budget) && (d.beside == nil || dr.drain(d.beside, budget))
}

func (dr *dropped) drain(d *doomed, budget int) (done bool) {
	for budget > 0 && d.left > 0 && !d.emptied {
		b := dr.s.cells.bucketAt(&d.partition, d.left-1)
		budget = dr.emptyChain(d, b, budget)
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
		dr.s.indexes.freeStorage(d)
	}
	if d.left > 0 {
		return false
	}
	if i := slices.Index(dr.list, d); i >= 0 { // or it was at its end before
		dr.list = slices.Delete(dr.list, i, i+1)
		dr.s.e.spares[doomedRecords].Add(-1)
	}
	return true
}

// emptyChain frees the records of the chain that begins at b and returns what is left of the
// budget.
func (dr *dropped) emptyChain(d *doomed, b *bucket, budget int) int {
	for h := b.next; h != 0 && budget > 0; h = b.next {
		// The second bucket of the chain goes first: the last one would have to be searched for.
		second := dr.s.cells.bucket(h, 0)
		b.next = second.next
		budget -= dr.freeEntries(d, second)
		dr.s.indexes.put(h, bucketSize)
	}
	if budget > 0 {
		budget -= dr.freeEntries(d, b)
	}
	return budget
}

// freeEntries frees the records that a bucket names and returns what that cost.
func (dr *dropped) freeEntries(d *doomed, b *bucket) (cost int) {
	for i, ref := range b.refs {
		if ref == 0 {
			break
		}
		cost++
		if h := dr.s.cells.header(ref); dr.s.cells.isLarge(h) {
			cost += h.bodyLen() / drainBytes
		}
		b.tags[i], b.refs[i] = 0, 0
		d.count--
		dr.s.free(ref)
	}
	return cost
}

// indexOf is the index that names the record of a section in cell ref: the section's, or a dropped
// one.
func (dr *dropped) indexOf(section uint16, tag uint32, ref handle) *partition {
	p := dr.s.partition(section)
	if len(dr.list) == 0 || dr.s.indexes.find(p, tag, ref).found() {
		return p
	}
	for _, d := range dr.list {
		if d.section == section && !d.emptied && dr.s.indexes.find(&d.partition, tag, ref).found() {
			return &d.partition
		}
	}
	return p
}

// isDoomed reports whether p is the index of a dropped partition.
func (dr *dropped) isDoomed(p *partition) bool {
	return slices.ContainsFunc(dr.list, func(d *doomed) bool { return &d.partition == p })
}
