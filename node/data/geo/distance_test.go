package geo

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestDistance compares distances with those that redis-server stored, by the scores of the places.
func TestDistance(t *testing.T) {
	for _, x := range []struct{ a, b, kilometres float64 }{
		{3661366623450892, 3663020037930558, 207.03720709182124},
		{3663032151457621, 3662892330367383, 217.00004002149311},
		{3661366623450892, 2580142780007441, 10699.42210568733},
		{3661366623450892, 3661360262682488, 14.071859936991352},
		{3662702593958173, 3675842311714962, 1004.6616076862266},
	} {
		if got := distance(pointOf(x.a), pointOf(x.b)) / 1000; got != x.kilometres {
			t.Errorf("%g to %g: %.17g, want %.17g", x.a, x.b, got, x.kilometres)
		}
	}
}

func TestRoughDistance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() point { return point{r.Float64()*360 - 180, r.Float64()*170 - 85} }
	for range 2000 {
		a, b := random(), random()
		if exact, rough := distance(a, b), roughDistance(a, b); math.Abs(exact-rough) > roughly*exact {
			t.Fatalf("%v to %v: about %g, want %g", a, b, rough, exact)
		}
	}
}

// TestExact compares sines and cosines of twice the digits with the library's: they differ in the
// last bit at most.
func TestExact(t *testing.T) {
	for x := -3.2; x < 3.2; x += 0.001 {
		s, c := sine(x), cosine(x)
		if math.Abs(s.high-math.Sin(x)) > 3e-16 || math.Abs(c.high-math.Cos(x)) > 3e-16 {
			t.Fatalf("%g: sine %g, cosine %g", x, s.high, c.high)
		}
		one := s.times(s).plus(c.times(c))
		if math.Abs(one.high-1)+math.Abs(one.low) > 1e-29 {
			t.Fatalf("%g: the squares sum up to 1 %+g", x, one.high-1+one.low)
		}
	}
}

// TestScores takes the center of a place's cell for the place.
func TestScores(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		p := point{r.Float64()*360 - 180, r.Float64()*170 - 85}
		q := pointOf(p.score())
		if math.Abs(p.longitude-q.longitude) > 3e-6 || math.Abs(p.latitude-q.latitude) > 2e-6 {
			t.Fatalf("%v becomes %v", p, q)
		}
		if q.score() != p.score() {
			t.Fatalf("the score of %v is not that of its cell", q)
		}
	}
}
