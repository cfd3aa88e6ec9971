package measure

import "testing"

func TestRateWindow(t *testing.T) {
	var w Rate
	if got := w.PerSecond(); got != 0 {
		t.Errorf("rate of nothing is %v", got)
	}
	for i := range uint64(100) {
		w.Sample(i * 50)
	}
	if got := w.PerSecond(); got < 499 || got > 501 {
		t.Errorf("50 in each 100 ms is %v a second, want 500", got)
	}
}
