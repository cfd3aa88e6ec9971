package replica

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

const (
	// Heartbeat is how often a receiver hears from its sender at least, and the longest wait that
	// Next returns.
	Heartbeat = 500 * time.Millisecond
	// StreamPatience is for how long a receiver may be silent before its connection is closed.
	StreamPatience = 2 * time.Second
	// AwayLimit is after how long without a connection a stream starts over.
	AwayLimit = 10 * time.Second
)

const (
	// deniedPeriod is the time between a refusal and the next try. Most likely the receiver does
	// not have the table yet that assigns the copy to it.
	deniedPeriod = 50 * time.Millisecond
	// maxHandTries is how often a hand-over is tried while its heir refuses the partition.
	maxHandTries = 40
	// maxPlaceTries is how often a refused partition keeps its place in the queue. Then it goes to
	// the end, so that it does not delay others for ever.
	maxPlaceTries = 20
)

// The errors with which barriers end.
var (
	ErrVoid   = errors.New("stream has lost changes")
	ErrClosed = errors.New("stream is closed")
)

// SendAction is something that the caller does for a Sender.
type SendAction struct {
	Do        SendDo
	Partition uint16
	Mark      Mark   // of SendFeed, SendUnfeed and SendMark
	Barrier   uint64 // of SendPassed
	Err       error  // of SendPassed: nil, ErrVoid or ErrClosed
}

// SendDo is a kind of SendAction.
type SendDo uint8

const (
	SendFeed     SendDo = iota // log the mark, then every change of the partition
	SendUnfeed                 // log the mark unless it is NoMark, then nothing of the partition
	SendMark                   // log the mark
	SendReopen                 // end all feeds, empty the logs, and start over
	SendRouse                  // wake the caller's loop: there may be a snapshot to take, or a batch to make
	SendRelieved               // the last hand-over has ended
	SendPassed                 // a barrier that Raise returned has ended
	SendOwed                   // the hand-over of Partition has begun or ended: Owes says which
)

// feedState is the state of a feed, as the sender sees it.
type feedState uint8

const (
	feedWaiting feedState = iota // waits for its snapshot
	feedFilled                   // the snapshot is being logged
	feedWhole                    // the snapshot was logged, or none was needed
	feedHanded                   // the heir was sent MarkHanded, and may not have received it
)

// feed is what the receiver is sent of one partition.
type feed struct {
	partition uint16
	state     feedState
	since     uint64 // epoch in which the data began
	cursor    uint64 // of the snapshot
	logged    uint64 // the last collection that began before the whole snapshot was logged
	begun     uint64 // the last batch before this feed began
	whole     uint64 // the last batch made before the whole snapshot was logged
	seal      uint64 // not 0: the partition is frozen, and is handed over
	tries     int    // how often the receiver has refused it

	// For the queue (queue.go).
	place     uint64        // its place among the others; 0: it has not waited yet
	notBefore time.Duration // when a refused feed may be tried again
}

// anew returns the feed in the state before its snapshot.
func (f *feed) anew() *feed {
	return &feed{partition: f.partition, since: f.since, seal: f.seal, tries: f.tries, place: f.place}
}

// Sender orders the feeds of one receiver. It keeps every feed until the receiver has acknowledged
// it, and starts it over if a part of it was lost.
type Sender struct {
	broken     *Broken
	generation uint64
	closed     bool

	fed     map[uint16]*feed
	queue   []*feed // those that wait, by turn; some have ended meanwhile
	denied  []*feed // refused feeds, by notBefore
	places  uint64  // the last place given out
	filling *feed   // the feed whose snapshot is being taken
	owed    int     // feeds with a seal
	owing   bool    // owed was not 0 when Actions was called last
	resyncs uint64

	barriers []barrier // in the order in which they were raised
	raised   uint64

	seq   uint64 // of the last batch made
	acked uint64 // the last batch acknowledged
	heard uint64 // the last batch up to which all refusals were heard

	collections uint64
	emptied     []uint64 // by shard: the last collection that emptied its log

	actions []SendAction
}

// NewSender returns the sender of a new stream, which feeds nothing yet. shards is the number of
// logs from which the caller collects. broken is nil except in simulations.
func NewSender(generation uint64, shards int, broken *Broken) *Sender {
	return &Sender{
		broken: cmp.Or(broken, unbroken), generation: generation,
		fed: make(map[uint16]*feed), emptied: make([]uint64, shards),
	}
}

// Actions returns what is to be done since the last call, in order. The slice is valid until the
// next event.
func (s *Sender) Actions() []SendAction {
	if s.owing && s.owed == 0 {
		s.do(SendRelieved)
	}
	s.owing = s.owed > 0
	list := s.actions
	s.actions = s.actions[:0]
	return list
}

func (s *Sender) do(d SendDo) { s.actions = append(s.actions, SendAction{Do: d}) }

func (s *Sender) log(d SendDo, p uint16, m Mark) {
	s.actions = append(s.actions, SendAction{Do: d, Partition: p, Mark: m})
}

// Sync feeds p, whose data began in the epoch since: a snapshot when it is p's turn, and every
// change from then on.
func (s *Sender) Sync(p uint16, since uint64) {
	f := s.fed[p]
	if s.closed || f != nil && f.since == since && f.seal == 0 && f.state <= feedFilled {
		return
	}
	again := &feed{partition: p, since: since}
	if f == nil {
		s.enqueue(again)
		return
	}
	s.again(f, again)
}

// again makes a feed wait for its turn again. That may take long, so MarkBegin tells the receiver
// at once that its copy is void.
func (s *Sender) again(f, again *feed) {
	if f.state == feedWhole || f.state == feedFilled {
		s.resyncs++
		s.revoke(again)
	}
	s.end(f.partition, Mark{})
	s.enqueue(again)
}

// revoke tells the receiver that its copy of f's partition is void. The caller ends the feed of the
// partition, or has ended it.
func (s *Sender) revoke(f *feed) {
	s.log(SendFeed, f.partition, f.beginning())
	s.raise(barrier{last: f})
}

// beginning returns the mark in front of a snapshot.
func (f *feed) beginning() Mark { return Mark{MarkBegin, f.since} }

// Resume feeds changes to a copy of p that was handed over with the seal. The receiver misses no
// change that is made after the caller has run the actions.
func (s *Sender) Resume(p uint16, since, seal uint64) {
	if s.closed {
		return
	}
	s.end(p, Mark{})
	s.put(&feed{partition: p, since: since, state: feedWhole, begun: s.seq})
	s.log(SendFeed, p, Mark{MarkContinue, seal})
}

// Stop ends the feeding of p, and tells the receiver that its copy is void. A receiver that misses
// the table that ends the feed, and gets a later one that has the same owner feed it again, would
// otherwise take its old copy for one in sync until the new feed begins.
func (s *Sender) Stop(p uint16) {
	f := s.fed[p]
	if f != nil && !s.closed && !s.broken.StopInSilence && (f.state == feedWhole || f.state == feedFilled) {
		s.revoke(f)
	}
	s.end(p, Mark{})
}

// Hand ends the feed of p, which is frozen, with MarkHanded: the copy is what p's next owner begins
// with. heir reports whether the receiver is that owner. An heir whose copy is not whole is sent
// the rest first; the copy may have fallen out of sync since the heir reported it.
func (s *Sender) Hand(p uint16, seal uint64, heir bool) {
	f := s.fed[p]
	switch {
	case s.closed || f == nil:
	case !heir && f.state == feedWhole:
		s.end(p, Mark{MarkHanded, seal})
		s.raise(barrier{last: f})
	case !heir || s.broken.HandOnce && f.state != feedWhole:
		s.end(p, Mark{})
	case f.state == feedWaiting:
		again := f.anew() // now it waits ahead of all that are not handed over
		again.seal, again.tries = seal, 0
		s.enqueue(again)
	default:
		f.seal, f.tries = seal, 0
		s.owe(f, 1)
		if f.state == feedWhole {
			s.sendHanded(f)
		}
	}
}

// Abandon ends the hand-over of p with the seal, if it is still under way.
func (s *Sender) Abandon(p uint16, seal uint64) {
	if f := s.fed[p]; f != nil && f.seal == seal {
		s.end(p, Mark{})
	}
}

// sendHanded logs the mark that hands f over. The mark can still be lost with its log, or be
// refused, so f stays until the mark has arrived.
func (s *Sender) sendHanded(f *feed) {
	s.log(SendUnfeed, f.partition, Mark{MarkHanded, f.seal})
	f.state = feedHanded
	s.raise(barrier{hand: f})
}

// end ends the feeding of p with the mark.
func (s *Sender) end(p uint16, m Mark) {
	if s.fed[p] == nil || s.closed {
		return
	}
	s.remove(p)
	s.log(SendUnfeed, p, m)
}

// put replaces the feed of f's partition by f.
func (s *Sender) put(f *feed) {
	s.remove(f.partition)
	s.fed[f.partition] = f
	if f.seal != 0 {
		s.owe(f, 1)
	}
}

func (s *Sender) remove(p uint16) {
	f := s.fed[p]
	if f == nil {
		return
	}
	delete(s.fed, p)
	if s.filling == f {
		s.filling = nil
	}
	if f.seal != 0 {
		s.owe(f, -1)
	}
}

// owe counts a hand-over that begins (1) or ends (-1).
func (s *Sender) owe(f *feed, n int) {
	s.owed += n
	s.log(SendOwed, f.partition, Mark{})
}

// Close ends the stream. Later events change nothing, except Closed.
func (s *Sender) Close() { s.closed = true }

// Closed is the event that nothing is logged for the stream any more. It ends all barriers.
func (s *Sender) Closed() {
	s.closed = true
	s.breakBarriers(ErrClosed)
}

// Void begins a new generation, whose number no receiver knows yet: what was sent no longer counts,
// and every feed starts over.
func (s *Sender) Void(generation uint64) {
	s.generation = generation
	s.seq, s.acked, s.heard = 0, 0, 0
	s.forgetLast() // the receiver drops all copies
	s.breakBarriers(ErrVoid)
	if s.closed {
		return
	}
	s.do(SendReopen)
	s.filling, s.denied, s.queue = nil, nil, s.queue[:0]
	for _, f := range s.inOrder() {
		if f.state == feedWhole || f.state == feedFilled {
			s.resyncs++
		}
		s.enqueue(f.anew())
	}
}

// Refused notes the partitions that the receiver refuses in its answer to the batches up to seq.
// They are tried again after deniedPeriod.
func (s *Sender) Refused(seq uint64, partitions []uint16, now time.Duration) {
	for _, p := range partitions {
		f := s.fed[p]
		if f == nil || f.begun >= seq || f.state == feedWaiting {
			continue // the refusal concerns an earlier feed
		}
		s.resyncs++
		s.end(p, Mark{})
		s.deny(f.anew(), now)
	}
}

// Lacked reports whether a key of p that the receiver lacks, by its answer to the batches up to seq,
// is to be sent anew: whether the receiver had all of the present feed's snapshot. Before that it
// lacks what the snapshot is yet to bring.
func (s *Sender) Lacked(seq uint64, p uint16) bool {
	f := s.fed[p]
	return f != nil && f.state == feedWhole && max(f.begun, f.whole) < seq
}

// stopped begins the feeds of these partitions again, which were stopped because not all could be
// logged.
func (s *Sender) stopped(lost []uint16) {
	for _, p := range lost {
		if f := s.fed[p]; f != nil && (f.state == feedFilled || f.state == feedWhole) {
			again := f.anew()
			again.place = 0 // a receiver that cannot keep up with p gets the others first
			s.again(f, again)
		}
	}
}

// inOrder returns the feeds by place. Those that never waited come last.
func (s *Sender) inOrder() []*feed {
	list := make([]*feed, 0, len(s.fed))
	for _, f := range s.fed {
		list = append(list, f)
	}
	slices.SortFunc(list, func(f, o *feed) int {
		return cmp.Or(cmp.Compare(f.place-1, o.place-1), cmp.Compare(f.partition, o.partition))
	})
	return list
}

// Generation returns the number of the stream's present generation.
func (s *Sender) Generation() uint64 { return s.generation }

// Owed returns the number of partitions whose hand-over is under way.
func (s *Sender) Owed() int { return s.owed }

// Owes reports whether the hand-over of p is under way.
func (s *Sender) Owes(p uint16) bool { return s.fed[p] != nil && s.fed[p].seal != 0 }

// Resyncs returns how often a partition had to be sent again.
func (s *Sender) Resyncs() uint64 { return s.resyncs }

// IsClosed reports whether the stream has ended.
func (s *Sender) IsClosed() bool { return s.closed }

// Unfinished returns the number of partitions whose snapshot is not completely logged yet.
func (s *Sender) Unfinished() (n int) {
	for _, f := range s.fed {
		if f.state < feedWhole {
			n++
		}
	}
	return n
}

// EachWhole calls f with every partition whose snapshot the receiver has or is about to have
// completely.
func (s *Sender) EachWhole(f func(p uint16)) {
	for p, have := range s.fed {
		if have.state == feedWhole {
			f(p)
		}
	}
}
