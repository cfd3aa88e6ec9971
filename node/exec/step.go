package exec

import (
	"context"
	"time"
)

// steps are the work of one goroutine for a command that only reads. While clients have to wait for the
// loops, it takes a tenth of the time: the goroutine pauses between steps. Meanwhile it keeps its pins
// and its place in the crew, but no lock and no partition. So a command that holds its partition never
// pauses, even if it only reads (SINTER of big sets, SORT with BY): all that want the partition wait for it.
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
	// longestWork is the most of work without steps that is rested for: what waits for it in turn, a change
	// of a large value, shall not wait for much longer than a tenth of a second.
	longestWork = 10 * time.Millisecond
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
	pause(ctx, pauseShare*min(took, longestStep))
	s.begun = time.Now()
	s.paused += s.begun.Sub(now)
}

// RestBehind pauses behind work that could not pause: it holds a partition, or what it reads changes
// meanwhile. It returns early when the context ends.
func RestBehind(ctx context.Context, worked time.Duration) {
	if worked >= shortestStep {
		pause(ctx, pauseShare*min(worked, longestWork))
	}
}

func pause(ctx context.Context, d time.Duration) {
	end := time.NewTimer(d)
	defer end.Stop()
	select {
	case <-end.C:
	case <-ctx.Done():
	}
}
