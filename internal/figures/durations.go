package figures

import (
	"math/bits"
	"time"
)

// Durations is a histogram of how long commands took, with four buckets to a doubling. A bucket's
// bounds are a fifth apart, which is as fine as a percentile needs.
type Durations struct {
	Count, Nanos int64
	Buckets      [durationBuckets]int64
}

const (
	stepBits        = 2 // the bits of a duration behind its highest that choose the bucket
	durationBuckets = 40 << stepBits
)

// Note counts one duration.
func (d *Durations) Note(took time.Duration) {
	n := uint64(max(took, 1))
	d.Count++
	d.Nanos += int64(n)
	d.Buckets[min(durationBucket(n), durationBuckets-1)]++
}

// Add adds the durations that o has counted.
func (d *Durations) Add(o *Durations) {
	d.Count += o.Count
	d.Nanos += o.Nanos
	for i, n := range o.Buckets {
		d.Buckets[i] += n
	}
}

// durationBucket returns the bucket of n nanoseconds, n above 0: the position of the highest bit
// and the bits that follow it.
func durationBucket(n uint64) int {
	if n < 1<<stepBits {
		return int(n)
	}
	first := bits.Len64(n) - 1
	return (first-stepBits+1)<<stepBits + int(n>>(first-stepBits))&(1<<stepBits-1)
}

// bucketEnd returns the longest duration in bucket i, in nanoseconds.
func bucketEnd(i int) int64 {
	if i < 1<<stepBits {
		return int64(i)
	}
	shift := i>>stepBits - 1
	return int64(1<<stepBits+i&(1<<stepBits-1)+1)<<shift - 1
}

// percentile returns the duration, in nanoseconds, that p per cent of the durations do not exceed,
// rounded up to the end of its bucket.
func (d *Durations) percentile(p float64) int64 {
	want, seen := int64(float64(d.Count)*p/100+0.999999), int64(0)
	for i, n := range d.Buckets {
		if seen += n; seen >= want && n > 0 {
			return bucketEnd(i)
		}
	}
	return 0
}

// mean returns the mean in nanoseconds, or 0 if nothing was counted.
func (d *Durations) mean() float64 {
	if d.Count == 0 {
		return 0
	}
	return float64(d.Nanos) / float64(d.Count)
}

// Each calls f for each bucket that is not empty, with the longest duration of the bucket and its
// count.
func (d *Durations) Each(f func(longest time.Duration, n int64)) {
	for i, n := range d.Buckets {
		if n > 0 {
			f(time.Duration(bucketEnd(i)), n)
		}
	}
}

// Sum returns the total of all durations.
func (d *Durations) Sum() time.Duration { return time.Duration(d.Nanos) }

// Percentile returns the duration that p per cent of the durations do not exceed, rounded up to the
// end of its bucket.
func (d *Durations) Percentile(p float64) time.Duration { return time.Duration(d.percentile(p)) }

// Since returns what was counted after o, an earlier state of d.
func (d *Durations) Since(o *Durations) Durations {
	later := *d
	later.Count -= o.Count
	later.Nanos -= o.Nanos
	for i := range later.Buckets {
		later.Buckets[i] -= o.Buckets[i]
	}
	return later
}
