package replica

import (
	"cmp"
	"math"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// A copy is the data of a partition that another node owns. The partition's follower has one, the
// node that it moves to and, for a while, its previous owner. The owner's marks change the copy's
// state:
//
//	            begin            synced            handed
//	  nothing ─────────▶ filling ───────▶ synced ──────────▶ handed ──▶ ours, or the next owner's:
//	     ▲                  ╰──────── dropped ◀──╯               continue ──▶ synced
//	     ╰── the stream breaks for good, or the table gives this node no part in the partition
//
// An owner that loses a partition ends its feeds with a seal. Copies with one seal are equal, and
// equal to what the next owner begins with, so that owner continues to feed them without a new
// snapshot.

// CopyState says how complete a copy is.
type CopyState uint8

const (
	NoCopy  CopyState = iota
	Filling           // the snapshot arrives
	Synced            // everything that the owner has sent, up to now
	Handed            // everything that an owner had when it lost the partition
)

func (s CopyState) String() string {
	return [...]string{"none", "filling", "synced", "handed"}[s]
}

// Copy is what this node knows about its copy of one partition.
type Copy struct {
	State  CopyState
	Source string // name of the owner that feeds the copy, or has fed it
	Since  uint64 // epoch in which the data began
	Seal   uint64 // if State is Handed
	sealed time.Duration
}

// Fed reports whether effects from the copy's source are applied to it.
func (c *Copy) Fed() bool { return c.State == Filling || c.State == Synced }

func (c *Copy) fedBy(source string) bool { return c.Fed() && c.Source == source }

const (
	// CopyPatience is for how long a source may be silent before its copies no longer count as in
	// sync. It must exceed the time to detect that the source is dead and to plan the failover,
	// because the copies are needed then. What the source did unheard in that time is lost, so it
	// must not be long.
	CopyPatience = 4 * time.Second

	// Never is the time of an event that has not happened: long before every other time.
	Never = time.Duration(math.MinInt64 / 2)
)

// CopyAction is something that the caller does for Copies.
type CopyAction struct {
	Do        CopyDo
	Partition uint16
	Source    string // of CopyAdmit, CopyRefuse and CopyAccept
	Seal      uint64 // of CopyUnseal
	Spare     bool   // of CopySpare
}

// CopyDo is a kind of CopyAction.
type CopyDo uint8

const (
	CopyAdmit  CopyDo = iota // apply the source's effects to the partition from now on
	CopyShut                 // apply no effects to the partition from now on
	CopyForget               // empty the partition: it is no longer a copy
	CopySpare                // the partition is a copy: evict its records before all others, or like this node's own
	CopyRefuse               // Refusals.Refuse
	CopyAccept               // Refusals.Accept
	CopyUnseal               // Sender.Abandon, for every Sender: the partition is about to change
)

// Claim says with what data this node begins to serve a partition that it has gained.
type Claim struct {
	Kept bool   // with its copy; otherwise the partition is empty
	Seal uint64 // of that copy; 0: none
}

// Copies is the machine that decides about the copies that a node keeps: which stream is applied to
// them, which are dropped, and which count as in sync. The coordinator fails over to copies in
// sync.
type Copies struct {
	broken  *Broken
	self    string          // name of this node, the source of copies that it has sealed itself
	settled *ownership.View // the last view that was completely installed; decides about marks
	of      [ring.Partitions]Copy
	actions []CopyAction
}

// NewCopies returns the machine of a node without copies. broken is nil except in simulations.
func NewCopies(broken *Broken) *Copies {
	return &Copies{broken: cmp.Or(broken, unbroken), settled: ownership.None}
}

// Actions returns what is to be done since the last call, in order. The slice is valid until the
// next event.
func (c *Copies) Actions() []CopyAction {
	list := c.actions
	c.actions = c.actions[:0]
	return list
}

func (c *Copies) do(d CopyDo, p uint16) {
	c.actions = append(c.actions, CopyAction{Do: d, Partition: p})
}

func (c *Copies) say(d CopyDo, p uint16, source string) {
	c.actions = append(c.actions, CopyAction{Do: d, Partition: p, Source: source})
}

func (c *Copies) spare(p uint16, spare bool) {
	c.actions = append(c.actions, CopyAction{Do: CopySpare, Partition: p, Spare: spare})
}

// shut ends the source's access to a copy.
func (c *Copies) shut(p uint16) {
	if c.of[p].Fed() {
		c.do(CopyShut, p)
	}
}

// unseal ends the hand-over of a partition that this node has sealed, if it is still under way: the
// partition is about to change. The new owner serves without the rest, or no longer wants it.
// Otherwise the hand-over could send the new owner an older copy of its own data.
func (c *Copies) unseal(p uint16) {
	have := &c.of[p]
	if have.State == Handed && have.Source == c.self && !c.broken.HandStale {
		c.actions = append(c.actions, CopyAction{Do: CopyUnseal, Partition: p, Seal: have.Seal})
	}
}

// drop empties a copy and forgets it. It shuts the source out first: an effect that arrives after
// the partition was emptied would look like a part of the next copy.
func (c *Copies) drop(p uint16) {
	c.unseal(p)
	c.shut(p)
	c.do(CopyForget, p)
	c.of[p] = Copy{}
}

// Of returns what this node knows about its copy of p.
func (c *Copies) Of(p uint16) Copy { return c.of[p] }

// Marked is the event that a mark arrived in a source's stream. Everything before it is applied.
func (c *Copies) Marked(source string, p uint16, m Mark, now time.Duration) {
	have := &c.of[p]
	switch m.Kind {
	case MarkBegin:
		c.begin(source, p, m.Arg)
		return
	case MarkContinue:
		sealed := have.Seal == m.Arg || c.broken.IgnoreSeals
		switch {
		case have.State != Handed || !c.settled.CopiesFrom(p, source):
		case !sealed:
			c.drop(p) // the owner has begun with other data
		default:
			c.unseal(p)
			c.spare(p, c.settled.Spares(p))
			c.say(CopyAccept, p, source)
			have.State, have.Source = Synced, source
			c.say(CopyAdmit, p, source)
			return
		}
	case MarkSynced:
		if have.fedBy(source) {
			have.State = Synced
			return
		}
	case MarkHanded:
		if have.fedBy(source) && have.State == Synced {
			c.shut(p)
			have.State, have.Seal, have.sealed = Handed, m.Arg, now
			return
		}
	default:
		return
	}
	c.say(CopyRefuse, p, source)
}

// begin handles the mark in front of a snapshot.
func (c *Copies) begin(source string, p uint16, since uint64) {
	takes := c.settled.CopiesFrom(p, source)
	if c.broken.RefuseBegin && c.settled.Standing[p] == ownership.Gained {
		takes = false
	}
	if !takes {
		if c.of[p].fedBy(source) && !c.broken.RefuseBegin {
			c.drop(p) // the source no longer completes it
		}
		c.say(CopyRefuse, p, source)
		return
	}
	if c.broken.IgnoreSince {
		since = c.settled.Table.Since[p]
	}
	c.drop(p)
	c.spare(p, c.settled.Spares(p))
	c.say(CopyAccept, p, source)
	c.of[p] = Copy{State: Filling, Source: source, Since: since}
	c.say(CopyAdmit, p, source)
}

// Void drops the copies that a source feeds, because a part of its stream is lost.
func (c *Copies) Void(source string) {
	for p := range uint16(ring.Partitions) {
		if c.of[p].fedBy(source) {
			c.drop(p)
		}
	}
}

// Settle is the event that v is completely installed: the node has dropped what older tables left.
func (c *Copies) Settle(v *ownership.View) { c.settled = v }

// Ask tells the owners which copies this node lacks, although v says that it keeps them. An owner
// may believe that this node has the copy, because the two have not seen the same tables, and would
// otherwise learn the truth only with the partition's next change.
func (c *Copies) Ask(v *ownership.View) {
	if c.broken.NeverAsk {
		return
	}
	names := v.OwnerNames()
	for p := range uint16(ring.Partitions) {
		if c.of[p].State == NoCopy && v.Copies(p) {
			c.say(CopyRefuse, p, names[v.Table.Owner[p]])
		}
	}
}

// Claim turns the copies of the partitions that v has gained into this node's own data, or drops
// them. The caller has called Settle with a view that serves these partitions, so no source
// continues a copy. Claim keeps a copy that is whole: handed over, or in sync with an owner that
// has died (failover). acknowledged reports whether a source has ended its ownership of a partition
// in an orderly way: a copy that such a source did not hand over is incomplete. The caller serves the
// partitions once no effect can be on its way into the copies. Until then nothing expires in them,
// and until those who have equal copies are fed on: they would not learn of it. lost is the number of
// partitions whose data is lost.
func (c *Copies) Claim(v *ownership.View, acknowledged func(source string, p uint16) bool) (claims map[uint16]Claim, lost int) {
	claims = make(map[uint16]Claim)
	for p := range uint16(ring.Partitions) {
		if v.Standing[p] != ownership.Gained {
			continue
		}
		have := c.of[p]
		c.unseal(p)
		if !c.broken.AdmitServed {
			c.shut(p)
		}
		c.of[p] = Copy{}
		if c.whole(&have, p, acknowledged) && have.Since == v.Table.Since[p] {
			claims[p] = Claim{Kept: true, Seal: have.Seal}
			continue
		}
		if v.Table.Since[p] != v.Table.Epoch {
			lost++
		}
		c.do(CopyForget, p)
		claims[p] = Claim{}
	}
	return claims, lost
}

// whole reports whether a copy has everything that the previous owner had.
func (c *Copies) whole(have *Copy, p uint16, acknowledged func(source string, p uint16) bool) bool {
	switch have.State {
	case NoCopy:
	case Filling:
		return c.broken.PromoteFilling
	case Synced:
		return !acknowledged(have.Source, p) || c.broken.KeepUnhanded || c.broken.PromoteFilling
	case Handed:
		return true
	}
	return false
}

// Keep turns partitions that this node has just lost into copies with a seal. After an absence
// (h.Away) this node keeps them only until they are sent.
func (c *Copies) Keep(self string, h *HandOver, now time.Duration) {
	if h.Away {
		now = Never
	}
	c.self = self
	for _, l := range h.Lost {
		c.shut(l.Partition)
		c.spare(l.Partition, false)
		c.of[l.Partition] = Copy{State: Handed, Source: self, Since: l.Since, Seal: l.Seal, sealed: now}
	}
}

// Unkeep drops copies that this node kept only until they were sent.
func (c *Copies) Unkeep(h *HandOver) {
	for _, l := range h.Lost {
		if c.of[l.Partition].Seal == l.Seal {
			c.drop(l.Partition)
		}
	}
}

// Review drops the copies that are of no use under v: those that v does not have this node keep,
// those whose data begins anew, and incomplete ones whose owner has died, because nobody completes
// them. Copies of partitions that v has gained stay for Claim. After an absence (away) Review drops
// all. Copies whose seal is in spared are still being sent, and stay. present has the names of the
// nodes that are in the table or alive.
func (c *Copies) Review(v *ownership.View, away bool, present map[string]bool, spared map[uint64]bool) {
	for p := range uint16(ring.Partitions) {
		have := &c.of[p]
		if have.State == NoCopy || spared[have.Seal] {
			continue
		}
		current := have.Since == v.Table.Since[p]
		if !away && current && v.Standing[p] == ownership.Gained {
			continue
		}
		orphan := have.State != Handed && !present[have.Source]
		if away || orphan || !current || !v.Copies(p) {
			c.drop(p)
			continue
		}
		c.spare(p, v.Spares(p))
	}
}

// Clear forgets all copies. The caller is about to empty the storage.
func (c *Copies) Clear() {
	for p := range uint16(ring.Partitions) {
		c.shut(p)
		c.of[p] = Copy{}
	}
}

// Report adds to r the partitions that this node serves or has a copy in sync of, under the settled
// view. obeyed is the view that the node obeys: it settles gained partitions a moment before it
// serves them. heard returns when a source was last heard, or Never.
func (c *Copies) Report(r *ring.Report, obeyed *ownership.View, now time.Duration, heard func(source string) time.Duration) {
	v := c.settled
	r.Version = v.Table.Version()
	if v.Table == nil {
		return
	}
	lastHeard := make([]time.Duration, len(v.Table.Nodes))
	names := v.OwnerNames()
	for i, name := range names {
		lastHeard[i] = heard(name)
	}
	for p := range uint16(ring.Partitions) {
		if v.Owns(p) {
			if obeyed.Table == v.Table && obeyed.Standing[p] == ownership.Serving {
				r.Add(p)
			}
			continue
		}
		owner := v.Table.Owner[p]
		if c.of[p].State != NoCopy && c.inSync(p, names[owner], lastHeard[owner], now) {
			r.Add(p)
		}
	}
}

// inSync decides whether the copy of p may succeed its owner in a failover: whether it is in sync
// with the settled view's owner, which was last heard at the given time.
func (c *Copies) inSync(p uint16, owner string, heard, now time.Duration) bool {
	have := &c.of[p]
	if have.Since != c.settled.Table.Since[p] {
		return false
	}
	lately := now - CopyPatience
	switch have.State {
	case NoCopy:
	case Handed: // the next owner feeds it from now on
		return have.sealed > lately && !c.broken.HandedIsNothing
	case Filling:
		return c.broken.PromoteFilling && have.Source == owner && heard > lately
	case Synced:
		return have.Source == owner && (heard > lately || c.broken.TrustSilence)
	}
	return false
}
