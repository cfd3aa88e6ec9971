package replica

import (
	"slices"
	"time"
)

// barrier is passed when the receiver has acknowledged everything that was logged before the
// barrier was raised, and the sender has heard every refusal of it.
type barrier struct {
	id   uint64
	from uint64 // the first collection that began after the barrier was raised
	seq  uint64 // the last batch that the barrier waits for; 0: not yet made
	hand *feed  // the feed that has arrived at its heir when the barrier is passed
	last *feed  // the feed whose last mark, begin or handed, has arrived when the barrier is passed
	// Without a feed, Raise made the barrier.
}

// raised reports whether Raise made the barrier.
func (b *barrier) raised() bool { return b.hand == nil && b.last == nil }

// Raise raises a barrier and returns its number. SendPassed names it when it is passed, or when it
// can no longer be.
func (s *Sender) Raise() (id uint64) {
	s.raised++
	s.raise(barrier{id: s.raised})
	return s.raised
}

// Lower forgets a barrier that Raise returned: no SendPassed follows.
func (s *Sender) Lower(id uint64) {
	s.barriers = slices.DeleteFunc(s.barriers, func(b barrier) bool { return b.raised() && b.id == id })
}

func (s *Sender) raise(b barrier) {
	b.from = s.collections + 1
	s.barriers = append(s.barriers, b)
	s.do(SendRouse)
}

// Collect notes that the caller begins to collect what the log of a shard has, and returns the
// collection's number.
func (s *Sender) Collect() uint64 {
	s.collections++
	return s.collections
}

// Collections returns how many collections have begun.
func (s *Sender) Collections() uint64 { return s.collections }

// Emptied notes that a collection has left nothing in the log of a shard.
func (s *Sender) Emptied(shard int, collection uint64) { s.emptied[shard] = collection }

// Batch returns the number of the next batch.
func (s *Sender) Batch() (seq uint64) {
	s.seq++
	return s.seq
}

// Made returns the number of the newest batch.
func (s *Sender) Made() uint64 { return s.seq }

// Collected ends a round: everything that was collected is in batches. spilt reports whether a log
// has overflowed since the last round, and lost has the partitions whose feeding was stopped: by the
// overflow, or by a unit that was too long. The caller must read both after its last collection: a
// log that overflowed is empty, but its content has not been sent.
func (s *Sender) Collected(spilt bool, lost []uint16) {
	if spilt {
		s.breakBarriers(ErrVoid)
	}
	s.stopped(lost)
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

// Opened continues the stream on a new connection, behind the last batch that the receiver has
// applied. It reports false if that is impossible; the caller then calls Void. The receiver repeats
// its refusals with the first answer on the connection, so no barrier is passed before that answer.
func (s *Sender) Opened(last uint64) bool {
	if last < s.acked || last > s.seq {
		return false
	}
	s.acked = last
	return true
}

// Acknowledged notes an answer: the receiver has applied all batches up to seq, and refuses the
// given partitions. Both are one event, so that refusals are noted before barriers are passed.
func (s *Sender) Acknowledged(seq uint64, refused []uint16, now time.Duration) {
	s.Refused(seq, refused, now)
	s.acked = max(s.acked, min(seq, s.seq))
	s.heard = s.acked
	s.pass()
}

// pass ends the oldest barriers, as far as everything that they wait for is acknowledged and heard.
func (s *Sender) pass() {
	n := 0
	for n < len(s.barriers) && s.barriers[n].seq != 0 && s.barriers[n].seq <= s.heard {
		s.endBarrier(s.barriers[n], nil)
		n++
	}
	s.barriers = slices.Delete(s.barriers, 0, n)
}

// breakBarriers ends all barriers with err: something that they wait for is lost.
func (s *Sender) breakBarriers(err error) {
	broken := s.barriers
	s.barriers = nil
	for _, b := range broken {
		s.endBarrier(b, err)
	}
}

func (s *Sender) endBarrier(b barrier, err error) {
	f := b.hand
	switch {
	case b.last != nil:
		if err != nil {
			s.lostLast(b.last)
		}
	case f == nil:
		s.actions = append(s.actions, SendAction{Do: SendPassed, Barrier: b.id, Err: err})
	case s.closed || s.fed[f.partition] != f: // f was refused, or begins again
	case err == nil || s.broken.HandOnce:
		s.remove(f.partition)
	default:
		s.again(f, f.anew())
	}
}

// lostLast tells the receiver again that its copy is void, or for the first time that the end of its
// feed was lost, unless a new feed has begun.
func (s *Sender) lostLast(f *feed) {
	if now := s.fed[f.partition]; s.closed || now != nil && now.state != feedWaiting {
		return
	}
	s.revoke(f)
	s.log(SendUnfeed, f.partition, Mark{})
}

// forgetLast forgets the barriers that wait for a feed's last mark.
func (s *Sender) forgetLast() {
	s.barriers = slices.DeleteFunc(s.barriers, func(b barrier) bool { return b.last != nil })
}
