package metrics

import (
	"testing"
	"time"
)

func TestRate(t *testing.T) {
	var r rate
	want := func(w float64) {
		t.Helper()
		if got := r.perSecond(); got != w {
			t.Fatalf("perSecond() = %v, want %v", got, w)
		}
	}
	start := time.Unix(1000, 0)
	want(0)
	r.add(start, 100)
	want(0)
	r.add(start.Add(time.Second), 150)
	want(50)
	r.add(start.Add(2*time.Second), 300)
	want(100)

	// Old samples leave the window: 10 more seconds at 7 a second.
	for i := range 10 {
		r.add(start.Add(time.Duration(3+i)*time.Second), 300+uint64(7*(i+1)))
	}
	want(7)
}

func TestRateOfResetCounter(t *testing.T) {
	var r rate
	r.add(time.Unix(1, 0), 500)
	r.add(time.Unix(2, 0), 3)
	if got := r.perSecond(); got != 0 {
		t.Errorf("perSecond() after a reset = %v, want 0", got)
	}
}
