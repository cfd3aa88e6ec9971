package scenarios

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/chaos"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestScenarioKill kills a node and starts it again, empty, under the same id. With two copies only
// its last writes may be lost; with one copy, all its data.
func TestScenarioKill(t *testing.T) {
	for _, copies := range copiesTo(2, 1) {
		t.Run(copiesName(copies), func(t *testing.T) {
			s := startScenario(t, chaos.Options{Copies: copies})
			s.AwaitCollections()
			s.rounds(func(i int) {
				victim := s.C.Node(i % 3)
				s.breaks("SIGKILL", victim, copies == 2, func() { s.Kill(victim) })
				s.comesBack(victim)
			})
		})
	}
}

// copiesTo returns the numbers of copies to try: in the short form the first only.
func copiesTo(try ...int) []int {
	if *scenarioFull {
		return try
	}
	return try[:1]
}

func copiesName(copies int) string { return map[int]string{1: "one copy", 2: "two copies"}[copies] }

// comesBack starts a node again.
func (s *scenario) comesBack(m *harness.Member) {
	s.T.Helper()
	s.leaves("start", m, m.Launch)
}

// TestScenarioScale adds two nodes, one after the other, and lets them leave again.
func TestScenarioScale(t *testing.T) {
	if !*scenarioFull {
		t.Skip("TestScenarioClocks does the like, shorter (make scenarios)")
	}
	s := startScenario(t, chaos.Options{Copies: 2})
	n4, n5 := s.add("n4"), s.add("n5")
	s.rounds(func(int) {
		s.leaves("join of the fourth", nil, n4.Launch)
		s.leaves("join of the fifth", nil, n5.Launch)
		s.leaves("leave of the fifth", nil, func() { n5.Term(drainTime) })
		s.leaves("leave of the fourth", nil, func() { n4.Term(drainTime) })
	})
}

// drainTime is how long a node may take to hand over its partitions and end.
const drainTime = 30 * time.Second

// add returns another node, not running yet.
func (s *scenario) add(id string) *harness.Member {
	s.T.Helper()
	m := s.Network.NewMember(s.T, "node", id)
	m.Flags = s.C.Node(0).Flags
	s.C.Members = append(s.C.Members, m)
	return m
}

// TestScenarioRollingRestart ends each node in order and starts it again, under load.
func TestScenarioRollingRestart(t *testing.T) {
	for _, copies := range copiesTo(1, 2) {
		t.Run(copiesName(copies), func(t *testing.T) {
			s := startScenario(t, chaos.Options{Copies: copies})
			s.rounds(func(int) {
				for _, m := range s.C.ByRole("node")[:s.few(3)] {
					s.leaves("leave", m, func() { m.Term(drainTime) })
					s.comesBack(m)
				}
			})
		})
	}
}

// few returns all in the full form, and one in the short form.
func (s *scenario) few(all int) int {
	if *scenarioFull {
		return all
	}
	return 1
}

// TestScenarioStop freezes a node until it has been replaced, and then lets it continue.
func TestScenarioStop(t *testing.T) {
	stop := 3 * time.Second
	if *scenarioFull {
		stop = 10 * time.Second
	}
	s := startScenario(t, chaos.Options{Copies: 2})
	s.rounds(func(i int) {
		victim := s.C.Node(i % 3)
		begin := time.Now()
		s.breaks("SIGSTOP", victim, true, func() { s.Freeze(victim) })
		time.Sleep(stop - time.Since(begin)) // how long the node stands still
		s.leaves("SIGCONT", victim, victim.Cont)
	})
}

// TestScenarioCoordinatorDiesInAMove kills the coordinator while data moves.
func TestScenarioCoordinatorDiesInAMove(t *testing.T) {
	for _, copies := range copiesTo(2, 1) {
		t.Run(copiesName(copies), func(t *testing.T) {
			s := startScenario(t, chaos.Options{Copies: copies})
			n4 := s.add("n4")
			s.rounds(func(int) {
				victim := s.Coordinator("")
				s.breaks("SIGKILL of the coordinator", victim, copies == 2, func() {
					n4.Launch()
					s.awaitMoves()
					s.Kill(victim)
				})
				s.comesBack(victim)
				s.leaves("leave of the fourth", nil, func() { n4.Term(drainTime) })
			})
		})
	}
}

// TestScenarioNewNodeDiesInAMove kills a node while it receives its partitions.
func TestScenarioNewNodeDiesInAMove(t *testing.T) {
	s := startScenario(t, chaos.Options{Copies: 2})
	n4 := s.add("n4")
	s.rounds(func(int) {
		s.breaks("SIGKILL of the new node", n4, true, func() {
			n4.Launch()
			s.awaitMoves()
			s.Kill(n4)
		})
	})
}

// awaitMoves waits until partitions move in the table.
func (s *scenario) awaitMoves() {
	s.T.Helper()
	harness.Eventually(s.T, harness.ReadyTimeout, "data moves", func() bool { return len(s.Tables.Table().Moves) > 0 })
}

// TestScenarioRandom lets nodes join, leave, die, freeze and return, often several at a time and
// while the cluster still reacts to an earlier fault.
func TestScenarioRandom(t *testing.T) {
	if !*scenarioFull {
		t.Skip("TestChaosRandom does the like, shorter (make scenarios)")
	}
	s := startScenario(t, chaos.Options{Copies: 2})
	s.add("n4")
	rng := rand.New(rand.NewPCG(s.Seed, 0))
	s.rounds(func(int) {
		s.breaks("random faults", nil, false, func() {
			for range 1 + rng.IntN(4) {
				m := s.C.ByRole("node")[rng.IntN(4)]
				s.T.Logf("%s %s: %s", chaos.Clock(time.Now()), m.ID, s.anyFault(m, rng))
				harness.SleepUpTo(2*time.Second, rng)
			}
			for _, m := range s.C.ByRole("node")[:3] {
				if !m.Running() {
					m.Launch()
				}
			}
		})
	})
}

// anyFault injects a random fault into a node, and returns its name.
func (s *scenario) anyFault(m *harness.Member, rng *rand.Rand) string {
	alone := len(s.RunningNodes()) == 1
	switch n := rng.IntN(5); {
	case !m.Running():
		m.Launch()
		return "is started"
	case n == 0:
		s.Kill(m)
		return "dies"
	case n == 1:
		s.Kill(m)
		m.Launch()
		return "dies and is back at once"
	case n == 2 && !alone:
		m.WaitReady()
		m.Term(drainTime)
		return "leaves"
	case n == 3:
		s.Freeze(m)
		harness.SleepUpTo(4*time.Second, rng)
		m.Cont()
		return "stood still for a while"
	}
	s.Freeze(m)
	harness.SleepUpTo(4*time.Second, rng)
	s.Kill(m)
	return "dies after it stood still"
}

// TestScenarioNewAddress kills a node and starts it at once with the same id at another address,
// like a rescheduled pod.
func TestScenarioNewAddress(t *testing.T) {
	s := startScenario(t, chaos.Options{Copies: 1})
	s.rounds(func(i int) {
		victim := s.C.Node(i % 3)
		s.breaks("back under a new address", victim, false, func() {
			s.Kill(victim)
			s.replace(victim).Launch()
		})
	})
}

// replace returns a node with the same id at other addresses.
func (s *scenario) replace(m *harness.Member) *harness.Member {
	other := harness.NewMember(s.T, m.Role, m.ID)
	other.Flags = m.Flags
	s.C.Members[slices.Index(s.C.Members, m)] = other
	s.Tables.Watch(other.Addr)
	return other
}

// TestScenarioColdStart starts all members at once, in any order.
func TestScenarioColdStart(t *testing.T) {
	harness.SkipUnderRace(t)
	if testing.Short() {
		t.Skip("takes seconds")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := &harness.Cluster{T: t}
	for _, id := range []string{"n1", "n2", "n3", "n4", "n5"} {
		c.Members = append(c.Members, harness.NewMember(t, "node", id))
	}
	for _, id := range []string{"p1", "p2"} {
		c.Members = append(c.Members, harness.NewMember(t, "proxy", id))
	}
	var join []string
	for _, m := range c.Members {
		join = append(join, m.Gossip)
	}
	for _, m := range c.Members {
		m.Flags = []string{"--join", strings.Join(join, ",")}
		if m.Role == "node" {
			m.Flags = append(m.Flags, "--memory", "64mb")
		}
	}
	rounds := *chaos.Rounds
	if *scenarioFull {
		rounds = max(rounds, 50)
	}
	var took []time.Duration
	for range rounds {
		begin := time.Now()
		for _, i := range rng.Perm(len(c.Members)) {
			c.Members[i].Launch()
			harness.SleepUpTo(100*time.Millisecond, rng)
		}
		c.WaitReady()
		c.Converge(harness.ReadyTimeout)
		took = append(took, time.Since(begin))
		for _, m := range c.Members {
			m.Kill()
		}
		if last := took[len(took)-1]; last > coldStartTime {
			t.Errorf("all members started at once are one cluster after %v, want at most %v", last, coldStartTime)
			break
		}
	}
	t.Logf("SUMMARY cold start, %d times; median/p99/worst: one cluster after %s ms", len(took),
		distribution(took, func(d time.Duration) float64 { return float64(d.Milliseconds()) }))
}

const coldStartTime = 10 * time.Second
