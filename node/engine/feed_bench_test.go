package engine

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkFeed: a SET of a 64-byte value over another, of a key that nobody feeds, or that one
// receiver is fed, whose logs are collected after every few commands, as by a sender on the same
// processor; and what Apply then takes, where there is room for all, and where there is for half.
func BenchmarkFeed(b *testing.B) {
	const keys, collectEvery = 1 << 16, 1 << 10
	value := make([]byte, 64)
	run := func(name string, receivers int, collect bool) {
		b.Run(name, func(b *testing.B) {
			e := benchEngine(b, 1<<30, keys, value)
			for r := range Receiver(receivers) {
				e.OpenFeed(r, func() {})
				for p := range uint16(Partitions) {
					e.Feed(p, r, Mark{})
				}
			}
			var buf [16]byte
			out := make([]byte, 0, 64<<10)
			r := rand.New(rand.NewPCG(1, 2))
			defer cpuTime(b)()
			for i := range b.N {
				benchSet(b, e, buf[:], r.Uint64N(keys), value)
				if collect && i%collectEvery == 0 {
					for r := range Receiver(receivers) {
						out = collectAll(e, r, out)
					}
				}
			}
			b.StopTimer()
			for r := range Receiver(receivers) {
				if got := e.Overflowed(r, nil); collect && len(got) > 0 {
					b.Errorf("%d partitions overflowed", len(got))
				}
			}
		})
	}
	run("Set/Unfed", 0, false)
	run("Set/Fed", 1, true)
	run("Set/FedTwice", 2, true)
	b.Run("Apply", func(b *testing.B) { benchmarkApply(b, 1<<30, keys, value, NoCopy) })
	b.Run("Apply/Full", func(b *testing.B) { benchmarkApply(b, 20<<20, 4*keys, value, NoCopy) })
	b.Run("Apply/FullCopies", func(b *testing.B) { benchmarkApply(b, 20<<20, 4*keys, value, SpareCopy) })
}

// benchmarkApply applies the same effects again and again, of keys of which every other one was
// used.
func benchmarkApply(b *testing.B, maxBytes int64, keys int, value []byte, kind CopyKind) {
	owner, replica := benchEngine(b, 1<<30, keys, value), benchEngine(b, maxBytes, 0, nil)
	var buf [16]byte
	for i := 0; i < keys; i += 2 {
		benchGet(b, owner, buf[:], uint64(i), len(value))
	}
	owner.OpenFeed(0, func() {})
	for p := range uint16(Partitions) {
		owner.Feed(p, 0, Mark{})
		replica.SetCopy(p, kind)
	}
	for i := range keys {
		benchSet(b, owner, buf[:], uint64(i), value)
	}
	var pieces [][]byte
	for i := range owner.Shards() {
		for more := true; more; {
			var piece []byte
			piece, more = owner.Collect(0, i, nil, 48<<10)
			pieces = append(pieces, piece)
		}
	}
	apply := func(piece []byte) (effects int) {
		if err := replica.Apply(piece, 0, 1, &takesAll{}); err != nil {
			b.Fatal(err)
		}
		return len(piece) / (wordSize + 16 + len(value))
	}
	for _, piece := range pieces {
		apply(piece)
	}
	defer cpuTime(b)()
	for done, i := 0, 0; done < b.N; i++ {
		done += apply(pieces[i%len(pieces)])
	}
}

// collectAll takes what all logs have, a piece at a time.
func collectAll(e *Engine, r Receiver, out []byte) []byte {
	for i := range e.Shards() {
		for more := true; more; {
			out, more = e.Collect(r, i, out[:0], 48<<10)
		}
	}
	return out
}
