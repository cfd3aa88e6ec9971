package engine

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkFeed: a SET of a 64-byte value over another, of a key that nobody feeds, or that one receiver is fed, whose
// logs are collected after every few commands, as by a sender on the same processor; and what Apply then takes.
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
	b.Run("Apply", func(b *testing.B) {
		owner, replica := benchEngine(b, 1<<30, 0, nil), benchEngine(b, 1<<30, keys, value)
		owner.OpenFeed(0, func() {})
		for p := range uint16(Partitions) {
			owner.Feed(p, 0, Mark{})
		}
		var buf [16]byte
		for i := range uint64(keys / 2) {
			benchSet(b, owner, buf[:], i, value)
		}
		var pieces [][]byte
		for i := range owner.Shards() {
			for more := true; more; {
				var piece []byte
				piece, more = owner.Collect(0, i, nil, 48<<10)
				pieces = append(pieces, piece)
			}
		}
		taker := &takesAll{}
		done := 0
		defer cpuTime(b)()
		for i := 0; done < b.N; i++ {
			piece := pieces[i%len(pieces)]
			if err := replica.Apply(piece, 0, 1, taker); err != nil {
				b.Fatal(err)
			}
			done += len(piece) / (wordSize + 16 + len(value))
		}
	})
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
