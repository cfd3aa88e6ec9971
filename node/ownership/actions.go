package ownership

import (
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// Action is something that the node does for its Machine. The node runs the actions of an event in
// order, before the next event.
//
// Barrier, HandOver and Claim end the actions of an event. The node answers each of them with an
// event of its own, BarrierPassed, HandedTo and Claimed, before any other event.
type Action interface{ action() }

type (
	// Obey makes the loops execute under the view, from their next input on.
	Obey struct{ View *View }

	// Barrier asks for BarrierPassed once no loop executes under an older view any more. With Holds it
	// also waits until nobody holds a partition that the view does not serve. Otherwise the node
	// reports the end of each such hold (Released).
	Barrier struct{ Holds bool }

	// HandOver ends the feeds of the partitions that Old serves and Next gives to others. New
	// owners that were fed get the rest; a partition that Next gives back to this node becomes a copy
	// of its own. What is in Next.Held stays as it is. It asks for HandedTo. Away says that the
	// cluster went on without this node, so this node drops its own copies once they are sent.
	HandOver struct {
		Old, Next *View
		Away      bool
	}

	// Reset empties the engine and ends all feeds and copies: the data is another cluster's, whose
	// hash seed differs.
	Reset struct{ Seed uint64 }

	// Drop empties partitions that this node owned and still owns, because their data begins anew.
	Drop struct{ Partitions []uint16 }

	// Review drops the copies that are of no use under the view, or all after an absence (Away).
	// Copies that are still being handed over stay.
	Review struct {
		View *View
		Away bool
	}

	// Settle says that View is completely installed: it decides about copies from now on.
	Settle struct{ View *View }

	// AskForCopies tells the owners which copies this node should have but lacks.
	AskForCopies struct{ View *View }

	// Refeed begins and ends feeds, so that every receiver is fed the served partitions that the
	// view assigns to it. After Claim, copies of the claimed partitions with the same seal are
	// continued.
	Refeed struct{ View *View }

	// Ask hands the table to a node (DUNLIN TAKE), and asks for Acknowledged or Failed with the ID.
	// Attempt counts from 0.
	Ask struct {
		ID      uint64
		Member  ring.Member
		Table   *ring.Table
		Within  time.Duration
		Attempt int
	}

	// CancelAsks cancels all Asks under way: their answers no longer matter.
	CancelAsks struct{}

	// Tell sends the table to an heir, because commands wait for the heir and gossip may take some
	// rounds. The answer does not matter.
	Tell struct {
		Member ring.Member
		Table  *ring.Table
	}

	// Claim turns the copies of the partitions that View has gained into the node's own data, if
	// they are whole, and drops the rest. View is the present one, but without what was gained and
	// is still held. It asks for Claimed. Ended reports whether the node named source has ended its
	// ownership of a partition in an orderly way: a copy from such a source is whole only if it was
	// handed over. After a failover, a copy in sync is whole. So it is if the node has died while it
	// held the partition. Ended is valid until Claimed.
	Claim struct {
		View  *View
		Ended func(source string, p uint16) bool
	}

	// Finish ends a hand-over: every heir has everything, or is dead.
	Finish struct{ HandOver uint64 }

	// Reply answers Take or Release.
	Reply struct {
		ID     uint64
		Answer Answer
		Epoch  uint64            // that the node obeys; 0 unless Obeyed
		Held   ring.PartitionSet // if Obeyed: lost, but still held, and so not handed over
	}
)

// Answer is the answer to Take and Release.
type Answer uint8

const (
	// Obeyed: except in Held, the node executes nothing under an older table, and the heirs have
	// everything.
	Obeyed      Answer = iota
	StillBusy          // the heirs do not have everything yet
	NotOfOurOwn        // the table is of another lineage: this node does not obey it
)

func (Obey) action()         {}
func (Barrier) action()      {}
func (HandOver) action()     {}
func (Reset) action()        {}
func (Drop) action()         {}
func (Review) action()       {}
func (Settle) action()       {}
func (AskForCopies) action() {}
func (Refeed) action()       {}
func (Ask) action()          {}
func (CancelAsks) action()   {}
func (Tell) action()         {}
func (Claim) action()        {}
func (Finish) action()       {}
func (Reply) action()        {}
