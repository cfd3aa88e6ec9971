package shape

import (
	"encoding/binary"
	"math/bits"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// leafIndex finds the entries of a ranked tree by their first strings: from the hash of a string to
// the number of the leaf that has it. It is linear hashing, as a Table is: part n of its plane is
// bucket n, and a bucket has entries of five bytes, in groups of eight:
//
//	count │ tags 0-7 │ word 0 │ ... │ word 7 │ tags 8-15 │ word 8 │ ...
//	  2        8          4              4         8          4
//
// A tag is the upper byte of a 32-bit hash, so that eight tags are compared at once. Its word is beside
// it, in the same cache line or the next one. A bucket of depth d holds the hashes whose d lowest bits
// are its number, and the word has the other bits, with the leaf's number below them. Each doubling
// gives one bit of the hash to the bucket's number, and the leaf's number has that bit more. So a
// bucket is split and merged without looking at strings, and entries are found by 32 bits whatever
// the size:
//
//	word:   hash, 24 - depth bits │ leaf, 8 + depth bits
//
// Leaves keep their numbers when they move, and when nodes change. What changes leaf is noted here:
// half of a leaf that is split, and all of one that is merged.
//
// There is one entry for each entry of the tree, also while a member has two of them, and stale ones of
// leaves that were removed whole (tree_tombstones.go).
type leafIndex struct {
	v      engine.Parts
	plane  int
	leaves int // the plane of the leaves
}

func (t *Tree) index() leafIndex { return leafIndex{t.V, t.Index, t.Leaves} }

const (
	indexHead = 2
	groupTags = 8
	groupSize = groupTags * 5
	indexFull = 48 // entries of a bucket on average, at most; half of that at least
	hashBits  = 24 // of a hash, besides the tag
	leafBits  = 8  // of a leaf's number in a bucket of depth 0

	maxIndexEntries = (maxBlock - indexHead) / groupSize * groupTags
)

func tagOf32(h uint32) byte { return byte(h >> hashBits) }

// hash is the hash by which a string is found.
func (t *Tree) hash(s []byte) uint32 { return uint32(t.V.Hash(s)) }

// depthOf is how many bits of a hash the number of a bucket says, in an index of n.
func depthOf(number, n int) uint {
	level := bits.Len(uint(n)) - 1
	if number&(1<<level-1) < n-1<<level {
		level++ // it has been split
	}
	return uint(level)
}

// indexBlock is a bucket.
type indexBlock []byte

func (b indexBlock) count() int              { return int(binary.LittleEndian.Uint16(b)) }
func (b indexBlock) setCount(n int)          { binary.LittleEndian.PutUint16(b, uint16(n)) }
func (b indexBlock) tag(e int) byte          { return b[tagAt(e)] }
func (b indexBlock) word(e int) uint32       { return binary.LittleEndian.Uint32(b[wordAt(e):]) }
func (b indexBlock) setWord(e int, w uint32) { binary.LittleEndian.PutUint32(b[wordAt(e):], w) }

func tagAt(e int) int  { return indexHead + e/groupTags*groupSize + e%groupTags }
func wordAt(e int) int { return indexHead + e/groupTags*groupSize + groupTags + e%groupTags*4 }

// indexSize is how many bytes a bucket of n entries needs.
func indexSize(n int) int {
	if n == 0 {
		return indexHead
	}
	return wordAt(n-1) + 4
}

// wordOf is the word of an entry in a bucket of a depth.
func wordOf(h uint32, depth uint, leaf int) uint32 {
	return h&(1<<hashBits-1)>>depth<<(leafBits+depth) | uint32(leaf)
}

func leafOf(word uint32, depth uint) int { return int(word & (1<<(leafBits+depth) - 1)) }

// hashOf is the hash of an entry of bucket number.
func (b indexBlock) hashOf(e int, depth uint, number int) uint32 {
	low := b.word(e)>>(leafBits+depth)<<depth | uint32(number)
	return uint32(b.tag(e))<<hashBits | low
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// search is the first entry from one on that has a hash, -1 if none has.
func (b indexBlock) search(e int, h uint32, depth uint) int {
	tag, rest, n := tagOf32(h), h&(1<<hashBits-1)>>depth, b.count()
	skip := uint64(1)<<(e%groupTags*8) - 1 // of the first group
	for at := tagAt(e &^ (groupTags - 1)); e < n; at += groupSize {
		x := binary.LittleEndian.Uint64(b[at:]) ^ ones*uint64(tag)
		for m := (x - ones) &^ x & highs &^ skip; m != 0; m &= m - 1 {
			i := bits.TrailingZeros64(m) / 8
			found := e&^(groupTags-1) + i
			if found >= n {
				return -1
			}
			word := binary.LittleEndian.Uint32(b[at+groupTags+4*i:])
			if word>>(leafBits+depth) == rest && b[at+i] == tag {
				return found
			}
		}
		e, skip = e&^(groupTags-1)+groupTags, 0
	}
	return -1
}

// find is the entry of a hash and leaf, which is there.
func (b indexBlock) find(h uint32, depth uint, leaf int) int {
	for e := b.search(0, h, depth); e >= 0; e = b.search(e+1, h, depth) {
		if leafOf(b.word(e), depth) == leaf {
			return e
		}
	}
	panic("BUG: the index of a tree has no entry for one of a leaf")
}

// append appends an entry. There is room.
func (b indexBlock) append(tag byte, word uint32) {
	n := b.count()
	b.setCount(n + 1)
	b[tagAt(n)] = tag
	b.setWord(n, word)
}

// bucket is the bucket of a hash, to be read.
func (x leafIndex) bucket(h uint32) (b indexBlock, depth uint) {
	n := x.v.Len(x.plane)
	number := bucket(uint64(h), n)
	return x.v.Part(x.plane, number), depthOf(number, n)
}

// edit is the bucket of a hash, to be changed.
func (x leafIndex) edit(h uint32) (b indexBlock, number int, depth uint) {
	n := x.v.Len(x.plane)
	number = bucket(uint64(h), n)
	return x.v.Edit(x.plane, number), number, depthOf(number, n)
}

// add notes that a leaf has one more entry with a hash. reserve was called for it.
func (x leafIndex) add(h uint32, leaf int) {
	b, _, depth := x.edit(h)
	b.append(tagOf32(h), wordOf(h, depth, leaf))
}

// removeAll forgets entries of a leaf, those of b from one to another, whose bytes begin at off.
func (x leafIndex) removeAll(t *Tree, b block, from, to, off, leaf int) {
	for e := from; e < to; e++ {
		x.remove(t.hashOf(b, e, off), leaf)
		off += b.size(e)
	}
}

// remove forgets an entry of a leaf with a hash.
func (x leafIndex) remove(h uint32, leaf int) {
	c, number, depth := x.edit(h)
	at, last := c.find(h, depth, leaf), c.count()-1
	c[tagAt(at)] = c.tag(last)
	c.setWord(at, c.word(last))
	c.setCount(last)
	if c.isWide(last) {
		x.fit(number)
	}
}

// isWide reports whether a bucket has a cell that is much too long for n entries.
func (b indexBlock) isWide(n int) bool { return len(b)-indexSize(n) >= max(slack, len(b)/4) }

// move notes that an entry with a hash has changed leaf.
func (x leafIndex) move(h uint32, from, to int) {
	c, _, depth := x.edit(h)
	c.setWord(c.find(h, depth, from), wordOf(h, depth, to))
}

// moveAll notes that all entries of a block were in one leaf, and are in another one.
func (x leafIndex) moveAll(t *Tree, b block, from, to int) {
	for e, off := 0, b.begin(); e < b.count(); e++ {
		x.move(t.hashOf(b, e, off), from, to)
		off += b.size(e)
	}
}

// hashOf is the hash of the first string of an entry whose bytes begin at off.
func (t *Tree) hashOf(b block, e, off int) uint32 {
	code, raw := b.item(e, off, 0)
	if code == codeAway {
		return awayHash(t.part(t.Away, int(binary.LittleEndian.Uint32(raw))))
	}
	var number Decimal
	i := Item{code, raw}
	return t.hash(i.Text(&number))
}
