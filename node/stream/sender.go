package stream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/ring"
)

// Sender feeds one other node. Its methods may be called from any goroutine.
//
// Its goroutine owns the connection and the fields below "goroutine's". mu protects the rest and is
// never held across I/O. The machine's actions are run before mu is released, so that what the
// engine logs and what the machine knows change together.
type Sender struct {
	cfg    *Config
	all    *Senders
	to     ring.Member
	feed   engine.Receiver
	ctx    context.Context
	cancel context.CancelFunc

	kick   chan struct{} // room for one
	asleep atomic.Bool   // the goroutine waits for what the engine logs
	hungry atomic.Bool   // the goroutine waits for acknowledgements

	mu       sync.Mutex
	machine  *replica.Sender
	window   replica.Window
	charged  int64         // for the window, while it is wide
	relieved chan struct{} // closed when nothing is to be handed over any more; nil: nobody waits for that
	flushes  map[uint64]chan error
	asks     []ask // keys that the receiver lacks, up to maxAsks

	// owes has the partitions whose hand-over is under way. It changes with mu held, and loops read
	// it without.
	owes [ring.Partitions / 64]atomic.Uint64

	// goroutine's
	next    int // shard where the next round begins
	payload []byte
	lost    []uint16
	values  []outgoing // by shard
	sending int        // how many of them there are
	made    int        // batches
	pace    replica.Pace
	rest    replica.Rest
	worked  time.Duration     // on logging snapshots, in the present turn
	ahead   int               // bytes of snapshots that are logged and in no batch yet
	batched int               // bytes of batches, in the present turn
	fills   bool              // it has a snapshot to send
	anew    []uint16          // partitions with keys that are being sent anew
	sent    map[uint16]uint64 // by partition: up to which batch keys of it were sent anew
	due     time.Duration     // when the next heartbeat is, by the node's clock
	cut     time.Duration     // since when there is no connection

	moved atomic.Int64 // bytes of snapshots
	told  atomic.Int64 // when the receiver last said that its loops are strained, by the node's clock
}

// actLocked runs the actions of the machine.
func (s *Sender) actLocked() {
	e := s.cfg.Engine
	for _, a := range s.machine.Actions() {
		switch a.Do {
		case replica.SendFeed:
			e.Feed(a.Partition, s.feed, engine.Mark(a.Mark))
		case replica.SendUnfeed:
			e.Unfeed(a.Partition, s.feed, engine.Mark(a.Mark))
		case replica.SendMark:
			e.MarkFeed(a.Partition, s.feed, engine.Mark(a.Mark))
		case replica.SendReopen:
			e.CloseFeed(s.feed)
			e.OpenFeed(s.feed, s.woken)
		case replica.SendRouse:
			s.rouse()
		case replica.SendRelieved:
			if s.relieved != nil {
				close(s.relieved)
				s.relieved = nil
			}
		case replica.SendPassed:
			s.flushes[a.Barrier] <- a.Err
			delete(s.flushes, a.Barrier)
		case replica.SendOwed:
			word, bit := &s.owes[a.Partition/64], uint64(1)<<(a.Partition%64)
			if s.machine.Owes(a.Partition) {
				word.Or(bit)
			} else {
				word.And(^bit)
			}
		}
	}
}

// Sync has the receiver get a snapshot of p, whose data is of the epoch since, when p's turn comes,
// and every change from then on.
func (s *Sender) Sync(p uint16, since uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Sync(p, since)
	s.actLocked()
}

// Resume goes on feeding the copy of p that was handed over with the seal. No change after its
// return is missed.
func (s *Sender) Resume(p uint16, since, seal uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Resume(p, since, seal)
	s.actLocked()
}

// Stop ends the feeding of p.
func (s *Sender) Stop(p uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Stop(p)
	s.actLocked()
}

// Hand ends the feeding of p, which does not change any more, and marks its end with the seal.
// heir: the receiver owns p next, so the stream goes on until the receiver has all of p.
func (s *Sender) Hand(p uint16, seal uint64, heir bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Hand(p, seal, heir)
	s.actLocked()
}

// abandon ends the hand-over of p with the seal, if it is still under way. It is called on loops, and
// waits for mu in that case only: the goroutine may have mu while it moves a window of 4 MiB.
func (s *Sender) abandon(p uint16, seal uint64) {
	if s.owes[p/64].Load()>>(p%64)&1 == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Abandon(p, seal)
	s.actLocked()
}

// void begins a new generation. Only the goroutine calls it.
func (s *Sender) void() {
	generation := s.all.newGeneration() // not with mu held: that lock comes before this one
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window.Clear()
	s.dropValues()
	s.asks, s.anew, s.sent = nil, nil, nil
	s.machine.Void(generation)
	s.actLocked()
}

// Close ends the stream. It does not wait for the goroutine.
func (s *Sender) Close() {
	s.mu.Lock()
	s.machine.Close()
	s.mu.Unlock()
	s.cancel()
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.all.removeLocked(s)
}

// end releases everything that the sender has of the engine and of the list. The goroutine ends with
// it.
func (s *Sender) end() {
	s.dropValues()
	s.noteFilling(false)
	s.mu.Lock()
	s.cfg.Engine.CloseFeed(s.feed)
	s.machine.Closed()
	s.actLocked()
	s.window = replica.Window{}
	s.refundLocked()
	s.mu.Unlock()
	s.all.forget(s)
}

// woken is called by the engine, under a shard's lock, when there is something to collect.
func (s *Sender) woken() {
	if s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
		s.rouse()
	}
}

// rouse ends the goroutine's present wait, or the next one.
func (s *Sender) rouse() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// resyncs returns how often a partition had to be sent anew.
func (s *Sender) resyncs() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Resyncs()
}
