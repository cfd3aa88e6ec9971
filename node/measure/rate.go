package measure

import "time"

const (
	// SamplePeriod is how often a rateWindow wants to be told of its counter.
	SamplePeriod = 100 * time.Millisecond
	// rateSamples times samplePeriod is the time over which a rate is taken.
	rateSamples = 16
)

// Rate knows how fast a counter has grown lately.
type Rate struct {
	samples [rateSamples]uint64
	next    int
	filled  int
}

// Sample is called every samplePeriod.
func (w *Rate) Sample(total uint64) {
	w.samples[w.next] = total
	w.next = (w.next + 1) % rateSamples
	w.filled = min(w.filled+1, rateSamples)
}

// PerSecond returns the growth between the oldest and the newest sample.
func (w *Rate) PerSecond() float64 {
	if w.filled < 2 {
		return 0
	}
	newest := w.samples[(w.next+rateSamples-1)%rateSamples]
	oldest := w.samples[(w.next+rateSamples-w.filled)%rateSamples]
	if newest < oldest {
		return 0 // the counters were reset in between
	}
	return float64(newest-oldest) / (float64(w.filled-1) * SamplePeriod.Seconds())
}
