package histogram

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	var h, part Histogram
	var all []time.Duration
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 20_000 {
		d := time.Duration(1) << r.IntN(35)
		d += time.Duration(r.Int64N(int64(d)))
		all = append(all, d)
		if i%2 == 0 {
			h.Add(d, 1)
		} else {
			part.Add(d, 1)
		}
	}
	h.Merge(&part)
	slices.Sort(all)
	if n := h.Total(); n != 20_000 {
		t.Errorf("%d durations: want 20000", n)
	}
	for _, q := range []float64{0, 0.5, 0.99, 0.9999} {
		want := all[int(q*20_000)]
		if got := h.Quantile(q); got < want || got > want+want/16+1 {
			t.Errorf("quantile %v is %v: want %v or a little more", q, got, want)
		}
	}
	if got := h.Quantile(1); got != all[len(all)-1] {
		t.Errorf("the longest is %v: want %v", got, all[len(all)-1])
	}
	for d := time.Duration(0); d < 1<<20; d = d*9/8 + 1 {
		if i := bucketOf(d); bucketEnd(i) < d || i > 0 && bucketEnd(i-1) >= d {
			t.Fatalf("%d lies in bucket %d, from %d to %d", d, i, bucketEnd(i-1), bucketEnd(i))
		}
	}
	h.Add(-1, 3)
	if n := h.Total(); n != 20_003 || h.Quantile(0) != 0 {
		t.Errorf("%d durations, the shortest %v, after three more of none: want 20003, 0", n, h.Quantile(0))
	}
}
