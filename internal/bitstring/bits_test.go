package bitstring

import (
	"math/rand/v2"
	"testing"
)

// bitString is the oracle: it has one byte for each bit.
type bitString []byte

func bitsOf(b []byte) (s bitString) {
	for _, x := range b {
		for i := 7; i >= 0; i-- {
			s = append(s, x>>i&1)
		}
	}
	return s
}

func (s bitString) count() (n int) {
	for _, bit := range s {
		n += int(bit)
	}
	return n
}

func (s bitString) find(bit byte) int {
	for i, x := range s {
		if x == bit {
			return i
		}
	}
	return -1
}

// randomBits returns bits with long runs of equal ones, of any length.
func randomBits(r *rand.Rand, longest int) []byte {
	room := make([]byte, longest+16)
	from := r.IntN(16)
	b := room[from : from+r.IntN(longest+1)]
	fill := byte(0)
	for i := range b {
		switch r.IntN(12) {
		case 0:
			fill = ^fill
		case 1:
			b[i] = byte(r.Uint32())
			continue
		}
		b[i] = fill
	}
	return b
}

func TestScanBits(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		b := randomBits(r, 100)
		oracle := bitsOf(b)
		from := r.IntN(len(oracle) + 1)
		to := from + r.IntN(len(oracle)+1-from)
		part := oracle[from:to]
		if got, want := Count(b), oracle.count(); got != want {
			t.Fatalf("seed %d: %x has %d bits set, want %d", seed, b, got, want)
		}
		if got, want := CountIn(b, int64(from), int64(to)), part.count(); got != want {
			t.Fatalf("seed %d: %x has %d bits set in [%d, %d), want %d", seed, b, got, from, to, want)
		}
		for bit := range byte(2) {
			want := part.find(bit)
			if want >= 0 {
				want += from
			}
			if got := Find(b, bit == 1, int64(from), int64(to)); got != int64(want) {
				t.Fatalf("seed %d: the first %d of %x in [%d, %d) is at %d, want %d", seed, bit, b, from, to, got, want)
			}
		}
	}
}

func TestFieldAt(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		b := randomBits(r, 30)
		oracle := append(bitsOf(b), make(bitString, 400)...)
		width, at := 1+r.UintN(64), r.Uint64N(300)
		want := uint64(0)
		for _, bit := range oracle[at : at+uint64(width)] {
			want = want<<1 | uint64(bit)
		}
		if got := Field(b, at, width); got != want {
			t.Fatalf("seed %d: %d bits at %d of %x are %#x, want %#x", seed, width, at, b, got, want)
		}
		if at+uint64(width) > uint64(len(b))*8 {
			continue
		}
		v := r.Uint64()
		SetField(b, at, width, v)
		for i := range uint64(width) {
			oracle[at+i] = byte(v >> (uint64(width) - 1 - i) & 1)
		}
		if got := bitsOf(b); string(got) != string(oracle[:len(got)]) {
			t.Fatalf("seed %d: %d bits at %d set to %#x: %x, want %v", seed, width, at, v, b, oracle[:len(got)])
		}
	}
}

// BenchmarkBits measures speeds with all bytes in the processor's cache.
func BenchmarkBits(b *testing.B) {
	value := make([]byte, 64<<10)
	other := make([]byte, len(value))
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(value)))
			for b.Loop() {
				f()
			}
		})
	}
	size := int64(len(value)) * 8
	run("count", func() { Count(value) })
	run("count by bytes", func() {
		n := 0
		for _, x := range value {
			n += int(popcount[x])
		}
		sink = n
	})
	run("find", func() { Find(value, true, 0, size) })
	run("and", func() { andBytes(value, other) })
	run("or", func() { orBytes(value, other) })
}

var sink int

var popcount = func() (n [256]byte) {
	for i := range n {
		n[i] = byte(bitsOf([]byte{byte(i)}).count())
	}
	return n
}()
