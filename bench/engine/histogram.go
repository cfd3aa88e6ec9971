package main

import (
	"math/bits"
	"time"
)

// histogram counts durations in buckets a thirty-second apart. The zero value is empty.
type histogram struct {
	Count [64 << subBits]uint64
	Max   time.Duration
}

const subBits = 5

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.Count[bucketOf(d)]++
	h.Max = max(h.Max, d)
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.Count {
		h.Count[i] += n
	}
	h.Max = max(h.Max, o.Max)
}

// bucketOf gives durations below 2^subBits their own buckets, and then each doubling 2^subBits of them.
func bucketOf(d time.Duration) int {
	v := uint64(d)
	shift := max(0, bits.Len64(v)-subBits-1)
	return shift<<subBits + int(v>>shift)
}

// bucketEnd is the longest duration in a bucket.
func bucketEnd(i int) time.Duration {
	shift := max(0, i>>subBits-1)
	return time.Duration((uint64(i-shift<<subBits)+1)<<shift - 1)
}

func (h *histogram) total() (n uint64) {
	for _, c := range h.Count {
		n += c
	}
	return n
}

// quantile is a duration that the share q of all did not pass.
func (h *histogram) quantile(q float64) time.Duration {
	left := uint64(q * float64(h.total()))
	for i, n := range h.Count {
		if n > left {
			return min(bucketEnd(i), h.Max)
		}
		left -= n
	}
	return h.Max
}

// above counts what certainly took longer than d.
func (h *histogram) above(d time.Duration) (n uint64) {
	for _, c := range h.Count[bucketOf(d)+1:] {
		n += c
	}
	return n
}
