package hyperloglog

import "math"

// histogram is how many registers have each value.
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
// sets.
//
// float64(...) around products keeps compilers from fusing them with additions, which would round
// otherwise than Redis does.
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
		// Only registers that no hash can give do this. It is what Redis makes of them.
		return math.MinInt64
	}
	return int64(n)
}

// tau is x's share of registers that are not as great as can be, summed up; see the paper.
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

// sigma is the same for registers that are 0.
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
