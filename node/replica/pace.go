package replica

import "time"

// Pace limits what snapshots send: rate bytes a second, plus what was left unused in the last
// moment.
type Pace struct {
	rate   float64 // bytes a second, 0: no limit
	tokens float64
	filled time.Duration
}

// NewPace returns a Pace of so many bytes a second, 0 for no limit.
func NewPace(rate int64) Pace { return Pace{rate: float64(rate)} }

// Wait returns how long to wait before more may be sent.
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

// Spend notes that n bytes are sent. They may be more than Wait allowed for: the next wait is
// longer.
func (b *Pace) Spend(n int64) {
	if b.rate > 0 {
		b.tokens -= float64(n)
	}
}
