package test

import (
	"math/rand/v2"
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
	x.during("restart "+victim.id, victim, victim.launch)
	x.finish()
}

// TestChaosCrashOfCoordinator: the oldest node issues the tables; its successor must
// issue the one without it.
func TestChaosCrashOfCoordinator(t *testing.T) {
	x := startChaos(t)
	victim := x.coordinator("")
	x.during("SIGKILL "+victim.id, victim, victim.kill)
	x.during("restart "+victim.id, victim, victim.launch)
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
	}{{x.c.node(0), 3 * time.Second}, {x.coordinator(""), 4 * time.Second}} {
		begin := time.Now()
		x.during("SIGSTOP "+stop.victim.id, stop.victim, func() { stop.victim.stop() })
		time.Sleep(stop.for_ - time.Since(begin))
		x.during("SIGCONT "+stop.victim.id, stop.victim, stop.victim.cont)
	}
	x.finish()
}

// TestChaosJoinAndLeave: a fourth node joins, and leaves in order. Nobody gets an error, and
// nothing is lost.
func TestChaosJoinAndLeave(t *testing.T) {
	x := startChaos(t)
	x.keepsAll.Store(true)
	fourth := newMember(t, "node", "n4")
	fourth.flags = x.c.node(0).flags
	x.c.members = append(x.c.members, fourth)
	failed := x.during("join of n4", fourth, fourth.launch)
	var took time.Duration
	failed += x.during("end of n4 by SIGTERM", fourth, func() { took = fourth.term(epochTime) })
	t.Logf("n4 ended %d ms after SIGTERM", took.Milliseconds())
	if failed > 0 {
		x.violate("a node that joins and leaves in order caused %d errors", failed)
	}
	x.finish()
}

// TestChaosRandom: whatever else may happen to a node, in any order.
func TestChaosRandom(t *testing.T) {
	x := startChaos(t)
	rng := rand.New(rand.NewPCG(x.seed, 0))
	t.Logf("seed %d", x.seed)
	for range 4 * *chaosRounds {
		victim := x.c.node(rng.IntN(3))
		fault := randomFaults[rng.IntN(len(randomFaults))]
		if x.during(fault.name+" "+victim.id, victim, func() { fault.do(victim, rng) }); x.failedAlready() {
			break
		}
	}
	x.finish()
}

// fault is what may happen to a node.
type fault struct {
	name string
	do   func(*member, *rand.Rand)
}

var randomFaults = []fault{
	{"dies, is back at once", func(m *member, _ *rand.Rand) {
		m.kill()
		m.launch()
	}},
	{"dies, is back later", func(m *member, rng *rand.Rand) {
		m.kill()
		sleepUpTo(2500*time.Millisecond, rng)
		m.launch()
	}},
	{"leaves and comes back", func(m *member, _ *rand.Rand) {
		m.term(epochTime)
		m.launch()
	}},
	{"stands still", func(m *member, rng *rand.Rand) {
		m.stop()
		sleepUpTo(2500*time.Millisecond, rng)
		m.cont()
	}},
	{"stumbles", func(m *member, rng *rand.Rand) { // never long enough at a time to notice it by itself
		for range 3 {
			m.stop()
			time.Sleep(900 * time.Millisecond)
			m.cont()
			sleepUpTo(60*time.Millisecond, rng)
		}
	}},
	{"dies while it stands still", func(m *member, rng *rand.Rand) {
		m.stop()
		sleepUpTo(2*time.Second, rng)
		m.kill()
		m.launch()
	}},
}
