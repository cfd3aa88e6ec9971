package engine

import "encoding/binary"

// Footprint returns how many bytes key and its value take: their cell, the pages of a large body,
// and the part of the index that an entry has in a full bucket. It does not count as a use.
func (t Txn) Footprint(key []byte) (bytes int64, found bool) {
	en, _ := t.lookup(key)
	if !en.found() {
		return 0, false
	}
	s, ref := t.s, en.ref()
	h := s.cells.header(ref)
	n := s.e.cellLen(h)
	if c := &s.e.classes; s.cells.queueOf(ref) == mainCells {
		bytes = int64(c.size(c.of(n)))
	} else {
		bytes = int64(c.unitsFor(n)) << c.grainShift
	}
	if h.isRoot() {
		bytes += s.cells.head(s.cells.headOf(ref, h)).bytes
	}
	return bytes + s.e.bytesElsewhere(h), true
}

// ItemBytes returns what Footprint returns for an item whose cell has the size of its class. It is for the function of
// a walk.
func (e *Engine) ItemBytes(item Item) int64 {
	cell := e.classes.size(e.classes.of(e.cellLen(item.header)))
	return int64(cell) + e.PartsBytes(item) + e.bytesElsewhere(item.header)
}

// bytesElsewhere returns how many bytes a record takes beside its cell and parts: the pages of a large body, and its
// part of the index.
func (e *Engine) bytesElsewhere(h header) (bytes int64) {
	if e.cells.isLarge(h) {
		bytes = largeCost(h.bodyLen()) + extentSize
	}
	return bytes + (bucketSize+bucketEntries-1)/bucketEntries
}

// PartsBytes returns how much memory the parts of an item's value take, 0 if it has none. It is for the
// function of a walk.
func (e *Engine) PartsBytes(item Item) int64 {
	if !item.HasParts() {
		return 0
	}
	return e.cells.head(handle(binary.LittleEndian.Uint32(item.Value()))).bytes
}
