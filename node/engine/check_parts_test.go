package engine

import "testing"

// partsCheck walks through the values with parts of a shard.
type partsCheck struct {
	tb      testing.TB
	s       *shard
	cells   int   // parts and nodes that were found from a head
	extents int64 // what those of parts are charged
}

// check compares all values with parts, dying ones too, with what is counted, adds their bytes
// to got, and returns how many pages they have, and how many bytes of extents.
func (v *values) check(tb testing.TB, got *Sums) (pages, extents int64) {
	c := partsCheck{tb: tb, s: v.s}
	heads := 0
	check := func(at handle) {
		heads++
		h := v.s.cells.head(at)
		size := c.checkValue(at, h)
		if size != h.bytes {
			tb.Errorf("a value has %d bytes of parts, counted %d", size, h.bytes)
		}
		got.Parts += size
	}
	if first := v.hand; first != 0 {
		for at := first; ; {
			check(at)
			c.checkRoot(at, v.s.cells.head(at))
			next := v.s.cells.head(at).ahead
			if v.s.cells.head(next).behind != at {
				tb.Fatal("the ring of roots is broken")
			}
			if at = next; at == first {
				break
			}
		}
	}
	for at := v.doomed; at != 0; at = v.s.cells.head(at).ahead {
		if v.s.cells.head(at).root != 0 {
			tb.Error("a doomed value has a root")
		}
		check(at)
	}
	for _, value := range v.pinned {
		h := v.s.cells.head(value.at)
		if !h.pinned || len(value.pins) == 0 || value.dead != (h.root == 0) {
			tb.Errorf("a value has %d pins, pinned %t, dead %t", len(value.pins), h.pinned, value.dead)
		}
		if value.dead {
			check(value.at)
		}
	}
	for _, at := range v.unfinished {
		if h := v.s.cells.head(at); h.root == 0 || !h.unfinished {
			tb.Error("a value in the list of unfinished ones is dead or whole")
		}
	}
	pages = c.checkPages(heads)
	for _, x := range v.stash {
		c.extents += largeCost(x.n)
	}
	return pages, c.extents
}

// checkRoot looks at the root of a value: it is the record of its key, and names the head.
func (c *partsCheck) checkRoot(at handle, h *valueHead) {
	s := c.s
	hdr := s.cells.header(h.root)
	if !hdr.isRoot() || s.cells.headOf(h.root, hdr) != at {
		c.tb.Fatalf("the root of a value, %x, does not name its head", hdr)
	}
	if s.cells.item(h.root).Type() != h.typ || h.spared || h.incarnation == 0 {
		c.tb.Errorf("a value of type %d, spared %t, incarnation %d", h.typ, h.spared, h.incarnation)
	}
	p, tag := s.recordTag(h.root, hdr)
	s.indexes.mustFind(p, tag, h.root)
}

// checkValue looks at everything that a head finds, and returns how many bytes it has.
func (c *partsCheck) checkValue(at handle, h *valueHead) (size int64) {
	size = int64(c.s.e.classes.size(c.s.e.headClass()))
	for i := range h.planes {
		p, parts := &h.planes[i], uint32(0)
		for number := range p.span {
			if ref := *c.s.cells.partAt(p, number); ref != 0 {
				parts++
				size += c.checkCell(ref, makePartWord(at, i, 0, number))
			}
		}
		if parts != p.parts {
			c.tb.Errorf("a plane has %d parts, counted %d", parts, p.parts)
		}
		for l := uint8(1); l <= levels(p.span); l++ {
			for n := range (p.span-1)>>(fanShift*l) + 1 {
				size += c.checkCell(*c.s.cells.nodeAt(p, l, n), makePartWord(at, i, l, n))
			}
		}
	}
	return size
}

func (c *partsCheck) checkCell(ref handle, want partWord) (size int64) {
	s := c.s
	c.cells++
	w := s.cells.partWord(ref)
	if w&^awayBit != want {
		c.tb.Errorf("a part says that it is %x, its head says %x", w, want)
	}
	if s.e.pool.pages[s.cells.pageOf(ref)].kind != partCells {
		c.tb.Error("a part is on a page of others")
	}
	size = int64(s.cells.partSize(ref))
	if w.away() {
		n := largeCost(int(*s.cells.third(ref)))
		x := s.e.large.extent(*s.cells.second(ref))
		if x.refs.Load()&ownerBit == 0 || int64(x.pages)*osPage != n {
			c.tb.Errorf("a part of %d bytes has %d pages, refs %x", n, x.pages, x.refs.Load())
		}
		c.extents += n
		size += n
	}
	return size
}

// checkPages compares the pages that the shard has for values with parts with what was found.
func (c *partsCheck) checkPages(heads int) (pages int64) {
	s, cells, live, unused := c.s, 0, 0, int64(0)
	for i := range s.e.pool.inUse() {
		pg := s.e.pool.nth(i)
		p := &s.e.pool.pages[pg]
		if p.mark() != s.mark || p.kind != partCells && p.kind != valueHeads {
			continue
		}
		pages++
		if p.kind == valueHeads {
			live += int(p.live)
			continue
		}
		cells += int(p.live)
		unused += int64(s.e.classes.size(int(p.class))) * int64(s.e.classes.perPage[p.class]-uint32(p.live))
	}
	if cells != c.cells || live != heads || pages != s.values.pages || unused != s.values.unused {
		c.tb.Errorf("%d parts, %d heads and %d free bytes on %d pages; found %d and %d, counted %d free bytes on %d pages",
			cells, live, unused, pages, c.cells, heads, s.values.unused, s.values.pages)
	}
	return pages
}
