package test

import (
	"testing"
	"time"
)

// TestLifecycle: members die, return, freeze, leave; the others always agree again.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, 1)
	before := c.converge(time.Second)

	c.node(2).kill()
	if after := c.converge(readyTimeout); after <= before {
		t.Errorf("epoch %d after a node died, %d before", after, before)
	}
	if got := len(c.epochs()); got != 3 {
		t.Errorf("%d members have an epoch, want 3: %v", got, c.epochs())
	}
	c.node(2).start()
	c.converge(readyTimeout)

	c.node(1).stop()
	if _, err := c.node(1).status(); err == nil {
		t.Error("a stopped member answers")
	}
	c.node(1).cont()
	c.converge(readyTimeout)

	t.Logf("a node stops in %v", c.node(0).term(readyTimeout))
	c.converge(readyTimeout)
}
