package bitstring

import "crypto/subtle"

// Combination says which bits of BITOP's result are set: those that are set …
type Combination uint8

const (
	NoCombination Combination = iota
	And                       // AND: in all
	Or                        // OR: in some
	Xor                       // XOR: in an odd number of them
	Not                       // NOT: not in the first, the only one
	Diff                      // DIFF: in the first and in no other
	Diff1                     // DIFF1: in others, but not in the first
	AndOr                     // ANDOR: in the first and in another
	One                       // ONE: in one of all
)

// CombinationNames are the names of the combinations in BITOP.
var CombinationNames = [...]string{And: "AND", Or: "OR", Xor: "XOR", Not: "NOT",
	Diff: "DIFF", Diff1: "DIFF1", AndOr: "ANDOR", One: "ONE"}

// CombineStep is how many bytes of the result are made at a time, so that they stay in the
// processor's cache.
const CombineStep = 16 << 10

// Fill writes the result's bytes from at on. A source has zeros behind its end.
func (op Combination) Fill(result []byte, sources [][]byte, at int) {
	var several []byte
	if op == One {
		several = make([]byte, min(len(result), CombineStep))
	}
	for len(result) > 0 {
		step := result[:min(len(result), CombineStep)]
		op.step(step, sources, at, several[:min(len(step), len(several))])
		result, at = result[len(step):], at+len(step)
	}
}

// step does what Fill does for few bytes. several is as long as result: room for the bits that are
// in more than one source.
func (op Combination) step(result []byte, sources [][]byte, at int, several []byte) {
	first := behind(sources[0], at, len(result))
	if op == Diff1 || op == AndOr {
		clear(result)
	} else {
		clear(result[copy(result, first):])
	}
	clear(several)
	for _, s := range sources[1:] {
		s = behind(s, at, len(result))
		part := result[:len(s)]
		switch op {
		case And:
			andBytes(part, s)
			clear(result[len(s):])
		case Xor:
			subtle.XORBytes(part, part, s)
		case Diff:
			andNotBytes(part, s)
		default:
			if op == One {
				addBoth(several, part, s)
			}
			orBytes(part, s)
		}
	}
	switch op {
	case Not:
		for i := range result {
			result[i] = ^result[i]
		}
	case Diff1:
		andNotBytes(result[:len(first)], first)
	case AndOr:
		andBytes(result[:len(first)], first)
		clear(result[len(first):])
	case One:
		andNotBytes(result, several)
	}
}

// addBoth sets in dst the bits that are set in both a and b. Neither is longer than dst.
func addBoth(dst, a, b []byte) {
	for i := range a {
		dst[i] |= a[i] & b[i]
	}
}

// behind returns the bytes of a source from a position on, at most n.
func behind(source []byte, at, n int) []byte {
	source = source[min(at, len(source)):]
	return source[:min(n, len(source))]
}
