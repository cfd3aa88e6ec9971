package node

import (
	"cmp"
	"slices"
	"time"
)

// Whoever waits for its snapshot has a place in the queue. Those that are to be handed over come before all others: commands wait
// for them. Who is refused has its turn again after a moment, and keeps its place.

const (
	// deniedPeriod is after how long what was refused is tried again.
	deniedPeriod = 50 * time.Millisecond
	// maxHandTries is how often a partition is handed over to one who refuses it.
	maxHandTries = 40
	// maxPlaceTries is how often what is refused keeps its place: it must not be in the way of others for ever.
	maxPlaceTries = 20
)

// byTurn orders what waits.
func byTurn(f, o *fedPartition) int {
	if (f.seal == 0) != (o.seal == 0) {
		return cmp.Compare(o.seal, f.seal)
	}
	return cmp.Compare(f.place, o.place)
}

// enqueueLocked has a partition wait at its place, or at the end if it has none.
func (s *sender) enqueueLocked(f *fedPartition) {
	if f.place == 0 {
		s.places++
		f.place = s.places
	}
	s.putLocked(f)
	i, _ := slices.BinarySearchFunc(s.queue, f, byTurn)
	s.queue = slices.Insert(s.queue, i, f)
	s.rouse()
}

// nextLocked is the partition that a snapshot is being taken of, or for how long there is none if nobody rouses.
func (s *sender) nextLocked(now time.Time) (f *fedPartition, wait time.Duration) {
	for len(s.refused) > 0 && !now.Before(s.refused[0].notBefore) {
		if f := s.refused[0]; s.fed[f.number] == f {
			s.enqueueLocked(f)
		}
		s.refused = s.refused[1:]
	}
	for s.filling == nil && len(s.queue) > 0 && !s.closed {
		f := s.queue[0]
		s.queue = s.queue[1:]
		if s.fed[f.number] != f {
			continue // it begins anew elsewhere in the queue, or is not fed any more
		}
		f.state, f.begun = feedFilled, s.window.seq
		s.filling = f
		s.node.engine.Feed(f.number, s.feed, s.beginning(f))
	}
	if s.filling == nil {
		wait = heartbeat
		if len(s.refused) > 0 {
			wait = min(wait, s.refused[0].notBefore.Sub(now))
		}
	}
	return s.filling, wait
}
