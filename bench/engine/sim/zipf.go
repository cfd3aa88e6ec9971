package sim

import (
	"math"
	"math/rand/v2"
)

// zipf draws ranks from 0 to n-1, rank k with a weight of (k+1)^-exponent. The exponent may be 1
// and below, which math/rand/v2 leaves out. By rejection-inversion (W. Hörmann, G. Derflinger,
// 1996): no table, rarely a second draw.
type zipf struct {
	n, exponent float64
	first, end  float64 // of the integral of x^-exponent that is drawn from
	sure        float64 // a rank this near below its x is accepted without another test
}

func newZipf(exponent float64, n int) zipf {
	z := zipf{n: float64(n), exponent: exponent}
	z.first = z.integral(1.5) - 1
	z.end = z.integral(z.n + 0.5)
	z.sure = 2 - z.inverse(z.integral(2.5)-math.Pow(2, -exponent))
	return z
}

func (z *zipf) integral(x float64) float64 {
	if z.exponent == 1 {
		return math.Log(x)
	}
	return math.Pow(x, 1-z.exponent) / (1 - z.exponent)
}

func (z *zipf) inverse(y float64) float64 {
	if z.exponent == 1 {
		return math.Exp(y)
	}
	return math.Pow(y*(1-z.exponent), 1/(1-z.exponent))
}

func (z *zipf) draw(r *rand.Rand) uint32 {
	for {
		u := z.end + r.Float64()*(z.first-z.end)
		x := z.inverse(u)
		k := min(max(math.Round(x), 1), z.n)
		if k-x <= z.sure || u >= z.integral(k+0.5)-math.Pow(k, -z.exponent) {
			return uint32(k) - 1
		}
	}
}
