package engine

import "sync/atomic"

// A lookup waits for memory twice, for its bucket and then for its record, and meanwhile the lock
// keeps the processor from beginning the next lookup. Touch lets the keys of a batch wait together:
// it issues loads that do not depend on one another at the same time.
//
// Touch takes no lock, so others change what it reads: it may find one half of an index in one
// state and one in another, or a cell with other content. It relies on nothing: each offset is kept
// within the mapping before it is read from, and a word that is read serves only as a hint of what
// to read next. All memory that others change under their locks lies outside the Go heap.

// Probe names a key that will be looked up soon. The key is read during Touch only.
type Probe struct {
	Section uint16
	Key     []byte
}

const (
	lineSize = 64
	// touchLines is how many cache lines of a record are touched: the processor itself fetches the
	// rest of a long one ahead of whoever copies it.
	touchLines = 4
	// touchBatch is how many keys wait together at most. What they touch must fit the innermost
	// cache.
	touchBatch = 64
)

// aim is where Touch looks for a key.
type aim struct {
	tag  uint32
	at   uint64 // offset in the arena of pages: of a directory, of a bucket, at last of the record
	home bucketPlace
}

// Touch loads into the processor's caches what lookups of the keys will read. It changes nothing.
func (e *Engine) Touch(probes []Probe) {
	var aims [touchBatch]aim
	for len(probes) > 0 {
		n := min(len(probes), touchBatch)
		e.touchAll(probes[:n], aims[:n])
		probes = probes[n:]
	}
}

// touchAll is Touch with an aim for each probe. Each of its loops either computes from what is in
// the caches by now, or does nothing but load: as few instructions as possible, for the processor
// sees only some hundreds of them ahead.
func (e *Engine) touchAll(probes []Probe, aims []aim) {
	c := &e.cells
	for i := range probes {
		p := &probes[i]
		s := e.shardOf(p.Section)
		tag := tagOf(s.seed.Load(), p.Key)
		home := s.partition(p.Section).homeHint(tag)
		home.window = s.cells.start
		aims[i] = aim{tag, c.directoryHint(home), home}
	}
	c.touchAims(aims)
	for i := range aims {
		aims[i].at = c.bucketHint(aims[i].home)
	}
	c.touchAims(aims)
	var late [touchBatch]uint8
	lates := 0
	for i := range aims {
		ref, next := c.peekBucket(aims[i].at).hints(aims[i].tag)
		if ref == 0 {
			ref = next
			late[lates] = uint8(i)
			lates++
		}
		aims[i].at = aims[i].home.start() + c.cellOffset(ref)
	}
	c.touchCells(aims)
	// One key in ten is in an overflow bucket. Hardly any is in the next one.
	for _, i := range late[:lates] {
		ref, _ := c.peekBucket(aims[i].at).hints(aims[i].tag)
		aims[i].at = aims[i].home.start() + c.cellOffset(ref)
		c.touchCells(aims[i : i+1])
	}
	c.touchBodies(aims)
}

func (c *cells) touchAims(aims []aim) {
	for i := range aims {
		c.peek(aims[i].at)
	}
}

// touchCells loads the first two lines of each cell: most records reach into the second, and the
// header that would tell is only just on its way.
func (c *cells) touchCells(aims []aim) {
	for i := range aims {
		c.peek(aims[i].at)
		c.peek(aims[i].at + lineSize)
	}
}

// touchBodies loads the rest of the records, as far as their headers say.
func (c *cells) touchBodies(aims []aim) {
	for i := range aims {
		at := aims[i].at
		h := header(c.peek(at))
		n := uint64(min(h.bodyOffset()+h.bodyLen(), touchLines*lineSize))
		for off := uint64(2 * lineSize); off < n; off += lineSize {
			c.peek(at + off)
		}
		c.peek(at + n - 1)
	}
}

// touchCell loads the rest of a record's cell when a lookup has found it. Only the header says
// where the value lies, so the value would otherwise be waited for after the header. The class of
// the page says how long the record can be.
func (c *cells) touchCell(ref handle) {
	at, n := c.cellOffset(ref), uint64(lineSize+1)
	if p := &c.e.pool.pages[c.pageOf(ref)]; p.kind == mainCells {
		n = min(uint64(c.e.classes.size(int(p.class))), touchLines*lineSize+1)
	}
	for off := uint64(lineSize); off < n; off += lineSize {
		c.peek(at + off)
	}
	c.peek(at + n - 1)
}

// hints returns the record that lookup would find in the bucket first, 0 if none, and the bucket
// where it would go on.
func (b *bucket) hints(tag uint32) (ref, next handle) {
	for i := range b.tags {
		if atomic.LoadUint32(&b.tags[i]) == tag {
			return handle(atomic.LoadUint32((*uint32)(&b.refs[i]))), 0
		}
	}
	return 0, handle(atomic.LoadUint32((*uint32)(&b.next)))
}
