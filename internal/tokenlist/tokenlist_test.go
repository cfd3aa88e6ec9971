package tokenlist

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type number uint64

func (n number) Token() uint64 { return uint64(n) }

// TestList compares a list with a sorted slice, while entries come and go in several orders.
func TestList(t *testing.T) {
	for name, which := range map[string]func(rng *rand.Rand, n int) int{
		"the first leaves": func(_ *rand.Rand, _ int) int { return 0 },
		"the last leaves":  func(_ *rand.Rand, n int) int { return n - 1 },
		"any leaves":       func(rng *rand.Rand, n int) int { return rng.IntN(n) },
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			var l List[number]
			var want []number
			token := number(0)
			for step := range 6000 {
				if grows := step%3000 < 1500; len(want) == 0 || grows == (rng.IntN(4) > 0) {
					token += number(1 + rng.IntN(3))
					l.Add(token)
					want = append(want, token)
				} else {
					i := which(rng, len(want))
					if x, ok := l.Remove(uint64(want[i])); !ok || x != want[i] {
						t.Fatalf("Remove(%d) = %d, %v", want[i], x, ok)
					}
					want = slices.Delete(want, i, i+1)
				}
				check(t, &l, want, number(rng.IntN(int(token)+2)))
			}
			for len(want) > 0 {
				i := which(rng, len(want))
				l.Remove(uint64(want[i]))
				want = slices.Delete(want, i, i+1)
				check(t, &l, want, token)
			}
			if l.pieces != nil {
				t.Error("an empty list keeps memory")
			}
		})
	}
}

// check checks a list, and what it says about one token.
func check(t *testing.T, l *List[number], want []number, token number) {
	t.Helper()
	if got := slices.Concat(l.pieces...); !slices.Equal(got, want) || l.Len() != len(want) {
		t.Fatalf("%d are there: %v, want %v", l.Len(), got, want)
	}
	for i, p := range l.pieces {
		if len(p) == 0 || len(p) > most || i > 0 && len(p)+len(l.pieces[i-1]) <= most/2 {
			t.Fatalf("piece %d of %d has %d entries", i, len(l.pieces), len(p))
		}
	}
	i, found := slices.BinarySearch(want, token)
	if _, ok := l.Get(uint64(token)); ok != found {
		t.Fatalf("Get(%d) finds something: %v, want %v", token, ok, found)
	}
	if !found {
		if _, ok := l.Remove(uint64(token)); ok {
			t.Fatalf("Remove(%d) removes what is not there", token)
		}
	}
	if x, ok := l.From(uint64(token)); ok != (i < len(want)) || ok && x != want[i] {
		t.Fatalf("From(%d) = %d, %v, want what is at %d of %v", token, x, ok, i, want)
	}
	if x, ok := l.Last(); ok != (len(want) > 0) || ok && x != want[len(want)-1] {
		t.Fatalf("Last() = %d, %v, want the last of %v", x, ok, want)
	}
}
