package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomTrace has few keys, so that everything happens often.
func randomTrace(r *rand.Rand, keys, reads int, oneCost bool) (*Trace, []int32) {
	t := &Trace{Values: make([]int32, keys), WarmUp: reads / 10}
	z := newZipf(0.9, keys)
	for range reads {
		t.Keys = append(t.Keys, z.draw(r))
	}
	for key := range t.Values {
		t.Values[key] = int32(1 + r.IntN(9))
		if oneCost {
			t.Values[key] = 1
		}
	}
	return t, t.Costs(0)
}

func sum(costs []int32, keys []uint32) (bytes int64) {
	for _, key := range keys {
		bytes += int64(costs[key])
	}
	return bytes
}

// slowLRU is a list with the last read key at the end.
type slowLRU struct {
	costs []int32
	room  int64
	keys  []uint32
}

func (c *slowLRU) Read(key uint32) bool {
	i := slices.Index(c.keys, key)
	if i >= 0 {
		c.keys = slices.Delete(c.keys, i, i+1)
	}
	c.keys = append(c.keys, key)
	for sum(c.costs, c.keys) > c.room {
		c.keys = c.keys[1:]
	}
	return i >= 0
}

// slowS3FIFO is the paper's Algorithm 1, line by line.
type slowS3FIFO struct {
	costs               []int32
	room                int64
	small, main, ghosts []uint32 // heads at the end
	freq                map[uint32]int
}

func (c *slowS3FIFO) Read(x uint32) bool {
	if slices.Contains(c.small, x) || slices.Contains(c.main, x) {
		c.freq[x] = min(c.freq[x]+1, 3)
		return true
	}
	if int64(c.costs[x]) > c.room/10 {
		return false
	}
	for sum(c.costs, c.small)+sum(c.costs, c.main)+int64(c.costs[x]) > c.room {
		if sum(c.costs, c.small) > c.room/10 || len(c.main) == 0 {
			c.evictS()
		} else {
			c.evictM()
		}
	}
	if i := slices.Index(c.ghosts, x); i >= 0 {
		c.ghosts = slices.Delete(c.ghosts, i, i+1)
		c.main = append(c.main, x)
	} else {
		c.small = append(c.small, x)
	}
	c.freq[x] = 0
	return false
}

func (c *slowS3FIFO) evictS() {
	for evicted := false; !evicted && len(c.small) > 0; {
		t := c.small[0]
		c.small = c.small[1:]
		if c.freq[t] > 1 {
			c.main = append(c.main, t)
			c.freq[t] = 0
			if sum(c.costs, c.main) > c.room-c.room/10 {
				c.evictM()
				return
			}
		} else {
			c.ghosts = append(c.ghosts, t)
			for len(c.ghosts) > max(1, len(c.main)) {
				c.ghosts = c.ghosts[1:]
			}
			evicted = true
		}
	}
}

func (c *slowS3FIFO) evictM() {
	for evicted := false; !evicted && len(c.main) > 0; {
		t := c.main[0]
		c.main = c.main[1:]
		if c.freq[t] > 0 {
			c.main = append(c.main, t)
			c.freq[t]--
		} else {
			evicted = true
		}
	}
}

// TestCaches compares each policy with its slow and obvious version, read by read.
func TestCaches(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 0))
		trace, costs := randomTrace(r, 100, 3000, false)
		room := 40 + r.Int64N(300)
		for _, c := range []struct {
			name       string
			fast, slow Cache
		}{
			{"LRU", NewLRU(costs, room), &slowLRU{costs: costs, room: room}},
			{"S3FIFO", NewS3FIFO(costs, room), &slowS3FIFO{costs: costs, room: room, freq: map[uint32]int{}}},
		} {
			hits := 0
			for i, key := range trace.Keys {
				hit, want := c.fast.Read(key), c.slow.Read(key)
				if hit != want {
					t.Fatalf("%s, seed %d: read %d of key %d: hit %v, want %v", c.name, seed, i, key, hit, want)
				}
				if hit {
					hits++
				}
			}
			if hits < 200 || hits > 2900 {
				t.Errorf("%s, seed %d: %d hits: the comparison says nothing", c.name, seed, hits)
			}
		}
	}
}

// slowBelady looks through the rest of the trace for each decision. weigh says which victim is best
// from its cost and the time to its next read.
func slowBelady(t *Trace, costs []int32, room int64, weigh func(cost, ahead int) int) float64 {
	var keys []uint32
	hits := 0
	for i, key := range t.Keys {
		if k := slices.Index(keys, key); k >= 0 {
			keys = slices.Delete(keys, k, k+1)
			if i >= t.WarmUp {
				hits++
			}
		}
		ahead := func(key uint32) int { return slices.Index(t.Keys[i+1:], key) + 1 }
		if ahead(key) == 0 {
			continue
		}
		keys = append(keys, key)
		for sum(costs, keys) > room {
			worst := slices.MaxFunc(keys, func(a, b uint32) int {
				return weigh(int(costs[a]), ahead(a)) - weigh(int(costs[b]), ahead(b))
			})
			k := slices.Index(keys, worst)
			keys = slices.Delete(keys, k, k+1)
		}
	}
	return t.ratio(hits)
}

func TestBelady(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		trace, costs := randomTrace(r, 60, 800, false)
		room := 20 + r.Int64N(100)
		want := slowBelady(trace, costs, room, func(_, ahead int) int { return ahead })
		if got := Belady(trace, costs, room); got != want {
			t.Errorf("seed %d: %v, want %v", seed, got, want)
		}
		// Ties in the product are broken differently, so the two sometimes differ.
		want = slowBelady(trace, costs, room, func(cost, ahead int) int { return cost * ahead })
		if got := BeladySize(trace, costs, room); math.Abs(got-want) > 0.01 {
			t.Errorf("seed %d, by size: %v, want %v", seed, got, want)
		}
	}
}

// best tries every way to use room for n keys on the rest of a trace.
func best(keys []uint32, has []uint32, n int) int {
	if len(keys) == 0 {
		return 0
	}
	key, rest := keys[0], keys[1:]
	if slices.Contains(has, key) {
		return 1 + best(rest, has, n)
	}
	hits := best(rest, has, n) // not stored
	if len(has) < n {
		return max(hits, best(rest, append(slices.Clone(has), key), n))
	}
	for i := range has {
		other := slices.Clone(has)
		other[i] = key
		hits = max(hits, best(rest, other, n))
	}
	return hits
}

func TestBeladyIsBest(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 0))
		trace, costs := randomTrace(r, 5, 13, true)
		trace.WarmUp = 0
		want := trace.ratio(best(trace.Keys, nil, 2))
		if got := Belady(trace, costs, 2); got != want {
			t.Errorf("seed %d: %v, want %v: %v", seed, got, want, trace.Keys)
		}
	}
}

func TestHitRatio(t *testing.T) {
	trace := &Trace{Keys: []uint32{0, 0, 1, 1, 1, 0}, Values: []int32{10, 20}, WarmUp: 2}
	if got := HitRatio(trace, NewLRU(trace.Costs(5), 100)); got != 0.75 {
		t.Errorf("%v, want 0.75", got)
	}
	if got := trace.MeanCost(5); got != 20 {
		t.Errorf("mean cost %v, want 20", got)
	}
}
