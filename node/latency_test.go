package node

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/measure"
)

// Of light commands one input in so many is timed, of heavy ones all, in a family of their own.
func TestLatency(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	c.want("SET k v", "OK")
	for range 10 * measure.SampleInputs {
		c.want("GET k", `"v"`)
	}
	for range 20 {
		c.want("KEYS *", `1) "k"`)
	}
	s, err := n.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Latency[command.FamilyRead].Count; got < 9 || got > 11 {
		t.Errorf("%d of %d GETs were timed, want every %dth", got, 10*measure.SampleInputs, measure.SampleInputs)
	}
	if got := s.Latency[command.FamilyHeavy].Count; got != 20 {
		t.Errorf("%d of 20 KEYS were timed", got)
	}
	if got := s.Latency[command.FamilyWide].Count; got != 0 {
		t.Errorf("%d commands were timed as those on all nodes, want them to be heavy", got)
	}
}
