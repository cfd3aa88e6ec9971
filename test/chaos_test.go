package test

import (
	"testing"
	"time"
)

// These tests hurt real processes while clients work through both proxies. What the
// clients may see is in chaos_history_test.go; see also startChaos. They do not run
// beside other tests of this package, since they measure.

// TestChaosCrash: a node dies, and comes back under the same id.
func TestChaosCrash(t *testing.T) {
	x := startChaos(t)
	victim := x.c.node(1)
	x.during("SIGKILL "+victim.id, victim, victim.kill)
	x.during("restart "+victim.id, victim, victim.start)
	x.finish()
}

// TestChaosCrashOfCoordinator: the oldest node issues the tables; its successor must
// issue the one without it.
func TestChaosCrashOfCoordinator(t *testing.T) {
	x := startChaos(t)
	victim := x.coordinator()
	x.during("SIGKILL "+victim.id, victim, victim.kill)
	x.during("restart "+victim.id, victim, victim.start)
	x.finish()
}

// TestChaosPause: a node that stands still for a moment is not replaced, and nothing
// is lost: no table explains a missing key.
func TestChaosPause(t *testing.T) {
	x := startChaos(t)
	victim := x.c.node(2)
	before := x.tables.table().Epoch
	for _, pause := range []time.Duration{400 * time.Millisecond, 700 * time.Millisecond} {
		x.during("SIGSTOP for "+pause.String(), victim, func() {
			victim.stop()
			time.Sleep(pause)
			victim.cont()
		})
	}
	if after := x.tables.table().Epoch; after != before {
		t.Errorf("epoch %d after short pauses, want %d as before", after, before)
	}
	x.finish()
}

// TestChaosStop: a node stands still for long enough to be replaced, and then goes on
// as if nothing had happened.
func TestChaosStop(t *testing.T) {
	x := startChaos(t)
	for _, stop := range []struct {
		victim *member
		for_   time.Duration
	}{{x.c.node(0), 3 * time.Second}, {x.coordinator(), 4 * time.Second}} {
		begin := time.Now()
		x.during("SIGSTOP "+stop.victim.id, stop.victim, stop.victim.stop)
		time.Sleep(stop.for_ - time.Since(begin))
		x.during("SIGCONT "+stop.victim.id, stop.victim, stop.victim.cont)
	}
	x.finish()
}

// TestChaosJoinAndLeave: a fourth node joins, and leaves in order. Nobody gets an error.
func TestChaosJoinAndLeave(t *testing.T) {
	x := startChaos(t)
	fourth := newMember(t, "node", "n4")
	fourth.flags = x.c.node(0).flags
	x.c.members = append(x.c.members, fourth)
	failed := x.during("join of n4", fourth, fourth.start)
	failed += x.during("SIGTERM n4", fourth, func() { fourth.term(epochTime) })
	if failed > 0 {
		x.violate("a node that joins and leaves in order caused %d errors", failed)
	}
	x.finish()
}

// coordinator is the node that issues tables: the one that started first.
func (x *chaos) coordinator() *member {
	t := x.tables.table()
	oldest := t.Nodes[0]
	for _, m := range t.Nodes {
		if m.Boot < oldest.Boot {
			oldest = m
		}
	}
	for _, m := range x.c.byRole("node") {
		if m.id == oldest.ID {
			return m
		}
	}
	x.t.Fatalf("the coordinator %s is no node of the test", oldest.ID)
	return nil
}
