package scenarios

import (
	"slices"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/chaos"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestScenarioCutNodes cuts off a node and a proxy from all other members, and heals the cut.
func TestScenarioCutNodes(t *testing.T) {
	s, done := startScenarioInNetwork(t)
	if done {
		return
	}
	s.rounds(func(i int) {
		island := []*harness.Member{s.C.Node(i % 3), s.C.Proxy(1)}
		rest := s.allBut(island...)
		s.Divide()
		s.Outage = max(s.Outage, s.cutTime(i)) // commands are parked, in vain
		harness.Cut(t, island, rest)
		time.Sleep(s.cutTime(i)) // the length of the cut
		s.step("healed cut of a node", nil, func() { harness.Heal(t, island, rest) })
		s.unite()
		s.leaves("after the cut", nil, func() {})
	})
}

// TestScenarioCutBetweenNodes cuts off a node from the other nodes. The proxies still reach it, and
// all members hear of it through them.
func TestScenarioCutBetweenNodes(t *testing.T) {
	s, done := startScenarioInNetwork(t)
	if done {
		return
	}
	s.rounds(func(i int) {
		one := []*harness.Member{s.C.Node(i % 3)}
		others := s.allBut(append(one, s.C.ByRole("proxy")...)...)
		s.Divide()
		s.Outage = max(s.Outage, s.cutTime(i)) // commands are parked, in vain
		harness.Cut(t, one, others)
		time.Sleep(s.cutTime(i))
		s.step("healed cut between nodes", nil, func() { harness.Heal(t, one, others) })
		s.unite()
		s.leaves("after the cut", nil, func() {})
	})
}

// TestScenarioCutProxy cuts off a proxy from one node that all others reach. The proxy must not
// send commands for the node's partitions to other nodes.
func TestScenarioCutProxy(t *testing.T) {
	s, done := startScenarioInNetwork(t)
	if done {
		return
	}
	harness.Eventually(t, time.Minute, "the cluster has its level", func() bool { return s.Tables.Table().Level == ring.Level })
	s.rounds(func(i int) {
		before := s.Tables.Table().Epoch
		s.Outage = max(s.Outage, s.cutTime(i)) // commands are parked, in vain
		one, other := []*harness.Member{s.C.Node(i % 3)}, []*harness.Member{s.C.Proxy(i % 2)}
		s.KeepsAll.Store(true)
		s.step("cut of a proxy and a node, healed", one[0], func() {
			harness.Cut(t, one, other)
			time.Sleep(s.cutTime(i))
			harness.Heal(t, one, other)
		})
		if after := s.Tables.Table().Epoch; after != before {
			s.Violate("epoch %d after a proxy did not reach a node, %d before", after, before)
		}
	})
}

func startScenarioInNetwork(t *testing.T) (s *scenario, done bool) {
	t.Helper()
	harness.SkipUnderRace(t)
	if testing.Short() {
		t.Skip("takes seconds, and loads the machine")
	}
	n := harness.InNetwork(t)
	if n == nil {
		return nil, true
	}
	return startScenario(t, chaos.Options{Copies: 2, Network: n}), false
}

// cutTime is how long a cut lasts: from 5 s to 2 min.
func (s *scenario) cutTime(round int) time.Duration {
	if !*scenarioFull {
		return 3 * time.Second
	}
	return []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second, 2 * time.Minute}[round%4]
}

// allBut returns the other members.
func (s *scenario) allBut(some ...*harness.Member) (others []*harness.Member) {
	for _, m := range s.C.Members {
		if !slices.Contains(some, m) {
			others = append(others, m)
		}
	}
	return others
}
