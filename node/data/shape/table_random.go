package shape

import (
	"math/bits"
	"slices"
)

// maxDraws bounds the draws of Random, and those of DrawSome for sixteen elements. maxSomeDraws bounds those of
// DrawSome for any number: each looks at a block. Where no block is crowded, DrawSome draws 500 to 1,900 times for
// maxSome elements, most often behind many deletions.
const (
	maxDraws     = 512
	maxSomeDraws = 3072
)

// Random returns an element, each with the same probability. draw returns a random number below n.
// false: there is none, or so many have expired that none was found.
func (t *Table) Random(draw func(n uint32) uint32) (e Element, ok bool) {
	if t.Len() == 0 {
		return e, false
	}
	for range maxDraws {
		if b, at, _, found := t.draw(draw); found {
			if e = t.element(b, at); !t.isDue(e.ExpireAt) {
				return e, true
			}
		}
	}
	return t.any()
}

// draw chooses one of as many places as all blocks had if each had the most entries. found: there is an
// entry. drawn names the place.
func (t *Table) draw(draw func(n uint32) uint32) (b block, at place, drawn uint64, found bool) {
	number := int(draw(uint32(t.span())))
	at.entry = int(draw(uint32(t.state().most())))
	if b = block(t.part(t.Blocks, number)); at.entry >= b.count() {
		return b, at, 0, false
	}
	at.off = b.offset(at.entry)
	return b, at, uint64(number)<<16 | uint64(at.entry), true
}

// maxSome is how many elements DrawSome chooses at most.
const maxSome = 256

// DrawSome chooses n different elements for Drawn, each choice of as many with the same probability, if
// n is small and the table has several times as many. false: a walk is faster.
func (t *Table) DrawSome(w *Work, n int, draw func(n uint32) uint32) bool {
	if n > maxSome || n*4 > t.Len() {
		return false
	}
	size := 1 << bits.Len(uint(2*n))
	w.drawn = slices.Grow(w.drawn[:0], size)[:size]
	clear(w.drawn)
	for left, draws := n, min(n*maxDraws/16, maxSomeDraws); left > 0; draws-- {
		if draws == 0 {
			return false
		}
		b, at, drawn, found := t.draw(draw)
		if found && !t.isDue(t.expireAt(b, at)) && w.draw(drawn+1) {
			left--
		}
	}
	return true
}

// Drawn calls f for the elements that DrawSome has chosen.
func (t *Table) Drawn(w *Work, f func(e Element)) {
	for _, drawn := range w.drawn {
		if drawn != 0 {
			drawn--
			b, at := block(t.part(t.Blocks, int(drawn>>16))), int(drawn&(1<<16-1))
			f(t.element(b, place{at, b.offset(at)}))
		}
	}
}

// draw notes a number other than 0 in a table of hashes with free places, and reports whether it is new.
func (w *Work) draw(x uint64) bool {
	mask := uint64(len(w.drawn) - 1)
	for i := x * 0x9E3779B97F4A7C15 >> 32; ; i++ {
		switch w.drawn[i&mask] {
		case 0:
			w.drawn[i&mask] = x
			return true
		case x:
			return false
		}
	}
}

// span is how many blocks the table has.
func (t *Table) span() int {
	if t.Pin != nil {
		return t.Pin.Len(t.Blocks)
	}
	return t.V.Len(t.Blocks)
}

// any returns some element. Random has missed maxDraws times; a walk from a random place would find
// the same few blocks.
func (t *Table) any() (e Element, ok bool) {
	for number := range min(maxDraws, t.span()) {
		t.Each(number, func(x Element) { e, ok = x, true })
		if ok {
			break
		}
	}
	return e, ok
}
