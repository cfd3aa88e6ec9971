package lcs

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// oracleLCS fills the whole table and walks back through it: diagonally if the bytes are equal,
// otherwise up if that is longer, otherwise to the left.
func oracleLCS(a, b []byte) (length int, all []Match) {
	d := make([][]int, len(a)+1)
	d[0] = make([]int, len(b)+1)
	for i := range a {
		d[i+1] = make([]int, len(b)+1)
		for j := range b {
			if a[i] == b[j] {
				d[i+1][j+1] = d[i][j] + 1
			} else {
				d[i+1][j+1] = max(d[i][j+1], d[i+1][j])
			}
		}
	}
	running := false
	for i, j := len(a), len(b); i > 0 && j > 0; {
		if a[i-1] == b[j-1] {
			i, j = i-1, j-1
			if !running {
				all = append(all, Match{})
			}
			m := &all[len(all)-1]
			*m = Match{i, j, m.Length + 1}
			running = true
			continue
		}
		running = false
		if d[i-1][j] > d[i][j-1] {
			i--
		} else {
			j--
		}
	}
	return d[len(a)][len(b)], all
}

func TestLCS(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	text := func(letters int) []byte {
		b := make([]byte, r.IntN(200))
		for i := range b {
			b[i] = byte(r.IntN(letters))
		}
		return b
	}
	inputs := 3_000
	if testing.Short() {
		inputs = 300
	}
	for i := range inputs {
		letters := 1 + i%20
		a, b := text(letters), text(letters)
		if i%3 == 0 { // one is the other one with a few changes
			b = bytes.Clone(a)
			for range r.IntN(10) {
				if at := r.IntN(len(b) + 1); r.IntN(2) == 0 {
					b = slices.Insert(b, at, byte(r.IntN(letters)))
				} else {
					b = slices.Delete(b, max(at-3, 0), at)
				}
			}
		}
		length, all := oracleLCS(a, b)
		s := Pair{A: a, B: b}
		if got := s.Solve(false); got != length {
			t.Fatalf("seed %d: the LCS of %x and %x is %d long, want %d", seed, a, b, got, length)
		}
		if got := s.Solve(true); got != length {
			t.Fatalf("seed %d: with all rows, the LCS of %x and %x is %d long, want %d", seed, a, b, got, length)
		}
		if got := s.Matches(length); !slices.Equal(got, all) {
			t.Fatalf("seed %d: the matches of %x and %x are %v, want %v", seed, a, b, got, all)
		}
	}
}

// BenchmarkLCS measures the largest LCS that Redis accepts, for which Redis takes half a gigabyte.
func BenchmarkLCS(b *testing.B) {
	s := Pair{A: random(11_584, 1), B: random(11_584, 2)}
	b.Run("length", func(b *testing.B) {
		for b.Loop() {
			s.Solve(false)
		}
	})
	b.Run("matches", func(b *testing.B) {
		for b.Loop() {
			s.Matches(s.Solve(true))
		}
	})
	b.Run("table", func(b *testing.B) {
		for b.Loop() {
			oracleLCS(s.A[:1158], s.B[:1158]) // a hundredth
		}
	})
}

// random returns n bytes that depend on seed.
func random(n int, seed uint64) []byte {
	r, b := rand.New(rand.NewPCG(seed, 0)), make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
