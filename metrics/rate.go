package metrics

import (
	"sync"
	"time"
)

// rateWindow is how many samples a rate looks back over, one a second: long
// enough to be steady, short enough to show what is happening now.
const rateWindow = 5

// rate turns a growing count into a number per second. The sampler adds, any
// request reads.
type rate struct {
	mu      sync.Mutex
	samples [rateWindow + 1]sample // a ring; next is the oldest once it is full
	next    int
	filled  int
}

type sample struct {
	at    time.Time
	count uint64
}

func (r *rate) add(at time.Time, count uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples[r.next] = sample{at, count}
	r.next = (r.next + 1) % len(r.samples)
	r.filled = min(r.filled+1, len(r.samples))
}

// perSecond is 0 until there are two samples.
func (r *rate) perSecond() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.filled < 2 {
		return 0
	}
	n := len(r.samples)
	newest := r.samples[(r.next-1+n)%n]
	oldest := r.samples[(r.next-r.filled+n)%n]
	seconds := newest.at.Sub(oldest.at).Seconds()
	if seconds <= 0 || newest.count < oldest.count {
		return 0
	}
	return float64(newest.count-oldest.count) / seconds
}
