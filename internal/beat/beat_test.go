package beat

import (
	"testing"
	"time"
)

func TestUntil(t *testing.T) {
	const second = time.Second
	for now, want := range map[time.Duration]time.Duration{0: second, 1: second - 1, second - 1: 1, second: second, 7*second + 3: second - 3} {
		if got := until(now, second); got != want {
			t.Errorf("at %v it is %v until the next second, want %v", now, got, want)
		}
	}
}

// TestBefore: clocks that start there reach multiples of the grid together.
func TestBefore(t *testing.T) {
	for _, after := range []time.Duration{0, 1, Grid - 1, Grid, 12345678901} {
		from := Before(origin.Add(after)).Sub(origin)
		if from%Grid != 0 || from > after || from <= after-Grid {
			t.Errorf("%v after the start the clock starts at %v", after, from)
		}
	}
}
