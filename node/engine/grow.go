package engine

import "math/bits"

// An index grows when it has more than 5.5 entries a bucket and shrinks below 2.
const (
	growAt   = 11 // entries in two buckets
	shrinkAt = 2  // entries in one
)

func (p *partition) wantsGrowth() bool { return 2*p.count >= growAt*p.buckets }
func (p *partition) wantsShrink() bool { return p.buckets > 0 && p.count+1 < shrinkAt*p.buckets }

// prepare makes sure that one entry can be inserted, and grows the index if it is time. It may evict.
func (s *shard) prepare(p *partition) error {
	if s.spares == 0 {
		h := s.takeIndex(bucketSize)
		if h == 0 {
			return ErrMemory
		}
		s.addSpare(h)
	}
	if p.wantsGrowth() && !s.grow(p) && p.buckets == 0 {
		return ErrMemory
	}
	return nil
}

// grow adds a bucket. Without memory for it, chains grow instead.
func (s *shard) grow(p *partition) bool {
	n := p.buckets
	// Eviction in here takes entries out of p, but never changes its buckets.
	if !s.makePlace(p, n) {
		return false
	}
	p.buckets = n + 1
	p.mask = maskFor(n + 1)
	if n > 0 {
		parent := s.bucketAt(p, n&(p.mask>>1))
		content := *parent
		*parent = bucket{}
		s.redistribute(p, content)
		s.trimSpares()
	}
	return true
}

// shrink takes away the last bucket and gives its entries to the one they came from. It evicts nothing.
func (s *shard) shrink(p *partition) bool {
	n := p.buckets - 1
	content := *s.bucketAt(p, n)
	if s.spares == 0 && n > 0 {
		h := s.takeIndexQuietly(bucketSize)
		if h == 0 {
			return false
		}
		s.addSpare(h)
	}
	if !s.dropPlace(p, n) {
		return false
	}
	if n == 0 {
		*p = partition{}
		return true
	}
	p.buckets = n
	p.mask = maskFor(n)
	s.redistribute(p, content)
	s.trimSpares()
	return true
}

// tidy lets the index follow a falling count, by up to so many buckets, and returns by how many it did.
func (s *shard) tidy(p *partition, atMost int) (steps int) {
	for steps < atMost && p.wantsShrink() && s.shrink(p) {
		steps++
	}
	return steps
}

// makePlace makes sure that the storage of p has an empty place for bucket n.
func (s *shard) makePlace(p *partition, n uint32) bool {
	if n < granule {
		if n&(n-1) != 0 {
			return true
		}
		from, to := int(n)*bucketSize, max(1, 2*int(n))*bucketSize
		return s.replaceRoot(p, s.takeIndex(to), from, to)
	}
	if n%granule != 0 {
		return true
	}
	g := s.takeIndex(granule * bucketSize)
	if g == 0 {
		return false
	}
	clear(s.cells.view(g, 0, granule*bucketSize))
	granules := int(n >> granuleShift)
	if !s.makeDirectory(p, granules) {
		s.putIndex(g, granule*bucketSize)
		return false
	}
	s.cells.handles(p.root, granules+1)[granules] = g
	return true
}

// makeDirectory makes sure that the directory, which has n granules, has room for one more.
func (s *shard) makeDirectory(p *partition, n int) bool {
	if n == 1 {
		d := s.takeIndex(minDirectory * handleSize)
		if d != 0 {
			s.cells.handles(d, 1)[0] = p.root
			p.root = d
		}
		return d != 0
	}
	if n != directoryLen(n) {
		return true
	}
	from, to := n*handleSize, 2*n*handleSize
	return s.replaceRoot(p, s.takeIndex(to), from, to)
}

// directoryLen is how many handles the directory of n > 1 granules has room for.
func directoryLen(n int) int { return max(minDirectory, 1<<bits.Len(uint(n-1))) }

// dropPlace takes the place of bucket n, the last, out of the storage of p. Its content has been copied.
func (s *shard) dropPlace(p *partition, n uint32) bool {
	switch {
	case n == 0:
		s.putIndex(p.root, bucketSize)
		return true
	case n < granule && n&(n-1) == 0:
		return s.halveRoot(p, int(n)*bucketSize)
	case n%granule != 0:
		*s.bucketAt(p, n) = bucket{} // makePlace promises an empty one
		return true
	}
	granules := int(n >> granuleShift)
	g := s.cells.handles(p.root, granules+1)[granules]
	switch {
	case granules == 1:
		d := p.root
		p.root = s.cells.handles(d, 1)[0]
		s.putIndex(d, minDirectory*handleSize)
	case granules == directoryLen(granules):
		if !s.halveRoot(p, granules*handleSize) {
			return false
		}
	}
	s.putIndex(g, granule*bucketSize)
	return true
}

// halveRoot moves the root to a cell of n bytes, half of what it had.
func (s *shard) halveRoot(p *partition, n int) bool {
	return s.replaceRoot(p, s.takeIndexQuietly(n), 2*n, n)
}

// replaceRoot makes h, a cell of to bytes, the root in place of the one of from bytes, and keeps what fits; the rest
// is zeros.
func (s *shard) replaceRoot(p *partition, h handle, from, to int) bool {
	if h == 0 {
		return false
	}
	view := s.cells.view(h, 0, to)
	kept := 0
	if p.root != 0 {
		kept = copy(view, s.cells.view(p.root, 0, min(from, to)))
		s.putIndex(p.root, from)
	}
	clear(view[kept:])
	p.root = h
	return true
}
