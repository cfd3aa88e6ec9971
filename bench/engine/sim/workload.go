package sim

import (
	"math"
	"math/rand/v2"
)

// Workload is a kind of trace.
type Workload struct {
	Name, Title string
	read        func(g *generator)
	value       func(r *rand.Rand) int32 // draws a length
}

// The numbers that the workloads share.
const (
	MaxLength = 100 << 10 // of values
	// OneLength is for values whose length does not matter: the median of Twitter's clusters
	// (OSDI '20).
	OneLength  = 224
	WarmUpPart = 0.4 // of a trace
	stay       = 10  // reads until a moving set of keys moves on by one
)

// Workloads lists all workloads.
var Workloads = []Workload{
	{"zipf 0.8", "Zipf's law with exponent 0.8", zipfian(0.8), oneLength},
	{"zipf 1.0", "exponent 1.0", zipfian(1.0), oneLength},
	{"zipf 1.2", "exponent 1.2", zipfian(1.2), oneLength},
	{"scans", "zipf 1.0; a fifth of the reads are runs of keys that are read once, one of them beside each other read", scans, oneLength},
	{"drift", "zipf 1.0; one rank after the other gets a new key, one in 10 reads, in random order", drift, oneLength},
	{"window", "zipf 1.0 over a window of keys that moves by one in 10 reads: a key rises to the top and is then never read again", window, oneLength},
	{"abrupt", "zipf 1.0; all keys get new ranks 10 times", abrupt, oneLength},
	{"hot set", "9 of 10 reads go to 2 % of the keys, without preference; another 2 % 20 times", hotSet, oneLength},
	{"long tail", "zipf 1.0; lengths of values are lognormal, median 300, mean 1.1 kB, from 16 B to 100 KiB", zipfian(1.0), longTail},
}

// Trace makes a trace, always the same one. Some of the keys may never be read; scans and moving
// sets add further keys.
func (w *Workload) Trace(keys, reads int) *Trace {
	g := generator{r: rand.New(rand.NewPCG(1, 2)), keys: keys, fresh: uint32(keys), reads: make([]uint32, 0, reads)}
	w.read(&g)
	t := &Trace{Keys: g.reads, Values: make([]int32, g.fresh), WarmUp: int(WarmUpPart * float64(reads))}
	for key := range t.Values {
		t.Values[key] = w.value(g.r)
	}
	return t
}

// generator makes one trace.
type generator struct {
	r     *rand.Rand
	keys  int      // that exist from the start
	fresh uint32   // lowest number that no key has
	reads []uint32 // so far, of cap(reads)
}

// add appends a read, and reports whether more are wanted.
func (g *generator) add(key uint32) bool {
	if len(g.reads) < cap(g.reads) {
		g.reads = append(g.reads, key)
	}
	return len(g.reads) < cap(g.reads)
}

func (g *generator) newKey() uint32 {
	g.fresh++
	return g.fresh - 1
}

func zipfian(exponent float64) func(*generator) {
	return func(g *generator) {
		z := newZipf(exponent, g.keys)
		for g.add(z.draw(g.r)) {
		}
	}
}

func scans(g *generator) {
	z, run := newZipf(1, g.keys), max(1, g.keys/50)
	for more := true; more; {
		for i := 0; more && i < 4*run; i++ {
			more = g.add(z.draw(g.r))
			if i >= 3*run {
				more = g.add(g.newKey())
			}
		}
	}
}

func drift(g *generator) {
	ranks := g.r.Perm(max(1, g.keys/4))
	keys := make([]uint32, len(ranks))
	for rank := range keys {
		keys[rank] = uint32(rank)
	}
	z := newZipf(1, len(keys))
	for i := 0; g.add(keys[z.draw(g.r)]); i++ {
		if i%stay == 0 {
			keys[ranks[i/stay%len(ranks)]] = g.newKey()
		}
	}
}

func window(g *generator) {
	n := max(1, g.keys/4)
	z := newZipf(1, n)
	g.fresh = uint32(cap(g.reads)/stay + n + 1)
	for g.add(uint32(len(g.reads)/stay) + z.draw(g.r)) {
	}
}

func abrupt(g *generator) {
	const phases = 10
	z := newZipf(1, max(1, g.keys/2))
	var keys []int
	for more := true; more; more = g.add(uint32(keys[z.draw(g.r)])) {
		if len(g.reads)%max(1, cap(g.reads)/phases) == 0 {
			keys = g.r.Perm(int(z.n))
		}
	}
}

func hotSet(g *generator) {
	const phases = 20
	n := max(1, g.keys/50)
	for more := true; more; {
		key := g.r.IntN(g.keys)
		if phase := len(g.reads) * phases / cap(g.reads); g.r.IntN(10) > 0 {
			key = (phase*n + g.r.IntN(n)) % g.keys
		}
		more = g.add(uint32(key))
	}
}

func oneLength(*rand.Rand) int32 { return OneLength }

func longTail(r *rand.Rand) int32 {
	return int32(min(max(300*math.Exp(1.6*r.NormFloat64()), 16), MaxLength))
}
