package hyperloglog

import "math"

// histogram counts the registers that have each value.
type histogram [registerMax + 1]int

func (h *histogram) addDense(b []byte) {
	for ; len(b) >= groupBytes; b = b[groupBytes:] {
		word := loadGroup(b)
		for range groupLen {
			h[word&registerMax]++
			word >>= registerBits
		}
	}
}

// addSparse returns false if the registers are not as many as there must be.
func (h *histogram) addSparse(b []byte) bool {
	if len(b) > maxSparseRuns {
		return false
	}
	total := 0
	for len(b) > 0 {
		r := readRun(b)
		if r.size == 0 {
			return false
		}
		h[r.value] += r.length
		total += r.length
		b = b[r.size:]
	}
	return total == registers
}

// estimate is the improved raw estimator of Otmar Ertl, "New cardinality estimation algorithms for
// HyperLogLog sketches", arXiv:1702.01284, algorithm 6. It needs no corrections for small or large
// sets. float64(...) around products keeps compilers from fusing them with additions, which would
// round differently from Redis.
func (h *histogram) estimate() int64 {
	const (
		m     = float64(registers)
		alpha = 0.721347520444481703680 // 1 / (2 ln 2)
	)
	z := float64(m * tau((m-float64(h[hashBits+1]))/m))
	for j := hashBits; j >= 1; j-- {
		z += float64(h[j])
		z *= 0.5
	}
	z += float64(m * sigma(float64(h[0])/m))
	n := math.Round(alpha * m * m / z)
	if n >= math.MaxInt64 {
		// Only registers that no hash can produce lead here. Redis returns the same for them.
		return math.MinInt64
	}
	return int64(n)
}

// tau is the paper's function for the registers at their greatest value; x is the share of the
// others.
func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	y, z := 1.0, 1-x
	for last := math.NaN(); z != last; {
		last = z
		x = math.Sqrt(x)
		y *= 0.5
		z -= float64(float64((1-x)*(1-x)) * y)
	}
	return z / 3
}

// sigma is the paper's function for the registers that are 0; x is their share.
func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	y, z := 1.0, x
	for last := math.NaN(); z != last; {
		last = z
		x *= x
		z += float64(x * y)
		y += y
	}
	return z
}
