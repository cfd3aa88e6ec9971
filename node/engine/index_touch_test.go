package engine

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// touchRights says how many of n keys of the partition Touch aims at the records of.
func touchRights(e *Engine, p uint16, n int) (right int) {
	var probes [touchBatch]Probe
	var aims [touchBatch]aim
	for first := 0; first < n; first += touchBatch {
		batch := min(touchBatch, n-first)
		for i := range batch {
			probes[i] = Probe{p, binary.LittleEndian.AppendUint64(nil, uint64(first+i))}
		}
		e.touchAll(probes[:batch], aims[:batch])
		x := e.Lock(p, 1)
		for i := range batch {
			if en, _ := x.lookup(probes[i].Key); en.found() && aims[i].at == uint64(x.s.cells.start)<<windowUnitShift+e.cells.cellOffset(en.ref()) {
				right++
			}
		}
		x.Unlock()
	}
	return right
}

// TestTouchAims grows an index from nothing through all its shapes, and shrinks it again. Nobody is
// there to confuse Touch: it must aim at all records but the few that lie behind two full buckets.
func TestTouchAims(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 32, Seed: 1})
	e.Reset(2)
	const p, most = 7, 250_000 // so many that directories become two deep
	if most/growAt*2 < granule<<e.cells.directoryShift {
		t.Fatalf("%d keys do not make a deep directory", most)
	}
	key := func(i int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(i)) }
	check := func(n int) {
		t.Helper()
		if right := touchRights(e, p, n); right < n-2-n/50 {
			t.Errorf("Touch aims at %d of %d records", right, n)
		}
	}
	for n := 1; n <= most; n++ {
		mustSet(t, e, p, string(key(n-1)), nil)
		if n < 200 || n&(n-1) == 0 || n == most {
			check(n)
		}
	}
	for n := most; n > 0; n-- {
		with(e, p, 1, func(x Txn) { x.Delete(key(n - 1)) })
		if n-1 < 200 || n&(n-1) == 0 {
			check(n - 1)
		}
	}
}

// TestTouchBelievesNothing has Touch read what never could be there.
func TestTouchBelievesNothing(t *testing.T) {
	for _, maxBytes := range []int64{1 << 20, 20 << 30} { // the latter with grains of 16 bytes
		e := open(t, Config{MaxBytes: maxBytes, Shards: 2})
		r := rand.New(rand.NewPCG(1, 2))
		if !e.cells.grow(0, 0, 1<<20) {
			t.Fatal(ErrMemory)
		}
		garbage := e.cells.bytes(0, 1<<20)
		for i := range garbage {
			garbage[i] = byte(r.Uint32())
		}
		parts := e.shards[0].partitions
		for range 2000 {
			for i := range parts[:8] {
				parts[i] = partition{root: handle(r.Uint32()), buckets: r.Uint32() >> r.IntN(32), mask: r.Uint32() >> r.IntN(32)}
				if r.IntN(2) == 0 {
					parts[i].root >>= 15 // into the garbage
				}
			}
			var probes [16]Probe
			for i := range probes {
				probes[i] = Probe{uint16(2 * r.IntN(8)), binary.LittleEndian.AppendUint64(nil, r.Uint64())}
			}
			e.Touch(probes[:])
		}
	}
}
