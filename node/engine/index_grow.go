package engine

// An index grows when it has more than 5.5 entries a bucket and shrinks below 2.
const (
	growAt   = 11 // entries in two buckets
	shrinkAt = 2  // entries in one
)

func (p *partition) wantsGrowth() bool { return 2*p.count >= growAt*p.buckets }
func (p *partition) wantsShrink() bool { return p.buckets > 0 && p.count+1 < shrinkAt*p.buckets }

// prepare makes sure that one entry can be inserted, and grows the index if it is time. It may
// evict.
func (ix *indexes) prepare(p *partition) error {
	if ix.spares == 0 {
		h := ix.take(bucketSize)
		if h == 0 {
			return ErrMemory
		}
		ix.addSpare(h)
	}
	if p.wantsGrowth() && !ix.grow(p) && p.buckets == 0 {
		return ErrMemory
	}
	ix.prepareCrowd(p)
	return nil
}

// grow adds a bucket. Without memory for it, chains grow instead.
func (ix *indexes) grow(p *partition) bool {
	n := p.buckets
	if n == 0 && !ix.s.hasTable(p) {
		return false
	}
	// Eviction in here takes entries out of p, but never changes its buckets.
	if !ix.makePlace(p, n) {
		return false
	}
	p.buckets = n + 1
	p.mask = maskFor(n + 1)
	if n > 0 {
		parent := ix.cells.bucketAt(p, n&(p.mask>>1))
		content := *parent
		*parent = bucket{crowded: content.crowded}
		ix.cells.bucketAt(p, n).crowded = content.crowded
		ix.redistribute(p, content)
		ix.trimSpares()
	}
	return true
}

// shrink takes away the last bucket and gives its entries to the one they came from. It evicts
// nothing.
func (ix *indexes) shrink(p *partition) bool {
	n := p.buckets - 1
	if n == 0 && ix.cells.crowd(p) != nil {
		return false // that goes first
	}
	content := *ix.cells.bucketAt(p, n)
	if ix.spares == 0 && n > 0 {
		h := ix.takeQuietly(bucketSize)
		if h == 0 {
			return false
		}
		ix.addSpare(h)
	}
	if !ix.dropPlace(p, n) {
		return false
	}
	if n == 0 {
		*p = partition{}
		return true
	}
	p.buckets = n
	p.mask = maskFor(n)
	ix.cells.bucketAt(p, n&(maskFor(n+1)>>1)).crowded |= content.crowded
	ix.redistribute(p, content)
	ix.trimSpares()
	return true
}

// tidy lets the index follow a falling count, by up to atMost buckets, and returns by how many it
// shrank.
func (ix *indexes) tidy(p *partition, atMost int) (steps int) {
	for steps < atMost && (ix.tidyCrowd(p) || p.wantsShrink() && ix.shrink(p)) {
		steps++
	}
	return steps
}
