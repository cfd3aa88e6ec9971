package sim

import (
	"cmp"
	"slices"
	"time"
)

// Streams, after node/stream.go, stream_queue.go and stream_round.go: what an owner's partitions come to hold goes to each receiver as
// one log, in batches that are kept until they are acknowledged (talk_test.go).

type mark uint8

const (
	noMark mark = iota
	markBegin
	markSynced
	markContinue
	markHanded
)

// effect is a value that a key has come to hold, or a mark.
type effect struct {
	place  int
	key    int
	value  int
	clear  bool
	change *change // whose effect it is; at markSynced: the last before it
	live   bool    // not of a snapshot
	mark   mark
	arg    uint64
}

type feedState uint8

const (
	feedWaiting feedState = iota
	feedFilled
	feedWhole
	feedHanded
)

// fedPlace is a partition that a sender is to feed.
type fedPlace struct {
	place int
	state feedState
	since uint64 // 0: as the table says
	key   int    // the next of the snapshot
	begun uint64 // the last batch before this feed began
	seal  uint64 // it is handed over; 0: it is not
	tries int
	turn  int           // in the queue; 0: it has not waited yet
	after time.Duration // it was refused
}

func (f *fedPlace) anew() *fedPlace {
	return &fedPlace{place: f.place, since: f.since, seal: f.seal, tries: f.tries, turn: f.turn}
}

// byTurn orders what waits: what is to be handed over first.
func byTurn(f, o *fedPlace) int {
	if (f.seal == 0) != (o.seal == 0) {
		return cmp.Compare(o.seal, f.seal)
	}
	return cmp.Compare(f.turn, o.turn)
}

const maxLog = 80

type sender struct {
	n          *node
	name, addr string
	generation uint64
	closed     bool

	log   []effect
	feeds placeSet // of which changes are logged
	lost  placeSet // of which they are not any more, because the log was full
	spilt bool     // the log was full: all that was in it is lost

	of      [places]*fedPlace
	queue   []*fedPlace
	refused []*fedPlace // those of the queue whose time has not yet come
	turns   int
	filling *fedPlace
	owed    int      // partitions with a seal
	words   []*word  // that are not known to have come
	waiting []func() // for there to be no such partitions

	line
}

// append logs. What a log cannot take empties it.
func (s *sender) append(e effect) {
	s.log = append(s.log, e)
	s.pump()
	if len(s.log) > maxLog {
		s.overflow()
	}
}

func (s *sender) overflow() {
	s.n.w.tracef("%s: its log for %s overflows", s.n.p.name, s.name)
	s.lost |= s.feeds
	s.feeds, s.log, s.spilt = 0, nil, true
	s.pump()
}

// fed logs a change.
func (s *sender) fed(k int, e effect) {
	if s.feeds.has(k) {
		e.place, e.live = k, true
		s.append(e)
	}
}

// feed has changes logged from now on, behind the mark.
func (s *sender) feed(k int, m mark, arg uint64) {
	s.feeds |= 1 << k
	s.append(effect{place: k, mark: m, arg: arg})
}

// unfeed ends that, with the mark as the last.
func (s *sender) unfeed(k int, m mark, arg uint64) {
	if s.feeds.has(k) && m != noMark {
		s.append(effect{place: k, mark: m, arg: arg})
	}
	s.feeds &^= 1 << k
}

func (s *sender) sync(k int, since uint64) {
	f := s.of[k]
	switch {
	case s.closed || f != nil && f.since == since && f.seal == 0 && (f.state == feedWaiting || f.state == feedFilled):
	case f == nil:
		s.enqueue(&fedPlace{place: k, since: since})
	default:
		s.again(f, &fedPlace{place: k, since: since})
	}
}

// enqueue has a partition wait for its turn.
func (s *sender) enqueue(f *fedPlace) {
	if f.turn == 0 {
		s.turns++
		f.turn = s.turns
	}
	s.put(f)
	i, _ := slices.BinarySearchFunc(s.queue, f, byTurn)
	s.queue = slices.Insert(s.queue, i, f)
	s.pump()
}

// again begins anew with what was fed, and says so at once.
func (s *sender) again(f, again *fedPlace) {
	if f.state == feedWhole || f.state == feedFilled {
		s.feed(f.place, markBegin, s.sinceOf(again))
	}
	s.end(f.place, noMark, 0)
	s.enqueue(again)
}

func (s *sender) sinceOf(f *fedPlace) uint64 {
	if f.since == 0 {
		return s.n.since(s.n.view, f.place)
	}
	return f.since
}

// resume goes on feeding a copy that was handed over with the seal.
func (s *sender) resume(k int, seal uint64) {
	if s.closed {
		return
	}
	s.end(k, noMark, 0)
	s.put(&fedPlace{place: k, state: feedWhole, begun: s.seq})
	s.feed(k, markContinue, seal)
}

func (s *sender) stop(k int) { s.end(k, noMark, 0) }

// hand ends the feeding of a partition that was lost. Its new owner gets all of it before that.
func (s *sender) hand(k int, seal uint64, heir bool) {
	f := s.of[k]
	switch {
	case s.closed || f == nil:
	case !heir && f.state == feedWhole:
		s.end(k, markHanded, seal)
	case !heir || s.n.w.handOnce && f.state != feedWhole:
		s.end(k, noMark, 0)
	case f.state == feedWaiting:
		again := f.anew()
		again.seal, again.tries = seal, 0
		s.enqueue(again)
	default:
		f.seal, f.tries = seal, 0
		s.owed++
		if f.state == feedWhole {
			s.say(f)
		}
	}
}

// say logs the word that hands a partition over, which stays until that has come.
func (s *sender) say(f *fedPlace) {
	s.unfeed(f.place, markHanded, f.seal)
	f.state = feedHanded
	s.words = append(s.words, &word{f: f})
	s.pump()
}

func (s *sender) end(k int, m mark, arg uint64) {
	if s.of[k] == nil || s.closed {
		return
	}
	s.remove(k)
	s.unfeed(k, m, arg)
}

// put has f be what is known of its partition.
func (s *sender) put(f *fedPlace) {
	s.remove(f.place)
	s.of[f.place] = f
	if f.seal != 0 {
		s.owed++
	}
}

func (s *sender) remove(k int) {
	f := s.of[k]
	if f == nil {
		return
	}
	s.of[k] = nil
	if s.filling == f {
		s.filling = nil
	}
	if f.seal != 0 {
		s.owed--
		s.n.w.after(s.n.p, 0, s.relieve)
	}
}

// void begins a new generation: nothing that was sent counts.
func (s *sender) void() {
	s.n.w.seal++
	s.generation = s.n.w.seal
	s.seq, s.acked, s.judged, s.unacked = 0, 0, 0, nil
	s.breakWords()
	s.log, s.feeds, s.lost, s.spilt = nil, 0, 0, false
	s.filling, s.refused, s.queue = nil, nil, nil
	for _, f := range s.of {
		if f != nil {
			s.enqueue(f.anew())
		}
	}
}

// recover sees to what was fed when the log overflowed.
func (s *sender) recover() {
	if !s.spilt {
		return
	}
	lost := s.lost
	s.lost, s.spilt = 0, false
	s.breakWords()
	for k, f := range s.of {
		if lost.has(k) && f != nil && (f.state == feedFilled || f.state == feedWhole) {
			again := f.anew()
			again.turn = 0
			s.again(f, again)
		}
	}
}

// setRefused notes what the receiver does not take, in batches up to seq.
func (s *sender) setRefused(seq uint64, refused placeSet) {
	for k := range places {
		if !refused.has(k) {
			continue
		}
		f := s.of[k]
		if f != nil && f.begun < seq && f.state != feedWaiting {
			s.end(k, noMark, 0)
			s.deny(f.anew())
		}
	}
}

// deny has a partition tried again in a moment; but not for ever, if it is to be handed over.
func (s *sender) deny(f *fedPlace) {
	if f.tries++; f.seal != 0 && (f.tries > maxHandTries || s.n.w.handOnce) {
		return
	}
	if f.tries > maxPlaceTries {
		f.turn = 0
	}
	f.after = s.n.w.now + deniedPeriod
	s.put(f)
	s.refused = append(s.refused, f)
	s.n.w.after(s.n.p, deniedPeriod, s.reconsider)
}

// reconsider queues again what was refused a moment ago.
func (s *sender) reconsider() {
	for len(s.refused) > 0 && s.refused[0].after <= s.n.w.now {
		if f := s.refused[0]; s.of[f.place] == f {
			s.enqueue(f)
		}
		s.refused = s.refused[1:]
	}
}

// next is the partition that a snapshot is being taken of.
func (s *sender) next() *fedPlace {
	for s.filling == nil && len(s.queue) > 0 {
		f := s.queue[0]
		s.queue = s.queue[1:]
		if s.of[f.place] != f {
			continue
		}
		f.state, f.begun = feedFilled, s.seq
		s.filling = f
		s.feed(f.place, markBegin, s.sinceOf(f))
	}
	return s.filling
}

// fill logs the next piece of a snapshot.
func (s *sender) fill() {
	if len(s.log) >= maxLog/2 {
		return
	}
	f := s.next()
	if f == nil {
		return
	}
	k, d := f.place, &s.n.data[f.place]
	e := effect{place: k, key: f.key}
	if f.key < keysPer {
		e.value = d.values[f.key]
		f.key++
	} else {
		e.mark, e.change = markSynced, d.last
		f.state, s.filling = feedWhole, nil
	}
	if s.feeds.has(k) {
		s.append(e)
	}
	if f.state == feedWhole && f.seal != 0 {
		s.say(f)
	}
}
