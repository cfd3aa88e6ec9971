package node

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/ring"
)

// A stream carries what this node's partitions hold to another node that keeps copies of them:
// snapshots, and every change since, in the order of the shards' locks. What is sent when, and what
// is sent again, package replica decides.
//
//	commands ─▶ engine's logs ─▶ sender.round ─▶ window of batches ─▶ connection ─▶ takeEffects ─▶ engine.Apply
//	 (loops)    one a shard       (goroutine)    kept until            DUNLIN        (the receiver's loop)
//	                  ▲                          acknowledged          EFFECTS
//	   sender.fill ───╯ snapshots, partition by partition
//
// Batches are numbered. The receiver applies each once, in order, and says how far it has come.
// After a broken connection the sender goes on from there. What cannot be continued begins anew: a
// partition whose log has overflowed, with a new snapshot; a stream of which something is lost, with
// a new generation, for which the receiver drops everything that it has from this sender.
//
// No command waits for a stream. What a slow receiver costs is bounded: its logs by the engine, its
// batches by the window.

// sender feeds one other node. Its goroutine owns the connection and the fields below "goroutine's".
// mu protects the rest and is never held across I/O. The machine's actions are run before mu is
// released, so that what the engine logs and what the machine knows change together.
type sender struct {
	node   *Node
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
	relieved chan struct{} // closed when nothing is to be handed over any more; nil: nobody waits for that
	flushes  map[uint64]chan error

	// goroutine's
	next    int // shard where the next round begins
	payload []byte
	lost    []uint16
	values  []outgoing // by shard
	sending int        // how many of them there are
	made    int        // batches
	pace    replica.Pace
	last    time.Duration // when the last batch was made, by the node's clock
	cut     time.Duration // since when there is no connection

	moved atomic.Int64 // bytes of snapshots
}

// senders are those of a node.
type senders struct {
	mu          sync.Mutex // before any sender's
	to          map[string]*sender
	taken       [engine.MaxReceivers]bool
	generations uint64

	// of senders that are closed
	moved   int64
	resyncs uint64
}

// sender returns the sender that feeds m. It opens one if need be.
func (n *Node) sender(m ring.Member) *sender {
	all := &n.senders
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := all.to[m.Name()]; s != nil {
		return s
	}
	s := &sender{node: n, to: m, kick: make(chan struct{}, 1), flushes: make(map[uint64]chan error)}
	s.ctx, s.cancel = context.WithCancel(n.ctx)
	all.generations++
	s.machine = replica.NewSender(all.generations, n.engine.Shards(), nil)
	number, ok := all.number()
	if n.ctx.Err() != nil || !ok {
		s.cancel()
		s.machine.Close()
		n.log.Warn("cannot open a stream", "to", m.Name(), "closing", n.ctx.Err() != nil)
		return s
	}
	s.feed = number
	s.values = make([]outgoing, n.engine.Shards())
	s.payload = make([]byte, 0, replica.PayloadRoom)
	s.pace = replica.NewPace(n.cfg.MoveRate)
	s.cut = n.monotonic()
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

// newGeneration returns a number that no receiver knows.
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
		all.resyncs += s.resyncs()
	}
}

// actLocked does what the machine wants done.
func (s *sender) actLocked() {
	e := s.node.engine
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
		}
	}
}

// The events that tables bring about: see replica.Sender.

func (s *sender) sync(p uint16, since uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Sync(p, since)
	s.actLocked()
}

func (s *sender) resume(p uint16, since, seal uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Resume(p, since, seal)
	s.actLocked()
}

func (s *sender) stop(p uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Stop(p)
	s.actLocked()
}

func (s *sender) hand(p uint16, seal uint64, heir bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Hand(p, seal, heir)
	s.actLocked()
}

func (s *sender) abandon(p uint16, seal uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Abandon(p, seal)
	s.actLocked()
}

// void begins a new generation. Only the goroutine calls it.
func (s *sender) void() {
	generation := s.node.senders.newGeneration() // not with mu held: that lock comes before this one
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window.Clear()
	s.dropValues()
	s.machine.Void(generation)
	s.actLocked()
}

// close ends the stream. It does not wait for that.
func (s *sender) close() {
	s.mu.Lock()
	s.machine.Close()
	s.mu.Unlock()
	s.cancel()
	all := &s.node.senders
	all.mu.Lock()
	defer all.mu.Unlock()
	all.removeLocked(s)
}

// end gives back what the sender has.
func (s *sender) end() {
	s.dropValues()
	s.mu.Lock()
	s.node.engine.CloseFeed(s.feed)
	s.machine.Closed()
	s.actLocked()
	s.window = replica.Window{}
	s.mu.Unlock()
	s.node.senders.forget(s)
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

// resyncs returns how often a partition had to be sent anew.
func (s *sender) resyncs() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Resyncs()
}

// StreamStats is what a node has done to feed others.
type StreamStats struct {
	Receivers int           // nodes that are fed, now
	Waiting   int           // partitions that are not wholly sent, summed over the receivers
	LagBytes  int64         // logged, and not acknowledged
	Lag       time.Duration // for how long the oldest batch waits for its acknowledgement
	Moved     int64         // bytes of snapshots, since the start
	Resyncs   uint64        // partitions that had to be sent anew, since the start
}

func (all *senders) stats() (sum StreamStats) {
	all.mu.Lock()
	sum.Moved, sum.Resyncs = all.moved, all.resyncs
	list := slices.Collect(maps.Values(all.to))
	all.mu.Unlock()
	for _, s := range list {
		s.report(&sum)
	}
	return sum
}

// report adds what one sender has done.
func (s *sender) report(sum *StreamStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum.Moved += s.moved.Load()
	sum.Resyncs += s.machine.Resyncs()
	if s.machine.IsClosed() {
		return
	}
	sum.Receivers++
	sum.Waiting += s.machine.Unfinished()
	sum.LagBytes += int64(s.window.Bytes()) + s.node.engine.Backlog(s.feed)
	if at, ok := s.window.Oldest(); ok {
		sum.Lag = max(sum.Lag, s.node.monotonic()-at)
	}
}
