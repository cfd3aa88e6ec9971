package replica

import (
	"slices"
	"time"
)

// barrier is passed when everything that was logged before it was raised is acknowledged, and every
// refusal of that was heard.
type barrier struct {
	id   uint64
	from uint64 // collections from this one on began after it
	seq  uint64 // the batch with the last of what it waits for; 0: not yet made
	word *feed  // handed over when it is passed; nil: SendPassed says so
}

// Raise raises a barrier, which SendPassed names when it is passed or cannot be any more.
func (s *Sender) Raise() (id uint64) {
	s.raised++
	s.raise(barrier{id: s.raised})
	return s.raised
}

// Lower forgets a barrier.
func (s *Sender) Lower(id uint64) {
	s.barriers = slices.DeleteFunc(s.barriers, func(b barrier) bool { return b.word == nil && b.id == id })
}

func (s *Sender) raise(b barrier) {
	b.from = s.collections + 1
	s.barriers = append(s.barriers, b)
	s.do(SendRouse)
}

// Collect begins to collect what the log of a shard has, and returns the collection's number.
func (s *Sender) Collect() uint64 {
	s.collections++
	return s.collections
}

// Collections returns how many collections have begun.
func (s *Sender) Collections() uint64 { return s.collections }

// Emptied notes that a collection has left nothing in the log of a shard.
func (s *Sender) Emptied(shard int, collection uint64) { s.emptied[shard] = collection }

// Batch numbers the next batch.
func (s *Sender) Batch() (seq uint64) {
	s.seq++
	return s.seq
}

// Made returns the number of the last batch made.
func (s *Sender) Made() uint64 { return s.seq }

// Collected ends a round: everything that was collected is in batches. spilt reports whether a log
// has overflowed since the last round, and lost whose feeding that has stopped. Both must be read
// after the last collection: a log that overflowed is empty, but what was in it has not been sent.
func (s *Sender) Collected(spilt bool, lost []uint16) {
	if spilt {
		s.spilt(lost)
	}
	if len(s.barriers) == 0 {
		return
	}
	oldest := slices.Min(s.emptied)
	for i := len(s.barriers) - 1; i >= 0 && s.barriers[i].seq == 0; i-- {
		if oldest >= s.barriers[i].from {
			s.barriers[i].seq = s.seq
		}
	}
	s.pass()
}

// Opened goes on with the stream on a new connection, after the last batch that the receiver has
// applied. It reports false if that is impossible: then Void is to be called. The receiver says its
// refusals again with the first answer on the connection: nothing passes a barrier before that.
func (s *Sender) Opened(last uint64) bool {
	if last < s.acked || last > s.seq {
		return false
	}
	s.acked = last
	return true
}

// Acknowledged notes an answer: the receiver has applied all batches up to seq, and refuses the
// partitions named. Both are one event: the refusals are noted before the barriers pass.
func (s *Sender) Acknowledged(seq uint64, refused []uint16, now time.Duration) {
	s.Refused(seq, refused, now)
	s.acked = max(s.acked, min(seq, s.seq))
	s.heard = s.acked
	s.pass()
}

// pass ends the barriers for which everything is acknowledged and heard: the first ones.
func (s *Sender) pass() {
	n := 0
	for n < len(s.barriers) && s.barriers[n].seq != 0 && s.barriers[n].seq <= s.heard {
		s.endBarrier(s.barriers[n], nil)
		n++
	}
	s.barriers = slices.Delete(s.barriers, 0, n)
}

// breakBarriers ends all barriers: something was lost on the way.
func (s *Sender) breakBarriers(err error) {
	broken := s.barriers
	s.barriers = nil
	for _, b := range broken {
		s.endBarrier(b, err)
	}
}

func (s *Sender) endBarrier(b barrier, err error) {
	f := b.word
	switch {
	case f == nil:
		s.actions = append(s.actions, SendAction{Do: SendPassed, Barrier: b.id, Err: err})
	case s.closed || s.fed[f.partition] != f: // it was refused, or is fed anew
	case err == nil || s.broken.HandOnce:
		s.remove(f.partition)
	default:
		s.again(f, f.anew())
	}
}
