package sim

import (
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/proxy/wide"
	"github.com/dunlin-cache/dunlin/ring"
)

// options are what one history begins with, and the rules that it breaks.
type options struct {
	seed   uint64
	copies int        // 0: by chance
	only   []mischief // what happens; nil: anything
	// majority sets --min-members to more than half of the nodes that there are in the beginning.
	majority bool
	// hard has the network be slow, and snapshots take long.
	hard bool
	// busy has clients talk almost without a pause.
	busy bool
	// narrow has all commands on keys concern one partition.
	narrow bool
	// overflows has logs overflow more often than by chance.
	overflows bool
	rules
}

// rules are those of the protocol that can be broken, to see that the simulation notices.
type rules struct {
	ownership ownership.Broken // those of node/ownership itself
	order     order.Broken     // those of proxy/order
	wide      wide.Broken      // those of proxy/wide

	promoteFilling    bool // a copy counts as in sync while its snapshot is still coming
	keepUnhanded      bool // a copy is kept although its living owner has not handed it over
	ignoreGenerations bool // an older generation of a pipe goes on being read
	adoptForeign      bool // members adopt any table of a later epoch
	ignoreReports     bool // plan takes every copy for one in sync
	admitAll          bool // the stream of an earlier owner goes into what is served
	ignoreSeals       bool // every copy that was handed over is continued
	ignoreSince       bool // a stream does not say of which data it is
	handOnce          bool // what is lost of a hand-over is not sent again
	refuseBegin       bool // a stream that begins again is not listened to, though its copy is kept
	copyEarly         bool // a copy is begun before what an older table left has been dropped
	handedIsNothing   bool // a copy that was handed over does not count until the new owner feeds it
	hastyOffice       bool // who takes itself for the coordinator gathers and issues at once
	officeAsleep      bool // a coordinator that was stopped goes on as if nothing had happened
	buryStrangers     bool // a node of the table that was never met is taken for dead at once
	foundAtOnce       bool // who has met another node founds a cluster before it has asked every join address
	trustSilence      bool // a copy counts as in sync however long nothing was heard of its owner
	neverAsk          bool // a node does not ask for the copies that it is to have and has not
	countSilent       bool // with --min-members, nodes count that are not yet declared dead though they do not answer
	neverShelter      bool // with one copy, the owner before is not named until the new one serves
}

// plan is ring.Plan.
func (w *world) plan(cur *ring.Table, alive []ring.Member, reports []*ring.Report, self ring.Member) *ring.Table {
	if w.ignoreReports && cur != nil {
		reports = nil
		for _, m := range alive {
			r := &ring.Report{Node: m.Name(), Version: cur.Version()}
			for p := range uint16(ring.Partitions) {
				r.Add(p)
			}
			reports = append(reports, r)
		}
	}
	next := ring.Plan(cur, alive, reports, self, w.copies, w.rng.Uint64)
	if next != nil && w.neverShelter {
		for p := range next.Follower {
			next.Follower[p] = ring.NoNode
		}
	}
	return next
}
