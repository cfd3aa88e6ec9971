package sortedsets

import (
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/longdouble"
)

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

func TestLongestScore(t *testing.T) {
	longest := "0." + strings.Repeat("5", longdouble.MaxText-2)
	if score, ok := ParseScore([]byte(longest)); !ok || score != 5.0/9 {
		t.Errorf("the longest number is %g, valid %t", score, ok)
	}
	for _, text := range []string{longest + "5", "0" + longest, " " + longest, longest + "\x00", longest + " "} {
		if score, ok := ParseScore([]byte(text)); ok {
			t.Errorf("%d bytes are %g", len(text), score)
		}
		if _, _, ok := parseBound([]byte("(" + text)); ok {
			t.Errorf("%d bytes are a bound", len(text))
		}
	}
}
