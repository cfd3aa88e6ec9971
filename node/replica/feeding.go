package replica

import (
	"cmp"
	"slices"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// FeedAction is something that the caller does for a Feeding.
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
	FeedRest                 // nothing expires in the partition from now on: its next owner does the rest, and tells of it
	FeedForget               // empty the partition: this node no longer serves it, and has no heir to hand it to
	FeedKeep                 // Copies.Keep(HandOver)
	FeedUnkeep               // Copies.Unkeep(HandOver)
	FeedReview               // Copies.Review with the present view
)

// Lost is a partition that a table has taken from this node.
type Lost struct {
	Partition uint16
	Since     uint64 // epoch in which its data began
	Seal      uint64 // of the copies that this ownership leaves
}

// HandOver is what one table has taken from this node, until the new owners have it.
type HandOver struct {
	Lost  []Lost   // this node keeps copies of these at least until then
	Heirs []string // names of the new owners
	Away  bool     // this node drops the copies once they are sent
}

// Partitions returns the set of what was taken.
func (h *HandOver) Partitions() (set ring.PartitionSet) {
	for _, l := range h.Lost {
		set.Add(l.Partition)
	}
	return set
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

// NewFeeding returns the machine of a node that feeds nobody. broken is nil except in simulations.
func NewFeeding(broken *Broken) *Feeding { return &Feeding{broken: cmp.Or(broken, unbroken)} }

// Actions returns what is to be done since the last call, in order. The slice is valid until the
// next event.
func (f *Feeding) Actions() []FeedAction {
	list := f.actions
	f.actions = f.actions[:0]
	return list
}

func (f *Feeding) do(a FeedAction) { f.actions = append(f.actions, a) }

// Refeed begins and ends feeds, so that every receiver is fed exactly the served partitions that v
// assigns to it. claims are the partitions that v has just begun to serve: copies with the same
// seal are continued. Feeds of what is held go on. byHeat sorts partitions by requests, the most
// first; nil keeps their order.
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
			if _, anew := claims[p]; anew || i < 0 || !wanted[i].Has(p) && !v.Held.Has(p) {
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

// feed begins to feed a node those partitions of set that it is not fed yet. Those with the most
// requests go first, because a move that is cut off has moved only the partitions that were
// complete.
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
	// Gained partitions have no heat here yet, and commands wait for them: do not sort.
	if len(anew) > 1 && claims == nil && byHeat != nil {
		byHeat(anew)
	}
	for _, p := range anew {
		f.do(FeedAction{Do: FeedSync, To: name, Partition: p, Since: t.Since[p]})
	}
}

// HandOver ends the feeds of the partitions that next takes from this node. No command is executed
// under old any more. If the new owner was fed a partition, this node keeps a sealed copy of it
// while it is handed over; otherwise the partition is emptied. A partition that was held, and that a
// later table has given back to this node, becomes a sealed copy as well, from which it is claimed.
// seal returns a number that is never 0 and that no other call returns. A hand-over without heirs has
// ended already.
func (f *Feeding) HandOver(old, next *ownership.View, away bool, seal func() uint64) *HandOver {
	h := &HandOver{Away: away}
	if old.Table == nil || old.Table.Seed != next.Table.Seed {
		return h // the data was another cluster's: there is nobody to hand it to
	}
	names := next.OwnerNames()
	for p := range uint16(ring.Partitions) {
		if old.Standing[p] != ownership.Serving || next.Standing[p] == ownership.Serving {
			continue
		}
		f.do(FeedAction{Do: FeedRest, Partition: p}) // what has expired until now, the feeds tell the next owner
		l := Lost{Partition: p, Since: old.Table.Since[p], Seal: seal()}
		heir, back := names[next.Table.Owner[p]], next.Owns(p) && !away
		lives := l.Since == next.Table.Since[p] && (back || !next.Owns(p))
		if !f.endFeeds(l, heir, lives) && !(back && lives) {
			f.do(FeedAction{Do: FeedForget, Partition: p})
			continue
		}
		h.Lost = append(h.Lost, l)
		if !back && !slices.Contains(h.Heirs, heir) {
			h.Heirs = append(h.Heirs, heir)
		}
	}
	if len(h.Heirs) > 0 {
		f.handOvers = append(f.handOvers, h)
	}
	if len(h.Lost) > 0 {
		f.do(FeedAction{Do: FeedKeep, HandOver: h})
	}
	return h
}

// endFeeds ends the feeds of a lost partition, and reports whether it is handed to its new owner:
// the new owner was fed it, and lives is true. lives reports whether the partition's data stays
// valid.
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

// Ended is the event that the heirs have everything that h hands over, or will never accept it. As
// far as h is concerned, this node may now acknowledge the table. v is the present view.
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

// handsTo reports whether a hand-over to the node is under way.
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
