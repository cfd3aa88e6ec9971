package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/ring"
)

// Who is fed, and the receiver of a stream: package replica's own, and around it what
// node/replication.go and node/stream do with the engine and with connections.

// replicas are a node's part in replication.
type replicas struct {
	feeding   *replica.Feeding
	senders   []*sender // in the order in which they were opened
	handOvers map[uint64]*replica.HandOver
	claims    map[uint16]replica.Claim // of the newest Claim
	fresh     map[uint16]replica.Claim // the same, until they are fed

	copies   *replica.Copies
	admitted [places]string // whose effects go into a place; "": nobody's
	sources  map[string]*source
}

// source is a node that feeds copies here.
type source struct {
	in       replica.Inbound
	conn     *conn // that may go on
	refusals replica.Refusals
	heard    time.Duration
}

func newReplicas(w *world) replicas {
	return replicas{
		feeding: replica.NewFeeding(&w.replica), copies: replica.NewCopies(&w.replica),
		handOvers: make(map[uint64]*replica.HandOver), sources: make(map[string]*source),
	}
}

// place returns the place of a partition, places or more if it has none.
func (w *world) place(p uint16) int {
	if k := slices.Index(w.tracked, p); k >= 0 {
		return k
	}
	return places
}

// tracking returns v as it is for the tracked partitions; all others are foreign.
func (w *world) tracking(v *ownership.View) *ownership.View {
	only := *v
	only.Standing = [ring.Partitions]ownership.Standing{}
	for _, p := range w.tracked {
		only.Standing[p] = v.Standing[p]
	}
	return &only
}

// actFeeding does what the node's Feeding wants done.
func (n *node) actFeeding() {
	for _, a := range n.feeding.Actions() {
		s := n.sender(a.To)
		switch a.Do {
		case replica.FeedOpen:
			n.senders = append(n.senders, newSender(n, *a.Member))
		case replica.FeedClose:
			s.close()
			n.senders = slices.DeleteFunc(n.senders, func(o *sender) bool { return o == s })
		case replica.FeedSync:
			s.machine.Sync(a.Partition, a.Since)
			s.act()
		case replica.FeedResume:
			s.machine.Resume(a.Partition, a.Since, a.Seal)
			s.act()
		case replica.FeedStop:
			s.machine.Stop(a.Partition)
			s.act()
		case replica.FeedHand:
			s.machine.Hand(a.Partition, a.Seal, a.Heir)
			s.act()
		case replica.FeedRest: // nothing expires here
		case replica.FeedForget:
			n.data[n.w.place(a.Partition)] = content{}
		case replica.FeedKeep:
			n.copies.Keep(n.p.name, a.HandOver, n.w.now)
			n.actCopies()
		case replica.FeedUnkeep:
			n.copies.Unkeep(a.HandOver)
			n.actCopies()
		case replica.FeedReview:
			n.review(n.view, false)
		}
	}
}

func (n *node) sender(name string) *sender {
	if i := slices.IndexFunc(n.senders, func(s *sender) bool { return s.name == name }); i >= 0 {
		return n.senders[i]
	}
	return nil
}

// refeed brings the feeds in line with v. claims are the partitions that it serves anew.
func (n *node) refeed(v *ownership.View, claims map[uint16]replica.Claim) {
	n.feeding.Refeed(n.w.tracking(v), claims, nil)
	n.actFeeding()
}

// handOver ends the feeds of what a table takes from this node.
func (n *node) handOver(a ownership.HandOver) {
	h := n.feeding.HandOver(n.w.tracking(a.Old), a.Next, a.Away, func() uint64 { n.w.seal++; return n.w.seal })
	n.actFeeding()
	var told map[string]*channelsOf
	heirs := h.Heirs
	if n.w.channels {
		var others []string
		told, others = n.handChannels(a, h)
		heirs = slices.Concat(heirs, others)
	}
	id := n.machine.HandedTo(n.w.now, heirs)
	if id == 0 {
		return
	}
	n.handOvers[id] = h
	for _, heir := range heirs {
		flushed := func() {
			n.step(func(m *ownership.Machine, _ time.Duration) { m.Flushed(id, heir) }, nil)
		}
		if to := told[heir]; to != nil {
			last := flushed
			flushed = func() { to.awaitEnd(last) }
		}
		if slices.Contains(h.Heirs, heir) {
			n.sender(heir).flushHanded(flushed)
		} else {
			flushed()
		}
	}
}

func (n *node) finishHandOver(id uint64) {
	h := n.handOvers[id]
	delete(n.handOvers, id)
	n.feeding.Ended(h, n.w.tracking(n.view))
	n.actFeeding()
}

// actCopies does what the node's Copies want done.
func (n *node) actCopies() {
	for _, a := range n.copies.Actions() {
		k := n.w.place(a.Partition)
		if k == places {
			continue // a copy that is asked for, of a partition without keys
		}
		switch a.Do {
		case replica.CopyAdmit:
			n.admitted[k] = a.Source
		case replica.CopyShut:
			n.admitted[k] = ""
		case replica.CopyForget:
			n.data[k] = content{}
		case replica.CopySpare:
		case replica.CopyRefuse:
			n.source(a.Source).refusals.Refuse(a.Partition)
		case replica.CopyAccept:
			n.source(a.Source).refusals.Accept(a.Partition)
		case replica.CopyUnseal:
			for _, s := range n.senders {
				s.machine.Abandon(a.Partition, a.Seal)
				s.act()
			}
		}
	}
}

func (r *replicas) source(name string) *source {
	s := r.sources[name]
	if s == nil {
		s = &source{heard: replica.Never}
		r.sources[name] = s
	}
	return s
}

func (n *node) review(v *ownership.View, away bool) {
	present := make(map[string]bool)
	for _, m := range slices.Concat(v.Table.Nodes, n.aliveNodes()) {
		present[m.Name()] = true
	}
	n.copies.Review(v, away, present, n.feeding.Spared())
	n.actCopies()
}

// claim makes the copies of gained partitions this node's own, those that are whole.
func (n *node) claim(v *ownership.View, acknowledged func(source string, p uint16) bool) map[uint16]replica.Claim {
	var before [places]replica.Copy
	for k, p := range n.w.tracked {
		before[k] = n.copies.Of(p)
	}
	claims, _ := n.copies.Claim(n.w.tracking(v), acknowledged)
	for k, p := range n.w.tracked {
		if c, gained := claims[p]; gained && !c.Kept {
			n.w.tracef("%s drops what it has of %d: %v from %s since %d, gained since %d", n.p.name, k,
				before[k].State, before[k].Source, before[k].Since, n.since(v, k))
			n.w.aboutToDrop(n, k, before[k].State)
		}
	}
	n.actCopies()
	return claims
}

// report returns the partitions that the node serves or has a copy in sync of. Partitions without
// keys always count.
func (n *node) report() *ring.Report {
	r := &ring.Report{Node: n.p.name}
	n.copies.Report(r, n.view, n.w.now, func(name string) time.Duration {
		if s := n.sources[name]; s != nil {
			return s.heard
		}
		return replica.Never
	})
	if r.Version.IsZero() || n.fenced {
		return &ring.Report{Node: r.Node, Version: r.Version}
	}
	all := &ring.Report{Node: r.Node, Version: r.Version}
	for i := range all.Synced {
		all.Synced[i] = 0xFF
	}
	for _, p := range n.w.tracked {
		if !r.Has(p) {
			all.Synced[p/8] &^= 1 << (p % 8)
		}
	}
	return all
}

// receiverEnd is the receiver's end of one connection.
type receiverEnd struct {
	at     *proc
	c      *conn
	source string
}

func (e *receiverEnd) closed() {}

func (e *receiverEnd) received(m any) {
	n := e.at.node
	if n == nil {
		e.c.close(1)
		return
	}
	n.iterate(false)
	switch m := m.(type) {
	case opening:
		if m.to != e.at.name { // another life of that id
			e.c.close(1)
			return
		}
		e.source = m.from
		e.open(n, n.source(m.from), m.generation)
	case batch:
		e.take(n, n.source(e.source), m)
	}
}

func (e *receiverEnd) open(n *node, s *source, generation uint64) {
	s.conn, s.heard, s.refusals.Broken = e.c, n.w.now, &n.w.replica
	last, resumed := s.in.Open(generation)
	if resumed {
		s.refusals.Reopened()
	} else {
		s.refusals.Void()
		n.copies.Void(e.source)
		n.actCopies()
	}
	e.c.send(1, openedAt{generation, last})
}

func (e *receiverEnd) take(n *node, s *source, b batch) {
	if s.conn != e.c {
		e.c.close(1)
		return
	}
	switch s.in.Judge(b.seq) {
	case replica.Gap:
		e.c.close(1)
		return
	case replica.Next:
		n.apply(e.source, s, b.effects)
		s.in.Applied()
	case replica.Repeated:
	}
	s.heard = n.w.now
	e.c.send(1, applied{s.in.Last(), s.refusals.Tell(nil)})
}

// apply takes effects in their order.
func (n *node) apply(name string, s *source, effects []effect) {
	for i := range effects {
		e := &effects[i]
		p, d := n.w.tracked[e.place], &n.data[e.place]
		switch {
		case e.mark.Kind != replica.NoMark:
			n.copies.Marked(name, p, e.mark, n.w.now)
			n.actCopies()
			if have := n.copies.Of(p); e.mark.Kind == replica.MarkSynced && have.State == replica.Synced && have.Source == name {
				d.last = e.change
			}
		case n.admitted[e.place] != name:
			s.refusals.Refuse(p)
			continue
		case e.unit != nil:
			for i := range e.unit {
				d.apply(&e.unit[i])
			}
		default:
			d.apply(e)
		}
		n.w.checkCopy(n, e.place)
	}
}

// apply takes what is no mark.
func (d *content) apply(e *effect) {
	if e.clear {
		d.values = [keysPer]int{}
	} else {
		d.values[e.key] = e.value
	}
	if e.live {
		d.last = e.change
	}
}
