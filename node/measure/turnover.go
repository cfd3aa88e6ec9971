package measure

import (
	"math"
	"sync"
	"time"
)

// Turnover tells how fast keys are evicted of late, from what whoever asks for
// Stats has seen: nobody counts while nobody looks.
type Turnover struct {
	mu   sync.Mutex
	seen []evictions // oldest first
}

// evictions is how many keys were evicted by when.
type evictions struct {
	at    time.Time
	count int64
}

const (
	turnoverTime  = time.Minute // over which the rate is taken
	turnoverSteps = 30          // in which that is forgotten
)

// Age is for how long a key stays on average, in seconds: so many keys at the present rate of
// evictions. Endless while nothing is evicted.
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
