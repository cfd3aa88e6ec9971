package netloop

import (
	"testing"
	"time"
)

// TestIdleAmongEvents: events that come at one time leave a loop idle; those that go on coming do not.
func TestIdleAmongEvents(t *testing.T) {
	const ms = time.Millisecond
	l := &Loop{idle: true}
	for _, c := range []struct {
		at   time.Duration
		idle bool
	}{
		{100 * ms, true}, {101 * ms, true}, {102 * ms, true},
		{105 * ms, true}, {106 * ms, true}, {107 * ms, true}, {108 * ms, false}, {120 * ms, false},
	} {
		l.gap, l.now = c.at-l.now, c.at
		if l.noteEvents(1); l.idle != c.idle {
			t.Fatalf("after %v: idle is %v", c.at, l.idle)
		}
	}
}
