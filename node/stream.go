package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// A stream carries what this node's partitions hold to another node that has copies of them: snapshots, and every change since,
// in the order of the shards' locks.
//
//	commands ─▶ engine's logs ─▶ sender.round ─▶ window of batches ─▶ connection ─▶ takeEffects ─▶ engine.Apply
//	 (loops)    one a shard       (goroutine)    kept until            DUNLIN        (the receiver's loop)
//	                  ▲                          acknowledged          EFFECTS
//	   sender.fill ───╯ snapshots, partition by partition
//
// Batches are numbered. The receiver applies each once, in order, and says up to where it has come; after a broken connection
// the sender goes on there. What cannot be continued begins anew: a partition whose log has overflowed, with a new snapshot; a
// stream of which something is lost, with a new generation, for which the receiver gives up all that it has from this sender.
//
// No command waits for a stream. What a slow receiver costs is bounded: its logs by the engine, its batches by the window.

// feedState is how far the copy of a partition is, as the sender sees it.
type feedState uint8

const (
	feedWaiting feedState = iota // for its snapshot
	feedFilled                   // the snapshot is on its way
	feedWhole                    // the snapshot was sent, or none was needed
	feedHanded                   // its new owner was told that this is all, and may not have heard it
)

// fedPartition is one that a sender is to feed.
type fedPartition struct {
	number uint16
	state  feedState
	since  uint64 // of the data; 0: as the table says
	cursor uint64 // of the snapshot
	logged uint64 // the last Collect before all of the snapshot was logged
	begun  uint64 // the last batch before this feed began
	seal   uint64 // not 0: it does not change any more, and is handed over when it is whole
	tries  int    // how often the receiver has refused it

	// where it waits (stream_queue.go)
	place     uint64    // among the others; 0: it has not waited yet
	notBefore time.Time // is its turn, since it was refused
}

// anew is the partition before its snapshot.
func (f *fedPartition) anew() *fedPartition {
	return &fedPartition{number: f.number, since: f.since, seal: f.seal, tries: f.tries, place: f.place}
}

// sender feeds one other node. Its goroutine has the connection and all fields below goroutine's; the rest is protected by mu,
// which is never held across I/O.
type sender struct {
	node   *Node
	to     ring.Member
	feed   engine.Receiver
	ctx    context.Context
	cancel context.CancelFunc

	kick   chan struct{} // room for one
	asleep atomic.Bool   // the goroutine waits for what the engine logs
	hungry atomic.Bool   // the goroutine waits for acknowledgements

	mu         sync.Mutex
	closed     bool
	generation uint64
	fed        map[uint16]*fedPartition
	queue      []*fedPartition // those that wait, by turn, and others that did
	refused    []*fedPartition // the same, whose time has not yet come, by that
	places     uint64          // the last one in the queue
	filling    *fedPartition
	owed       int           // partitions with a seal
	relieved   chan struct{} // closed when there are none any more
	barriers   []*barrier    // in the order in which they were raised
	window     window

	// goroutine's
	next    int      // shard where the next round begins
	empty   []uint64 // by shard: the last Collect that left nothing there
	payload []byte
	lost    []uint16
	values  []outgoing // by shard
	sending int        // how many of them there are
	pace    bucket
	last    time.Time // when the last batch was made
	cut     time.Time // since when there is no connection

	tick    atomic.Uint64 // Collects so far, with the one under way
	moved   atomic.Int64  // bytes of snapshots
	resyncs atomic.Uint64 // partitions that had to be sent anew
}

var (
	errSenderClosed = errors.New("stream is closed")
	errStreamVoid   = errors.New("stream has lost changes")
)

// senders are those of a node.
type senders struct {
	mu          sync.Mutex
	to          map[string]*sender
	taken       [engine.MaxReceivers]bool
	generations uint64

	// of senders that are closed
	moved   int64
	resyncs uint64
}

// sender returns the one that feeds m. It opens it if need be.
func (n *Node) sender(m ring.Member) *sender {
	all := &n.senders
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := all.to[m.Name()]; s != nil {
		return s
	}
	s := &sender{node: n, to: m, kick: make(chan struct{}, 1), fed: make(map[uint16]*fedPartition), closed: true}
	s.ctx, s.cancel = context.WithCancel(n.ctx)
	number, ok := all.number()
	if n.ctx.Err() != nil || !ok {
		s.cancel()
		n.log.Warn("cannot open a stream", "to", m.Name(), "closing", n.ctx.Err() != nil)
		return s
	}
	all.generations++
	s.closed, s.feed, s.generation = false, number, all.generations
	s.empty, s.values = make([]uint64, n.engine.Shards()), make([]outgoing, n.engine.Shards())
	s.payload = make([]byte, 0, payloadRoom)
	s.pace.rate = float64(n.cfg.MoveRate)
	s.cut = time.Now()
	n.engine.OpenFeed(number, s.woken)
	if all.to == nil {
		all.to = make(map[string]*sender)
	}
	all.to[m.Name()] = s
	n.goJob(s.run)
	return s
}

// number takes a number for a receiver.
func (all *senders) number() (engine.Receiver, bool) {
	for i, taken := range &all.taken {
		if !taken {
			all.taken[i] = true
			return engine.Receiver(i), true
		}
	}
	return 0, false
}

// newGeneration is one that no receiver knows.
func (all *senders) newGeneration() uint64 {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.generations++
	return all.generations
}

// forget ends a sender's membership.
func (all *senders) forget(s *sender) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.taken[s.feed] = false
	all.removeLocked(s)
}

// removeLocked takes a sender out of the list, and keeps what it has counted.
func (all *senders) removeLocked(s *sender) {
	if all.to[s.to.Name()] == s {
		delete(all.to, s.to.Name())
		all.moved += s.moved.Load()
		all.resyncs += s.resyncs.Load()
	}
}

// sync has the receiver get a snapshot of p, when it is its turn, and the changes from then on.
func (s *sender) sync(p uint16, since uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.fed[p]
	if s.closed || f != nil && f.since == since && f.seal == 0 && (f.state == feedWaiting || f.state == feedFilled) {
		return
	}
	again := &fedPartition{number: p, since: since}
	if f == nil {
		s.enqueueLocked(again)
		return
	}
	s.againLocked(f, again)
}

// againLocked has a partition that was fed wait for its turn again. That may be long, so the receiver is told at once that its
// copy is no copy any more.
func (s *sender) againLocked(f, again *fedPartition) {
	if f.state == feedWhole || f.state == feedFilled {
		s.resyncs.Add(1)
		s.node.engine.Feed(f.number, s.feed, s.beginning(again))
	}
	s.endLocked(f.number, noMark)
	s.enqueueLocked(again)
}

// resume goes on feeding a copy of p that was handed over with the seal. From the return on no change is missed.
func (s *sender) resume(p uint16, seal uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.endLocked(p, noMark)
	s.putLocked(&fedPartition{number: p, state: feedWhole, begun: s.window.seq})
	s.node.engine.Feed(p, s.feed, engine.Mark{Kind: markContinue, Arg: seal})
}

// stop ends the feeding of p.
func (s *sender) stop(p uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(p, noMark)
}

// hand ends the feeding of p, which does not change any more, with the word that the copy is what the next owner begins with. If
// the receiver is that owner and its copy is not yet whole it becomes that first: a partition may have fallen out since it was
// reported in sync.
func (s *sender) hand(p uint16, seal uint64, heir bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.fed[p]
	switch {
	case s.closed || f == nil:
	case !heir && f.state == feedWhole:
		s.endLocked(p, engine.Mark{Kind: markHanded, Arg: seal})
	case !heir:
		s.endLocked(p, noMark)
	case f.state == feedWaiting:
		again := f.anew() // its place is before those that are only to be fed
		again.seal, again.tries = seal, 0
		s.enqueueLocked(again)
	default:
		f.seal, f.tries = seal, 0
		s.owe(1)
		if f.state == feedWhole {
			s.sayLocked(f)
		}
	}
}

// sayLocked logs the word that hands f over. It may be lost yet with its log, or refused: so f stays until it has come.
func (s *sender) sayLocked(f *fedPartition) {
	s.node.engine.Unfeed(f.number, s.feed, engine.Mark{Kind: markHanded, Arg: f.seal})
	f.state = feedHanded
	s.raiseLocked(&barrier{word: f})
}

// endLocked ends the feeding of p with the mark.
func (s *sender) endLocked(p uint16, mark engine.Mark) {
	if s.fed[p] == nil || s.closed {
		return
	}
	s.removeLocked(p)
	s.node.engine.Unfeed(p, s.feed, mark)
}

// putLocked has f be what is known of its partition.
func (s *sender) putLocked(f *fedPartition) {
	s.removeLocked(f.number)
	s.fed[f.number] = f
	if f.seal != 0 {
		s.owe(1)
	}
}

func (s *sender) removeLocked(p uint16) {
	f := s.fed[p]
	if f == nil {
		return
	}
	delete(s.fed, p)
	if s.filling == f {
		s.filling = nil
	}
	if f.seal != 0 {
		s.owe(-1)
	}
}

// owe counts partitions with a seal.
func (s *sender) owe(n int) {
	if s.owed == 0 {
		s.relieved = make(chan struct{})
	}
	if s.owed += n; s.owed == 0 {
		close(s.relieved)
	}
}

// close ends the stream. It does not wait for that.
func (s *sender) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	all := &s.node.senders
	all.mu.Lock()
	defer all.mu.Unlock()
	all.removeLocked(s)
}

// woken is called by the engine, under a shard's lock, when there is something to collect.
func (s *sender) woken() {
	if s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
		s.rouse()
	}
}

// rouse ends the goroutine's present wait, or the next one.
func (s *sender) rouse() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// run is the goroutine: one connection after the other.
func (s *sender) run() {
	n := s.node
	defer s.end()
	for failures := 0; s.ctx.Err() == nil; failures++ {
		begun := time.Now()
		err := s.talk()
		if s.ctx.Err() != nil {
			return
		}
		if s.cut.After(begun) {
			failures = 0
		}
		if failures == 0 || failures == 50 {
			n.log.Warn("stream is interrupted", "to", s.to.Name(), "error", err)
		}
		if time.Since(s.cut) > awayLimit {
			s.mu.Lock()
			s.voidLocked()
			s.mu.Unlock()
			s.cut = time.Now()
		}
		s.pause(retryPeriod)
	}
}

// end gives back what the sender has.
func (s *sender) end() {
	s.dropValues()
	s.mu.Lock()
	s.closed = true
	s.node.engine.CloseFeed(s.feed)
	s.breakLocked(errSenderClosed)
	s.window = window{}
	s.mu.Unlock()
	s.node.senders.forget(s)
}

// pause waits for d, or until the sender ends.
func (s *sender) pause(d time.Duration) {
	select {
	case <-s.ctx.Done():
	case <-time.After(d):
	}
}

// voidLocked begins a new generation: nothing that was sent counts, and all is to be sent again. Only the goroutine calls it.
func (s *sender) voidLocked() {
	n := s.node
	s.generation = n.senders.newGeneration()
	s.window.clear()
	s.dropValues()
	s.breakLocked(errStreamVoid)
	if s.closed {
		return
	}
	n.engine.CloseFeed(s.feed)
	n.engine.OpenFeed(s.feed, s.woken)
	s.filling, s.refused, s.queue = nil, nil, s.queue[:0]
	for _, f := range slices.Collect(maps.Values(s.fed)) {
		if f.state == feedWhole || f.state == feedFilled {
			s.resyncs.Add(1)
		}
		s.enqueueLocked(f.anew())
	}
}
