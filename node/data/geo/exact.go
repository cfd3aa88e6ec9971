package geo

import "math"

// Redis computes distances with the sine, cosine and arc sine of its C library, which are rounded
// correctly but for very few arguments. Those of Go's library are off by the last bit more often,
// which shows in stored distances. So distances that are shown are computed with twice the digits,
// and then rounded.

// double is a number as the sum of two, the second of which is what the first leaves over.
type double struct{ high, low float64 }

func sumOf(a, b float64) double {
	s := a + b
	t := s - a
	return double{s, (a - (s - t)) + (b - t)}
}

func productOf(a, b float64) double {
	p := float64(a * b)
	return double{p, math.FMA(a, b, -p)}
}

func (x double) plus(y double) double {
	s := sumOf(x.high, y.high)
	return sumOf(s.high, s.low+(x.low+y.low))
}

func (x double) times(y double) double {
	p := productOf(x.high, y.high)
	return sumOf(p.high, p.low+(float64(x.high*y.low)+float64(x.low*y.high)))
}

func (x double) over(n float64) double {
	q := x.high / n
	p := productOf(q, n)
	return sumOf(q, ((x.high-p.high)-p.low+x.low)/n)
}

// quarter is a quarter of a turn, in three parts.
var quarter = [3]float64{1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33}

// reduced brings an angle of up to half a turn, and a little more, to an eighth at most, and
// returns by how many quarters it has turned it.
func reduced(x float64) (y double, quarters int) {
	k := math.Round(x / quarter[0])
	y = sumOf(x, -k*quarter[0]).plus(sumOf(-k*quarter[1], -k*quarter[2]))
	return y, int(k) & 3
}

// series is the sum of the Taylor series of sine or cosine, which begins with a term and goes on
// with those whose factorials end at n+2, n+4 ...
func series(y, term double, n float64) double {
	square, sum := y.times(y), term
	square = double{-square.high, -square.low}
	for math.Abs(term.high) > 1e-34 {
		term = term.times(square).over((n + 1) * (n + 2))
		n += 2
		sum = sum.plus(term)
	}
	return sum
}

func sine(x float64) double   { return turned(x, 0) }
func cosine(x float64) double { return turned(x, 1) }

// turned is the sine of an angle and some quarters of a turn.
func turned(x float64, quarters int) double {
	y, k := reduced(x)
	k = (k + quarters) & 3
	s := double{}
	if k&1 == 0 {
		s = series(y, y, 1)
	} else {
		s = series(y, double{high: 1}, 0)
	}
	if k&2 != 0 {
		return double{-s.high, -s.low}
	}
	return s
}

// arcSine is the arc sine of z, which is between 0 and 1, by a step of Newton's method.
func arcSine(z float64) float64 {
	a := math.Asin(z)
	c := math.Cos(a)
	if c < 1e-6 {
		return a
	}
	s := sine(a)
	return a + ((z-s.high)-s.low)/c
}
