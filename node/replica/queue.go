package replica

import (
	"cmp"
	"slices"
	"time"
)

// A partition that waits for its snapshot has a place in the queue. Partitions that are handed over
// come before all others, because commands wait for them. A refused partition is tried again after
// deniedPeriod, and keeps its place.

// byTurn orders the feeds in the queue.
func byTurn(f, o *feed) int {
	if (f.seal == 0) != (o.seal == 0) {
		return cmp.Compare(o.seal, f.seal)
	}
	return cmp.Compare(f.place, o.place)
}

// enqueue puts a feed at its place in the queue, or at the end if it has none.
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

// deny schedules another try of a feed that the receiver has refused. After maxHandTries it gives
// up a hand-over, because an heir that refuses its own partition for so long will not accept it.
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

// Snapshot is the next piece of a snapshot to log.
type Snapshot struct {
	Partition uint16
	Cursor    uint64 // where the piece begins; 0 at first
	Urgent    bool   // commands wait for it, or for one behind it: no Pace delays it
}

// Next returns the snapshot to continue. If ok is false there is none, and the caller asks again
// after wait, or earlier on SendRouse.
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
			continue // its feed begins again elsewhere in the queue, or has ended
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

// Filled notes that the snapshot that Next returned last is logged up to the cursor, or completely
// if done is true. It has no effect if the snapshot was given up meanwhile.
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
	f.state, f.logged, f.whole, s.filling = feedWhole, s.collections, s.seq, nil
	if f.seal != 0 {
		s.sendHanded(f)
	}
}

// Fills reports whether a snapshot is under way or waits. The simulation paces its rounds by it.
func (s *Sender) Fills() bool { return s.filling != nil || len(s.queue) > 0 }

// Waiting returns the length of the queue, which includes feeds that ended while they waited.
func (s *Sender) Waiting() int { return len(s.queue) }

// OfSnapshot reports whether effects of p that are collected now, from the log of p's shard, may
// belong to p's snapshot.
func (s *Sender) OfSnapshot(p uint16, shard int) bool {
	f := s.fed[p]
	return f != nil && (f.state == feedFilled || s.emptied[shard] <= f.logged)
}
