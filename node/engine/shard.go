package engine

import (
	"sync"
	"sync/atomic"
)

// shard is one lock and all that it protects: the partitions whose number ends in the shard's.
type shard struct {
	mu         sync.Mutex
	e          *Engine
	cells      *cells
	number     int
	mark       mark          // on its pages; changed by Reset, with resetMu held too
	seed       atomic.Uint64 // Touch reads it without the lock
	now        int64         // unix milliseconds as of the last Lock
	partitions []partition   // by partition number / shards
	doomed     []*doomed     // indexes of dropped partitions that still have records
	slabs      [numSlabs]slab

	spare  handle // list of empty buckets, kept for what must not fail halfway
	spares int

	gathering bool     // some pages of indexes are to go: these
	leaving   []uint32 // kept for the next time

	values  values
	stash   []stashed // extents for parts that are to be added
	needs   []need    // cells that are being reserved
	small   small
	ghosts  ghosts
	pages   int64 // pages of records, in both queues
	records int64 // how many there are, in both queues
	large   int64 // bytes of the large bodies of records
	unused  int64 // bytes of free cells of the main queue
	sparse  int   // class in which compact looked last

	hands      [numClasses]hand // of the clocks
	squeezed   int              // class whose hand makes pages free for others; noClass if none
	coldStamp  atomic.Uint32    // stamp of the page that has waited longest for a hand; others read it
	pinned     handle           // record that must neither be evicted nor moved: it is being resized
	quiet      bool             // nothing is to make room: what is taken was reserved
	upkeep     bool             // what is being allocated is no new value, see upkeepShare
	evacuating uint32           // page that is being emptied and so is in no list
	dice       uint32
	touched    uint32 // sum of what was read only to have it in the processor's cache
	gains      uint64 // times that the budget got something back
	discards   uint64 // records that went to make room
	changes    uint64 // times that making room changed an index: slots found before are void
	sums       Sums

	noting   bool     // versions or feeding: changes are to be noted
	feeding  bool     // some partition is fed: fed is above 0
	unit     bool     // what is logged goes together
	view     handle   // record that Resize returned a view of, if something is fed
	versions []uint32 // nil before the first VersionOf
	era      uint32   // how often keys went together, without a count each

	copies   []bool   // by partition: it is a copy; nil before the first SetCopy
	copyAt   copyHand // where copies are evicted
	copyRoom bool     // copies may have records
	frugal   bool     // what needs memory is a copy: it gets none that is not spare

	thirsty bool       // refillFeeds is to be called when there is time
	targets []targets  // by partition, nil before the first Feed
	fed     int        // partitions that have targets
	logs    []*feedLog // by Receiver, nil where none is open

	_ [64]byte // the next shard's lock is on another cache line
}
