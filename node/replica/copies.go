package replica

import (
	"cmp"
	"math"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// A copy is the data of a partition that another node owns: at its follower, at the node that it
// moves to and, for a while, at its owner before. The owner's marks say how far it is:
//
//	            begin            synced            handed
//	  nothing ─────────▶ filling ───────▶ synced ──────────▶ handed ──▶ ours, or the next owner's:
//	     ▲                  ╰──────── dropped ◀──╯               continue ──▶ synced
//	     ╰── the stream breaks for good, or the table gives this node no part in the partition
//
// An owner that loses a partition ends its stream with a seal. Copies with one seal are equal, and
// equal to what the next owner begins with: it goes on feeding them without a new snapshot.

// CopyState is how far a copy is.
type CopyState uint8

const (
	NoCopy  CopyState = iota
	Filling           // what the owner had is on its way
	Synced            // everything that the owner has, as far as it was heard
	Handed            // everything that an owner has had
)

func (s CopyState) String() string {
	return [...]string{"none", "filling", "synced", "handed"}[s]
}

// Copy is what is known of the copy of one partition.
type Copy struct {
	State  CopyState
	Source string // the owner that feeds it, or has fed it
	Since  uint64 // of its data
	Seal   uint64 // if it is handed
	sealed time.Duration
}

// Fed reports whether effects from the copy's source go into it.
func (c *Copy) Fed() bool { return c.State == Filling || c.State == Synced }

func (c *Copy) fedBy(source string) bool { return c.Fed() && c.Source == source }

const (
	// CopyPatience is for how long a source may be silent before its copies no longer count as in
	// sync. It must be longer than it takes to declare the source dead and to plan its succession,
	// since that is when they are wanted. What the source did unheard in that time is lost, so it
	// must not be long.
	CopyPatience = 4 * time.Second

	// Never is when nothing has happened: long before every other time.
	Never = time.Duration(math.MinInt64 / 2)
)

// CopyAction is what Copies want done.
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
	CopyAdmit  CopyDo = iota // effects of the source go into the partition from now on
	CopyShut                 // nobody's do
	CopyForget               // empty the partition, which is no copy then
	CopySpare                // records of the partition are the first to be evicted, or are not
	CopyRefuse               // Refusals.Refuse
	CopyAccept               // Refusals.Accept
	CopyUnseal               // Sender.Abandon, for every Sender: the partition is no more what was sealed
)

// Claim is how this node begins to serve a partition that it has gained.
type Claim struct {
	Kept bool   // with the copy that it had; or else with nothing
	Seal uint64 // of that copy, 0 if it has none
}

// Copies hold the state of the copies that a node keeps.
type Copies struct {
	broken  *Broken
	self    string          // the source of copies that this node has sealed itself
	settled *ownership.View // copies are judged by the last view that was installed to its end
	of      [ring.Partitions]Copy
	actions []CopyAction
}

// NewCopies returns the machine of a node that has no copies. broken is nil but in simulations.
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

// shut has nothing more go into a copy.
func (c *Copies) shut(p uint16) {
	if c.of[p].Fed() {
		c.do(CopyShut, p)
	}
}

// unseal ends the hand-over of a partition that this node keeps sealed, if that is still under way:
// the partition is about to change. Its new owner serves without the rest, or does not want it any
// more; what it would be sent from now on could be a part of its own data, as an older copy.
func (c *Copies) unseal(p uint16) {
	have := &c.of[p]
	if have.State == Handed && have.Source == c.self && !c.broken.HandStale {
		c.actions = append(c.actions, CopyAction{Do: CopyUnseal, Partition: p, Seal: have.Seal})
	}
}

// drop gives a copy up. What goes into it is shut out first, or some of it could arrive behind the
// emptying and would be taken for a part of the next copy.
func (c *Copies) drop(p uint16) {
	c.unseal(p)
	c.shut(p)
	c.do(CopyForget, p)
	c.of[p] = Copy{}
}

// Of returns what is known of the copy of p.
func (c *Copies) Of(p uint16) Copy { return c.of[p] }

// Marked takes a mark of a source's stream. Everything before it is applied.
func (c *Copies) Marked(source string, p uint16, m Mark, now time.Duration) {
	have := &c.of[p]
	switch m.Kind {
	case MarkBegin:
		c.begin(source, p, m.Arg)
		return
	case MarkContinue:
		sealed := have.State == Handed && (have.Seal == m.Arg || c.broken.IgnoreSeals)
		if sealed && c.settled.CopiesFrom(p, source) {
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

// begin takes the mark before a snapshot.
func (c *Copies) begin(source string, p uint16, since uint64) {
	takes := c.settled.CopiesFrom(p, source)
	if c.broken.RefuseBegin && c.settled.Standing[p] == ownership.Gained {
		takes = false
	}
	if !takes {
		if c.of[p].fedBy(source) && !c.broken.RefuseBegin {
			c.drop(p) // something of it is missing, and does not come
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

// Void gives up the copies that a source feeds: something of its stream is missing.
func (c *Copies) Void(source string) {
	for p := range uint16(ring.Partitions) {
		if c.of[p].fedBy(source) {
			c.drop(p)
		}
	}
}

// Settle has copies judged by v from now on: what older tables left is dropped.
func (c *Copies) Settle(v *ownership.View) { c.settled = v }

// Ask tells the owners of which copies this node has nothing, though v has it keep them. An owner
// may believe that there is one, of a time that the two have not seen alike, and would learn that
// with the next change only.
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

// Claim makes the copies of the partitions that v has gained this node's own; it comes after Settle
// with a view that serves them. Nobody sends the rest of a copy any more. A copy counts if it is
// whole: handed over, or in sync with an owner that cannot say more. acknowledged reports which
// nodes have ended their ownership in an orderly way: of those, what was not handed over is not
// everything. The caller serves when no effect can be on its way into the copies. lost is the
// number of partitions whose data is lost.
func (c *Copies) Claim(v *ownership.View, acknowledged func(source string) bool) (claims map[uint16]Claim, lost int) {
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
		if c.whole(&have, acknowledged) && have.Since == v.Table.Since[p] {
			claims[p] = Claim{Kept: true, Seal: have.Seal}
			c.spare(p, false)
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

// whole reports whether a copy is everything that the owner before had.
func (c *Copies) whole(have *Copy, acknowledged func(source string) bool) bool {
	switch have.State {
	case NoCopy:
	case Filling:
		return c.broken.PromoteFilling
	case Synced:
		return !acknowledged(have.Source) || c.broken.KeepUnhanded || c.broken.PromoteFilling
	case Handed:
		return true
	}
	return false
}

// Keep turns partitions that this node has just lost into copies with a seal. After an absence they
// are only kept to be sent.
func (c *Copies) Keep(self string, h *HandOver, now time.Duration) {
	if h.Away {
		now = Never
	}
	c.self = self
	for _, l := range h.Lost {
		c.shut(l.Partition)
		c.of[l.Partition] = Copy{State: Handed, Source: self, Since: l.Since, Seal: l.Seal, sealed: now}
	}
}

// Unkeep drops copies that were only kept to be sent.
func (c *Copies) Unkeep(h *HandOver) {
	for _, l := range h.Lost {
		if c.of[l.Partition].Seal == l.Seal {
			c.drop(l.Partition)
		}
	}
}

// Review drops the copies that v leaves no use for: those in which it gives this node no part,
// those whose data begins anew, and those whose owner has died, unless v makes them this node's
// own: nobody will complete them any more. After an absence all go. Copies with a seal among spared
// wait for what is still to be sent of them. present are the names of the nodes in the table or
// alive.
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

// Clear forgets all copies of a node whose storage is about to be emptied.
func (c *Copies) Clear() {
	for p := range uint16(ring.Partitions) {
		c.shut(p)
		c.of[p] = Copy{}
	}
}

// Report adds to r the partitions of which this node has a copy in sync, and those that it serves,
// by the settled view. obeyed is the view that it obeys: gained partitions are settled a moment
// before they are served. heard returns when a source was last heard, or Never.
func (c *Copies) Report(r *ring.Report, obeyed *ownership.View, now time.Duration, heard func(source string) time.Duration) {
	v := c.settled
	r.Version = v.Table.Version()
	if v.Table == nil {
		return
	}
	words := make([]time.Duration, len(v.Table.Nodes))
	names := v.OwnerNames()
	for i, name := range names {
		words[i] = heard(name)
	}
	for p := range uint16(ring.Partitions) {
		if v.Owns(p) {
			if obeyed.Table == v.Table && obeyed.Standing[p] == ownership.Serving {
				r.Add(p)
			}
			continue
		}
		owner := v.Table.Owner[p]
		if c.of[p].State != NoCopy && c.inSync(p, names[owner], words[owner], now) {
			r.Add(p)
		}
	}
}

// inSync reports whether the copy of p counts as one of the settled view's owner, which was last
// heard at the time given.
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
