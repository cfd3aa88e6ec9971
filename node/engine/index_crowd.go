package engine

import "hash/maphash"

// Keys can be made so that the index sees no difference between them: an attacker who chooses keys
// finds any number of one XXH64 hash, under every seed at once. So chains of buckets are bounded.
// When maxChain buckets are full, further entries go to the partition's crowd, a second index of
// the same kind, whose buckets are chosen by a hash that nobody outside this process knows. Every
// operation on a flooded partition thereby takes about as long as on any other.
//
// An entry in the crowd keeps its tag, and so its position in a walk. It stays there until it is
// removed, even when its chain gets room again.

const (
	// maxChain is above what chance does in an index of even 2³² keys: an average bucket has up to
	// 11 entries, and more than 56 have a probability of 10⁻²¹.
	maxChain = 8
	// aCrowd stands in a partition's field crowd, where the partition itself is one.
	aCrowd = ^handle(0)
)

// crowdTag is the tag that chooses a key's bucket in a crowd.
func (ix *indexes) crowdTag(key []byte) uint32 {
	return uint32(maphash.Bytes(ix.s.e.crowdSeed, key[:min(len(key), MaxKeyLen)]))
}

// crowd is the crowd of p, nil if it has none.
func (c *cells) crowd(p *partition) *partition {
	if p.crowd == 0 || p.crowd == aCrowd {
		return nil
	}
	return c.partition(p.crowd)
}

// homeOf is where a record belongs in p, which may be a crowd.
func (ix *indexes) homeOf(p *partition, tag uint32, ref handle) *bucket {
	if p.crowd == aCrowd {
		tag = ix.crowdTag(ix.cells.key(ref))
	}
	return ix.home(p, tag)
}

// lookupCrowd finds the entry of key in the crowd of p.
func (ix *indexes) lookupCrowd(p *partition, tag uint32, key []byte) entry {
	c := ix.cells.crowd(p)
	if c == nil {
		return entry{}
	}
	for b := ix.home(c, ix.crowdTag(key)); b != nil; b = ix.cells.bucket(b.next, 0) {
		for i := range b.tags {
			if b.tags[i] == tag && b.refs[i] != 0 && ix.cells.keyIs(b.refs[i], key) {
				return entry{b, i, c}
			}
		}
	}
	return entry{}
}

// placeInCrowd puts an entry whose chain begins at first into the crowd of p. Without memory for
// that it returns false.
func (ix *indexes) placeInCrowd(p *partition, first *bucket, tag uint32, ref handle) bool {
	if p.crowd == aCrowd || p.crowd == 0 && !ix.beginCrowd(p) {
		return false
	}
	c := ix.cells.crowd(p)
	last, _ := ix.cells.chainEnd(ix.homeOf(c, tag, ref))
	if last.full() {
		// The spare is the main index's, which cannot do without.
		h := ix.takeQuietly(bucketSize)
		if h == 0 {
			return false
		}
		last = ix.append(last, h)
	}
	last.add(tag, ref)
	c.count++
	first.crowded = 1
	return true
}

// beginCrowd gives p a crowd of one bucket.
func (ix *indexes) beginCrowd(p *partition) bool {
	root := ix.takeQuietly(bucketSize)
	if root == 0 {
		return false
	}
	h := ix.takeQuietly(int(partitionSize))
	if h == 0 {
		ix.put(root, bucketSize)
		return false
	}
	*ix.cells.bucket(root, 0) = bucket{}
	*ix.cells.partition(h) = partition{root: root, buckets: 1, crowd: aCrowd}
	p.crowd = h
	return true
}

// prepareCrowd lets the crowd of p grow if it is time, and makes sure that the next entry finds
// memory there. It may evict. Where it fails, chains become longer.
func (ix *indexes) prepareCrowd(p *partition) {
	c := ix.cells.crowd(p)
	if c == nil {
		return
	}
	if c.wantsGrowth() {
		ix.grow(c)
	}
	if h := ix.take(bucketSize); h != 0 {
		ix.put(h, bucketSize)
	}
}

// tidyCrowd lets the crowd of p shrink by a bucket, or end, if it is time.
func (ix *indexes) tidyCrowd(p *partition) bool {
	c := ix.cells.crowd(p)
	if c == nil || !c.wantsShrink() || !ix.shrink(c) {
		return false
	}
	if c.buckets == 0 {
		ix.put(p.crowd, int(partitionSize))
		p.crowd = 0
	}
	return true
}
