package main

import (
	"slices"
	"testing"
)

func TestVerdict(t *testing.T) {
	f := func(g target, v float64, want string) {
		t.Helper()
		if got := g.verdict(v); got != want {
			t.Errorf("%g for %+v is %q: want %q", v, g, got, want)
		}
	}
	atLeast, atMost := target{bound: 2}, target{bound: 0.5, atMost: true}
	micros := target{bound: 20, atMost: true, unit: " µs"}
	f(atLeast, 2, "reached")
	f(atLeast, 3, "reached")
	f(atLeast, 1.5, "NOT by 25 %")
	f(atMost, 0.5, "reached")
	f(atMost, 0.1, "reached")
	f(atMost, 0.6, "NOT by 20 %")
	f(micros, -3, "reached") // the proxy was quicker than a node: noise
	f(micros, 31, "NOT by 11 µs")
}

func TestSpread(t *testing.T) {
	f := func(want string, values ...float64) {
		t.Helper()
		if got := spreadOf(values).text("%.1f"); got != want {
			t.Errorf("spread is %q: want %q", got, want)
		}
	}
	f("3.0", 3)
	f("3.0 (1.0..5.0)", 5, 1, 3)
	f("2.0 (1.0..3.0)", 3, 1)
	f("2.5 (1.0..4.0)", 4, 2, 3, 1)
}

// TestValues checks that a ratio is taken within a round, and that rounds in which one side is
// missing are left out.
func TestValues(t *testing.T) {
	at := func(ops float64) *sample { return &sample{ops: ops} }
	f := func(of, than []*sample, want ...float64) {
		t.Helper()
		if got := nodeOps.values(of, than); !slices.Equal(got, want) {
			t.Errorf("ratios are %v: want %v", got, want)
		}
	}
	f([]*sample{at(10), at(30)}, []*sample{at(10), at(10)}, 1, 3)
	f([]*sample{at(10), nil, at(8)}, []*sample{nil, at(10), at(4)}, 2)
	f([]*sample{at(10), at(30)}, []*sample{at(5)}, 2) // interrupted
	f(nil, []*sample{at(5)})
	f([]*sample{at(1)}, []*sample{at(0)})
}

func TestTargetsNameWhatThereIs(t *testing.T) {
	works, names := namesOf(workloads, workloadName), namesOf(peers, peerName)
	for _, g := range targets() {
		if !slices.Contains(works, g.work) || !slices.Contains(names, g.of) || !slices.Contains(names, g.than) {
			t.Errorf("target %q compares %s with %s in %s: one of them does not exist", g.text, g.of, g.than, g.work)
		}
	}
}
