package test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// What operators do to a cluster and what happens to it, under load, judged by clients
// that know what they wrote. In short once each:
//
//	go test -run Scenario ./test
//
// In full, twenty times each, with a summary of what it cost: make scenarios.

// TestScenarioKill: a node dies, and comes back empty under the same id. With two
// copies only its last writes are lost, with one what it held.
func TestScenarioKill(t *testing.T) {
	for _, copies := range copiesTo(2, 1) {
		t.Run(copiesName(copies), func(t *testing.T) {
			s := startScenario(t, chaosOptions{copies: copies})
			s.rounds(func(i int) {
				victim := s.c.node(i % 3)
				s.breaks("SIGKILL", victim, copies == 2, func() { s.kill(victim) })
				s.comesBack(victim)
			})
		})
	}
}

// copiesTo is which copies to try: in short the first only.
func copiesTo(try ...int) []int {
	if *scenarioFull {
		return try
	}
	return try[:1]
}

func copiesName(copies int) string { return map[int]string{1: "one copy", 2: "two copies"}[copies] }

// comesBack starts a node again.
func (s *scenario) comesBack(m *member) {
	s.t.Helper()
	s.leaves("start", m, m.launch)
}

// TestScenarioScale: two nodes join, one after the other, and leave again.
func TestScenarioScale(t *testing.T) {
	if !*scenarioFull {
		t.Skip("TestScenarioClocks does the like, shorter (make scenarios)")
	}
	s := startScenario(t, chaosOptions{copies: 2})
	n4, n5 := s.add("n4"), s.add("n5")
	s.rounds(func(int) {
		s.leaves("join of the fourth", nil, n4.launch)
		s.leaves("join of the fifth", nil, n5.launch)
		s.leaves("leave of the fifth", nil, func() { n5.term(drainTime) })
		s.leaves("leave of the fourth", nil, func() { n4.term(drainTime) })
	})
}

// drainTime is for a node to hand over what it has, and end.
const drainTime = 30 * time.Second

// add makes the place of another node.
func (s *scenario) add(id string) *member {
	s.t.Helper()
	m := s.network.newMember(s.t, "node", id)
	m.flags = s.c.node(0).flags
	s.c.members = append(s.c.members, m)
	return m
}

// TestScenarioRollingRestart: each node ends in order and is started again, under load.
func TestScenarioRollingRestart(t *testing.T) {
	for _, copies := range copiesTo(1, 2) {
		t.Run(copiesName(copies), func(t *testing.T) {
			s := startScenario(t, chaosOptions{copies: copies})
			s.rounds(func(int) {
				for _, m := range s.c.byRole("node")[:s.few(3)] {
					s.leaves("leave", m, func() { m.term(drainTime) })
					s.comesBack(m)
				}
			})
		})
	}
}

// few is all in full, and one in short.
func (s *scenario) few(all int) int {
	if *scenarioFull {
		return all
	}
	return 1
}

// TestScenarioStop: a node stands still for so long that it is replaced, and then goes on
// as if nothing had happened.
func TestScenarioStop(t *testing.T) {
	stop := 3 * time.Second
	if *scenarioFull {
		stop = 10 * time.Second
	}
	s := startScenario(t, chaosOptions{copies: 2})
	s.rounds(func(i int) {
		victim := s.c.node(i % 3)
		begin := time.Now()
		s.breaks("SIGSTOP", victim, true, func() { s.freeze(victim) })
		time.Sleep(stop - time.Since(begin)) // so long it stands still
		s.leaves("SIGCONT", victim, victim.cont)
	})
}

// TestScenarioCoordinatorDiesInAMove: the node that issues the tables dies while data moves.
func TestScenarioCoordinatorDiesInAMove(t *testing.T) {
	for _, copies := range copiesTo(2, 1) {
		t.Run(copiesName(copies), func(t *testing.T) {
			s := startScenario(t, chaosOptions{copies: copies})
			n4 := s.add("n4")
			s.rounds(func(int) {
				victim := s.coordinator("")
				s.breaks("SIGKILL of the coordinator", victim, copies == 2, func() {
					n4.launch()
					s.awaitMoves()
					s.kill(victim)
				})
				s.comesBack(victim)
				s.leaves("leave of the fourth", nil, func() { n4.term(drainTime) })
			})
		})
	}
}

// TestScenarioNewNodeDiesInAMove: a node dies while it is being filled.
func TestScenarioNewNodeDiesInAMove(t *testing.T) {
	s := startScenario(t, chaosOptions{copies: 2})
	n4 := s.add("n4")
	s.rounds(func(int) {
		s.breaks("SIGKILL of the new node", n4, true, func() {
			n4.launch()
			s.awaitMoves()
			s.kill(n4)
		})
	})
}

// awaitMoves waits until a table has data on its way.
func (s *scenario) awaitMoves() {
	s.t.Helper()
	eventually(s.t, readyTimeout, "data moves", func() bool { return len(s.tables.table().Moves) > 0 })
}

// TestScenarioRandom: nodes come, go, die, stand still and come back, often several at
// a time and in the middle of what that brought about.
func TestScenarioRandom(t *testing.T) {
	if !*scenarioFull {
		t.Skip("TestChaosRandom does the like, shorter (make scenarios)")
	}
	s := startScenario(t, chaosOptions{copies: 2})
	s.add("n4")
	rng := rand.New(rand.NewPCG(s.seed, 0))
	s.rounds(func(int) {
		s.breaks("random faults", nil, false, func() {
			for range 1 + rng.IntN(4) {
				m := s.c.byRole("node")[rng.IntN(4)]
				s.t.Logf("%s %s: %s", clock(time.Now()), m.id, s.anyFault(m, rng))
				sleepUpTo(2*time.Second, rng)
			}
			for _, m := range s.c.byRole("node")[:3] {
				if !m.running() {
					m.launch()
				}
			}
		})
	})
}

// anyFault does something to a node, and says what.
func (s *scenario) anyFault(m *member, rng *rand.Rand) string {
	alone := len(s.runningNodes()) == 1
	switch n := rng.IntN(5); {
	case !m.running():
		m.launch()
		return "is started"
	case n == 0:
		s.kill(m)
		return "dies"
	case n == 1:
		s.kill(m)
		m.launch()
		return "dies and is back at once"
	case n == 2 && !alone:
		m.waitReady()
		m.term(drainTime)
		return "leaves"
	case n == 3:
		s.freeze(m)
		sleepUpTo(4*time.Second, rng)
		m.cont()
		return "stood still for a while"
	}
	s.freeze(m)
	sleepUpTo(4*time.Second, rng)
	s.kill(m)
	return "dies after it stood still"
}

// TestScenarioNewAddress: a node dies and is back at once, with the same id, under
// another address: as a pod that is rescheduled.
func TestScenarioNewAddress(t *testing.T) {
	s := startScenario(t, chaosOptions{copies: 1})
	s.rounds(func(i int) {
		victim := s.c.node(i % 3)
		s.breaks("back under a new address", victim, false, func() {
			s.kill(victim)
			s.replace(victim).launch()
		})
	})
}

// replace makes another place for a node with the same id.
func (s *scenario) replace(m *member) *member {
	other := newMember(s.t, m.role, m.id)
	other.flags = m.flags
	s.c.members[slices.Index(s.c.members, m)] = other
	s.tables.watch(other.addr)
	return other
}

// TestScenarioColdStart: all members start at once, in any order.
func TestScenarioColdStart(t *testing.T) {
	skipUnderRace(t)
	if testing.Short() {
		t.Skip("takes seconds")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := &cluster{t: t}
	for _, id := range []string{"n1", "n2", "n3", "n4", "n5"} {
		c.members = append(c.members, newMember(t, "node", id))
	}
	for _, id := range []string{"p1", "p2"} {
		c.members = append(c.members, newMember(t, "proxy", id))
	}
	var join []string
	for _, m := range c.members {
		join = append(join, m.gossip)
	}
	for _, m := range c.members {
		m.flags = []string{"--join", strings.Join(join, ",")}
		if m.role == "node" {
			m.flags = append(m.flags, "--memory", "64mb")
		}
	}
	rounds := *chaosRounds
	if *scenarioFull {
		rounds = max(rounds, 50)
	}
	var took []time.Duration
	for range rounds {
		begin := time.Now()
		for _, i := range rng.Perm(len(c.members)) {
			c.members[i].launch()
			sleepUpTo(100*time.Millisecond, rng)
		}
		c.waitReady()
		c.converge(readyTimeout)
		took = append(took, time.Since(begin))
		for _, m := range c.members {
			m.kill()
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
