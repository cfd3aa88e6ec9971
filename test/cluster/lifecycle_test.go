package cluster

import (
	"testing"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestLifecycle lets members die, return, freeze and leave. The others must agree again each time.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 1)
	before := c.Converge(harness.ReadyTimeout)

	c.Node(2).Kill()
	if after := c.Converge(harness.ReadyTimeout); after <= before {
		t.Errorf("epoch %d after a node died, %d before", after, before)
	}
	if got := len(c.Epochs()); got != 3 {
		t.Errorf("%d members have an epoch, want 3: %v", got, c.Epochs())
	}
	c.Node(2).Start()
	c.Converge(harness.ReadyTimeout)

	c.Node(1).Stop()
	if _, err := c.Node(1).Status(); err == nil {
		t.Error("a stopped member answers")
	}
	c.Node(1).Cont()
	c.Converge(harness.ReadyTimeout)

	t.Logf("a node stops in %v", c.Node(0).Term(harness.ReadyTimeout))
	c.Converge(harness.ReadyTimeout)
}
