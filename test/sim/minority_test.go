package sim

import (
	"testing"

	"github.com/dunlin-cache/dunlin/ring"
)

// --min-members, after ring/gossip's govern.go and tables.go: atLeast is what it is set to, 0 nothing.

func (a *agent) minority(members []ring.Member) bool {
	return len(a.otherNodes(members))+1 < a.w.atLeast
}

// noteMinority fences the node when there are too few for a table that is there.
func (a *agent) noteMinority(members []ring.Member) {
	few := a.table != nil && a.p.node != nil && a.minority(members)
	if few && !a.few {
		a.p.node.fence("there are too few nodes")
	}
	a.few = few
}

// hearsEnough asks all nodes for a sign of life, and tells whether there are enough.
func (a *agent) hearsEnough(members []ring.Member, done func(bool)) {
	if a.w.atLeast == 0 || a.w.countSilent {
		done(true)
		return
	}
	each(a, a.otherNodes(members), fetchTimeout, func(at *proc) *node { return at.node }, func(answers []*node) {
		done(len(answers)+1 >= a.w.atLeast)
	})
}

// TestMinMembers: with --min-members more than half of the nodes there is one lineage of tables, however the network is cut.
func TestMinMembers(t *testing.T) {
	count := uint64(15)
	if testing.Short() {
		count = 5
	}
	if *rounds != 0 {
		count = uint64(*rounds)
	}
	o := options{majority: true, only: []mischief{cuts, stops}}
	for o.seed = 1; o.seed <= count; o.seed++ {
		if w := history(o); w.fault != "" {
			t.Fatalf("seed %d: %s\n%s", o.seed, w.fault, w.trace(120))
		}
	}
}
