package sim

import "testing"

// TestMinMembers checks that there is one lineage of tables, however the network is cut, if
// --min-members is more than half of the nodes.
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
