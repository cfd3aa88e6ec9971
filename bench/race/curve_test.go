package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCurvesNameWhatThereIs(t *testing.T) {
	for _, c := range curves {
		seen := map[cell]bool{}
		for _, p := range c.points {
			if !slices.ContainsFunc(c.peers, func(x peer) bool { return x.name == p.peer }) {
				t.Errorf("%s has %s %s on %s, which it does not start", c.name, p.series, p.label, p.peer)
			}
			if seen[c.at(p)] {
				t.Errorf("%s has %s %s twice", c.name, p.series, p.label)
			}
			seen[c.at(p)] = true
		}
	}
}

func TestRunCurves(t *testing.T) {
	r, loads := testRace(t)
	s, fake := testStable(t), startFake(t)
	var procs []*process
	starts := func(name string) peer {
		return peer{name: name, start: func(*stable, map[string]string) (*live, error) {
			procs = append(procs, startSleeper(t, s))
			return &live{name: name, addr: fake.addr, procs: procs[len(procs)-1:]}, nil
		}}
	}
	hot := get(7, 2)
	hot.hot = 0.5
	first := curve{name: "first", peers: []peer{starts("redis"), {name: "missing", needs: []string{"no-such-tool"}}},
		points: []point{{"one", "cold", "redis", get(7, 2)}, {"one", "gone", "missing", get(1, 1)},
			{"two", "hot", "redis", hot}}}
	second := curve{name: "second", peers: []peer{starts("dunlin+3")},
		points: []point{{"one", "few", "dunlin+3", get(3, 1)}}}
	none := curve{name: "none", peers: first.peers[1:], points: first.points[1:2]}
	err := r.runCurves(t.Context(), s, []curve{none, first, second})
	if err == nil || !strings.Contains(err.Error(), "no peer") {
		t.Errorf("curves, one of them without peers, gave %v: want an error about it", err)
	}
	if len(procs) != 2 || procs[0].running() || procs[1].running() || r.live != nil {
		t.Errorf("%d processes were started for two curves, and some run after", len(procs))
	}
	var clients []int
	for _, c := range *loads {
		clients = append(clients, c.Clients)
	}
	if !slices.Equal(clients, []int{7, 7, 7, 7, 3, 3}) || (*loads)[1].Hot != 0.5 || (*loads)[2].Hot != 0.5 {
		t.Errorf("the loads are %+v: want two points, in the second round the other one first, then one point", *loads)
	}
	var out strings.Builder
	r.writeCurves(&out, []curve{first, second})
	for _, want := range []string{"\nfirst: one\n", "\nfirst: two\n", "\nsecond: one\n", "  few ",
		"missing: no-such-tool"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, out.String())
		}
	}
	if picture := string(r.drawCurves([]curve{first, second})); strings.Count(picture, "<rect") != 4 ||
		strings.Contains(picture, "gone") {
		t.Errorf("the picture is not of the ground and three bars (nobody took processor time):\n%s", picture)
	}
}

func TestWithLoops(t *testing.T) {
	f := func(loops int, want string) {
		t.Helper()
		if got := strings.Join(withLoops(loops, "node"), " "); got != want {
			t.Errorf("with %d loops a node is started by %q: want %q", loops, got, want)
		}
	}
	f(0, "node")
	f(4, "node --loops 4")
}
