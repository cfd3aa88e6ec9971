package bitmaps

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/dunlin-cache/dunlin/node/exec"
)

// In steps the same is found as at once, and nothing is looked for any more when nobody waits.
func TestScanInSteps(t *testing.T) {
	value := make([]byte, 2*exec.RewriteStep+3)
	value[exec.RewriteStep+7] = 0x10
	value[len(value)-1] = 0xff
	rng := rand.New(rand.NewPCG(1, 1))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	all := int64(len(value)) * 8
	for range 200 {
		from := rng.Int64N(all)
		to := from + rng.Int64N(all-from+1)
		for _, s := range []bitScan{{count: true}, {set: true, nowhere: -1}, {set: false, nowhere: -2}} {
			s.from, s.to = from, to
			if got, want := s.until(t.Context(), value), s.of(value); got != want {
				t.Fatalf("%+v: %d in steps, %d at once", s, got, want)
			}
			if got := s.until(ended, value); got != 0 && got != s.nowhere {
				t.Fatalf("%+v: %d was found for nobody", s, got)
			}
		}
	}
}
