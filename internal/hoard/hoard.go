// Package hoard judges who holds memory that others need and hardly moves any of it: a client that
// sends a long request or a large value, one that reads such a value, a proxy that fetches one. The
// judge looks at equal intervals. While memory is scarce, it closes whoever moves less than MinRate.
package hoard

import (
	"errors"
	"time"
)

// MinRate is how many bytes must move between two looks.
const MinRate = 16 << 10

// ErrStalled closes a connection whose long request does not come.
var ErrStalled = errors.New("a long request does not come")

// scarceFor is how long memory counts as scarce after a refusal.
const scarceFor = 10 * time.Second

// Scarcity says whether memory was refused of late. The zero Scarcity is ready to use.
type Scarcity struct {
	refused int64 // as of the last look
	until   time.Duration
}

// Look returns whether memory is scarce. refused counts what found none so far.
func (s *Scarcity) Look(refused int64, now time.Duration) (scarce bool) {
	if refused != s.refused {
		s.refused, s.until = refused, now+scarceFor
	}
	return now < s.until
}

// Pace is how fast the holder of some memory goes on. The zero Pace is ready to use.
type Pace struct {
	moved  int64 // as of the last look
	looked bool
}

// SomeLeft is what Look gets for left if nobody knows how much that is. The looks say nothing then.
const SomeLeft = 1

// Crawls is Look for a holder of whom nobody knows how much is still to come.
func (p *Pace) Crawls(moved int64) bool {
	_, crawls := p.Look(SomeLeft, moved)
	return crawls
}

// Look returns how many looks it will take at this pace until the memory is free, and whether the
// holder crawls: less than MinRate has moved since the last look. left is how many bytes are still
// to move, moved how many have moved so far. The first look at a holder returns 0 and false.
func (p *Pace) Look(left, moved int64) (looks int64, crawls bool) {
	came := moved - p.moved
	first := !p.looked || came < 0 // below 0: it is another value
	p.moved, p.looked = moved, true
	switch {
	case first || left == 0:
		return 0, false
	case came < MinRate:
		return 0, true
	}
	return left / came, false
}
