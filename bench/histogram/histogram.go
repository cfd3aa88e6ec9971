// Package histogram counts durations by size, in so little memory that rare long ones are kept too.
// It imports no other package of the project.
package histogram

import (
	"math/bits"
	"time"
)

// Histogram counts durations in buckets a thirty-second apart. The zero value is empty. Its fields
// are for encoding/gob.
type Histogram struct {
	Count [64 << subBits]uint64
	Max   time.Duration
}

const subBits = 5

// Add counts d n times. A negative duration, which two readings of a clock can give, counts as 0.
func (h *Histogram) Add(d time.Duration, n int) {
	d = max(d, 0)
	h.Count[bucketOf(d)] += uint64(n)
	h.Max = max(h.Max, d)
}

// Merge adds everything that o has counted.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.Count {
		h.Count[i] += n
	}
	h.Max = max(h.Max, o.Max)
}

// bucketOf returns the bucket of d. Durations below 2^subBits have buckets of their own; after
// that, each doubling has 2^subBits buckets.
func bucketOf(d time.Duration) int {
	v := uint64(d)
	shift := max(0, bits.Len64(v)-subBits-1)
	return shift<<subBits + int(v>>shift)
}

// bucketEnd returns the longest duration in a bucket.
func bucketEnd(i int) time.Duration {
	shift := max(0, i>>subBits-1)
	return time.Duration((uint64(i-shift<<subBits)+1)<<shift - 1)
}

// Total returns how many durations were counted.
func (h *Histogram) Total() (n uint64) {
	for _, c := range h.Count {
		n += c
	}
	return n
}

// Quantile returns a duration that the share q of all does not exceed, or 0 for an empty histogram.
func (h *Histogram) Quantile(q float64) time.Duration {
	left := uint64(q * float64(h.Total()))
	for i, n := range h.Count {
		if n > left {
			return min(bucketEnd(i), h.Max)
		}
		left -= n
	}
	return h.Max
}

// Above returns how many durations were certainly longer than d.
func (h *Histogram) Above(d time.Duration) (n uint64) {
	for _, c := range h.Count[bucketOf(d)+1:] {
		n += c
	}
	return n
}
