package stream

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/ring"
)

// Copies are those that this node keeps of partitions that other nodes own. Streams change them on
// the loops, tables elsewhere. The engine is called with mu held, and calls source.Admits with a
// shard's lock held: Admits does not take mu. The senders' locks come after mu.
type Copies struct {
	cfg      *Config
	senders  *Senders
	admitted [ring.Partitions]atomic.Pointer[source] // whose effects go into the copy; nil: nobody's

	mu      sync.Mutex
	machine *replica.Copies
	sources map[string]*source
}

// NewCopies returns the copies of a node, none yet. senders are the node's: they hand copies over.
// The caller does not change cfg any more.
func NewCopies(cfg *Config, senders *Senders) *Copies {
	return &Copies{cfg: cfg, senders: senders, machine: replica.NewCopies(nil), sources: make(map[string]*source)}
}

// source is an owner that feeds copies of this node's. It is the Taker of its stream.
type source struct {
	of       *Copies
	name     string
	lastWord atomic.Int64 // a time.Duration by the node's clock, which never steps

	mu       sync.Mutex // innermost
	refusals replica.Refusals
}

// sourceMemory is for how long a silent source that is no member is remembered.
const sourceMemory = 10 * time.Minute

// Source returns the Taker of the stream that the node of that name sends.
func (c *Copies) Source(name string) Taker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sourceLocked(name)
}

func (c *Copies) sourceLocked(name string) *source {
	s := c.sources[name]
	if s == nil {
		s = &source{of: c, name: name}
		s.lastWord.Store(int64(replica.Never))
		c.sources[name] = s
	}
	return s
}

// actLocked runs the actions of the machine.
func (c *Copies) actLocked() {
	for _, a := range c.machine.Actions() {
		switch a.Do {
		case replica.CopyAdmit:
			c.admitted[a.Partition].Store(c.sourceLocked(a.Source))
		case replica.CopyShut:
			c.admitted[a.Partition].Store(nil)
			c.cfg.Engine.DropUnfinished(a.Partition)
		case replica.CopyForget:
			c.Forget(a.Partition)
		case replica.CopySpare:
			kind := engine.PlainCopy
			if a.Spare {
				kind = engine.SpareCopy
			}
			c.cfg.Engine.SetCopy(a.Partition, kind)
		case replica.CopyRefuse:
			c.sourceLocked(a.Source).refuse(a.Partition)
		case replica.CopyAccept:
			c.sourceLocked(a.Source).take(a.Partition)
		case replica.CopyUnseal:
			for _, s := range c.senders.List() {
				s.abandon(a.Partition, a.Seal)
			}
		}
	}
}

// Forget empties a partition that is not served.
func (c *Copies) Forget(p uint16) {
	c.cfg.Engine.Forget(p)
	c.cfg.Engine.SetCopy(p, engine.NoCopy)
}

// Own makes claimed partitions this node's own: from now on keys expire in them. Whoever has an equal
// copy is fed on already.
func (c *Copies) Own(claims map[uint16]replica.Claim) {
	for p := range claims {
		c.cfg.Engine.SetCopy(p, engine.NoCopy)
	}
}

// Admits implements engine.Taker: it reports whether the source's effects on a partition go into
// this node's copy.
func (s *source) Admits(p uint16) bool {
	if s.of.admitted[p].Load() == s {
		return true
	}
	s.refuse(p)
	return false
}

// Marked implements engine.Taker. The engine holds no lock.
func (s *source) Marked(p uint16, m engine.Mark) {
	c := s.of
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Marked(s.name, p, replica.Mark(m), c.cfg.Monotonic())
	c.actLocked()
}

// Heard notes that the source has said something.
func (s *source) Heard() { s.lastWord.Store(int64(s.of.cfg.Monotonic())) }

// Void gives up the copies that the source feeds.
func (s *source) Void() {
	s.mu.Lock()
	s.refusals.Void()
	s.mu.Unlock()
	c := s.of
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Void(s.name)
	c.actLocked()
}

func (s *source) refuse(p uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals.Refuse(p)
}

func (s *source) take(p uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals.Accept(p)
}

// Reopened has the source told its refusals again.
func (s *source) Reopened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals.Reopened()
}

// TakeRefused returns the partitions that the source is to be told of.
func (s *source) TakeRefused() []uint16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusals.Tell(nil)
}

// Report returns which copies are in sync, and what is served, under the present view. present is
// called under the lock of the copies: no older view is reported than the one by which they are
// judged.
func (c *Copies) Report(present func() *ownership.View) *ring.Report {
	r := new(ring.Report)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Report(r, present(), c.cfg.Monotonic(), func(source string) time.Duration {
		if s := c.sources[source]; s != nil {
			return time.Duration(s.lastWord.Load())
		}
		return replica.Never
	})
	return r
}

// Settle has copies judged by v from now on.
func (c *Copies) Settle(v *ownership.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Settle(v)
}

// Ask tells the owners of which copies this node has nothing, though v has it keep them.
func (c *Copies) Ask(v *ownership.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Ask(v)
	c.actLocked()
}

// Claim makes the copies of what v has gained this node's own. The caller passes the barrier before
// it serves them.
func (c *Copies) Claim(v *ownership.View, acknowledged func(source string, p uint16) bool) (claims map[uint16]replica.Claim, lost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	claims, lost = c.machine.Claim(v, acknowledged)
	c.actLocked()
	return claims, lost
}

// Review drops the copies that v leaves no use for. Those with a seal among spared are still being
// sent. alive are the nodes that gossip calls alive: the others' sources are forgotten in time.
func (c *Copies) Review(v *ownership.View, away bool, spared map[uint64]bool, alive []ring.Member) {
	present := make(map[string]bool)
	for _, m := range slices.Concat(v.Table.Nodes, alive) {
		present[m.Name()] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Review(v, away, present, spared)
	c.actLocked()
	forgotten := int64(c.cfg.Monotonic() - sourceMemory)
	for name, s := range c.sources {
		if !present[name] && s.lastWord.Load() < forgotten { // its stream may come to life again, and has this one
			delete(c.sources, name)
		}
	}
}

// Keep turns partitions that this node has just lost into copies with a seal.
func (c *Copies) Keep(h *replica.HandOver) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Keep(c.cfg.Name, h, c.cfg.Monotonic())
	c.actLocked()
}

// Unkeep drops copies that were only kept to be sent.
func (c *Copies) Unkeep(h *replica.HandOver) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Unkeep(h)
	c.actLocked()
}

// Clear forgets all copies, of an engine that is about to be emptied.
func (c *Copies) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Clear()
	c.actLocked()
}
