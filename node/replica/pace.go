package replica

import "time"

// Pace limits the bytes that snapshots send in a second. It saves up at most 50 ms of unused rate.
type Pace struct {
	rate   float64 // bytes a second; 0: no limit
	tokens float64
	filled time.Duration
}

// NewPace returns a Pace of rate bytes a second, 0 for no limit.
func NewPace(rate int64) Pace { return Pace{rate: float64(rate)} }

// Wait returns how long the caller must wait before it sends more.
func (b *Pace) Wait(now time.Duration) time.Duration {
	if b.rate <= 0 {
		return 0
	}
	const moment = 50 * time.Millisecond
	b.tokens = min(b.tokens+b.rate*min(now-b.filled, time.Second).Seconds(), b.rate*moment.Seconds())
	b.filled = now
	if b.tokens >= 0 {
		return 0
	}
	return time.Duration(-b.tokens/b.rate*float64(time.Second)) + time.Microsecond
}

// Spend notes that n bytes are sent. If they exceed the rate, the next Wait is longer.
func (b *Pace) Spend(n int64) {
	if b.rate > 0 {
		b.tokens -= float64(n)
	}
}
