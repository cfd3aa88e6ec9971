package engine

import (
	"slices"
	"sync/atomic"
)

// Hold keeps a partition for one command that takes longer than a shard may be locked. The holder
// works in slices: it locks the partition by Hold.Lock, and unlocks it between them. Others can lock
// the partition meanwhile, and see by Txn.Holder that they must leave it alone.
//
//	Lock ─> t.Hold ─> Unlock    h.Lock ─> Unlock    h.Lock ─> Unlock    h.End
//	  └ the first slice ┘ others  └ next ┘   others   └ last ┘
//
// Time stands still in a held partition: nothing in it is evicted or expires, but for the holder, at the
// time when the hold began. Feeds, counts, compaction, sweeps and walks do not wait for it. Only
// WalkUnheld stops before it.
type Hold struct {
	s         *shard
	partition uint16
	section   uint16 // of it, in which the holder began
	now       int64
	ended     chan struct{}
	unit      *unit // nil: what the holder changes is logged as it changes
	wanted    atomic.Bool
}

// Hold begins a hold on t's partition, which nobody holds.
func (t Txn) Hold() *Hold {
	if t.Holder() != nil {
		panic("BUG: a partition is held twice")
	}
	h := &Hold{s: t.s, partition: PartitionOf(t.section), section: t.section, now: t.s.now, ended: make(chan struct{})}
	t.s.holds = append(t.s.holds, h)
	t.s.sums.Holds++
	return h
}

// MayBeHeld reports whether some partition of t's shard is held. It costs less than Holder.
func (t Txn) MayBeHeld() bool { return len(t.s.holds) != 0 }

// Holder returns the hold on t's partition, nil if there is none.
func (t Txn) Holder() *Hold { return t.s.holder(t.section) }

// Holder returns the hold on partition p, nil if there is none.
func (e *Engine) Holder(p uint16) *Hold {
	s := e.shardOf(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holder(p)
}

// Lock begins the next slice of the holder's work, in the section in which the hold began.
func (h *Hold) Lock() Txn {
	h.s.mu.Lock()
	h.s.now = h.now
	return Txn{s: h.s, p: h.s.partition(h.section), section: h.section}
}

// End ends the hold, which nobody has locked.
func (h *Hold) End() {
	t := h.Lock()
	defer t.Unlock()
	if h.unit != nil {
		h.s.feeds.endUnit(h.unit)
	}
	i := slices.Index(h.s.holds, h)
	h.s.holds = slices.Delete(h.s.holds, i, i+1)
	h.s.noteDuties() // keys may be due
	close(h.ended)
}

// Partition returns the partition that is held.
func (h *Hold) Partition() uint16 { return h.partition }

// Section returns the section of it in which the hold began.
func (h *Hold) Section() uint16 { return h.section }

// IsWanted reports whether somebody who makes room has met a record that is held.
func (h *Hold) IsWanted() bool { return h.wanted.Load() }

// Ended returns a channel that is closed when the hold has ended.
func (h *Hold) Ended() <-chan struct{} { return h.ended }

// Holds returns all holds that there are.
func (e *Engine) Holds() (all []*Hold) {
	for i := range e.shards {
		s := &e.shards[i]
		s.mu.Lock()
		all = append(all, s.holds...)
		s.mu.Unlock()
	}
	return all
}

// holder is the hold on a partition, or on that of a section.
func (s *shard) holder(p uint16) *Hold {
	p = PartitionOf(p)
	for _, h := range s.holds {
		if h.partition == p {
			return h
		}
	}
	return nil
}

// keeps reports whether a record with header h must neither expire nor be evicted, because its
// partition is held.
func (s *shard) keeps(h header) bool { return len(s.holds) != 0 && s.holder(h.partition()) != nil }

// withholds is keeps for whoever makes room: the hold is wanted then.
func (s *shard) withholds(h header) bool { return len(s.holds) != 0 && s.want(h) }

func (s *shard) want(h header) bool {
	hold := s.holder(h.partition())
	if hold != nil {
		hold.wanted.Store(true)
	}
	return hold != nil
}
