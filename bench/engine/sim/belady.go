package sim

import (
	"math"
	"math/rand/v2"
	"slices"
)

// minStale is the least number of stale futures at which the heap is cleaned.
const minStale = 64

// never is the time of a read that never happens.
const never = math.MaxInt32

// nextReads returns, for each read, when its key is read next.
func nextReads(t *Trace) []int32 {
	next, last := make([]int32, len(t.Keys)), make([]int32, len(t.Values))
	for key := range last {
		last[key] = never
	}
	for i := len(t.Keys) - 1; i >= 0; i-- {
		next[i], last[t.Keys[i]] = last[t.Keys[i]], int32(i)
	}
	return next
}

// Belady returns the hit ratio of a policy that knows the future: it evicts the key whose next read
// is the latest, which may be the new key. No policy is better if all costs are equal (L. A.
// Belady, 1966).
func Belady(t *Trace, costs []int32, room int64) float64 {
	next, hits := nextReads(t), 0
	has := make([]int32, len(costs)) // when the key is read next, 0 if it is not there
	var order futures
	keys := 0
	for i, key := range t.Keys {
		if has[key] != 0 {
			has[key] = 0
			keys--
			room += int64(costs[key])
			if i >= t.WarmUp {
				hits++
			}
		}
		if next[i] == never {
			continue
		}
		has[key] = next[i]
		keys++
		room -= int64(costs[key])
		order.push(future{next[i], key})
		for room < 0 {
			// A future is stale if its read is over or its key is gone.
			if f := order.pop(); has[f.key] == f.at {
				has[f.key] = 0
				keys--
				room += int64(costs[f.key])
			}
		}
		if len(order) > 4*keys+minStale {
			order.keep(func(f future) bool { return has[f.key] == f.at })
		}
	}
	return t.ratio(hits)
}

// future says when a key is read next.
type future struct {
	at  int32
	key uint32
}

// futures is a heap with the farthest future on top.
type futures []future

func (h *futures) push(f future) {
	*h = append(*h, f)
	s := *h
	i := len(s) - 1
	for i > 0 && s[(i-1)/2].at < f.at {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = f
}

func (h *futures) pop() future {
	s := *h
	top := s[0]
	last := s[len(s)-1]
	*h = s[:len(s)-1]
	if len(*h) > 0 {
		h.sink(0, last)
	}
	return top
}

// sink puts f at the free place i, or below it.
func (h *futures) sink(i int, f future) {
	s := *h
	for {
		child := 2*i + 1
		if child+1 < len(s) && s[child+1].at > s[child].at {
			child++
		}
		if child >= len(s) || s[child].at <= f.at {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = f
}

// keep removes all futures that are not wanted.
func (h *futures) keep(wanted func(future) bool) {
	kept := (*h)[:0]
	for _, f := range *h {
		if wanted(f) {
			kept = append(kept, f)
		}
	}
	*h = kept
	for i := len(kept)/2 - 1; i >= 0; i-- {
		h.sink(i, kept[i])
	}
}

// beladySample is how many keys are compared to find a victim, or all if there are fewer.
const beladySample = 64

// BeladySize is for costs that differ, where computing the optimum takes too long. It evicts the
// key with the greatest product of cost and time to its next read, among some keys drawn at random.
// Its hit ratio is not a bound, but near one.
func BeladySize(t *Trace, costs []int32, room int64) float64 {
	next, hits := nextReads(t), 0
	c := seer{costs: costs, room: room, has: make([]int32, len(costs)), at: make([]int32, len(costs)),
		r: rand.New(rand.NewPCG(3, 4))}
	for i, key := range t.Keys {
		if c.has[key] != 0 {
			c.remove(key)
			if i >= t.WarmUp {
				hits++
			}
		}
		if next[i] == never {
			continue
		}
		c.add(key, next[i])
		for c.room < 0 {
			c.remove(c.victim(key, int32(i)))
		}
	}
	return t.ratio(hits)
}

// seer is a cache that knows when each of its keys is read next.
type seer struct {
	costs []int32
	room  int64
	has   []int32 // when the key is read next, 0 if it is not there
	keys  []uint32
	at    []int32 // index in keys
	r     *rand.Rand
}

func (c *seer) add(key uint32, next int32) {
	c.has[key], c.at[key] = next, int32(len(c.keys))
	c.keys = append(c.keys, key)
	c.room -= int64(c.costs[key])
}

func (c *seer) remove(key uint32) {
	last := c.keys[len(c.keys)-1]
	c.keys[c.at[key]], c.at[last] = last, c.at[key]
	c.keys = c.keys[:len(c.keys)-1]
	c.has[key] = 0
	c.room += int64(c.costs[key])
}

// victim returns worst, or a drawn key that is worth less.
func (c *seer) victim(worst uint32, now int32) uint32 {
	price := func(key uint32) int64 { return int64(c.costs[key]) * int64(c.has[key]-now) }
	if c.has[worst] == 0 { // the key is gone already
		worst = c.keys[0]
	}
	for i := range min(beladySample, len(c.keys)) {
		key := c.keys[i]
		if len(c.keys) > beladySample {
			key = c.keys[c.r.IntN(len(c.keys))]
		}
		if price(key) > price(worst) {
			worst = key
		}
	}
	return worst
}

// Optimum returns the hit ratio of Belady if all costs are equal, and otherwise of BeladySize.
func Optimum(t *Trace, costs []int32, room int64) float64 {
	if slices.Min(costs) == slices.Max(costs) {
		return Belady(t, costs, room)
	}
	return BeladySize(t, costs, room)
}
