package main

import (
	"math"
	"math/rand/v2"
)

// zipf draws ranks from 1 to n, rank k with a weight of 1/k: Zipf's law with exponent 1.0, which
// math/rand/v2 leaves out. By rejection-inversion (W. Hörmann, G. Derflinger, 1996): it needs no
// table, and rarely a second draw.
type zipf struct {
	n          uint64
	first, end float64 // of the integral of 1/x that is drawn from
	sure       float64 // a rank this near below its x is accepted without another test
}

func newZipf(n int) zipf {
	return zipf{
		n:     uint64(n),
		first: math.Log(1.5) - 1,
		end:   math.Log(float64(n) + 0.5),
		sure:  2 - math.Exp(math.Log(2.5)-0.5),
	}
}

func (z zipf) draw(r *rand.Rand) uint64 {
	for {
		u := z.end + r.Float64()*(z.first-z.end)
		x := math.Exp(u)
		k := min(max(uint64(x+0.5), 1), z.n)
		rank := float64(k)
		if rank-x <= z.sure || u >= math.Log(rank+0.5)-1/rank {
			return k
		}
	}
}

// accesses returns a sequence of key numbers below keys, always the same for the same seed.
func accesses(n, keys int, zipfian bool, seed uint64) []uint32 {
	r := rand.New(rand.NewPCG(seed, 1))
	z := newZipf(keys)
	order := make([]uint32, n)
	for i := range order {
		if zipfian {
			order[i] = scatter(z.draw(r)-1, keys)
		} else {
			order[i] = uint32(r.Uint64N(uint64(keys)))
		}
	}
	return order
}

// scatter maps every rank to a key of its own, far from its neighbours' keys, because popular keys
// are not written one after another.
func scatter(rank uint64, keys int) uint32 {
	const prime = 2654435761 // above any number of keys, and so without a common divisor
	return uint32(rank * prime % uint64(keys))
}
