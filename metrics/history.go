package metrics

import (
	"slices"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/session"
)

const (
	sampleEvery = 3 * time.Second
	samplesKept = 100 // five minutes
)

// Sample is what a member did in the time since the sample before. Without a
// command that was timed the latencies are 0, without a lookup HitRatio is negative.
type Sample struct {
	UnixMilli int64   `json:"unix_milli"`
	Ops       float64 `json:"ops"` // a second
	HitRatio  float64 `json:"hit_ratio"`
	P50Micros float64 `json:"p50_micros"`
	P99Micros float64 `json:"p99_micros"`
}

// history keeps the latest samples of a member.
type history struct {
	mu      sync.Mutex
	samples []Sample // the oldest first

	// Of the last sample, only used by who adds.
	at           time.Time
	commands     uint64
	hits, misses uint64
	times        session.Durations
}

// add takes a member's counters.
func (h *history) add(now time.Time, f *Member, d *detail) {
	var times session.Durations
	for i := range d.latency {
		times.Add(&d.latency[i])
	}
	first := h.at.IsZero()
	seconds := now.Sub(h.at).Seconds()
	took := times.Since(&h.times)
	s := Sample{UnixMilli: now.UnixMilli(), HitRatio: -1,
		P50Micros: micros(took.Percentile(50)), P99Micros: micros(took.Percentile(99))}
	if f.Commands >= h.commands && seconds > 0 {
		s.Ops = float64(f.Commands-h.commands) / seconds
	}
	if f.Hits >= h.hits && f.Misses >= h.misses && f.Hits+f.Misses > h.hits+h.misses {
		s.HitRatio = float64(f.Hits-h.hits) / float64(f.Hits+f.Misses-h.hits-h.misses)
	}
	h.at, h.commands, h.hits, h.misses, h.times = now, f.Commands, f.Hits, f.Misses, times
	if first {
		return // nothing is known of the time before
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.samples = append(h.samples, s)
	if extra := len(h.samples) - samplesKept; extra > 0 {
		h.samples = slices.Delete(h.samples, 0, extra)
	}
}

func (h *history) list() []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Sample{}, h.samples...)
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
