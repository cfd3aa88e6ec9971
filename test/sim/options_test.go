package sim

import (
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/replica"
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
	replica   replica.Broken   // those of node/replica itself
	order     order.Broken     // those of proxy/order
	wide      wide.Broken      // those of proxy/wide

	ignoreGenerations bool // an older generation of a pipe goes on being read
	adoptForeign      bool // members adopt any table of a later epoch
	ignoreReports     bool // plan takes every copy for one in sync
	hastyOffice       bool // who takes itself for the coordinator gathers and issues at once
	officeAsleep      bool // a coordinator that was stopped goes on as if nothing had happened
	buryStrangers     bool // a node of the table that was never met is taken for dead at once
	foundAtOnce       bool // who has met another node founds a cluster before it has asked every join address
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
