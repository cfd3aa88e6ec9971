package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// testRace is a race of peers that exist in name only: processes that sleep, and
// a script for redis-benchmark that notes whom it is sent to.
func testRace(t *testing.T, body string, names ...string) (r *race, calls func() []string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "calls")
	tool := script(t, "echo $2 >>"+log+"\n"+body+"\ncat <<'END'\n"+titles+`"SET","5000","1","1","0.5","1","0.9","1"`+"\nEND\n")
	s := testStable(t)
	r = &race{work: workloads[:2], rounds: 2, scale: 0.001, keys: 10, say: io.Discard,
		tools: map[string]string{redisBenchmark: tool}, results: map[cell][]*sample{}}
	for _, name := range names {
		r.live = append(r.live, &live{name: name, addr: name + ":1", procs: []*process{startSleeper(t, s)}})
	}
	return r, func() []string {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(text))
	}
}

func TestRunTakesTurns(t *testing.T) {
	r, calls := testRace(t, "", "a", "b", "c")
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("a b c a b c b c a b c a")
	if got := calls(); !slices.Equal(got, want) {
		t.Errorf("peers were loaded in the order %v: want %v", got, want)
	}
	for _, l := range r.live {
		got := r.results[cell{"get1", l.name}]
		if len(got) != 2 || got[0] == nil || got[0].ops != 5000 || got[0].p50 != 0.5 || got[0].p99 != 0.9 || got[0].rss <= 0 {
			t.Errorf("results of %s are %+v", l.name, got)
		}
	}
}

func TestRunNotesFailures(t *testing.T) {
	r, _ := testRace(t, `[ $2 = a ] && { echo no luck >&2; exit 1; }`, "a", "b")
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(r.notes) != 4 || !strings.Contains(r.notes[0], "set1 on a failed in round 1") || !strings.Contains(r.notes[0], "no luck") {
		t.Errorf("notes are %q: want four failures of a, with the reason", r.notes)
	}
	if a, b := r.results[cell{"set1", "a"}], r.results[cell{"set1", "b"}]; len(a) != 2 || a[0] != nil || len(succeeded(b)) != 2 {
		t.Errorf("results are %v and %v: want two failures and two samples", a, b)
	}
}

func TestRunStops(t *testing.T) {
	r, calls := testRace(t, "", "a", "b")
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
	if got := calls(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("loaded %v: want the runs before the end only", got)
	}
	if len(succeeded(r.results[cell{"set1", "a"}])) != 1 {
		t.Error("what was measured before the end is gone")
	}
}

type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) { f(); return len(p), nil }

func TestPrepareLeavesOut(t *testing.T) {
	r, _ := testRace(t, "")
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
	if len(r.live) != 1 || r.live[0].name != "good" || len(fake.keys) != r.keys {
		t.Errorf("racing are %v, filled with %d keys: want good with %d", r.live, len(fake.keys), r.keys)
	}
	notes := strings.Join(r.notes, "\n")
	for _, want := range []string{"missing is left out: missing: no-such-tool", "dying is left out: dier has ended: bad setting"} {
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

func TestInspect(t *testing.T) {
	fake := startFake(t)
	if err := fill(t.Context(), fake.addr, 2*spotStep); err != nil {
		t.Fatal(err)
	}
	r := &race{keys: 2 * spotStep, say: io.Discard, live: []*live{{name: "a", addr: fake.addr}}}
	if r.inspect(t.Context()); len(r.notes) != 0 {
		t.Errorf("notes are %q though all keys are there", r.notes)
	}
	delete(fake.keys, keyName(spotStep))
	if r.inspect(t.Context()); len(r.notes) != 1 || !strings.Contains(r.notes[0], "a has lost keys (1 of 2 are gone)") {
		t.Errorf("notes are %q: want one about the lost key", r.notes)
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
	f("redis,memcached")
	f("redis,")
}
