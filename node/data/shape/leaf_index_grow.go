package shape

import (
	"math/bits"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// moreLeaves is how many leaves an insertion adds at most.
const moreLeaves = 4

// reserve takes the memory for an entry with a hash: add then has room. count is how many entries
// there will be. After an error what the index finds is as it was.
func (x leafIndex) reserve(h uint32, count int) error {
	if x.v.Len(x.plane) == 0 {
		if err := x.first(); err != nil {
			return err
		}
	}
	if err := x.reserveNumbers(); err != nil {
		return err
	}
	n := x.v.Len(x.plane)
	for splits := 0; splits < moreSplits && n < min(count/indexFull, 1<<hashBits) && x.split(n); splits++ {
		n++
	}
	number := bucket(uint64(h), n)
	b := indexBlock(x.v.Part(x.plane, number))
	if b.count() >= maxIndexEntries {
		return ErrCrowded
	}
	need := indexSize(b.count() + 1)
	if need <= len(b) {
		return nil
	}
	need = min(need+need/8, maxBlock)
	if err := x.v.Reserve(need); err != nil {
		return err
	}
	_, err := x.v.Resize(x.plane, number, need)
	return err
}

// reserveNumbers splits buckets until the words have room for the numbers of all leaves, and of those
// that an insertion may add. Mostly they have.
func (x leafIndex) reserveNumbers() error {
	for n := x.v.Len(x.plane); !x.numbersFit(n); n++ {
		if n == 1<<hashBits || !x.split(n) {
			return engine.ErrMemory
		}
	}
	return nil
}

// numbersFit reports whether the words of an index of n buckets have room for the numbers of all leaves,
// and of those that an insertion may add.
func (x leafIndex) numbersFit(n int) bool {
	level := uint(bits.Len(uint(n)) - 1)
	return x.v.Len(x.leaves)+moreLeaves <= 1<<(leafBits+level)
}

// first gives the index its first bucket.
func (x leafIndex) first() error {
	if err := x.v.Reserve(indexSize(1)); err != nil {
		return err
	}
	_, b, err := x.v.Add(x.plane, indexSize(1))
	if err == nil {
		indexBlock(b).setCount(0)
	}
	return err
}

// fit moves a bucket to a smaller cell. Without memory for that it stays where it is.
func (x leafIndex) fit(number int) {
	need := indexSize(indexBlock(x.v.Part(x.plane, number)).count())
	_, _ = x.v.Resize(x.plane, number, need+need/16)
}

// split gives an index of n buckets one more: it gets the entries of the bucket that is next in turn
// whose hashes have the next bit. It reports whether there was memory.
func (x leafIndex) split(n int) bool {
	depth := uint(bits.Len(uint(n)) - 1)
	from := n - 1<<depth
	b := indexBlock(x.v.Part(x.plane, from))
	moves := 0
	for e := range b.count() {
		moves += int(b.word(e) >> (leafBits + depth) & 1)
	}
	size := indexSize(moves + 1)
	if x.v.Reserve(size) != nil {
		return false
	}
	number, part, err := x.v.Add(x.plane, size)
	if err != nil {
		return false
	}
	if number != n {
		panic("BUG: the numbers of an index's buckets have gaps")
	}
	b = x.v.Edit(x.plane, from)
	to, kept := indexBlock(part), 0
	to.setCount(0)
	for e := range b.count() {
		tag, rest, leaf := b.tag(e), b.word(e)>>(leafBits+depth), leafOf(b.word(e), depth)
		word := rest>>1<<(leafBits+depth+1) | uint32(leaf)
		if rest&1 != 0 {
			to.append(tag, word)
			continue
		}
		b[tagAt(kept)] = tag
		b.setWord(kept, word)
		kept++
	}
	b.setCount(kept)
	x.fit(from)
	return true
}

// shrinks reports whether an index of n buckets has more of them than it should for so many entries.
func (x leafIndex) shrinks(n, count int) bool {
	return n > 1 && count < n*indexFull/2 && x.numbersFit(n-1)
}

// splitFrom is the bucket that the last one was split from.
func splitFrom(last int) int { return last - 1<<(bits.Len(uint(last))-1) }

// merge puts the entries of the last bucket into the one that it was split from, if there is a free
// cell for them, and reports whether it has.
func (x leafIndex) merge(last int) bool {
	depth, into := uint(bits.Len(uint(last))-1), splitFrom(last)
	from, b := indexBlock(x.v.Part(x.plane, last)), indexBlock(x.v.Part(x.plane, into))
	size := indexSize(from.count() + b.count())
	if size > maxBlock {
		return false
	}
	if size > len(b) {
		if _, err := x.v.Resize(x.plane, into, size); err != nil {
			return false
		}
	}
	b = x.v.Edit(x.plane, into)
	for e := range b.count() {
		b.setWord(e, deeper(b.word(e), depth, 0))
	}
	for e := range from.count() {
		b.append(from.tag(e), deeper(from.word(e), depth, 1))
	}
	x.v.Free(x.plane, last)
	return true
}

// deeper is a word of depth+1 as a bucket of depth has it, with the bit that was the bucket's.
func deeper(word uint32, depth uint, bit uint32) uint32 {
	rest, leaf := word>>(leafBits+depth+1), leafOf(word, depth+1)
	return (rest<<1|bit)<<(leafBits+depth) | uint32(leaf)
}
