package sortedsets

import "testing"

func TestScoresWithZerosInFront(t *testing.T) {
	for text, want := range map[string]float64{
		"000000001234": 1234, "00": 0, "0": 0, "-007": -7, "007.5": 7.5, "0x10": 16,
	} {
		if got, ok := ParseScore([]byte(text)); !ok || got != want {
			t.Errorf("%q is %g, valid %t, want %g", text, got, ok, want)
		}
	}
	for _, text := range []string{"0-5", "00x10", "0 1", "00-", "0a"} {
		if got, ok := ParseScore([]byte(text)); ok {
			t.Errorf("%q is %g", text, got)
		}
	}
}
