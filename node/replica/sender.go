package replica

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

const (
	// Heartbeat is how often a receiver hears something, and the longest that Next has its caller
	// wait.
	Heartbeat = 100 * time.Millisecond
	// StreamPatience is for how long a receiver may say nothing before its connection is given up.
	StreamPatience = 2 * time.Second
	// AwayLimit is after how long without a connection a stream is given up, and begins anew.
	AwayLimit = 10 * time.Second
)

const (
	// deniedPeriod is after how long what was refused is tried again. Most likely the receiver does
	// not have the table yet by which it should take it.
	deniedPeriod = 50 * time.Millisecond
	// maxHandTries is how often a partition is handed over to an heir that refuses it.
	maxHandTries = 40
	// maxPlaceTries is how often what is refused keeps its place in the queue: it must not delay
	// others for ever.
	maxPlaceTries = 20
)

// The errors with which barriers end.
var (
	ErrVoid   = errors.New("stream has lost changes")
	ErrClosed = errors.New("stream is closed")
)

// SendAction is what a Sender wants done.
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
	SendReopen                 // forget the logs and everything that is fed, and begin anew with empty ones
	SendRouse                  // there may be a snapshot to take, or a batch to make
	SendRelieved               // nothing is to be handed over any more
	SendPassed                 // a barrier that Raise returned has ended
)

// feedState is how far a feed is, as the sender sees it.
type feedState uint8

const (
	feedWaiting feedState = iota // for its snapshot
	feedFilled                   // the snapshot is on its way
	feedWhole                    // the snapshot was sent, or none was needed
	feedHanded                   // the heir was told that this is all, and may not have heard it
)

// feed is a partition on its way to the receiver.
type feed struct {
	partition uint16
	state     feedState
	since     uint64 // of the data
	cursor    uint64 // of the snapshot
	logged    uint64 // the last collection that began before all of the snapshot was logged
	begun     uint64 // the last batch before this feed began
	seal      uint64 // not 0: the partition does not change any more, and is to be handed over
	tries     int    // how often the receiver has refused it

	// where it waits (queue.go)
	place     uint64        // among the others; 0: it has not waited yet
	notBefore time.Duration // its turn comes, since it was refused
}

// anew returns the feed as it is before its snapshot.
func (f *feed) anew() *feed {
	return &feed{partition: f.partition, since: f.since, seal: f.seal, tries: f.tries, place: f.place}
}

// Sender orders the feeds of one receiver. Whatever is not yet known to have arrived is kept, and
// begins anew if it was lost.
type Sender struct {
	broken     *Broken
	generation uint64
	closed     bool

	fed     map[uint16]*feed
	queue   []*feed // those that wait, by turn, and others that did
	denied  []*feed // refused ones whose time has not come yet, by that time
	places  uint64  // the last one given out in the queue
	filling *feed   // whose snapshot is being taken
	owed    int     // feeds with a seal
	owing   bool    // there were some when Actions was called last
	resyncs uint64

	barriers []barrier // in the order in which they were raised
	raised   uint64

	seq   uint64 // of the last batch made
	acked uint64 // the last one acknowledged
	heard uint64 // the last one of which, and of all before, the refusals were heard

	collections uint64
	emptied     []uint64 // by shard: the last collection that left nothing in its log

	actions []SendAction
}

// NewSender returns the sender of a stream's first generation, which feeds nothing yet. Its changes
// are logged in so many shards. broken is nil but in simulations.
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

// Sync has the receiver get a snapshot of p, whose data is of the epoch since, when it is p's turn,
// and every change from then on.
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

// again has a partition that was fed wait for its turn again. That may take long, so the receiver
// is told at once that its copy is none any more.
func (s *Sender) again(f, again *feed) {
	if f.state == feedWhole || f.state == feedFilled {
		s.resyncs++
		s.log(SendFeed, f.partition, again.beginning())
	}
	s.end(f.partition, Mark{})
	s.enqueue(again)
}

// beginning is the mark before a snapshot.
func (f *feed) beginning() Mark { return Mark{MarkBegin, f.since} }

// Resume goes on feeding a copy of p that was handed over with the seal. No change is missed after
// its actions are run.
func (s *Sender) Resume(p uint16, since, seal uint64) {
	if s.closed {
		return
	}
	s.end(p, Mark{})
	s.put(&feed{partition: p, since: since, state: feedWhole, begun: s.seq})
	s.log(SendFeed, p, Mark{MarkContinue, seal})
}

// Stop ends the feeding of p.
func (s *Sender) Stop(p uint16) { s.end(p, Mark{}) }

// Hand ends the feeding of p, which does not change any more, with the word that the copy is what
// its next owner begins with. The heir's own copy becomes whole before that: it may have fallen out
// of sync since the heir reported it.
func (s *Sender) Hand(p uint16, seal uint64, heir bool) {
	f := s.fed[p]
	switch {
	case s.closed || f == nil:
	case !heir && f.state == feedWhole:
		s.end(p, Mark{MarkHanded, seal})
	case !heir || s.broken.HandOnce && f.state != feedWhole:
		s.end(p, Mark{})
	case f.state == feedWaiting:
		again := f.anew() // its turn is before that of all that are only fed
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

// Abandon ends the hand-over of p with the seal, if it is still under way.
func (s *Sender) Abandon(p uint16, seal uint64) {
	if f := s.fed[p]; f != nil && f.seal == seal {
		s.end(p, Mark{})
	}
}

// say logs the word that hands f over. The word can still be lost with its log, or be refused: f
// stays until it has arrived.
func (s *Sender) say(f *feed) {
	s.log(SendUnfeed, f.partition, Mark{MarkHanded, f.seal})
	f.state = feedHanded
	s.raise(barrier{word: f})
}

// end ends the feeding of p with the mark.
func (s *Sender) end(p uint16, m Mark) {
	if s.fed[p] == nil || s.closed {
		return
	}
	s.remove(p)
	s.log(SendUnfeed, p, m)
}

// put replaces what is known of f's partition.
func (s *Sender) put(f *feed) {
	s.remove(f.partition)
	s.fed[f.partition] = f
	if f.seal != 0 {
		s.owed++
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
		s.owed--
	}
}

// Close ends the stream: later events but Closed change nothing.
func (s *Sender) Close() { s.closed = true }

// Closed ends the barriers of a stream that was closed. Nothing is logged for it any more.
func (s *Sender) Closed() {
	s.closed = true
	s.breakBarriers(ErrClosed)
}

// Void begins a new generation, whose number no receiver knows: nothing that was sent counts, and
// everything is to be sent again.
func (s *Sender) Void(generation uint64) {
	s.generation = generation
	s.seq, s.acked, s.heard = 0, 0, 0
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

// Refused notes partitions that the receiver does not take, in batches up to seq. They are tried
// again in a moment.
func (s *Sender) Refused(seq uint64, partitions []uint16, now time.Duration) {
	for _, p := range partitions {
		f := s.fed[p]
		if f == nil || f.begun >= seq || f.state == feedWaiting {
			continue // it is about an earlier feed
		}
		s.resyncs++
		s.end(p, Mark{})
		s.deny(f.anew(), now)
	}
}

// spilt notes that a log was full: everything in it is lost, and with it the last words about
// partitions that are not fed any more. lost are those whose feeding the overflow has stopped.
func (s *Sender) spilt(lost []uint16) {
	s.breakBarriers(ErrVoid)
	for _, p := range lost {
		if f := s.fed[p]; f != nil && (f.state == feedFilled || f.state == feedWhole) {
			again := f.anew()
			again.place = 0 // a receiver that cannot keep up with p gets the others first
			s.again(f, again)
		}
	}
}

// inOrder returns the feeds in the order of their places, those that never waited last.
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

// Owed returns the number of partitions that are still to be handed over.
func (s *Sender) Owed() int { return s.owed }

// Resyncs returns how often a partition had to be sent anew.
func (s *Sender) Resyncs() uint64 { return s.resyncs }

// IsClosed reports whether the stream has ended.
func (s *Sender) IsClosed() bool { return s.closed }

// Unfinished returns the number of partitions whose snapshot is not sent yet.
func (s *Sender) Unfinished() (n int) {
	for _, f := range s.fed {
		if f.state < feedWhole {
			n++
		}
	}
	return n
}

// EachWhole calls f with every partition of which the receiver has, or is about to have,
// everything.
func (s *Sender) EachWhole(f func(p uint16)) {
	for p, have := range s.fed {
		if have.state == feedWhole {
			f(p)
		}
	}
}
