package status

import (
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node"
)

// TestHistory checks that rates and quantiles cover the time between two samples.
func TestHistory(t *testing.T) {
	var h history
	var stats node.Stats
	now := time.Now()
	h.begin(now)
	add := func(f Member) {
		now = now.Add(2 * time.Second)
		h.add(now, &f, &Detail{latency: stats.Latency})
	}
	stats.Latency[command.FamilyRead].Note(time.Second)
	add(Member{Commands: 1000, Hits: 50})
	stats.Latency[command.FamilyRead].Note(100 * time.Microsecond)
	stats.Latency[command.FamilyWrite].Note(100 * time.Microsecond)
	add(Member{Commands: 3000, Hits: 80, Misses: 10})
	add(Member{Commands: 3000, Hits: 80, Misses: 10})
	list := h.list()
	if len(list) != 3 {
		t.Fatalf("%d samples, want 3", len(list))
	}
	if s := list[0]; s.Ops != 500 || s.HitRatio != 1 || s.P99Micros < 900_000 {
		t.Errorf("sample %+v, want 500 ops/s since the beginning, all hits, 1 s", s)
	}
	list = list[1:]
	if s := list[0]; s.Ops != 1000 || s.HitRatio != 0.75 || s.P50Micros < 90 || s.P99Micros > 130 {
		t.Errorf("sample %+v, want 1000 ops/s, three of four hits, 100 µs", s)
	}
	if s := list[1]; s.Ops != 0 || s.HitRatio != -1 || s.P50Micros != 0 {
		t.Errorf("sample %+v of a time without commands", s)
	}
	for range 2 * samplesKept {
		add(Member{Commands: 3000, Hits: 80, Misses: 10})
	}
	if got := len(h.list()); got != samplesKept {
		t.Errorf("%d samples are kept, want %d", got, samplesKept)
	}
}

// TestRecent checks that recent rates cover the last seconds only.
func TestRecent(t *testing.T) {
	var h history
	now := time.Now()
	h.begin(now)
	want := func(f Member, seconds, rate float64, hits, misses uint64) {
		t.Helper()
		h.recent(now, &f)
		if f.RecentSeconds != seconds || f.CommandsPerSecond != rate || f.RecentHits != hits || f.RecentMisses != misses {
			t.Errorf("recent are %+v, want %v commands a second, %d hits, %d misses of %v s",
				f, rate, hits, misses, seconds)
		}
	}
	want(Member{Commands: 7}, 1, 7, 0, 0) // not an infinite rate
	f := Member{}
	for range 50 { // a hit ratio of 0 for minutes, then of 1
		now = now.Add(SampleEvery)
		f.Misses += 300
		h.add(now, &f, &Detail{})
	}
	want(f, 15, 0, 0, 5*300)
	for range marksKept - 1 {
		now = now.Add(SampleEvery)
		f.Commands, f.Hits = f.Commands+600, f.Hits+300
		h.add(now, &f, &Detail{})
	}
	now = now.Add(SampleEvery / 3)
	f.Commands, f.Hits = f.Commands+200, f.Hits+100
	want(f, 16, 200, 5*300+100, 0)
	if len(h.marks) > marksKept {
		t.Errorf("%d marks are kept", len(h.marks))
	}
}
