package shape

import (
	"encoding/binary"
	"errors"
)

// A leaf of a ranked tree that is removed whole leaves a tombstone, so that its entries need not be
// looked for in the index, each by its hash. The index's entries that name it are stale. A tombstone is
// a leaf without items: it keeps the leaf's number from being used again, and counts the stale entries
// that name it. Who follows one of these finds a leaf that has nothing.
//
// A bucket drops its stale entries before it is merged with another one, and before it refuses a new one.
// While more entries of the index are stale than not, each deletion also sweeps some buckets. The last
// stale entry that names a tombstone frees it.

const (
	sweptFor       = 8  // a deletion sweeps a bucket, and one more for so many entries that it removes
	leastEntombed  = 16 // entries of a leaf for which a tombstone is less work
	entombingSteps = 6  // what the removal of a whole leaf takes, compared with that of one entry
	sweptSteps     = 8  // a sweep passes so many entries while one is removed

	tombstoneSize    = blockHead + leafLead
	longestTombstone = 64 // bytes of its cell
)

// isTombstone reports whether a leaf is one.
func (b block) isTombstone() bool { return b.items() == 0 }

// A tombstone has how many stale entries of the index name it in the place of the parent.
func (b block) stale() int     { return b.parent() }
func (b block) setStale(n int) { b.setParent(n) }

func (s treeState) stale() int     { return int(binary.LittleEndian.Uint32(s[staleAt:])) }
func (s treeState) addStale(n int) { binary.LittleEndian.PutUint32(s[staleAt:], uint32(s.stale()+n)) }

// swept is the bucket to be swept next.
func (s treeState) swept() int {
	return int(binary.LittleEndian.Uint32(s[sweptAt:]) & (1<<hashBits - 1))
}

func (s treeState) setSwept(n int) {
	s[sweptAt], s[sweptAt+1], s[sweptAt+2] = byte(n), byte(n>>8), byte(n>>16)
}

// goesWhole reports whether the leaf of a way can be replaced by a tombstone when n entries are
// removed where the way leads to.
func (t *Tree) goesWhole(w *way, n int) bool {
	count := block(t.V.Part(t.Leaves, w.leaf)).count()
	return w.entry == 0 && n >= count && count >= leastEntombed && w.height > 0 && t.V.Count(t.Away) == 0
}

// entomb replaces the leaf of a way, which goes whole, by a tombstone, if there is a free cell for it,
// and returns how many entries it has removed.
func (t *Tree) entomb(w *way) (removed int) {
	b := block(t.V.Part(t.Leaves, w.leaf))
	count, bytes := b.count(), b.need()-b.begin()
	part, err := t.V.Resize(t.Leaves, w.leaf, tombstoneSize)
	if err != nil {
		return 0
	}
	b = initBlock(part, 0, 0)
	b.lead(leafLead)
	b.setStale(count)
	t.state().addStale(count)
	t.weigh(w, -count, -bytes)
	t.dropChild(w, w.height-1, w.nodes[w.height-1].child)
	return count
}

// tombstone is the tombstone that has a leaf's number, nil if there is none. It does not read leaves
// whose cells are longer: a sweep comes to all of them.
func (t *Tree) tombstone(leaf int) block {
	if t.V.CellOf(t.Leaves, leaf) > longestTombstone {
		return nil
	}
	if b := block(t.V.Part(t.Leaves, leaf)); b.isTombstone() {
		return b
	}
	return nil
}

// dropStale drops the stale entries of a bucket of an index of n. It returns the bucket, and how many
// entries it had.
func (t *Tree) dropStale(number, n int) (b indexBlock, count int) {
	depth, kept := depthOf(number, n), 0
	b = t.V.Edit(t.Index, number)
	count = b.count()
	for e := range count {
		word := b.word(e)
		leaf := leafOf(word, depth)
		if x := t.tombstone(leaf); x != nil {
			// No pin reads a tombstone, so none needs a copy. Free makes one all the same for a pin that
			// was taken after entomb: about 100 bytes, charged to the pin.
			if x.setStale(x.stale() - 1); x.stale() == 0 {
				t.V.Free(t.Leaves, leaf)
			}
			continue
		}
		if kept < e {
			b[tagAt(kept)] = b.tag(e)
			b.setWord(kept, word)
		}
		kept++
	}
	b.setCount(kept)
	t.state().addStale(kept - count)
	return b, count
}

// tidyIndex sweeps and merges buckets when so many entries were removed. It returns how many steps that
// took.
func (t *Tree) tidyIndex(removed int) (steps int) {
	s, x := t.state(), t.index()
	n := x.v.Len(x.plane)
	for looks := 1 + removed/sweptFor; looks > 0 && s.stale() > s.count(); looks-- {
		number := s.swept() % n
		s.setSwept(number + 1)
		b, count := t.dropStale(number, n)
		if b.isWide(b.count()) {
			x.fit(number)
		}
		steps += count
	}
	for merges := moreSplits + removed/indexFull; merges > 0 && x.shrinks(n, s.count()); merges-- {
		for _, number := range [2]int{n - 1, splitFrom(n - 1)} {
			if s.stale() > 0 {
				_, count := t.dropStale(number, n)
				steps += count
			}
		}
		if !x.merge(n - 1) {
			break
		}
		n--
	}
	return steps / sweptSteps
}

// reserveIndex reserves room in the index for an entry with a hash. Stale entries are dropped before one
// is refused.
func (t *Tree) reserveIndex(h uint32) error {
	x := t.index()
	err := x.reserve(h, t.Len()+1)
	if errors.Is(err, ErrCrowded) && t.state().stale() > 0 {
		n := x.v.Len(x.plane)
		t.dropStale(bucket(uint64(h), n), n)
		err = x.reserve(h, t.Len()+1)
	}
	return err
}
