package bitstring

import "crypto/subtle"

// Folded stands for any number of a Combination's sources, which it does not keep: one or two
// sources have the same effect on the result. The first source of DIFF, DIFF1 and ANDOR, to which
// the others are compared, is none of them, nor is NOT's. The zero value stands for no source.
type Folded struct {
	some    []byte // AND: the bits that are in all; XOR: in an odd number; else those that are in some
	several []byte // ONE: the bits that are in more than one
	begun   bool
}

// Add adds a source, which it does not keep.
func (f *Folded) Add(op Combination, source []byte) {
	switch {
	case op == And && f.begun:
		f.some = f.some[:min(len(f.some), len(source))] // behind the end of a source are zeros
		andBytes(f.some, source[:len(f.some)])
		return
	case len(f.some) < len(source):
		f.some = append(f.some, make([]byte, len(source)-len(f.some))...)
	}
	f.begun = true
	some := f.some[:len(source)]
	switch op {
	case Xor:
		subtle.XORBytes(some, some, source)
		return
	case One:
		if len(f.several) < len(source) {
			f.several = append(f.several, make([]byte, len(source)-len(f.several))...)
		}
		addBoth(f.several, some, source)
	}
	orBytes(some, source)
}

// Len returns how many bytes f has.
func (f *Folded) Len() int { return len(f.some) + len(f.several) }

// AppendSources appends the sources for which f stands, views of it.
func (f *Folded) AppendSources(sources [][]byte) [][]byte {
	if f.begun {
		sources = append(sources, f.some)
	}
	if f.several != nil {
		sources = append(sources, f.several)
	}
	return sources
}
