package measure

import "time"

const (
	// SamplePeriod is the time between two calls of Rate.Sample.
	SamplePeriod = 100 * time.Millisecond
	// rateSamples times SamplePeriod is the time over which a rate is measured.
	rateSamples = 16
)

// Rate measures how fast a counter has grown in the last 1.6 s. The zero Rate is ready to use.
type Rate struct {
	samples [rateSamples]uint64
	next    int
	filled  int
}

// Sample notes the counter's value. Call it every SamplePeriod.
func (w *Rate) Sample(total uint64) {
	w.samples[w.next] = total
	w.next = (w.next + 1) % rateSamples
	w.filled = min(w.filled+1, rateSamples)
}

// PerSecond returns the growth a second between the oldest and the newest sample.
func (w *Rate) PerSecond() float64 {
	if w.filled < 2 {
		return 0
	}
	newest := w.samples[(w.next+rateSamples-1)%rateSamples]
	oldest := w.samples[(w.next+rateSamples-w.filled)%rateSamples]
	return float64(newest-oldest) / (float64(w.filled-1) * SamplePeriod.Seconds())
}
