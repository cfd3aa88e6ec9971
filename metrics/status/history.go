package status

import (
	"slices"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/figures"
)

const (
	// SampleEvery is the time from one Sample of a member to the next.
	SampleEvery = 3 * time.Second
	samplesKept = 100 // five minutes
	// marksKept makes recent rates cover 15 to 18 s in every process: long enough for the ratio of
	// few lookups, short enough to follow changes.
	marksKept = 6
)

// Sample is what a member did since the previous sample. If no command was timed, the latencies are
// 0; if no key was looked up, HitRatio is negative.
type Sample struct {
	UnixMilli int64   `json:"unix_milli"`
	Ops       float64 `json:"ops"` // per second
	HitRatio  float64 `json:"hit_ratio"`
	P50Micros float64 `json:"p50_micros"`
	P99Micros float64 `json:"p99_micros"`
}

// mark has a member's counters at one time.
type mark struct {
	at                     time.Time
	commands, hits, misses uint64
}

func markOf(at time.Time, f *Member) mark { return mark{at, f.Commands, f.Hits, f.Misses} }

// since returns what was counted since before, and in how many seconds.
func (m mark) since(before mark) (counted mark, seconds float64) {
	counted = mark{m.at, m.commands - before.commands, m.hits - before.hits, m.misses - before.misses}
	return counted, m.at.Sub(before.at).Seconds()
}

// history keeps the latest samples of a member.
type history struct {
	mu      sync.Mutex
	samples []Sample // oldest first
	marks   []mark   // oldest first, at the times of samples; never empty after begin

	times figures.Durations // at the last sample; only used by the goroutine that adds
}

// begin records the start of the member, with all counters at 0.
func (h *history) begin(now time.Time) { h.marks = append(h.marks, mark{at: now}) }

// recent stores the member's recent rates in its figures.
func (h *history) recent(now time.Time, f *Member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := markOf(now, f)
	counted, seconds := m.since(h.marks[0])
	f.RecentSeconds = max(1, seconds) // a member that has just started has no rate yet
	f.CommandsPerSecond = float64(counted.commands) / f.RecentSeconds
	f.RecentHits, f.RecentMisses = counted.hits, counted.misses
}

// add adds a sample of the member's counters.
func (h *history) add(now time.Time, f *Member, d *Detail) {
	var times figures.Durations
	for i := range d.latency {
		times.Add(&d.latency[i])
	}
	took := times.Since(&h.times)
	h.times = times
	h.mu.Lock()
	defer h.mu.Unlock()
	m := markOf(now, f)
	counted, seconds := m.since(h.marks[len(h.marks)-1])
	s := Sample{UnixMilli: now.UnixMilli(), Ops: float64(counted.commands) / max(1, seconds), HitRatio: -1,
		P50Micros: micros(took.Percentile(50)), P99Micros: micros(took.Percentile(99))}
	if lookups := counted.hits + counted.misses; lookups > 0 {
		s.HitRatio = float64(counted.hits) / float64(lookups)
	}
	h.samples = latest(append(h.samples, s), samplesKept)
	h.marks = latest(append(h.marks, m), marksKept)
}

// latest returns the last elements of a list, up to most of them.
func latest[T any](list []T, most int) []T {
	return slices.Delete(list, 0, max(0, len(list)-most))
}

func (h *history) list() []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Sample{}, h.samples...)
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
