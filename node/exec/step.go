package exec

import (
	"context"
	"time"
)

// steps are the work of one goroutine for a command that only reads. While clients have to wait for the
// loops, it takes a tenth of the time: the goroutine pauses between steps. Meanwhile it keeps its pins
// and its place in the crew, but no lock and no partition.
type steps struct {
	strained func() bool // it also returns false while something urgent waits for the place
	begun    time.Time   // the present one
	paused   time.Duration
	hurried  bool // it pauses no more
}

const (
	// pauseShare is how many times as long as a step the pause behind it is.
	pauseShare = 9
	// shortestStep is what is paused for at once: timers are not more precise than some of these.
	shortestStep = 100 * time.Microsecond
	// longestStep is the most of a step that is paused for. What took longer was interrupted.
	longestStep = time.Millisecond
)

type stepsKey struct{}

// WithSteps returns a context for work that begins now, with which Step pauses while loops are
// strained.
func WithSteps(ctx context.Context, strained func() bool) context.Context {
	return context.WithValue(ctx, stepsKey{}, &steps{strained: strained, begun: time.Now()})
}

// Step ends a step of a goroutine's work, which must not hold a lock. It pauses if loops are strained
// and the context is one of WithSteps. It returns the context's error, for which it waits no longer.
func Step(ctx context.Context) error {
	if s, ok := ctx.Value(stepsKey{}).(*steps); ok {
		s.end(ctx)
	}
	return ctx.Err()
}

// Hurry has Step pause no more for the context's goroutine, which calls Hurry.
func Hurry(ctx context.Context) {
	if s, ok := ctx.Value(stepsKey{}).(*steps); ok {
		s.hurried = true
	}
}

// Paused returns how long Step has paused.
func Paused(ctx context.Context) time.Duration {
	if s, ok := ctx.Value(stepsKey{}).(*steps); ok {
		return s.paused
	}
	return 0
}

func (s *steps) end(ctx context.Context) {
	now := time.Now()
	took := now.Sub(s.begun)
	if took < shortestStep {
		return
	}
	if s.begun = now; s.hurried || !s.strained() {
		return
	}
	pause := time.NewTimer(pauseShare * min(took, longestStep))
	select {
	case <-pause.C:
	case <-ctx.Done():
		pause.Stop()
	}
	s.begun = time.Now()
	s.paused += s.begun.Sub(now)
}
