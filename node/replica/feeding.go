package replica

import (
	"cmp"
	"slices"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// FeedAction is what a Feeding wants done.
type FeedAction struct {
	Do        FeedDo
	To        string // the receiver's name
	Member    *ring.Member
	Partition uint16
	Since     uint64 // of FeedSync and FeedResume
	Seal      uint64 // of FeedResume and FeedHand
	Heir      bool   // of FeedHand: the receiver is the next owner
	HandOver  *HandOver
}

// FeedDo is a kind of FeedAction. Those up to FeedHand concern the Sender to one receiver.
type FeedDo uint8

const (
	FeedOpen   FeedDo = iota // open a stream to Member
	FeedClose                // close the stream
	FeedSync                 // Sender.Sync
	FeedResume               // Sender.Resume
	FeedStop                 // Sender.Stop
	FeedHand                 // Sender.Hand
	FeedForget               // empty the partition, which is not served any more and nobody gets
	FeedKeep                 // Copies.Keep(HandOver)
	FeedUnkeep               // Copies.Unkeep(HandOver)
	FeedReview               // Copies.Review by the present view
)

// Lost is a partition that a table has taken from this node.
type Lost struct {
	Partition uint16
	Since     uint64 // of its data
	Seal      uint64 // of the copies that this node leaves
}

// HandOver is what one table has taken from this node, until the new owners have it.
type HandOver struct {
	Lost  []Lost   // this node keeps copies of these until then
	Heirs []string // names of the new owners
	Away  bool     // the copies are only kept to be sent
}

// Feeding decides who is fed which of the partitions that this node serves: their followers, and
// the nodes that they move to.
type Feeding struct {
	broken    *Broken
	to        []*fed // in the order in which they were opened
	handOvers []*HandOver
	actions   []FeedAction
}

// fed is what one receiver is fed.
type fed struct {
	name       string
	partitions ring.PartitionSet
}

// NewFeeding returns the machine of a node that feeds nobody. broken is nil but in simulations.
func NewFeeding(broken *Broken) *Feeding { return &Feeding{broken: cmp.Or(broken, unbroken)} }

// Actions returns what is to be done since the last call, in order. The slice is valid until the
// next event.
func (f *Feeding) Actions() []FeedAction {
	list := f.actions
	f.actions = f.actions[:0]
	return list
}

func (f *Feeding) do(a FeedAction) { f.actions = append(f.actions, a) }

// Refeed begins and ends feeds, so that everybody is fed what v asks for of what it serves. claims
// are the partitions that v serves anew: a copy with the same seal is continued. byHeat sorts
// partitions, those with the most requests first; nil leaves them in order.
func (f *Feeding) Refeed(v *ownership.View, claims map[uint16]Claim, byHeat func([]uint16)) {
	wanted := make([]ring.PartitionSet, len(v.Table.Nodes))
	for p := range uint16(ring.Partitions) {
		if v.Standing[p] != ownership.Serving {
			continue
		}
		for _, i := range v.Receivers(p) {
			if i != ring.NoNode && int(i) != v.Self {
				wanted[i].Add(p)
			}
		}
	}
	names := v.OwnerNames()
	f.to = slices.DeleteFunc(f.to, func(to *fed) bool {
		i := slices.Index(names, to.name)
		for p := range uint16(ring.Partitions) {
			if !to.partitions.Has(p) {
				continue
			}
			if _, anew := claims[p]; anew || i < 0 || !wanted[i].Has(p) {
				f.do(FeedAction{Do: FeedStop, To: to.name, Partition: p})
				to.partitions.Remove(p)
			}
		}
		gone := i < 0 && !f.handsTo(to.name)
		if gone {
			f.do(FeedAction{Do: FeedClose, To: to.name})
		}
		return gone
	})
	for i := range wanted {
		if !wanted[i].Empty() {
			f.feed(v.Table, v.Table.Nodes[i], &wanted[i], claims, byHeat)
		}
	}
}

// feed begins to feed the partitions to a node that does not get them yet. Those with the most
// requests go first: whole partitions are what a move that is cut off has brought.
func (f *Feeding) feed(t *ring.Table, m ring.Member, set *ring.PartitionSet, claims map[uint16]Claim, byHeat func([]uint16)) {
	name := m.Name()
	i := slices.IndexFunc(f.to, func(to *fed) bool { return to.name == name })
	if i < 0 {
		i = len(f.to)
		f.to = append(f.to, &fed{name: name})
		f.do(FeedAction{Do: FeedOpen, To: name, Member: &m})
	}
	to := f.to[i]
	var anew []uint16
	for p := range uint16(ring.Partitions) {
		if !set.Has(p) || to.partitions.Has(p) {
			continue
		}
		to.partitions.Add(p)
		if c := claims[p]; c.Seal != 0 || c.Kept && f.broken.IgnoreSeals {
			f.do(FeedAction{Do: FeedResume, To: name, Partition: p, Since: t.Since[p], Seal: c.Seal})
		} else {
			anew = append(anew, p)
		}
	}
	// Of what was gained nobody has asked for keys here yet, and commands wait for it.
	if len(anew) > 1 && claims == nil && byHeat != nil {
		byHeat(anew)
	}
	for _, p := range anew {
		f.do(FeedAction{Do: FeedSync, To: name, Partition: p, Since: t.Since[p]})
	}
}

// HandOver ends the feeds of what next takes from this node. What a new owner was fed, this node
// keeps as a copy while it is handed over. Nothing is executed under old any more. seal returns a
// number that no other call returns, and not 0. Without heirs the hand-over has ended already.
func (f *Feeding) HandOver(old, next *ownership.View, away bool, seal func() uint64) *HandOver {
	h := &HandOver{Away: away}
	if old.Table == nil || old.Table.Seed != next.Table.Seed {
		return h // it was another cluster's: there is nobody to hand it to
	}
	names := next.OwnerNames()
	for p := range uint16(ring.Partitions) {
		if old.Standing[p] != ownership.Serving || next.Owns(p) {
			continue
		}
		l := Lost{Partition: p, Since: old.Table.Since[p], Seal: seal()}
		heir := names[next.Table.Owner[p]]
		if !f.endFeeds(l, heir, l.Since == next.Table.Since[p]) {
			f.do(FeedAction{Do: FeedForget, Partition: p})
			continue
		}
		h.Lost = append(h.Lost, l)
		if !slices.Contains(h.Heirs, heir) {
			h.Heirs = append(h.Heirs, heir)
		}
	}
	if len(h.Lost) > 0 {
		f.handOvers = append(f.handOvers, h)
		f.do(FeedAction{Do: FeedKeep, HandOver: h})
	}
	return h
}

// endFeeds ends those of a lost partition, and reports whether its new owner was fed it and is to
// have it. lives: the partition's data goes on.
func (f *Feeding) endFeeds(l Lost, heir string, lives bool) (handed bool) {
	for _, to := range f.to {
		switch {
		case !to.partitions.Has(l.Partition):
			continue
		case !lives:
			f.do(FeedAction{Do: FeedStop, To: to.name, Partition: l.Partition})
		default:
			f.do(FeedAction{Do: FeedHand, To: to.name, Partition: l.Partition, Seal: l.Seal, Heir: to.name == heir})
			handed = handed || to.name == heir
		}
		to.partitions.Remove(l.Partition)
	}
	return handed
}

// Ended notes that the heirs have everything that h hands over, or will never take it. From then on
// this node acknowledges the table, as far as h is concerned. v is the present view.
func (f *Feeding) Ended(h *HandOver, v *ownership.View) {
	f.handOvers = slices.DeleteFunc(f.handOvers, func(o *HandOver) bool { return o == h })
	if h.Away {
		f.do(FeedAction{Do: FeedUnkeep, HandOver: h})
	}
	f.do(FeedAction{Do: FeedReview})
	f.Refeed(v, nil, nil) // closes the streams that only the hand-over needed
}

// Clear closes all streams.
func (f *Feeding) Clear() {
	for _, to := range f.to {
		f.do(FeedAction{Do: FeedClose, To: to.name})
	}
	f.to = nil
}

// Pending returns the hand-overs under way. The caller does not change the slice.
func (f *Feeding) Pending() []*HandOver { return f.handOvers }

// handsTo reports whether a hand-over waits for the node.
func (f *Feeding) handsTo(name string) bool {
	return slices.ContainsFunc(f.handOvers, func(h *HandOver) bool { return slices.Contains(h.Heirs, name) })
}

// Spared returns the seals of the copies that are still being sent: a review leaves them alone.
func (f *Feeding) Spared() map[uint64]bool {
	seals := make(map[uint64]bool)
	for _, h := range f.handOvers {
		for _, l := range h.Lost {
			seals[l.Seal] = true
		}
	}
	return seals
}
