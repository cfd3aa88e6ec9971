package replica

import (
	"cmp"
	"slices"
	"time"
)

// A partition that waits for its snapshot has a place in the queue. Those that are to be handed
// over come before all others, because commands wait for them. One that was refused has its turn
// again a moment later and keeps its place.

// byTurn orders what waits.
func byTurn(f, o *feed) int {
	if (f.seal == 0) != (o.seal == 0) {
		return cmp.Compare(o.seal, f.seal)
	}
	return cmp.Compare(f.place, o.place)
}

// enqueue has a partition wait at its place, or at the end if it has none.
func (s *Sender) enqueue(f *feed) {
	if f.place == 0 {
		s.places++
		f.place = s.places
	}
	s.put(f)
	i, _ := slices.BinarySearchFunc(s.queue, f, byTurn)
	s.queue = slices.Insert(s.queue, i, f)
	s.do(SendRouse)
}

// deny has a partition that is not fed any more tried again in a moment. One that is to be handed
// over is given up in the end: an heir that refuses what it is to own cannot be helped.
func (s *Sender) deny(f *feed, now time.Duration) {
	if f.tries++; f.seal != 0 && (f.tries > maxHandTries || s.broken.HandOnce) {
		return
	}
	if f.tries > maxPlaceTries {
		f.place = 0
	}
	f.notBefore = now + deniedPeriod
	s.put(f)
	s.denied = append(s.denied, f)
	s.do(SendRouse)
}

// Snapshot is what is to be logged next of a partition.
type Snapshot struct {
	Partition uint16
	Cursor    uint64 // where the snapshot goes on; 0 at first
	Urgent    bool   // commands wait for it, or for one that waits behind it: no pace holds it up
}

// Next returns the snapshot to go on with. It reports false if there is none: then how long that
// stays so, unless SendRouse ends it.
func (s *Sender) Next(now time.Duration) (next Snapshot, wait time.Duration, ok bool) {
	for len(s.denied) > 0 && s.denied[0].notBefore <= now {
		if f := s.denied[0]; s.fed[f.partition] == f {
			s.enqueue(f)
		}
		s.denied = s.denied[1:]
	}
	for s.filling == nil && len(s.queue) > 0 && !s.closed {
		f := s.queue[0]
		s.queue = s.queue[1:]
		if s.fed[f.partition] != f {
			continue // it begins anew elsewhere in the queue, or is not fed any more
		}
		f.state, f.begun = feedFilled, s.seq
		s.filling = f
		s.log(SendFeed, f.partition, f.beginning())
	}
	if f := s.filling; f != nil {
		urgent := f.seal != 0 || len(s.queue) > 0 && s.queue[0].seal != 0
		return Snapshot{Partition: f.partition, Cursor: f.cursor, Urgent: urgent}, 0, true
	}
	wait = Heartbeat
	if len(s.denied) > 0 {
		wait = min(wait, s.denied[0].notBefore-now)
	}
	return Snapshot{}, wait, false
}

// Filled notes that the snapshot that Next returned last was logged up to the cursor; done: to its
// end. It has no effect if that snapshot was given up meanwhile.
func (s *Sender) Filled(cursor uint64, done bool) {
	f := s.filling
	if f == nil {
		return
	}
	f.cursor = cursor
	if !done {
		return
	}
	s.log(SendMark, f.partition, Mark{Kind: MarkSynced})
	f.state, f.logged, s.filling = feedWhole, s.collections, nil
	if f.seal != 0 {
		s.say(f)
	}
}

// Fills reports whether there is a snapshot to take, now or after a moment.
func (s *Sender) Fills() bool { return s.filling != nil || len(s.queue) > 0 }

// Waiting returns the number of snapshots in the queue, and of those that were given up there.
func (s *Sender) Waiting() int { return len(s.queue) }

// OfSnapshot reports whether what is collected now from the log of a shard, in which p is, belongs
// to p's snapshot.
func (s *Sender) OfSnapshot(p uint16, shard int) bool {
	f := s.fed[p]
	return f != nil && (f.state == feedFilled || s.emptied[shard] <= f.logged)
}
