package measure

import (
	"math"
	"sync"
	"time"
)

// Turnover measures how fast keys are evicted. It counts nothing itself: it compares what
// successive calls of Age report.
type Turnover struct {
	mu   sync.Mutex
	seen []evictions // oldest first
}

// evictions is the number of keys that were evicted up to a time.
type evictions struct {
	at    time.Time
	count int64
}

const (
	turnoverTime  = time.Minute // the rate is measured over this time
	turnoverSteps = 30          // in so many steps
)

// Age returns for how many seconds a key stays on average: the number of keys divided by the
// present rate of evictions. It is infinite while nothing is evicted. evicted counts all evictions
// so far.
func (t *Turnover) Age(now time.Time, keys, evicted int64) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.seen) > 1 && now.Sub(t.seen[1].at) >= turnoverTime {
		t.seen = append(t.seen[:0], t.seen[1:]...)
	}
	if n := len(t.seen); n == 0 || now.Sub(t.seen[n-1].at) >= turnoverTime/turnoverSteps {
		t.seen = append(t.seen, evictions{now, evicted})
	}
	first := t.seen[0]
	gone := float64(evicted - first.count)
	if gone <= 0 {
		return math.Inf(1)
	}
	return float64(keys) * now.Sub(first.at).Seconds() / gone
}
