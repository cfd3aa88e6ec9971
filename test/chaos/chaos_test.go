package chaos

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// These tests inject faults while clients work through both proxies. history.go says what the
// clients may see. The tests measure, so they do not run in parallel.

// TestChaosCrash kills a node and starts it again under the same id.
func TestChaosCrash(t *testing.T) {
	x := startRig(t)
	victim := x.C.Node(1)
	x.during("SIGKILL "+victim.ID, victim, func() { x.Kill(victim) })
	x.during("restart "+victim.ID, victim, victim.Launch)
	x.Finish()
}

// TestChaosCrashOfCoordinator kills the oldest node, which issues the tables: the next oldest must
// issue the table without it.
func TestChaosCrashOfCoordinator(t *testing.T) {
	x := startRig(t)
	victim := x.Coordinator("")
	x.during("SIGKILL "+victim.ID, victim, func() { x.Kill(victim) })
	x.during("restart "+victim.ID, victim, victim.Launch)
	x.Finish()
}

// TestChaosPause freezes a node for a moment. The node must not be replaced, and nothing may be
// lost, because no table would explain a missing key.
func TestChaosPause(t *testing.T) {
	x := startRig(t)
	victim := x.C.Node(2)
	x.Settle("before the pauses")
	before, begin := x.Tables.Table().Epoch, time.Now()
	for _, pause := range []time.Duration{400 * time.Millisecond, 700 * time.Millisecond} {
		x.during("SIGSTOP for "+pause.String(), victim, func() {
			x.Freeze(victim)
			time.Sleep(pause)
			victim.Cont()
		})
	}
	// A machine that stands still too makes the pauses longer, and may keep the node from saying that it is alive.
	// So does the race detector on a busy machine: without it this test runs alone.
	after := x.Tables.Table().Epoch
	if after != before && !harness.RaceEnabled && x.Pulse.Missed(begin, time.Now()) < MachineLimit {
		t.Errorf("epoch %d after short pauses, want %d as before", after, before)
	}
	x.Finish()
}

// TestChaosStop freezes a node until it has been replaced, and then lets it continue.
func TestChaosStop(t *testing.T) {
	x := startRig(t)
	for _, stop := range []struct {
		victim *harness.Member
		for_   time.Duration
	}{{x.C.Node(0), 3 * time.Second}, {x.Coordinator(""), 4 * time.Second}} {
		begin := time.Now()
		x.during("SIGSTOP "+stop.victim.ID, stop.victim, func() { x.Freeze(stop.victim) })
		time.Sleep(stop.for_ - time.Since(begin))
		x.during("SIGCONT "+stop.victim.ID, stop.victim, stop.victim.Cont)
	}
	x.Finish()
}

// TestChaosJoinAndLeave lets a fourth node join, and leave in order. No client may get an error,
// and nothing may be lost.
func TestChaosJoinAndLeave(t *testing.T) {
	x := startRig(t)
	x.KeepsAll.Store(true)
	fourth := harness.NewMember(t, "node", "n4")
	fourth.Flags = x.C.Node(0).Flags
	x.C.Members = append(x.C.Members, fourth)
	begin := time.Now()
	failed := x.during("join of n4", fourth, fourth.Launch)
	var took time.Duration
	failed += x.during("end of n4 by SIGTERM", fourth, func() { took = x.leaves(fourth) })
	t.Logf("n4 ended %d ms after SIGTERM", took.Milliseconds())
	if failed > 0 && !x.disturbed(begin) {
		x.Violate("a node that joins and leaves in order caused %d errors", failed)
	}
	x.Finish()
}

// TestChaosRandom runs random faults in random order.
func TestChaosRandom(t *testing.T) {
	x := startRig(t)
	rng := rand.New(rand.NewPCG(x.Seed, 0))
	t.Logf("seed %d", x.Seed)
	for range 4 * *Rounds {
		victim := x.C.Node(rng.IntN(3))
		fault := randomFaults[rng.IntN(len(randomFaults))]
		if x.during(fault.name+" "+victim.ID, victim, func() { fault.do(x, victim, rng) }); x.FailedAlready() {
			break
		}
	}
	x.Finish()
}

// fault is one kind of fault.
type fault struct {
	name string
	do   func(*Rig, *harness.Member, *rand.Rand)
}

var randomFaults = []fault{
	{"dies, is back at once", func(x *Rig, m *harness.Member, _ *rand.Rand) {
		x.Kill(m)
		m.Launch()
	}},
	{"dies, is back later", func(x *Rig, m *harness.Member, rng *rand.Rand) {
		x.Kill(m)
		harness.SleepUpTo(2500*time.Millisecond, rng)
		m.Launch()
	}},
	{"leaves and comes back", func(x *Rig, m *harness.Member, _ *rand.Rand) {
		m.Term(harness.ReadyTimeout)
		m.Launch()
	}},
	{"stands still", func(x *Rig, m *harness.Member, rng *rand.Rand) {
		x.Freeze(m)
		harness.SleepUpTo(2500*time.Millisecond, rng)
		m.Cont()
	}},
	// A node that stumbles never stands still for long enough to notice it itself.
	{"stumbles", func(x *Rig, m *harness.Member, rng *rand.Rand) {
		for range 3 {
			x.Freeze(m)
			time.Sleep(900 * time.Millisecond)
			m.Cont()
			harness.SleepUpTo(60*time.Millisecond, rng)
		}
	}},
	{"dies while it stands still", func(x *Rig, m *harness.Member, rng *rand.Rand) {
		x.Freeze(m)
		harness.SleepUpTo(2*time.Second, rng)
		x.Kill(m)
		m.Launch()
	}},
}
