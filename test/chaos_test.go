package test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// chaosRounds repeats what is a matter of luck: go test -run Chaos ./test -chaos.rounds 20
var chaosRounds = flag.Int("chaos.rounds", 1, "how often the chaos tests repeat what is a matter of luck")

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
			freeze(victim)
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
		x.during("SIGSTOP "+stop.victim.id, stop.victim, func() { freeze(stop.victim) })
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
		freeze(m)
		sleepUpTo(2500*time.Millisecond, rng)
		m.cont()
	}},
	{"stumbles", func(m *member, rng *rand.Rand) { // never long enough at a time to notice it by itself
		for range 3 {
			freeze(m)
			time.Sleep(900 * time.Millisecond)
			m.cont()
			sleepUpTo(60*time.Millisecond, rng)
		}
	}},
	{"dies while it stands still", func(m *member, rng *rand.Rand) {
		freeze(m)
		sleepUpTo(2*time.Second, rng)
		m.kill()
		m.launch()
	}},
}

// sleepUpTo is how long a fault lasts.
func sleepUpTo(d time.Duration, rng *rand.Rand) { time.Sleep(time.Duration(rng.Int64N(int64(d)))) }

// freeze stops a process, and returns when it has: another processor may run it for
// a moment after the signal was sent.
func freeze(m *member) {
	m.t.Helper()
	m.stop()
	eventually(m.t, epochTime, m.id+" stands still", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", m.cmd.Process.Pid))
		for _, name := range threads {
			stat, _ := os.ReadFile(name)
			// The state is behind the name, which is in brackets.
			if _, state, _ := bytes.Cut(stat, []byte(") ")); !bytes.HasPrefix(state, []byte("T")) {
				return false
			}
		}
		return len(threads) > 0
	})
}

// coordinator is the node that issues tables: of those but one that started first.
func (x *chaos) coordinator(but string) *member {
	var oldest ring.Member
	for _, m := range x.tables.table().Nodes {
		if m.ID != but && (oldest.ID == "" || m.Boot < oldest.Boot) {
			oldest = m
		}
	}
	for _, m := range x.c.byRole("node") {
		if m.id == oldest.ID {
			return m
		}
	}
	x.t.Fatalf("the coordinator %q is no node of the test", oldest.ID)
	return nil
}
