package exec

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestSteps(t *testing.T) {
	for _, c := range []struct {
		name     string
		took     time.Duration
		strained bool
		pause    time.Duration
	}{
		{"calm", time.Millisecond, false, 0},
		{"short", shortestStep - 1, true, 0},
		{"strained", 200 * time.Microsecond, true, 1800 * time.Microsecond},
		{"interrupted", time.Second, true, 9 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := WithSteps(t.Context(), func() bool { return c.strained })
				for range 2 {
					time.Sleep(c.took)
					begun, before := time.Now(), Paused(ctx)
					if err := Step(ctx); err != nil {
						t.Fatal(err)
					}
					if got := time.Since(begun); got != c.pause || Paused(ctx)-before != c.pause {
						t.Errorf("a step of %v is followed by a pause of %v, counted as %v, want %v",
							c.took, got, Paused(ctx)-before, c.pause)
					}
					if c.took < shortestStep {
						return // two of them are a step
					}
				}
			})
		})
	}
}

// TestStepEnds: a pause ends with the context. Without WithSteps there is none.
func TestStepEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		defer cancel()
		paused := WithSteps(ctx, func() bool { return true })
		time.Sleep(time.Millisecond)
		begun := time.Now()
		if err := Step(paused); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Millisecond {
			t.Errorf("the pause ends with %v after %v", err, time.Since(begun))
		}
		begun = time.Now()
		if err := Step(ctx); err == nil || time.Since(begun) != 0 {
			t.Errorf("a step without pauses ends with %v after %v", err, time.Since(begun))
		}
	})
}
