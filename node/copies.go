package node

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

// copies are those that this node keeps of partitions of others. Streams change them on the loops,
// tables elsewhere. The engine is called with mu held, and calls copySource.Admits with a shard's
// lock held: Admits does not take mu. The senders' locks come after mu.
type copies struct {
	node     *Node
	admitted [ring.Partitions]atomic.Pointer[copySource] // whose effects go into the copy; nil: nobody's

	mu      sync.Mutex
	machine *replica.Copies
	sources map[string]*copySource
}

func newCopies(n *Node) *copies {
	return &copies{node: n, machine: replica.NewCopies(nil), sources: make(map[string]*copySource)}
}

// copySource is an owner that feeds copies of this node's, as the taker of its stream.
type copySource struct {
	of       *copies
	name     string
	lastWord atomic.Int64 // a time.Duration by the node's clock, which never steps

	mu       sync.Mutex // innermost
	refusals replica.Refusals
}

// sourceMemory is for how long a silent source that is no member is remembered.
const sourceMemory = 10 * time.Minute

// source returns the taker of a source's stream.
func (c *copies) source(name string) *copySource {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sourceLocked(name)
}

func (c *copies) sourceLocked(name string) *copySource {
	s := c.sources[name]
	if s == nil {
		s = &copySource{of: c, name: name}
		s.lastWord.Store(int64(replica.Never))
		c.sources[name] = s
	}
	return s
}

// actLocked does what the machine wants done.
func (c *copies) actLocked() {
	for _, a := range c.machine.Actions() {
		switch a.Do {
		case replica.CopyAdmit:
			c.admitted[a.Partition].Store(c.sourceLocked(a.Source))
		case replica.CopyShut:
			c.admitted[a.Partition].Store(nil)
		case replica.CopyForget:
			c.node.forgetCopy(a.Partition)
		case replica.CopySpare:
			c.node.engine.SetCopy(a.Partition, a.Spare)
		case replica.CopyRefuse:
			c.sourceLocked(a.Source).refuse(a.Partition)
		case replica.CopyTake:
			c.sourceLocked(a.Source).take(a.Partition)
		case replica.CopyUnseal:
			for _, s := range c.node.senders.list() {
				s.abandon(a.Partition, a.Seal)
			}
		}
	}
}

// forgetCopy empties a partition that is not served.
func (n *Node) forgetCopy(p uint16) {
	n.engine.Forget(p)
	n.engine.SetCopy(p, false)
}

// Admits implements engine.Taker: whether the source's effects on a partition go into this node's
// copy.
func (s *copySource) Admits(p uint16) bool {
	if s.of.admitted[p].Load() == s {
		return true
	}
	s.refuse(p)
	return false
}

// Marked implements engine.Taker. The engine holds no lock.
func (s *copySource) Marked(p uint16, m engine.Mark) {
	c := s.of
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Marked(s.name, p, replica.Mark(m), c.node.monotonic())
	c.actLocked()
}

// heard notes that the source has said something.
func (s *copySource) heard() { s.lastWord.Store(int64(s.of.node.monotonic())) }

// void gives up the copies that the source feeds.
func (s *copySource) void() {
	s.mu.Lock()
	s.refusals.Void()
	s.mu.Unlock()
	c := s.of
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Void(s.name)
	c.actLocked()
}

func (s *copySource) refuse(p uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals.Refuse(p)
}

func (s *copySource) take(p uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals.Take(p)
}

// reopened has the source told its refusals again.
func (s *copySource) reopened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals.Reopened()
}

// takeRefused returns the partitions that the source is to be told of.
func (s *copySource) takeRefused() []uint16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusals.Tell(nil)
}

// report returns which copies are in sync, and what is served, under the present table.
func (n *Node) report() *ring.Report {
	c, r := n.copies, new(ring.Report)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Report(r, n.view.Load(), n.monotonic(), func(source string) time.Duration {
		if s := c.sources[source]; s != nil {
			return time.Duration(s.lastWord.Load())
		}
		return replica.Never
	})
	if n.fenced.Load() {
		return &ring.Report{Version: r.Version}
	}
	return r
}

// settle has copies judged by v from now on.
func (n *Node) settle(v *ownership.View) {
	c := n.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Settle(v)
}

// askForCopies tells the owners of which copies this node has nothing, though v has it keep them.
func (n *Node) askForCopies(v *ownership.View) {
	c := n.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Ask(v)
	c.actLocked()
}

// claim makes the copies of what v has gained this node's own. The caller passes the barrier before
// it serves them.
func (n *Node) claim(v *ownership.View, acknowledged func(source string) bool) (claims map[uint16]replica.Claim, lost int) {
	c := n.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	claims, lost = c.machine.Claim(v, acknowledged)
	c.actLocked()
	return claims, lost
}

// review drops the copies that v leaves no use for. Those with a seal among spared are still being
// sent.
func (n *Node) review(v *ownership.View, away bool, spared map[uint64]bool) {
	present := make(map[string]bool)
	for _, m := range slices.Concat(v.Table.Nodes, n.aliveNodes()) {
		present[m.Name()] = true
	}
	c := n.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Review(v, away, present, spared)
	c.actLocked()
	forgotten := int64(n.monotonic() - sourceMemory)
	for name, s := range c.sources {
		if !present[name] && s.lastWord.Load() < forgotten { // its stream may come to life again, and has this one
			delete(c.sources, name)
		}
	}
}

// keep turns partitions that this node has just lost into copies with a seal.
func (n *Node) keep(h *replica.HandOver) {
	c := n.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Keep(n.name(), h, n.monotonic())
	c.actLocked()
}

// unkeep drops copies that were only kept to be sent.
func (n *Node) unkeep(h *replica.HandOver) {
	c := n.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Unkeep(h)
	c.actLocked()
}

// clear forgets all copies, of an engine that is about to be emptied.
func (c *copies) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Clear()
	c.actLocked()
}
