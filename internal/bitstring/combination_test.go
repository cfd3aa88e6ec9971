package bitstring

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// oracleCombine returns the result of BITOP for one byte of each source.
func oracleCombine(op Combination, sources []byte) (result byte) {
	for bit := range 8 {
		set := 0
		for _, s := range sources {
			set += int(s >> bit & 1)
		}
		first, others := sources[0]>>bit&1 == 1, set-int(sources[0]>>bit&1) > 0
		var on bool
		switch op {
		case And:
			on = set == len(sources)
		case Or:
			on = set > 0
		case Xor:
			on = set%2 == 1
		case Not:
			on = !first
		case Diff:
			on = first && !others
		case Diff1:
			on = !first && others
		case AndOr:
			on = first && others
		case One:
			on = set == 1
		}
		if on {
			result |= 1 << bit
		}
	}
	return result
}

func longestOf(sources [][]byte) (length int) {
	for _, s := range sources {
		length = max(length, len(s))
	}
	return length
}

// oracleFill returns the result for whole sources. It is as long as the longest of them.
func oracleFill(op Combination, sources [][]byte) []byte {
	result, column := make([]byte, longestOf(sources)), make([]byte, len(sources))
	for i := range result {
		for j, s := range sources {
			if column[j] = 0; i < len(s) {
				column[j] = s[i]
			}
		}
		result[i] = oracleCombine(op, column)
	}
	return result
}

func TestCombinations(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	inputs := 4_000
	if testing.Short() {
		inputs = 400
	}
	for i := range inputs {
		op := And + Combination(r.IntN(int(One)))
		longest := 100
		if i%100 == 0 {
			longest = 3 * CombineStep
		}
		sources := make([][]byte, 1+r.IntN(5))
		if op == Not {
			sources = sources[:1]
		}
		for j := range sources {
			sources[j] = randomBits(r, longest)
		}
		want := oracleFill(op, sources)
		got := make([]byte, len(want))
		for j := range got {
			got[j] = byte(r.Uint32()) // earlier contents must not matter
		}
		if cut := r.IntN(len(got) + 1); r.IntN(2) == 0 {
			op.Fill(got[:cut], sources, 0)
			op.Fill(got[cut:], sources, cut)
		} else {
			op.Fill(got, sources, 0)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %s of %x is %x, want %x", seed, CombinationNames[op], sources, got, want)
		}
	}
}

// TestFolded: what is folded has the effect of its sources.
func TestFolded(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2_000 {
		op := And + Combination(r.IntN(int(One)))
		if op == Not {
			continue
		}
		sources := make([][]byte, 1+r.IntN(6))
		for j := range sources {
			sources[j] = randomBits(r, 40)
		}
		want := oracleFill(op, sources)
		var f Folded
		var few [][]byte
		for i, s := range sources {
			switch first := op == Diff || op == Diff1 || op == AndOr; {
			case i == 0 && first, i > 0 && r.IntN(4) == 0:
				few = append(few, s)
			default:
				f.Add(op, bytes.Clone(s))
			}
		}
		few = f.AppendSources(few)
		got := make([]byte, len(want))
		if op.Fill(got, few, 0); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %s of %x folded to %x is %x, want %x", seed, CombinationNames[op], sources, few, got, want)
		}
	}
}
