package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

var touchSink byte

// BenchmarkTouch finds random keys in batches, with and without touching all of a batch first, and
// reads their values.
func BenchmarkTouch(b *testing.B) {
	value := make([]byte, 64)
	for _, keys := range []int{1000, 1e6, 10e6} {
		e := benchEngine(b, 4<<30, keys, value)
		for _, batch := range []int{1, 16, 64} {
			for _, touch := range []bool{false, true} {
				b.Run(fmt.Sprintf("keys=%d/batch=%d/touch=%t", keys, batch, touch), func(b *testing.B) {
					keyBytes := make([][16]byte, batch)
					probes := make([]Probe, batch)
					defer cpuTime(b)()
					for range b.N / batch {
						for i := range probes {
							probes[i].Section, probes[i].Key = benchKey(keyBytes[i][:], rand.Uint64N(uint64(keys)))
						}
						if touch {
							e.Touch(probes)
						}
						for i := range probes {
							touchSink += benchFind(b, e, probes[i])
						}
					}
				})
			}
		}
	}
}

// benchFind reads both ends of the value.
func benchFind(b *testing.B, e *Engine, p Probe) byte {
	t := e.Lock(p.Section, 1)
	defer t.Unlock()
	item, ok := t.Find(p.Key)
	if !ok {
		b.Fatal("not found")
	}
	v := item.Value()
	return v[0] + v[len(v)-1]
}
