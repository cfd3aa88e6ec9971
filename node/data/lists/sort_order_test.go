package lists

import (
	"math"
	"strings"
	"testing"
)

// Weights are read as C's strtod reads them.
func TestParseWeight(t *testing.T) {
	for text, want := range map[string]float64{
		"": 0, "0": 0, "-0": 0, "17": 17, " 5": 5, "\t-5e2": -500, "1.": 1, ".5": 0.5, "0x1f": 31, "-0X10": -16, "0x1p3": 8,
		"inf": math.Inf(1), "-Infinity": math.Inf(-1), "1\x00x": 1, "0e9": 0,
	} {
		if got, ok := parseWeight([]byte(text)); !ok || got != want {
			t.Errorf("%q is %v, %t; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		strings.Repeat("1", longestWeight+1), " ", "x", "1x", "5 ", "nan", "1_000", "0x_1", "1e400", "1e-400", "--1", "1e", ".",
	} {
		if got, ok := parseWeight([]byte(text)); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}
