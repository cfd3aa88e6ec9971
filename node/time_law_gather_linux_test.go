//go:build linux && !race

package node

import (
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// gatheredWords is how many words a request has at most whose keys lie in several slots: proxies refuse more keys.
const gatheredWords = 1024

// TestTimeLawOfGathered: no command that can have keys of several slots holds up the loop of the node that executes it,
// or of the one that lends values or holds partitions for it. Here, one node does both.
func TestTimeLawOfGathered(t *testing.T) {
	if !locksAreTimed {
		t.Skip("locks are not timed")
	}
	rig := newLawRig(t, startLeveled)
	rig.fill()
	before := rig.node.lists.Load()
	for _, row := range command.All() {
		if !row.Built || row.Gathers == command.NotGathered {
			continue
		}
		patterns := rowRequests(row)
		if requests := hostile[row.Name]; requests != "" {
			patterns = append(strings.Split(requests, ";"), patterns...)
		}
		for _, pattern := range patterns {
			pattern = strings.ToUpper(row.Name) + " " + strings.TrimSpace(pattern)
			if args := requestOf(pattern, gatheredWords); row.Gathered(args) != command.NotGathered {
				rig.measure("GATHER", pattern, args)
			}
		}
	}
	eventually(t, "nothing is held", func() bool { return len(rig.node.engine.Holds()) == 0 })
	eventually(t, "nothing is charged", func() bool { return rig.node.lists.Load() <= before })
}
