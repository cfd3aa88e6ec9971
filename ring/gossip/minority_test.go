package gossip

import (
	"context"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// TestMinority: who sees fewer nodes than it must changes nothing, says so, and
// confirms nothing, until it sees them again.
func TestMinority(t *testing.T) {
	w := newWorld(t)
	few := make(chan string, 100)
	two := func(c *Config) {
		c.MinMembers = 2
		c.OnMinority = func() { few <- c.Self.ID }
	}
	a := w.start("a", nil, two)
	b := w.start("b", []*testAgent{a}, two)
	c := w.start("c", []*testAgent{a}, two)
	all := []*testAgent{a, b, c}
	w.settled(all...)

	w.split(a) // the coordinator
	w.settled(b, c)
	select {
	case who := <-few:
		if who != "a" {
			t.Errorf("%s is told that it is in the minority, want a", who)
		}
	case <-time.After(10 * converged):
		t.Fatal("a is not told that it is in the minority")
	}
	// When it had lost one of them, but not yet the other, it was no minority.
	if nodes := a.Table().Nodes; len(nodes) < 2 {
		t.Errorf("a, alone, issued a table of %d nodes", len(nodes))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*a.SuspicionTime())
	defer cancel()
	if table, err := a.Confirm(ctx); err == nil {
		t.Errorf("a, alone, confirmed table %v", table.Version())
	}

	w.heal()
	w.settled(all...)
	ctx, cancel = context.WithTimeout(t.Context(), 3*converged)
	defer cancel()
	if table, err := a.Confirm(ctx); err != nil || table.Version() != b.Table().Version() {
		t.Errorf("healed, a confirms %v, %v, want the table of b", table.Version(), err)
	}
	select {
	case who := <-few:
		t.Errorf("%s is told once more that it is in the minority", who)
	default:
	}
}

// TestMinorityFoundsNothing: a cluster begins when enough nodes have met.
func TestMinorityFoundsNothing(t *testing.T) {
	w := newWorld(t)
	steps := make(chan struct{}, 100)
	two := func(c *Config) {
		c.MinMembers = 2
		c.OnMembers = func([]ring.Member) { steps <- struct{}{} }
	}
	a := w.start("a", nil, two)
	<-steps
	a.SetState(ring.Joining)
	<-steps // one whole step, as a node that serves, lies behind it
	a.SetState(ring.Serving)
	if a.Table() != nil {
		t.Error("a, alone, founded a cluster")
	}
	b := w.start("b", []*testAgent{a}, two)
	w.settled(a, b)
}
