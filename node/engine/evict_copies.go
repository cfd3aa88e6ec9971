package engine

import "math/bits"

// A copy is a partition whose owner is another node. Nothing in it expires by this node's clock: the
// owner may extend a record at the last moment, and says only what changed in a value with parts. So
// an expired record stays until the owner's delete comes, or until the partition is this node's own.
//
// When memory is needed, records of spare copies are evicted before any others, whatever the policy:
// no client reads them here. They are found by their index, bucket by bucket, while the clocks and
// the small queue rest. Their eviction leaves free cells of all sizes; records of sparse pages then
// move together.
//
// A hand goes round the copies and spares records that were used, as the clocks' hands do. The uses
// are the owner's, as of the last change or of the snapshot. When copies were evicted in the order
// of the index alone, half the memory kept 29 % of the hits; now it keeps 82 %.
//
// A write to a spare copy makes room among those only, and fails where none has records. Two limits
// follow from shards: nothing is evicted from a shard that is locked at the moment, and when copies
// have few records left, their cells may free no page, so that a few records other than copies are
// evicted.

const (
	// evictCopies is how many records of copies are evicted before the caller checks whether that
	// is enough.
	evictCopies = 16
	// looksCopies is how many records are looked at for that. Beyond it, used records are evicted,
	// too.
	looksCopies = 128
)

// CopyKind says whether a partition is a copy, and of which kind.
type CopyKind uint8

const (
	NoCopy    CopyKind = iota // the node's own
	PlainCopy                 // nothing expires in it; its records are evicted like the node's own
	SpareCopy                 // nothing expires in it, and its records are evicted before all others
)

// copies are the partitions of a shard that are copies.
type copies struct {
	s    *shard
	kind []CopyKind // by partition; nil before the first SetCopy
	at   copyHand   // where spare ones are evicted
	room bool       // spare ones may have records
}

// SetCopy sets which kind of copy partition p is. At first it is none. When a copy becomes a
// partition of this node's own, what is expired in it is gone, and its values whose snapshot has not
// ended are removed, as by DropUnfinished.
func (e *Engine) SetCopy(p uint16, kind CopyKind) {
	s := e.shardOf(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.copies.of(p) == kind {
		return
	}
	if kind == NoCopy {
		s.dropUnfinished(p)
	} else {
		s.takings.forgetAll(allOf(p))
	}
	if s.copies.kind == nil {
		s.copies.kind = make([]CopyKind, len(s.partitions))
	}
	s.copies.kind[p>>e.shardShift] = kind
	if kind == SpareCopy {
		s.copies.setRoom(true)
	}
}

// of is the kind of copy that a partition of the shard is, or that of a section.
func (cs *copies) of(p uint16) CopyKind {
	if cs.kind == nil {
		return NoCopy
	}
	return cs.kind[PartitionOf(p)>>cs.s.e.shardShift]
}

// has reports whether a partition of the shard is a copy.
func (cs *copies) has(p uint16) bool { return cs.of(p) != NoCopy }

// spares reports whether a partition of the shard is a spare copy.
func (cs *copies) spares(p uint16) bool { return cs.of(p) == SpareCopy }

// isDue reports whether a record of partition p that expires at a time is gone.
func (s *shard) isDue(p uint16, at int64) bool { return expired(at, s.now) && !s.copies.has(p) }

// setRoom notes whether spare copies may have records here.
func (cs *copies) setRoom(there bool) {
	switch {
	case there && !cs.room:
		cs.s.e.spares[copiedRecords].Add(1)
	case !there && cs.room:
		cs.s.e.spares[copiedRecords].Add(-1)
	}
	cs.room = there
}

// reclaim evicts records of spare copies in this shard until a cell of the class wanted is free, or
// the budget has gained, or it has done its part. It reports whether it got further.
func (cs *copies) reclaim(want int) bool {
	if !cs.room {
		return false
	}
	for gains := cs.s.gains; ; {
		evicted, class := cs.evictSome()
		if evicted == 0 {
			cs.setRoom(false)
			return false
		}
		if cs.s.gains != gains || want != noClass && cs.s.slabs.kinds[mainCells].classes[want].room != 0 || !cs.gatherCells(class) {
			return true
		}
	}
}

// evictSome moves the hand on until some records of a spare copy went, and says how many, and of
// which class the last was.
func (cs *copies) evictSome() (evicted, class int) {
	looks := 0
	for round := range 2 {
		if round > 0 {
			looks = looksCopies // all that there are were used
		}
		indexes := bits.OnesCount32(cs.s.e.tablesInUse.Load()) * len(cs.s.partitions)
		for range indexes + 1 { // of the first one the part that the hand had passed comes last
			p := &cs.s.table(cs.at.database)[cs.at.partition]
			if p.count > 0 && cs.kind[cs.at.partition] == SpareCopy {
				evicted, class = cs.evictBuckets(p, &cs.at.bucket, &looks)
				if c := cs.s.cells.crowd(p); evicted == 0 && c != nil {
					evicted, class = cs.evictBuckets(c, &cs.at.crowd, &looks)
				}
				if evicted > 0 {
					return evicted, class
				}
			}
			cs.step()
		}
	}
	return 0, noClass
}

// copyHand is the place of the next record of a copy to be judged.
type copyHand struct {
	database      uint8
	partition     int // by number / shards
	bucket, crowd uint32
}

// step moves the hand to the next index.
func (cs *copies) step() {
	at := copyHand{database: cs.at.database, partition: cs.at.partition + 1}
	if at.partition == len(cs.s.partitions) {
		at.partition = 0
		for at.database = (at.database + 1) % Databases; len(cs.s.tableInUse(at.database)) == 0; {
			at.database = (at.database + 1) % Databases
		}
	}
	cs.at = at
}

// evictBuckets judges the records that p names, a partition or its crowd, from a bucket on, until
// some went.
func (cs *copies) evictBuckets(p *partition, from *uint32, looks *int) (evicted, class int) {
	class = noClass
	var chain [maxChain * bucketEntries]handle
	for ; *from < p.buckets && evicted < evictCopies && (evicted == 0 || *looks < looksCopies); *from++ {
		for _, ref := range chain[:cs.s.indexes.chainRefs(p, *from, &chain)] {
			h := cs.s.cells.header(ref)
			if ref == cs.s.pinned || cs.s.values.isSpared(ref, h) {
				continue
			}
			*looks++
			if h.uses() > 0 && *looks <= looksCopies {
				cs.s.cells.setHeader(ref, cs.s.e.aged(h))
				continue
			}
			class = cs.evict(ref)
			evicted++
		}
	}
	return evicted, class
}

// chainRefs has the records that a bucket and those behind it name: once some of them go, others
// take their places. Of a chain that is longer than it should be the end has its turn when those
// before it are gone.
func (ix *indexes) chainRefs(p *partition, i uint32, refs *[maxChain * bucketEntries]handle) (n int) {
	for b := ix.cells.bucketAt(p, i); b != nil && n < len(refs); b = ix.cells.bucket(b.next, 0) {
		for _, ref := range b.refs {
			if ref != 0 {
				refs[n] = ref
				n++
			}
		}
	}
	return n
}

// evict evicts a record of a copy, and returns its class. No ghost stays of it: it was not
// asked for here.
func (cs *copies) evict(ref handle) (class int) {
	class = noClass
	if pg := &cs.s.e.pool.pages[cs.s.cells.pageOf(ref)]; pg.kind == mainCells {
		class = int(pg.class)
	}
	p, tag := cs.s.recordTag(ref, cs.s.cells.header(ref))
	cs.s.discard(ref, p, tag, &cs.s.sums.EvictedCopies)
	return class
}

// gatherCells frees a page of a class that has many free cells, if its records find others, and
// reports whether it did.
func (cs *copies) gatherCells(class int) bool {
	if class == noClass || cs.s.slabs.kinds[mainCells].classes[class].cells < 2*cs.s.e.classes.perPage[class] {
		return false
	}
	best, fewest := uint32(0), uint16(0)
	pg := cs.s.slabs.kinds[mainCells].classes[class].room
	for looks := 0; pg != 0 && looks < maxSparse; looks++ {
		p := &cs.s.e.pool.pages[pg]
		if best == 0 || p.live < fewest {
			best, fewest = pg, p.live
		}
		pg = p.next
	}
	return best != 0 && cs.s.slabs.evacuate(best)
}
