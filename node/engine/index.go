package engine

import (
	"math/bits"
	"sync/atomic"
)

// The index of a partition is a hash table that grows by one bucket at a time (linear hashing), so
// no insertion waits for a whole table to be copied. With n buckets and the smallest mask of the
// form 2^k-1 that covers n-1, a tag lives in bucket tag&mask, or, if that one does not exist yet,
// in the bucket without the top bit of the mask. The bucket that comes next takes its entries from
// the one without its top bit.

// handle names a cell: its offset in the arena of cells in grains. 0 is no cell.
type handle uint32

const (
	bucketSize    = 64
	bucketEntries = 7
)

// bucket is one cache line. Entries are dense: only the last bucket of a chain has free ones, at
// its end, ref 0.
type bucket struct {
	tags [bucketEntries]uint32 // low half of each key's hash
	refs [bucketEntries]handle
	next handle // overflow bucket, a cell of its own; in a spare one, the next spare
	// crowded, in the first bucket of a chain, says that entries of it may be in the partition's
	// crowd.
	crowded uint32
}

func (b *bucket) full() bool { return b.refs[bucketEntries-1] != 0 }

// add puts an entry into the first free place, which is there.
func (b *bucket) add(tag uint32, ref handle) {
	i := 0
	for b.refs[i] != 0 {
		i++
	}
	b.tags[i], b.refs[i] = tag, ref
}

// partition is the index of one partition's keys.
type partition struct {
	root    handle // see index_granules.go
	buckets uint32
	mask    uint32
	count   uint32 // entries, those in the crowd included
	crowd   handle // a cell with a partition; see index_crowd.go
}

// indexes are the indexes of a shard's partitions, and what they keep for their next step.
type indexes struct {
	cells     *cells // in front: every lookup reads it
	s         *shard
	spare     handle // list of empty buckets, kept for insertions that must not fail halfway
	spares    int
	gathering bool     // some pages of index cells are being emptied: those in leaving
	leaving   []uint32 // kept for the next gathering
}

// home is the bucket where tag belongs; nil in an empty index.
func (ix *indexes) home(p *partition, tag uint32) *bucket {
	if p.buckets == 0 {
		return nil
	}
	i := tag & p.mask
	if i >= p.buckets {
		i &= p.mask >> 1
	}
	return ix.cells.bucketAt(p, i)
}

// bucketPlace is where an index has a bucket, as far as the partition tells; see index_granules.go.
type bucketPlace struct {
	root       handle
	i, buckets uint32
	window     uint32 // where the window with the index begins: as in cells.start
}

// start is the offset of the window in the arena of pages.
func (p *bucketPlace) start() uint64 { return uint64(p.window) << windowUnitShift }

// windowUnitShift is the logarithm of what every window's size is a multiple of.
const windowUnitShift = 20

// homeHint returns where the bucket of tag probably is, found without the lock: its reads may see
// different states of the index.
func (p *partition) homeHint(tag uint32) bucketPlace {
	buckets, mask := atomic.LoadUint32(&p.buckets), atomic.LoadUint32(&p.mask)
	i := tag & mask
	if i >= buckets {
		i &= mask >> 1
	}
	return bucketPlace{root: handle(atomic.LoadUint32((*uint32)(&p.root))), i: i, buckets: buckets}
}

// entry is the place of an index's entry in a bucket; valid until the index of its partition
// changes.
type entry struct {
	b  *bucket
	i  int
	in *partition // the partition's index, or its crowd
}

func (en entry) found() bool { return en.b != nil }
func (en entry) ref() handle { return en.b.refs[en.i] }

// lookup finds the entry of key.
func (ix *indexes) lookup(p *partition, tag uint32, key []byte) entry {
	first := ix.home(p, tag)
	for b := first; b != nil; b = ix.cells.bucket(b.next, 0) {
		for i := range b.tags {
			if b.tags[i] != tag || b.refs[i] == 0 {
				continue
			}
			ix.cells.touchCell(b.refs[i])
			if ix.cells.keyIs(b.refs[i], key) {
				return entry{b, i, p}
			}
		}
	}
	if first != nil && first.crowded != 0 {
		return ix.lookupCrowd(p, tag, key)
	}
	return entry{}
}

// mustFind finds the entry that names ref, which is there.
func (ix *indexes) mustFind(p *partition, tag uint32, ref handle) entry {
	en := ix.find(p, tag, ref)
	if !en.found() {
		panic("BUG: a record is in no index")
	}
	return en
}

// find finds the entry that names ref.
func (ix *indexes) find(p *partition, tag uint32, ref handle) entry {
	first := ix.homeOf(p, tag, ref)
	for b := first; b != nil; b = ix.cells.bucket(b.next, 0) {
		for i := range b.refs {
			if b.refs[i] == ref {
				return entry{b, i, p}
			}
		}
	}
	if c := ix.cells.crowd(p); c != nil && first.crowded != 0 {
		return ix.find(c, tag, ref)
	}
	return entry{}
}

// insert adds an entry. The caller made sure of a spare bucket.
func (ix *indexes) insert(p *partition, tag uint32, ref handle) {
	ix.place(p, tag, ref)
	p.count++
}

// place puts an entry at the end of its chain, or into the crowd.
func (ix *indexes) place(p *partition, tag uint32, ref handle) {
	first := ix.homeOf(p, tag, ref)
	last, length := ix.cells.chainEnd(first)
	if last.full() {
		if length >= maxChain && ix.placeInCrowd(p, first, tag, ref) {
			return
		}
		h := ix.spare
		ix.spare = ix.cells.bucket(h, 0).next
		ix.spares--
		last = ix.append(last, h)
	}
	last.add(tag, ref)
}

// chainEnd is the last bucket of the chain that begins at b, and its length.
func (c *cells) chainEnd(b *bucket) (last *bucket, length int) {
	for length = 1; b.next != 0; length++ {
		b = c.bucket(b.next, 0)
	}
	return b, length
}

// append puts the bucket h, empty, behind the last one of a chain.
func (ix *indexes) append(last *bucket, h handle) *bucket {
	last.next = h
	b := ix.cells.bucket(h, 0)
	*b = bucket{}
	return b
}

// remove takes out an entry of tag's chain and fills its place with the chain's last.
func (ix *indexes) remove(p *partition, tag uint32, en entry) {
	var before *bucket
	last := ix.homeOf(en.in, tag, en.ref())
	for last.next != 0 {
		before, last = last, ix.cells.bucket(last.next, 0)
	}
	i := bucketEntries - 1
	for last.refs[i] == 0 {
		i--
	}
	en.b.tags[en.i], en.b.refs[en.i] = last.tags[i], last.refs[i]
	last.tags[i], last.refs[i] = 0, 0
	if i == 0 && before != nil {
		ix.freeBucket(before.next)
		before.next = 0
	}
	p.count--
	if en.in != p {
		en.in.count--
	}
}

// redistribute places the entries of a chain, whose first bucket was content, where they now
// belong. Emptied overflow buckets become spares before their entries are placed, which is enough
// for a split; for a merge one more spare must be there.
func (ix *indexes) redistribute(p *partition, content bucket) {
	for {
		for i, ref := range content.refs {
			if ref != 0 {
				ix.place(p, content.tags[i], ref)
			}
		}
		if content.next == 0 {
			return
		}
		h := content.next
		content = *ix.cells.bucket(h, 0)
		ix.addSpare(h)
	}
}

func (ix *indexes) addSpare(h handle) {
	ix.cells.bucket(h, 0).next = ix.spare
	ix.spare = h
	ix.spares++
}

// freeBucket keeps an overflow bucket as the spare if there is none.
func (ix *indexes) freeBucket(h handle) {
	if ix.spares == 0 {
		ix.addSpare(h)
		return
	}
	ix.put(h, bucketSize)
}

// trimSpares frees all spares but one.
func (ix *indexes) trimSpares() {
	for ix.spares > 1 {
		h := ix.spare
		ix.spare = ix.cells.bucket(h, 0).next
		ix.spares--
		ix.put(h, bucketSize)
	}
}

// maskFor is the mask with which n > 0 buckets are addressed.
func maskFor(n uint32) uint32 { return 1<<bits.Len32(n-1) - 1 }

// take returns a cell for n bytes of index, 0 if there is none. It may evict.
func (ix *indexes) take(n int) handle {
	if n > ix.s.e.pool.pageSize {
		return 0
	}
	h := ix.s.obtain(index, n)
	if h != 0 {
		ix.s.sums.Index += int64(ix.s.e.classes.size(ix.s.e.classes.of(n)))
	}
	return h
}

// takeQuietly is take without eviction.
func (ix *indexes) takeQuietly(n int) handle {
	class := ix.s.e.classes.of(n)
	h := ix.s.slabs.take(index, class)
	if h != 0 {
		ix.s.sums.Index += int64(ix.s.e.classes.size(class))
	}
	return h
}

func (ix *indexes) put(h handle, n int) {
	ix.s.sums.Index -= int64(ix.s.e.classes.size(ix.s.e.classes.of(n)))
	ix.s.slabs.put(h)
}
