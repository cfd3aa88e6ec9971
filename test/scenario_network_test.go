package test

import (
	"slices"
	"testing"
	"time"
)

// TestScenarioCutNodes: a node with a proxy is cut off from all others, and the cut heals.
func TestScenarioCutNodes(t *testing.T) {
	s, done := startScenarioInNetwork(t)
	if done {
		return
	}
	s.rounds(func(i int) {
		island := []*member{s.c.node(i % 3), s.c.proxy(1)}
		rest := s.allBut(island...)
		s.divide()
		s.outage = max(s.outage, s.cutTime(i)) // commands are held, in vain
		cut(t, island, rest)
		time.Sleep(s.cutTime(i)) // so long it lasts
		s.step("healed cut of a node", nil, func() { heal(t, island, rest) })
		s.unite()
		s.leaves("after the cut", nil, func() {})
	})
}

// TestScenarioCutBetweenNodes: a node does not reach the other nodes, but the proxies do
// reach it, and everybody hears of it through them.
func TestScenarioCutBetweenNodes(t *testing.T) {
	s, done := startScenarioInNetwork(t)
	if done {
		return
	}
	s.rounds(func(i int) {
		one := []*member{s.c.node(i % 3)}
		others := s.allBut(append(one, s.c.byRole("proxy")...)...)
		s.divide()
		s.outage = max(s.outage, s.cutTime(i)) // commands are held, in vain
		cut(t, one, others)
		time.Sleep(s.cutTime(i))
		s.step("healed cut between nodes", nil, func() { heal(t, one, others) })
		s.unite()
		s.leaves("after the cut", nil, func() {})
	})
}

// TestScenarioCutProxy: a proxy does not reach a node that all others reach. It does not
// hand the node's partitions to anybody.
func TestScenarioCutProxy(t *testing.T) {
	s, done := startScenarioInNetwork(t)
	if done {
		return
	}
	s.rounds(func(i int) {
		before := s.tables.table().Epoch
		s.outage = max(s.outage, s.cutTime(i)) // commands are held, in vain
		one, other := []*member{s.c.node(i % 3)}, []*member{s.c.proxy(i % 2)}
		s.keepsAll.Store(true)
		s.step("cut of a proxy and a node, healed", one[0], func() {
			cut(t, one, other)
			time.Sleep(s.cutTime(i))
			heal(t, one, other)
		})
		if after := s.tables.table().Epoch; after != before {
			s.violate("epoch %d after a proxy did not reach a node, %d before", after, before)
		}
	})
}

func startScenarioInNetwork(t *testing.T) (s *scenario, done bool) {
	t.Helper()
	skipUnderRace(t)
	if testing.Short() {
		t.Skip("takes seconds, and loads the machine")
	}
	n := inNetwork(t)
	if n == nil {
		return nil, true
	}
	return startScenario(t, chaosOptions{copies: 2, network: n}), false
}

// cutTime is how long a cut lasts: from 5 s to 2 min.
func (s *scenario) cutTime(round int) time.Duration {
	if !*scenarioFull {
		return 3 * time.Second
	}
	return []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second, 2 * time.Minute}[round%4]
}

// allBut are the other members.
func (s *scenario) allBut(some ...*member) (others []*member) {
	for _, m := range s.c.members {
		if !slices.Contains(some, m) {
			others = append(others, m)
		}
	}
	return others
}
