package broker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// firstEpoch is that of a cluster's first table.
const firstEpoch = 1

// Following says which partitions this node has had for less than BacklogTime, so that those who
// listen to their channels may still have to follow.
type Following struct {
	from  atomic.Uint64 // the epoch in which it has got the first of them
	until atomic.Int64  // a time of the loops' clock

	mu sync.Mutex
	// handed has the name of the node that has handed over everything of a partition's channels
	// (DUNLIN HANDED): who listens, and what those have not got. This may come before the table
	// does.
	handed map[uint16]string
	// lost has the partitions that this node has had once, and lost.
	lost ring.PartitionSet
}

// Gained notes that the node has got partitions in an epoch.
func (f *Following) Gained(epoch uint64, now time.Duration) {
	if f.HasEnded(now) {
		f.from.Store(epoch)
	}
	f.until.Store(int64(now + BacklogTime))
}

// HasEnded reports whether nobody follows any more.
func (f *Following) HasEnded(now time.Duration) bool { return now > time.Duration(f.until.Load()) }

// Since returns the epoch since which this node has had a partition, if that is not long; otherwise
// 0.
func (f *Following) Since(v *ownership.View, p uint16, now time.Duration) uint64 {
	if f.HasEnded(now) || v.Began[p] < f.from.Load() {
		return 0
	}
	return v.Began[p]
}

// Who follows a channel here has got what was published earlier if the owner before has handed that
// over. If that owner has died, had no room or did not come through, whoever follows is told of a
// gap:
//
//	old node    m1        receiver: m1 … ends there
//	middle         m2     lost with the node, or on the way to the next one
//	new node          m3  Follow: Gapped, m3
//
// A node that loses a partition before it has served it passes on what it was handed.

// Took notes that a node has handed over everything of the channels of some partitions.
func (f *Following) Took(handed *ring.PartitionSet, by string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.handed == nil {
		f.handed = make(map[uint16]string)
	}
	for p := range uint16(ring.Partitions) {
		if handed.Has(p) {
			f.handed[p] = by
		}
	}
}

// IsWhole reports whether this node has what was published in a partition before it got it. Nothing
// was if it has the partition, which is its own, since the cluster's first table. Only the owner
// before knows: a node that stood still may hand over to a later owner, and does not know what was
// published meanwhile.
func (f *Following) IsWhole(v *ownership.View, p uint16) bool {
	before := v.From[p]
	if before == "" {
		return v.Table.Since[p] <= firstEpoch
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.handed[p] == before
}

// Handed is what becomes of the channels of the partitions that a table has taken from this node.
type Handed struct {
	Over     ring.PartitionSet // whose channels it hands over
	Unserved ring.PartitionSet // those of Over that it has lost before it served them
	Whole    ring.PartitionSet // those of Over of whose channels it has everything
	// Gone has those that it hands over to nobody, because others went on without it. What it keeps
	// of their channels is no longer wanted, and would come behind what others publish.
	Gone ring.PartitionSet
}

// HandOver notes that this node has lost partitions. data are those whose data is handed over, and
// overrun is the broker's. A node without which the cluster has gone on, and that has come back,
// hands over no channels: the new owner has not waited for it, and receivers may have said since that
// they listen here, because the partition is to come back:
//
//	this node   m1, stands still              goes on: m1 is not handed over
//	new node       │ m2 m3        receiver: m1, a gap, m2 m3 …
func (f *Following) HandOver(
	a ownership.HandOver, data ring.PartitionSet, overrun uint64, now time.Duration,
) (h Handed) {
	isBack := a.Away && a.Next.Self >= 0 // one that leaves is not in the table, either, and is waited for
	if !isBack {
		h.Unserved = f.lostUnserved(a.Old, a.Next)
		h.Over = h.Unserved
		h.Over.AddAll(&data)
	}
	h.Whole = f.wholeOf(a.Old, &h.Over, overrun, now)
	for p := range uint16(ring.Partitions) {
		if h.Over.Has(p) {
			f.forget(p)
		} else if a.Old.Standing[p] != ownership.Foreign && a.Next.Standing[p] == ownership.Foreign {
			h.Gone.Add(p)
			f.forget(p)
		}
	}
	return h
}

// wholeOf returns those of the lost partitions of whose channels this node has everything: it has had the partition
// for long, or got everything from the owner before and had room for what was published since.
func (f *Following) wholeOf(
	old *ownership.View, lost *ring.PartitionSet, overrun uint64, now time.Duration,
) (whole ring.PartitionSet) {
	for p := range uint16(ring.Partitions) {
		if !lost.Has(p) {
			continue
		}
		if since := f.Since(old, p, now); since == 0 || since > overrun && f.IsWhole(old, p) {
			whole.Add(p)
		}
	}
	return whole
}

// lostUnserved returns the partitions that this node has lost before it served them, and of whose
// channels it was handed everything.
func (f *Following) lostUnserved(old, next *ownership.View) (set ring.PartitionSet) {
	for p := range uint16(ring.Partitions) {
		if old.Standing[p] == ownership.Gained && !next.Owns(p) && old.From[p] != "" && f.IsWhole(old, p) {
			set.Add(p)
		}
	}
	return set
}

// IsLate reports whether what is handed over of a partition for the table of an epoch comes too late: this node
// serves the partition by that table or a later one, so later messages may be on their way.
func IsLate(v *ownership.View, p uint16, epoch uint64) bool {
	return v.Standing[p] == ownership.Serving && v.Epoch() >= epoch
}

// Torn returns the partitions that this node begins to serve under the next view, and whose
// channels the owner before has not handed over.
func (f *Following) Torn(v, next *ownership.View) (torn ring.PartitionSet) {
	for p := range uint16(ring.Partitions) {
		if v.Standing[p] == ownership.Gained && next.Standing[p] == ownership.Serving && !f.IsWhole(next, p) {
			torn.Add(p)
		}
	}
	return torn
}

// Obeys notes what the next view takes from this node.
func (f *Following) Obeys(old, next *ownership.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range uint16(ring.Partitions) {
		if old.Standing[p] != ownership.Foreign && next.Standing[p] == ownership.Foreign {
			f.lost.Add(p)
		}
	}
}

// Returned returns the partitions that this node begins to serve under the next view, and has had
// before. Receivers may still be live on their channels.
func (f *Following) Returned(v, next *ownership.View) (returned ring.PartitionSet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range uint16(ring.Partitions) {
		if v.Standing[p] == ownership.Gained && next.Standing[p] == ownership.Serving && f.lost.Has(p) {
			returned.Add(p)
		}
	}
	return returned
}

// forget notes that this node has lost a partition.
func (f *Following) forget(p uint16) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.handed, p)
}
