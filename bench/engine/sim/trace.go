package sim

// Trace is the sequence of a client's reads.
type Trace struct {
	Keys   []uint32 // numbers below len(Values), in the order of the reads
	Values []int32  // the length of every key's value, in bytes
	WarmUp int      // reads at the beginning that do not count
}

// Costs returns how many bytes each key takes: its value and the bytes beside it.
func (t *Trace) Costs(beside int) []int32 {
	costs := make([]int32, len(t.Values))
	for key, n := range t.Values {
		costs[key] = n + int32(beside)
	}
	return costs
}

// MeanCost returns the mean of Costs.
func (t *Trace) MeanCost(beside int) float64 {
	bytes := 0
	for _, n := range t.Values {
		bytes += int(n)
	}
	return float64(bytes)/float64(len(t.Values)) + float64(beside)
}

// Cache is one policy with its room.
type Cache interface {
	// Read reports whether the key is there. If not, it is stored, and others may be evicted.
	Read(key uint32) bool
}

// HitRatio returns the share of the counted reads that hit.
func HitRatio(t *Trace, c Cache) float64 {
	hits := 0
	for i, key := range t.Keys {
		if c.Read(key) && i >= t.WarmUp {
			hits++
		}
	}
	return t.ratio(hits)
}

func (t *Trace) ratio(hits int) float64 { return float64(hits) / float64(len(t.Keys)-t.WarmUp) }
