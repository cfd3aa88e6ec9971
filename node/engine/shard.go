package engine

import "sync/atomic"

// shard is one lock and all that it protects: the partitions whose number ends in the shard's. The
// fields that every command reads or counts stand in front, in few cache lines. Subjects with
// fields of their own are types of their own, which doc.go lists.
type shard struct {
	mu         mutex
	e          *Engine
	cells      *cells
	seed       atomic.Uint64 // Touch reads it without the lock
	now        int64         // unix milliseconds as of the last Lock
	tables     []partition   // from the shard's part of the first table on, see section.go
	partitions []partition   // by partition number / shards: of database 0
	number     int
	mark       mark // on its pages; changed by Reset, with resetMu held too
	window     int  // number of the window that has its pages

	noting  bool // versions, feeding, marks, tells, or somebody waits for a key: changes are to be noted
	feeding bool // some partition is fed: feeds.fed is above 0
	ending  bool // Unlock has more to do: feeding, something is offered, a key is due, or there is an actor
	frugal  bool // what needs memory is a copy: it gets none that is not spare
	holds   []*Hold
	quiet   bool   // nothing is to make room: what is taken was reserved
	upkeep  bool   // what is being allocated is no new value, see upkeepShare
	pinned  handle // record that must neither be evicted nor moved: it is being resized
	indexes indexes
	changes uint64 // times that making room changed an index: entries found before are void
	records int64  // how many there are, in both queues
	sums    Sums
	copies  copies

	dropped  dropped
	large    int64 // bytes of the large bodies of records
	dice     uint32
	touched  uint32 // sum of what was read only to have it in the processor's cache
	gains    uint64 // times that the budget got something back
	discards uint64 // records that went to make room
	owes     bool   // a page is to be emptied once this shard is unlocked, see evict_ahead.go
	victim   int    // number + 1 of the shard in which, and for a class that can do without; 0: any
	steps    int    // records and parts that making room may still evict or move under this lock, see evict_slice.go
	small    small
	ghosts   ghosts
	values   values

	versions []uint32          // nil before the first VersionOf
	eras     [Databases]uint32 // how often keys of a database went together, without a count each
	feeds    shardFeeds
	units    *units
	awaits   awaits
	takings  takings
	marks    marks
	tells    bool   // see TellChanges
	actor    uint64 // see Txn.As; 0: nobody

	clocks clocks
	slabs  slabs

	_ [64]byte // the next shard's lock is on another cache line
}

// noteDuties sets what changes and Unlock look at, after what they depend on has changed.
func (s *shard) noteDuties() {
	s.noting = s.feeding || s.versions != nil || !s.awaits.none() || s.marks.count > 0 || s.tells
	s.ending = s.feeding || len(s.values.offers) > 0 || len(s.awaits.due) > 0 || s.actor != 0 || s.owes
}
