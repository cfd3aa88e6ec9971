package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/bench/load"
)

// testRace is a race of peers that exist in name only: processes that sleep, and
// a load that notes who is to have it.
func testRace(t *testing.T, names ...string) (r *race, loads *[]load.Config) {
	t.Helper()
	s := testStable(t)
	loads = new([]load.Config)
	r = &race{work: workloads[:2], rounds: 2, length: time.Second, keys: 10, threads: 1, say: io.Discard,
		tools: map[string]string{}, results: map[cell][]*sample{}, steady: map[pace][]*calm{}}
	r.load = func(_ context.Context, c load.Config) (*load.Result, error) {
		*loads = append(*loads, c)
		result := &load.Result{Commands: 5000, Elapsed: time.Second}
		result.Latency.Add(500*time.Microsecond, 4900)
		result.Latency.Add(900*time.Microsecond, 100)
		return result, nil
	}
	for _, name := range names {
		r.live = append(r.live, &live{name: name, addr: name, procs: []*process{startSleeper(t, s)}})
	}
	return r, loads
}

func addrs(loads []load.Config) (all []string) {
	for _, c := range loads {
		all = append(all, c.Addr)
	}
	return all
}

func TestRunTakesTurns(t *testing.T) {
	r, loads := testRace(t, "a", "b", "c")
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("a b c a b c b c a b c a")
	if got := addrs(*loads); !slices.Equal(got, want) {
		t.Errorf("peers were loaded in the order %v: want %v", got, want)
	}
	for _, l := range r.live {
		got := r.results[cell{"get1", l.name}]
		if len(got) != 2 || got[0] == nil || got[0].ops != 5000 || got[0].p50 < 0.5 ||
			got[0].p50 > 0.52 || got[0].p99 != 0.9 {
			t.Errorf("results of %s are %+v: want two with the load's figures", l.name, got)
		}
	}
}

func TestRunNotesFailures(t *testing.T) {
	r, _ := testRace(t, "a", "b")
	works := r.load
	r.load = func(ctx context.Context, c load.Config) (*load.Result, error) {
		if c.Addr == "a" {
			return nil, errors.New("no luck")
		}
		result, err := works(ctx, c)
		result.Missed = 7
		return result, err
	}
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.runOpen(t.Context()); err != nil || len(r.steady) != len(shares) {
		t.Errorf("the open loop ran at %d paces, %v: want %d, of b alone", len(r.steady), err, len(shares))
	}
	notes := strings.Join(r.notes, "\n")
	for _, want := range []string{"set1 on a failed in round 1: no luck", "get1 on a failed in round 2",
		"get1 on b: 7 of the keys"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes are %q: want %q", notes, want)
		}
	}
	if a, b := r.results[cell{"set1", "a"}], r.results[cell{"set1", "b"}]; len(a) != 2 || a[0] != nil ||
		len(succeeded(b)) != 2 {
		t.Errorf("results are %v and %v: want two failures and two samples", a, b)
	}
}

func TestRunOpen(t *testing.T) {
	r, loads := testRace(t, "a", "b")
	for _, name := range []string{"a", "b"} {
		r.results[cell{"get1", name}] = []*sample{{ops: 1000}, nil, {ops: 2000}}
	}
	if err := r.runOpen(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("a a a b b b b b b a a a")
	if got := addrs(*loads); !slices.Equal(got, want) {
		t.Errorf("peers were loaded in the order %v: want %v", got, want)
	}
	for i, rate := range []float64{750, 1050, 1350} {
		c := (*loads)[i]
		if c.Rate != rate || c.Duration != openTimes*r.length || c.Gets != 1 {
			t.Errorf("run %d is %+v: want GET with rate %g for twice the time", i, c, rate)
		}
		x := r.steady[pace{cell{"get1", "b"}, shares[i]}]
		if len(x) != 2 || x[0].rate != rate || x[0].p50 < 0.5 || x[0].p50 > 0.52 || x[0].p999 != 0.9 {
			t.Errorf("b at %d %% has %+v: want two runs with rate %g", shares[i], x, rate)
		}
	}
}

func TestRunStops(t *testing.T) {
	r, loads := testRace(t, "a", "b")
	ctx, cancel := context.WithCancelCause(t.Context())
	// Progress is reported before every run: interrupt in the third.
	r.say = writerFunc(func() {
		if len(r.results[cell{"set1", "b"}]) == 1 {
			cancel(errLimit)
		}
	})
	if err := r.run(ctx); !errors.Is(err, errLimit) {
		t.Errorf("run gave %v: want the cause of its end", err)
	}
	// The third run has begun; its load ends by the context.
	if got := addrs(*loads); !slices.Equal(got, []string{"a", "b", "a"}) {
		t.Errorf("loaded %v: want the runs up to the end only", got)
	}
	if len(succeeded(r.results[cell{"set1", "a"}])) != 1 {
		t.Error("what was measured before the end is gone")
	}
}

type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) { f(); return len(p), nil }

func TestPrepareLeavesOut(t *testing.T) {
	r, _ := testRace(t)
	s, fake := testStable(t), startFake(t)
	good := peer{name: "good", start: func(*stable, map[string]string) (*live, error) {
		return &live{name: "good", addr: fake.addr, procs: []*process{startSleeper(t, s)}}, nil
	}}
	var half *live
	dying := peer{name: "dying", start: func(s *stable, _ map[string]string) (*live, error) {
		half = &live{name: "dying", addr: freeAddr(), procs: []*process{startSleeper(t, s)}}
		return half, half.add(s.start(roleProxy, "dier", "sh", "-c", "echo bad setting >&2; exit 1"))
	}}
	missing := peer{name: "missing", needs: []string{"no-such-tool"}}
	if err := r.prepare(t.Context(), s, []peer{missing, dying, good}); err != nil {
		t.Fatal(err)
	}
	if len(r.live) != 1 || r.live[0].name != "good" || len(fake.keys) != r.keys+2 {
		t.Errorf("racing are %v, filled with %d keys: want good with %d of 64 bytes and two others",
			r.live, len(fake.keys), r.keys)
	}
	notes := strings.Join(r.notes, "\n")
	for _, want := range []string{"missing is left out: missing: no-such-tool",
		"dying is left out: dier has ended: bad setting"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes are %q: want %q", notes, want)
		}
	}
	if half.procs[0].running() {
		t.Error("a process of the peer that was left out still runs")
	}
	r.live = nil
	if err := r.prepare(t.Context(), s, []peer{missing}); err == nil {
		t.Error("a race without any peer began")
	}
}

func TestWholeCluster(t *testing.T) {
	fake := startFake(t)
	f := func(info string, size int, want bool) {
		t.Helper()
		fake.mu.Lock()
		fake.info = info
		fake.mu.Unlock()
		if err := wholeCluster(fake.addr, size)(t.Context()); (err == nil) != want {
			t.Errorf("a node that says %q is found whole with %d nodes: %v, want %v", info, size, err, want)
		}
	}
	f("cluster_state:ok\r\ncluster_size:3\r\n", 3, true)
	f("cluster_state:ok\r\ncluster_size:2\r\n", 3, false)
	f("cluster_state:ok\r\ncluster_size:31\r\n", 3, false)
	f("cluster_state:fail\r\ncluster_size:3\r\n", 3, false)
}

func TestPick(t *testing.T) {
	f := func(list string, want ...string) {
		t.Helper()
		got, err := pick("peer", list, peers, peerName)
		if names := namesOf(got, peerName); !slices.Equal(names, want) || (err == nil) != (want != nil) {
			t.Errorf("%q picks %v, %v: want %v", list, names, err, want)
		}
	}
	f("", namesOf(peers, peerName)...)
	f("dunlin-node,redis", "redis", "dunlin-node")
	f("redis,valkey")
	f("redis,")
}
