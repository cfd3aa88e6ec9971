package engine

import "math/bits"

// Where the buckets of an index lie. Up to granule buckets are one cell, the root, which grows by
// doubling. From the second granule on the root is a directory of handles, which grows by doubling
// up to a page; from its second page on it is a directory of such pages. So no step copies more
// than half a page, whatever the size of the index.
//
//	root ─> buckets          root ─> ● ● ● ●          root ─> ● ●
//	        0 ... 7                  │ granules               │ └> ● ● ●
//	                                 └> 0 ... 7               └> ● ● ● ● ● ... a page of them
//	                                                             └> granules

const (
	granule      = 8
	granuleShift = 3
	minDirectory = 4 // handles
	handleSize   = 4
)

func (c *cells) bucketAt(p *partition, i uint32) *bucket {
	if p.buckets <= granule {
		return c.bucket(p.root, i)
	}
	g := *c.granuleAt(p, i>>granuleShift, p.buckets > granule<<c.directoryShift)
	return c.bucket(g, i&(granule-1))
}

// granuleAt is where the directory of p, which is deep or not, has the handle of granule g.
func (c *cells) granuleAt(p *partition, g uint32, deep bool) *handle {
	d := p.root
	if deep {
		d = *c.handle(d, g>>c.directoryShift)
		g &= 1<<c.directoryShift - 1
	}
	return c.handle(d, g)
}

// bucketHint is bucketAt for Touch: an offset, and nothing to be relied on.
func (c *cells) bucketHint(p bucketPlace) uint64 {
	at := c.directoryHint(p)
	if p.buckets <= granule {
		return at
	}
	if p.buckets > granule<<c.directoryShift {
		at = p.start() + c.cellOffset(c.peekHandle(at)) + uint64(p.i>>granuleShift&(1<<c.directoryShift-1))*handleSize
	}
	return p.start() + c.cellOffset(c.peekHandle(at)) + uint64(p.i&(granule-1))*bucketSize
}

// directoryHint is the offset of what bucketHint reads first in the cells; without a directory, of
// the bucket.
func (c *cells) directoryHint(p bucketPlace) uint64 {
	at := p.start() + c.cellOffset(p.root)
	switch {
	case p.buckets <= granule:
		return at + uint64(p.i)*bucketSize
	case p.buckets <= granule<<c.directoryShift:
		return at + uint64(p.i>>granuleShift)*handleSize
	default:
		return at + uint64(p.i>>granuleShift>>c.directoryShift)*handleSize
	}
}

// makePlace makes sure that the storage of p has an empty place for bucket n, the next.
func (ix *indexes) makePlace(p *partition, n uint32) bool {
	if n < granule {
		if n&(n-1) != 0 {
			return true
		}
		from, to := int(n)*bucketSize, max(1, 2*int(n))*bucketSize
		return ix.replaceRoot(p, ix.take(to), from, to)
	}
	if n%granule != 0 {
		return true
	}
	g := ix.take(granule * bucketSize)
	if g == 0 {
		return false
	}
	clear(ix.cells.view(g, 0, granule*bucketSize))
	if !ix.extend(p, n>>granuleShift) {
		ix.put(g, granule*bucketSize)
		return false
	}
	*ix.cells.granuleAt(p, n>>granuleShift, n >= granule<<ix.cells.directoryShift) = g
	return true
}

// extend makes sure that the directory of n granules has room for one more.
func (ix *indexes) extend(p *partition, n uint32) bool {
	blocks := n >> ix.cells.directoryShift
	if n != blocks<<ix.cells.directoryShift {
		return blocks > 0 || ix.growDirectory(p, n)
	}
	block := ix.take(ix.s.e.pool.pageSize)
	if block == 0 {
		return false
	}
	if !ix.growDirectory(p, blocks) {
		ix.put(block, ix.s.e.pool.pageSize)
		return false
	}
	*ix.cells.handle(p.root, blocks) = block
	return true
}

// growDirectory makes sure that the root, a directory of n, has room for one more. A directory of
// one is what that names.
func (ix *indexes) growDirectory(p *partition, n uint32) bool {
	if n == 1 {
		d := ix.take(minDirectory * handleSize)
		if d != 0 {
			*ix.cells.handle(d, 0) = p.root
			p.root = d
		}
		return d != 0
	}
	if n != directoryLen(n) {
		return true
	}
	from, to := int(n)*handleSize, 2*int(n)*handleSize
	return ix.replaceRoot(p, ix.take(to), from, to)
}

// directoryLen is how many handles a directory of n > 1 has room for.
func directoryLen(n uint32) uint32 { return max(minDirectory, uint32(1)<<bits.Len32(n-1)) }

// dropPlace takes the place of bucket n, the last, out of the storage of p. Its content has been
// copied.
func (ix *indexes) dropPlace(p *partition, n uint32) bool {
	switch {
	case n == 0:
		ix.put(p.root, bucketSize)
		return true
	case n < granule && n&(n-1) == 0:
		return ix.halveRoot(p, int(n)*bucketSize)
	case n%granule != 0:
		*ix.cells.bucketAt(p, n) = bucket{} // makePlace promises an empty one
		return true
	}
	g := *ix.cells.granuleAt(p, n>>granuleShift, n >= granule<<ix.cells.directoryShift)
	if !ix.retract(p, n>>granuleShift) {
		return false
	}
	ix.put(g, granule*bucketSize)
	return true
}

// retract leaves the directory of n + 1 granules with n.
func (ix *indexes) retract(p *partition, n uint32) bool {
	blocks := n >> ix.cells.directoryShift
	if n != blocks<<ix.cells.directoryShift {
		return blocks > 0 || ix.shrinkDirectory(p, n)
	}
	block := *ix.cells.handle(p.root, blocks)
	if !ix.shrinkDirectory(p, blocks) {
		return false
	}
	ix.put(block, ix.s.e.pool.pageSize)
	return true
}

// shrinkDirectory leaves the root, a directory of n + 1, with n.
func (ix *indexes) shrinkDirectory(p *partition, n uint32) bool {
	switch {
	case n == 1:
		d := p.root
		p.root = *ix.cells.handle(d, 0)
		ix.put(d, minDirectory*handleSize)
	case n == directoryLen(n):
		return ix.halveRoot(p, int(n)*handleSize)
	}
	return true
}

// halveRoot moves the root to a cell of n bytes, half of what it had.
func (ix *indexes) halveRoot(p *partition, n int) bool {
	return ix.replaceRoot(p, ix.takeQuietly(n), 2*n, n)
}

// replaceRoot makes h, a cell of to bytes, the root in place of the one of from bytes, and keeps
// what fits; the rest is zeros.
func (ix *indexes) replaceRoot(p *partition, h handle, from, to int) bool {
	if h == 0 {
		return false
	}
	view := ix.cells.view(h, 0, to)
	kept := 0
	if p.root != 0 {
		kept = copy(view, ix.cells.view(p.root, 0, min(from, to)))
		ix.put(p.root, from)
	}
	clear(view[kept:])
	p.root = h
	return true
}

// freeStorage frees the parts of a doomed index that ended with the bucket freed last.
func (ix *indexes) freeStorage(d *doomed) {
	if d.left%granule != 0 {
		return
	}
	if d.buckets <= granule {
		ix.put(d.root, int(maskFor(d.buckets)+1)*bucketSize)
		return
	}
	g, granules := d.left>>granuleShift, (d.buckets+granule-1)>>granuleShift
	perBlock := uint32(1) << ix.cells.directoryShift
	ix.put(*ix.cells.granuleAt(&d.partition, g, granules > perBlock), granule*bucketSize)
	named := granules // in the root
	if granules > perBlock {
		named = (granules + perBlock - 1) >> ix.cells.directoryShift
		if g%perBlock == 0 {
			ix.put(*ix.cells.handle(d.root, g>>ix.cells.directoryShift), ix.s.e.pool.pageSize)
		}
	}
	if g == 0 {
		ix.put(d.root, int(directoryLen(named))*handleSize)
	}
}
