package lua

// random is the generator behind math.random: the 48-bit linear congruential generator of POSIX's
// lrand48, as in Redis. Reset begins with seed 0, so that a script is deterministic; Redis 7 goes on from
// where the script before has left it.
type random uint64

func (r *random) seed(n int32) { *r = random(uint64(uint32(n))<<16 | 0x330E) }

// next is in [0, 2^31).
func (r *random) next() int {
	*r = (*r*0x5DEECE66D + 0xB) & (1<<48 - 1)
	return int(*r >> 17)
}

// float is in [0, 1), computed as Redis computes it.
func (r *random) float() float64 {
	const most = 1<<31 - 1
	return float64(r.next()%most) / most
}
