package node

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// A copy is the data of a partition that another node owns: of its follower, of the node that it is to move to, and, for a
// while, of its owner before. The owner feeds it by a stream, whose marks say how far it is:
//
//	            begin            synced            handed
//	  nothing ─────────▶ filling ───────▶ synced ──────────▶ handed ──▶ ours, or the next owner's:
//	     ▲                  ╰──────── dropped ◀──╯               continue ──▶ synced
//	     ╰── the stream breaks for good, or the table gives us no part in the partition
//
// An owner that loses a partition ends its stream with a number that it has drawn for this occasion, the seal. Copies with
// one seal are equal, and equal to what the next owner begins with: it goes on feeding them without a new snapshot.

type copyState uint8

const (
	noCopy  copyState = iota
	filling           // what the owner had is on its way
	synced            // all that the owner has, as far as it was heard
	handed            // all that an owner has had
)

// copyInfo is what is known of the copy of one partition.
type copyInfo struct {
	state  copyState
	source *copySource // the owner that feeds it, or has
	since  uint64      // of its data
	seal   uint64      // if it is handed
	sealed time.Time
}

// copies are those of a node. Streams change them on the loops, tables elsewhere. The engine is called with mu held, and calls
// copySource.Admits with locks of its own: that takes no mu.
type copies struct {
	mu      sync.Mutex
	of      [ring.Partitions]copyInfo
	fed     [ring.Partitions]atomic.Pointer[copySource] // who feeds the copy, while it is filling or synced
	sources map[string]*copySource
}

// copySource is an owner that feeds copies of ours, as the taker of its stream.
type copySource struct {
	node     *Node
	name     string
	lastWord atomic.Int64 // unix nanoseconds

	mu      sync.Mutex        // innermost
	refused ring.PartitionSet // of these it feeds no copy that we have
	told    ring.PartitionSet // it was told so of these, which it may not have heard, and we have taken none of them since
}

// copyPatience is for how long a source may be silent before its copies no longer count as in sync. It must be longer than it
// takes to declare the source dead and to plan its succession, for then they are wanted; what the source did in that time
// unheard is what is lost, so it must not be long.
const copyPatience = 4 * time.Second

// sourceMemory is for how long a silent source that is no member is remembered.
const sourceMemory = 10 * time.Minute

// copiesOf returns the taker of a source's stream.
func (n *Node) copiesOf(source string) *copySource {
	c := &n.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sources == nil {
		c.sources = make(map[string]*copySource)
	}
	s := c.sources[source]
	if s == nil {
		s = &copySource{node: n, name: source}
		c.sources[source] = s
	}
	return s
}

// set changes what is known of a copy. The caller holds mu.
func (c *copies) set(p uint16, info copyInfo) {
	c.of[p] = info
	if info.state == filling || info.state == synced {
		c.fed[p].Store(info.source)
		return
	}
	c.fed[p].Store(nil)
}

// Admits implements engine.Taker: whether the source's effects on a partition go into our copy.
func (s *copySource) Admits(p uint16) bool {
	if s.node.copies.fed[p].Load() == s {
		return true
	}
	s.refuse(p)
	return false
}

// Marked implements engine.Taker. The engine holds no lock.
func (s *copySource) Marked(p uint16, m engine.Mark) {
	n, c := s.node, &s.node.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	v, info := n.settled.Load(), c.of[p]
	fed := info.source == s && (info.state == filling || info.state == synced)
	switch m.Kind {
	case markBegin:
		if !v.CopiesFrom(p, s.name) {
			if fed {
				n.forgetCopy(p) // something is missing, and does not come
				c.set(p, copyInfo{})
			}
			s.refuse(p)
			return
		}
		n.forgetCopy(p)
		n.engine.SetCopy(p, v.Spares(p))
		s.take(p)
		info = copyInfo{state: filling, source: s, since: m.Arg}
	case markContinue:
		if info.state != handed || info.seal != m.Arg || !v.CopiesFrom(p, s.name) {
			s.refuse(p)
			return
		}
		n.engine.SetCopy(p, v.Spares(p))
		s.take(p)
		info.state, info.source = synced, s
	case markSynced:
		if !fed {
			s.refuse(p)
			return
		}
		info.state = synced
	case markHanded:
		if !fed || info.state != synced {
			s.refuse(p)
			return
		}
		info.state, info.seal, info.sealed = handed, m.Arg, time.Now()
	}
	c.set(p, info)
}

// refuse notes that the source feeds a copy that we do not have.
func (s *copySource) refuse(p uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused.Add(p)
}

// take forgets that p was refused.
func (s *copySource) take(p uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused.Remove(p)
	s.told.Remove(p)
}

// takeRefused returns the partitions refused since the last call.
func (s *copySource) takeRefused() (list []uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == (ring.PartitionSet{}) {
		return nil
	}
	for p := range uint16(ring.Partitions) {
		if s.refused.Has(p) {
			list = append(list, p)
		}
	}
	s.told.AddAll(&s.refused)
	s.refused = ring.PartitionSet{}
	return list
}

// reopened has the source told again what it was told: with its connection it may have lost the answer.
func (s *copySource) reopened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused.AddAll(&s.told)
}

// askForCopies tells the owners of which copies we have nothing, though the table has us keep them. An owner may believe that
// we have one, of a time that we have not seen alike, and would find out with the next change only.
func (n *Node) askForCopies(v *ownership.View) {
	for i, missing := range n.copies.missing(v) {
		if missing != (ring.PartitionSet{}) {
			n.copiesOf(v.Table.Nodes[i].Name()).refuseAll(&missing)
		}
	}
}

// missing are the partitions of which we are to have copies and have none, by their owners.
func (c *copies) missing(v *ownership.View) []ring.PartitionSet {
	of := make([]ring.PartitionSet, len(v.Table.Nodes))
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range uint16(ring.Partitions) {
		if v.Copies(p) && c.of[p].state == noCopy {
			of[v.Table.Owner[p]].Add(p)
		}
	}
	return of
}

// refuseAll is refuse for several.
func (s *copySource) refuseAll(set *ring.PartitionSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused.AddAll(set)
}

// heard notes that the source has said something.
func (s *copySource) heard() { s.lastWord.Store(time.Now().UnixNano()) }

// void gives up the copies that the source feeds: something of its stream is missing.
func (s *copySource) void() {
	s.mu.Lock()
	s.refused, s.told = ring.PartitionSet{}, ring.PartitionSet{}
	s.mu.Unlock()
	n, c := s.node, &s.node.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range uint16(ring.Partitions) {
		if c.fed[p].Load() == s {
			n.forgetCopy(p)
			c.set(p, copyInfo{})
		}
	}
}

// forgetCopy empties a partition that is not served.
func (n *Node) forgetCopy(p uint16) {
	n.engine.Forget(p)
	n.engine.SetCopy(p, false)
}

// report says which copies are in sync, and what is served, under the present table.
func (n *Node) report() *ring.Report {
	v := n.settled.Load()
	r := &ring.Report{Version: v.Table.Version()}
	if v.Table == nil || n.fenced.Load() {
		return r
	}
	owners := v.OwnerNames()
	obeyed := n.view.Load() // gained partitions are settled a moment before they are served
	c := &n.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	lately := time.Now().Add(-copyPatience)
	for p := range uint16(ring.Partitions) {
		info := &c.of[p]
		if v.Owns(p) {
			if obeyed.Table == v.Table && obeyed.Standing[p] == ownership.Serving {
				r.Add(p)
			}
			continue
		}
		if info.since != v.Table.Since[p] {
			continue
		}
		fed := info.state == synced && info.source.name == owners[v.Table.Owner[p]] && info.source.lastWord.Load() > lately.UnixNano()
		if fed || info.state == handed && info.sealed.After(lately) { // the next owner feeds it from now on
			r.Add(p)
		}
	}
	return r
}

// claim makes the copies of the gained partitions ours: from here on their streams are not listened to. A copy counts if it
// is whole: handed over, or in sync with an owner that cannot say any more. acknowledged tells which nodes have ended their
// ownership in an orderly way; of those, what was not handed over is not all. The caller passes the barrier before it serves.
// The result has the seals of the gained partitions, 0 where there is none, and how many of them had data that is lost.
func (n *Node) claim(v *ownership.View, acknowledged func(source string) bool) (seals map[uint16]uint64, lost int) {
	c := &n.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	seals = make(map[uint16]uint64)
	for p := range uint16(ring.Partitions) {
		if v.Standing[p] != ownership.Gained {
			continue
		}
		info := c.of[p]
		c.set(p, copyInfo{})
		whole := info.state == handed || info.state == synced && !acknowledged(info.source.name)
		if whole && info.since == v.Table.Since[p] {
			seals[p] = info.seal
			n.engine.SetCopy(p, false)
			continue
		}
		if v.Table.Since[p] != v.Table.Epoch {
			lost++
		}
		n.forgetCopy(p)
		seals[p] = 0
	}
	return seals, lost
}

// keep turns partitions that this node has just lost into copies with a seal. After an absence they are only to be sent.
func (n *Node) keep(lost []lostPartition, away bool) {
	self := n.copiesOf(n.name())
	c := &n.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	sealed := time.Now()
	if away {
		sealed = time.Time{}
	}
	for _, l := range lost {
		c.set(l.partition, copyInfo{state: handed, source: self, since: l.since, seal: l.seal, sealed: sealed})
	}
}

// forgetSealed drops copies of ours that were only kept to be sent.
func (n *Node) forgetSealed(lost []lostPartition) {
	c := &n.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range lost {
		if c.of[l.partition].seal == l.seal {
			n.forgetCopy(l.partition)
			c.set(l.partition, copyInfo{})
		}
	}
}

// review drops the copies that a table leaves no use for: those in which it gives us no part, those whose data begins anew,
// and those whose owner has died, unless the table makes them ours: nobody will complete them any more. After an absence all go.
// Copies of which the seal is among spared wait for what must still be sent of them.
func (n *Node) review(v *ownership.View, away bool, spared map[uint64]bool) {
	present := make(map[string]bool)
	for _, m := range slices.Concat(v.Table.Nodes, n.aliveNodes()) {
		present[m.Name()] = true
	}
	c := &n.copies
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range uint16(ring.Partitions) {
		info := &c.of[p]
		if info.state == noCopy || spared[info.seal] || !away && v.Standing[p] == ownership.Gained && info.since == v.Table.Since[p] {
			continue
		}
		orphan := info.state != handed && !present[info.source.name]
		if away || orphan || !v.Copies(p) || info.since != v.Table.Since[p] {
			n.forgetCopy(p)
			c.set(p, copyInfo{})
			continue
		}
		n.engine.SetCopy(p, v.Spares(p))
	}
	forgotten := time.Now().Add(-sourceMemory).UnixNano()
	for name, s := range c.sources {
		if !present[name] && s.lastWord.Load() < forgotten { // its stream may come to life again, and has this one
			delete(c.sources, name)
		}
	}
}

// clear forgets all copies, of an engine that is about to be emptied.
func (c *copies) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range uint16(ring.Partitions) {
		c.set(p, copyInfo{})
	}
}
