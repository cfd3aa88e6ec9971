package gossip

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// TestMinority: who sees fewer nodes than it must changes nothing, says so, and confirms nothing,
// until it sees them again.
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
	common := a.Table().Version()

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
	if got := a.Table().Version(); got != common {
		t.Errorf("a, alone, issued table %v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*a.SuspicionTime())
	defer cancel()
	if table, err := a.Confirm(ctx, a.Table()); err == nil {
		t.Errorf("a, alone, confirmed table %v", table.Version())
	}

	w.heal()
	w.settled(all...)
	ctx, cancel = context.WithTimeout(t.Context(), 3*converged)
	defer cancel()
	if table, err := a.Confirm(ctx, a.Table()); err != nil || table.Version() != b.Table().Version() {
		t.Errorf("healed, a confirms %v, %v, want the table of b", table.Version(), err)
	}
	select {
	case who := <-few:
		t.Errorf("%s is told once more that it is in the minority", who)
	default:
	}
}

// TestMinorityNotYetKnown: when gossip has not yet declared dead all those that are lost, the
// others are enough in number but do not answer.
func TestMinorityNotYetKnown(t *testing.T) {
	w := newWorld(t)
	three := func(c *Config) { c.MinMembers = 3 }
	a := w.start("a", nil, three)
	b := w.start("b", []*testAgent{a}, three)
	c := w.start("c", []*testAgent{a}, three)
	d := w.start("d", []*testAgent{a}, three)
	w.settled(a, b, c, d)
	before := a.Table().Version()

	c.deaf.Store(true)
	w.crash(d)
	w.eventually(converged, func() string {
		if n := len(a.Members()); n != 3 {
			return fmt.Sprintf("a sees %d members, want 3", n)
		}
		return ""
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if table, err := a.Confirm(ctx, a.Table()); err == nil {
		t.Errorf("a confirmed table %v with b alone", table.Version())
	}
	// It has had a second, and needs less for a table.
	if got := a.Table().Version(); got != before {
		t.Errorf("a issued table %v with b alone", got)
	}

	c.deaf.Store(false)
	w.settled(a, b, c)
	ctx, cancel = context.WithTimeout(t.Context(), converged)
	defer cancel()
	if table, err := a.Confirm(ctx, a.Table()); err != nil || table.Version() == before {
		t.Errorf("a confirms %v, %v, want a table without d", table.Version(), err)
	}
}

// TestMinorityGetsATable: one that comes when there are too few nodes anyway is not to be served
// either.
func TestMinorityGetsATable(t *testing.T) {
	w := newWorld(t)
	few, seen := make(chan struct{}, 100), make(chan struct{}, 100)
	a := w.start("a", nil, func(c *Config) {
		c.MinMembers = 2
		c.OnMembers = func([]ring.Member) { seen <- struct{}{} }
		c.OnMinority = func() { few <- struct{}{} }
	})
	<-seen
	a.Adopt(ring.Plan(nil, a.Members(), nil, a.cfg.Self, 1, newSeed))
	select {
	case <-few:
	case <-time.After(converged):
		t.Error("a, alone with a table, is not told that it is in the minority")
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
