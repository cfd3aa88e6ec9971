package node

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/node/broker"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/ring"
)

// following says which partitions this node has had for less than broker.BacklogTime, so that those who
// listen to their channels may still have to follow.
type following struct {
	from  atomic.Uint64 // the epoch in which it has got the first of them
	until atomic.Int64  // a time of the loops' clock

	mu sync.Mutex
	// handed has the partitions of whose channels the owner before has handed over everything (DUNLIN HANDED): who
	// listens, and what those have not got. This may come before the table does.
	handed ring.PartitionSet
}

// gained notes that the node has got partitions in an epoch.
func (f *following) gained(epoch uint64, now time.Duration) {
	if f.hasEnded(now) {
		f.from.Store(epoch)
	}
	f.until.Store(int64(now + broker.BacklogTime))
}

// hasEnded reports whether nobody follows any more.
func (f *following) hasEnded(now time.Duration) bool { return now > time.Duration(f.until.Load()) }

// since returns the epoch since which this node has had a partition, if that is not long; otherwise 0.
func (f *following) since(v *ownership.View, p uint16, now time.Duration) uint64 {
	if f.hasEnded(now) || v.Began[p] < f.from.Load() {
		return 0
	}
	return v.Began[p]
}

// Who follows a channel here has got what was published earlier if the owner before has handed that over. If that owner
// has died, had no room or did not come through, whoever follows is told of a gap:
//
//	old node    m1        receiver: m1 … ends there
//	middle         m2     lost with the node, or on the way to the next one
//	new node          m3  Follow: Gapped, m3

// took notes that an owner before has handed over everything of the channels of some partitions.
func (f *following) took(handed *ring.PartitionSet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handed.AddAll(handed)
}

// isWhole reports whether this node has what was published in a partition before it got it. Nothing was if nobody had
// the partition before.
func (f *following) isWhole(v *ownership.View, p uint16) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return v.From[p] == "" || f.handed.Has(p)
}

// lost notes that this node has lost partitions, and returns those of whose channels it has everything: it has had the
// partition for long, or got everything from the owner before and had room for what was published since. overrun is the
// broker's.
func (f *following) lost(old *ownership.View, lost []replica.Lost, overrun uint64, now time.Duration) (whole ring.PartitionSet) {
	for _, l := range lost {
		p := l.Partition
		if since := f.since(old, p, now); since == 0 || since > overrun && f.isWhole(old, p) {
			whole.Add(p)
		}
		f.forget(p)
	}
	return whole
}

// torn returns the partitions that this node begins to serve under the next view, and whose channels the owner before
// has not handed over.
func (f *following) torn(v, next *ownership.View) (torn ring.PartitionSet) {
	for p := range uint16(ring.Partitions) {
		switch {
		case v.Standing[p] != ownership.Gained:
		case !next.Owns(p):
			f.forget(p)
		case next.Standing[p] == ownership.Serving && !f.isWhole(next, p):
			torn.Add(p)
		}
	}
	return torn
}

// forget notes that this node has lost a partition.
func (f *following) forget(p uint16) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handed.Remove(p)
}
