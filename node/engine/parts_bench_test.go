package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// A value of n parts of benchPart bytes, one part an element: what a table or a tree of packed
// blocks has to beat. benchBlock bytes are such a block.
const (
	benchPart  = 40
	benchBlock = 1000
)

var benchParts = []int{1_000, 1_000_000}

// benchValue makes a value of n parts of size bytes.
func benchValue(b *testing.B, n, size int) *Engine {
	b.Helper()
	e := open(b, Config{MaxBytes: 4 << 30, Shards: 8, Forms: bags()})
	fillValue(b, e, n, size)
	return e
}

func fillValue(b *testing.B, e *Engine, n, size int) {
	b.Helper()
	with(e, 1, 1, func(t Txn) {
		v := mustBag(b, t, "bag")
		sizes := [1]int{size}
		for i := range n {
			if err := t.Reserve(Room{Parts: sizes[:], Spared: []Parts{v}}); err != nil {
				b.Fatal(err)
			}
			_, part, err := v.Add(0, size)
			if err != nil {
				b.Fatal(err)
			}
			binary.LittleEndian.PutUint64(part, uint64(i))
		}
	})
}

// benchEach runs f once for each operation, each with the value found anew from its key, as a
// command finds it.
func benchEach(b *testing.B, e *Engine, f func(v Parts, r *rand.Rand)) {
	r := rand.New(rand.NewPCG(1, 2))
	key := []byte("bag")
	defer cpuTime(b)()
	for b.Loop() {
		t := e.Lock(1, 1)
		item, _ := t.Find(key)
		v, ok := t.Parts(item)
		if !ok {
			b.Fatal("the value is gone")
		}
		f(v, r)
		t.Unlock()
	}
}

// BenchmarkParts measures what one command on a value with parts costs: find the root, find a part
// at random from it, and look at it (find), write to it (change), resize it (resize), or replace it
// by another one with Reserve, Free and Add (replace). Each costs one root lookup; root is that
// alone.
func BenchmarkParts(b *testing.B) {
	for _, n := range benchParts {
		for _, size := range []int{benchPart, benchBlock} {
			if n*size > 1<<28 {
				continue
			}
			run := func(name string, f func(v Parts, r *rand.Rand)) {
				b.Run(fmt.Sprintf("%s/parts=%d/bytes=%d", name, n, size), func(b *testing.B) {
					benchEach(b, benchValue(b, n, size), f)
				})
			}
			sum := uint64(0)
			run("root", func(Parts, *rand.Rand) {})
			run("find", func(v Parts, r *rand.Rand) { sum += binary.LittleEndian.Uint64(v.Part(0, r.IntN(n))) })
			run("change", func(v Parts, r *rand.Rand) { binary.LittleEndian.PutUint64(v.Edit(0, r.IntN(n)), 7) })
			run("resize", func(v Parts, r *rand.Rand) { benchResize(b, v, r.IntN(n), size, r.IntN(2)*16) })
			run("replace", func(v Parts, r *rand.Rand) { benchReplace(b, v, r.IntN(n), size) })
		}
	}
}

// benchRoom is Room for one part of size bytes, without an allocation.
func benchRoom(b *testing.B, v Parts, sizes []int, spared []Parts) {
	spared[0] = v
	if err := v.t.Reserve(Room{Parts: sizes, Spared: spared}); err != nil {
		b.Fatal(err)
	}
}

var (
	benchSizes  [1]int
	benchSpared [1]Parts
)

func benchResize(b *testing.B, v Parts, number, size, more int) {
	benchSizes[0] = size + more
	benchRoom(b, v, benchSizes[:], benchSpared[:])
	if _, err := v.Resize(0, number, size+more); err != nil {
		b.Fatal(err)
	}
}

func benchReplace(b *testing.B, v Parts, number, size int) {
	benchSizes[0] = size
	benchRoom(b, v, benchSizes[:], benchSpared[:])
	v.Free(0, number)
	if _, _, err := v.Add(0, size); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPartsBytes reports the memory of a part beyond what was asked for: its word, the
// rounding of its cell, and its place in the directory. The cells' pages are not counted.
func BenchmarkPartsBytes(b *testing.B) {
	for _, n := range benchParts {
		for _, size := range []int{8, benchPart, 100, benchBlock} {
			if n*size > 1<<28 {
				continue
			}
			b.Run(fmt.Sprintf("parts=%d/bytes=%d", n, size), func(b *testing.B) {
				e := benchValue(b, n, size)
				for b.Loop() {
					_ = e.Stats()
				}
				b.ReportMetric(float64(e.Stats().Parts)/float64(n)-float64(size), "B/part")
				b.ReportMetric(float64(e.Used()-e.fixed.Load())/float64(n)-float64(size), "charged-B/part")
			})
		}
	}
}

// BenchmarkPartsDie measures how long a value takes to die, a part, in the slices of Sweep.
func BenchmarkPartsDie(b *testing.B) {
	const n = 100_000
	e := open(b, Config{MaxBytes: 4 << 30, Shards: 8, Forms: bags()})
	for range b.N {
		b.StopTimer()
		fillValue(b, e, n, benchPart)
		b.StartTimer()
		with(e, 1, 1, func(t Txn) { t.Delete([]byte("bag")) })
		for e.shardOf(1).dropped.drainFirst(drainAtOnce) {
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/part")
}
