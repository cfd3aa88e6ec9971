package stream

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

// Senders are those of a node. They may be used from any goroutine.
type Senders struct {
	cfg     *Config
	filling atomic.Int64 // senders that have a snapshot to send
	haste   atomic.Pointer[haste]

	mu          sync.Mutex // before any sender's
	to          map[string]*Sender
	list        atomic.Pointer[[]*Sender] // those of to; changes with it, and is read without mu
	taken       [engine.MaxReceivers]bool
	generations uint64
	closed      bool

	// of senders that are closed
	moved   int64
	resyncs uint64
}

// haste is about a node that leaves.
type haste struct{ begun, deadline time.Duration }

// Hurry has snapshots rest less and less from now on: what has not moved within d is lost.
func (all *Senders) Hurry(d time.Duration) {
	now := all.cfg.Monotonic()
	all.haste.Store(&haste{now, now + d})
}

// NewSenders returns the senders of a node, none yet. The caller does not change cfg any more.
func NewSenders(cfg *Config) *Senders {
	all := &Senders{cfg: cfg, to: make(map[string]*Sender)}
	all.listLocked()
	return all
}

// To returns the sender that feeds m, and opens one if there is none. A node that is about to end,
// or that feeds engine.MaxReceivers others already, gets a sender that is closed.
func (all *Senders) To(m ring.Member) *Sender {
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := all.to[m.Name()]; s != nil {
		return s
	}
	cfg := all.cfg
	s := &Sender{cfg: cfg, all: all, to: m, kick: make(chan struct{}, 1), flushes: make(map[uint64]chan error)}
	s.ctx, s.cancel = context.WithCancel(cfg.Context)
	all.generations++
	s.machine = replica.NewSender(all.generations, cfg.Engine.Shards(), nil)
	number, ok := all.number()
	if all.closed || cfg.Context.Err() != nil || !ok {
		s.cancel()
		s.machine.Close()
		cfg.Log.Warn("cannot open a stream", "to", m.Name(), "closing", cfg.Context.Err() != nil)
		return s
	}
	all.taken[number] = true
	s.feed = number
	s.values = make([]outgoing, cfg.Engine.Shards())
	s.payload = make([]byte, 0, replica.PayloadRoom)
	s.pace, s.rest = replica.NewPace(cfg.MoveRate), replica.NewRest()
	s.told.Store(int64(replica.Never))
	s.cut = cfg.Monotonic()
	cfg.Engine.OpenFeed(number, s.woken)
	all.to[m.Name()] = s
	all.listLocked()
	cfg.Go(s.run)
	return s
}

// number returns a number for a receiver that no other one has.
func (all *Senders) number() (engine.Receiver, bool) {
	for i, taken := range &all.taken {
		if !taken {
			return engine.Receiver(i), true
		}
	}
	return 0, false
}

// newGeneration returns a number that no receiver knows.
func (all *Senders) newGeneration() uint64 {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.generations++
	return all.generations
}

// forget ends a sender's membership.
func (all *Senders) forget(s *Sender) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.taken[s.feed] = false
	all.removeLocked(s)
}

// removeLocked takes a sender out of the list, and keeps what it has counted.
func (all *Senders) removeLocked(s *Sender) {
	if all.to[s.to.Name()] == s {
		delete(all.to, s.to.Name())
		all.listLocked()
		all.moved += s.moved.Load()
		all.resyncs += s.resyncs()
	}
}

// Close forbids new senders: after its return, none starts a goroutine. Those that there are end
// with the node's context.
func (all *Senders) Close() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.closed = true
}

// End ends all senders, and opens no other.
func (all *Senders) End() {
	all.Close()
	for _, s := range all.List() {
		s.Close()
	}
}

// List returns the senders that are open. It takes no lock. The caller must not change the result.
func (all *Senders) List() []*Sender { return *all.list.Load() }

func (all *Senders) listLocked() {
	list := slices.Collect(maps.Values(all.to))
	all.list.Store(&list)
}

// Stats is what a node has done to feed others.
type Stats struct {
	Receivers int           // nodes that are fed, now
	Waiting   int           // partitions that are not wholly sent, summed over the receivers
	LagBytes  int64         // logged, and not acknowledged
	Lag       time.Duration // for how long the oldest batch waits for its acknowledgement
	Moved     int64         // bytes of snapshots, since the start
	Resyncs   uint64        // partitions that had to be sent anew, since the start
}

// Stats sums over all senders, closed ones included where since the start is counted.
func (all *Senders) Stats() (sum Stats) {
	all.mu.Lock()
	sum.Moved, sum.Resyncs = all.moved, all.resyncs
	list := all.List()
	all.mu.Unlock()
	for _, s := range list {
		s.addStats(&sum)
	}
	return sum
}

// addStats adds what one sender has done.
func (s *Sender) addStats(sum *Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum.Moved += s.moved.Load()
	sum.Resyncs += s.machine.Resyncs()
	if s.machine.IsClosed() {
		return
	}
	sum.Receivers++
	sum.Waiting += s.machine.Unfinished()
	sum.LagBytes += int64(s.window.Bytes()) + s.cfg.Engine.Backlog(s.feed)
	if at, ok := s.window.Oldest(); ok {
		sum.Lag = max(sum.Lag, s.cfg.Monotonic()-at)
	}
}

// Progress is how far a sender is. Only tests read it: those of package node, too, which an
// export_test.go of this package does not reach.
type Progress struct {
	Made       uint64 // the number of its last batch
	Waiting    int    // partitions whose snapshot has not begun
	Unfinished int    // partitions whose snapshot is not sent yet
	Owed       int    // partitions that are still to be handed over
	Logged     int64  // bytes that are logged and in no batch yet
	Moved      int64  // bytes of snapshots
	Resyncs    uint64 // partitions that had to be sent anew
	Closed     bool
}

// Progress returns how far the sender is.
func (s *Sender) Progress() Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machine
	at := Progress{
		Made: m.Made(), Waiting: m.Waiting(), Unfinished: m.Unfinished(), Owed: m.Owed(),
		Moved: s.moved.Load(), Resyncs: m.Resyncs(), Closed: m.IsClosed(),
	}
	if !at.Closed { // or else another sender may have its number
		at.Logged = s.cfg.Engine.Backlog(s.feed)
	}
	return at
}
