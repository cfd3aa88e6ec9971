package engine

// newRecord takes a cell in the queue k, and an extent for a large body, for a record with header
// h, and writes all but the body. It may evict. The record belongs to nobody yet: until it is in an
// index, nothing else may be allocated.
func (s *shard) newRecord(h header, expireAt int64, k kind) (handle, error) {
	if !s.cells.isLarge(h) {
		return s.newCell(h, expireAt, k, 0)
	}
	body, ok := s.newLarge(h.bodyLen())
	if !ok {
		return 0, s.e.lack(h.bodyLen())
	}
	ref, err := s.newCell(h, expireAt, k, body)
	if err != nil {
		s.dropLarge(body)
	}
	return ref, err
}

// newCell is newRecord with the place of a large body given.
func (s *shard) newCell(h header, expireAt int64, k kind, body uint64) (handle, error) {
	n := s.e.cellLen(h)
	if k == smallLog && s.small.overfull() && !s.e.haveSpares() {
		s.beginSlice()
		s.small.judge(judgeAhead * n)
		s.endSlice()
	}
	ref := s.obtain(k, n)
	if ref == 0 {
		return 0, ErrMemory
	}
	s.cells.setHeader(ref, h)
	s.cells.setExpireAt(ref, h, expireAt)
	if s.cells.isLarge(h) {
		*s.cells.third(ref) = body
		s.countLarge(ref, largeCost(h.bodyLen()))
	}
	return ref, nil
}

// fits reports whether a record with header h may take the place of old in its cell, without wasting
// much of it.
func (c *cells) fits(ref handle, old, h header) bool {
	if c.isLarge(old) || c.isLarge(h) || old.isRoot() {
		return false
	}
	n := c.e.cellLen(h)
	p := &c.e.pool.pages[c.pageOf(ref)]
	if p.kind == smallLog {
		return c.e.classes.unitsFor(n) <= c.e.classes.unitsFor(c.e.cellLen(old))
	}
	size := c.e.classes.size(int(p.class))
	return n <= size && size-n <= size/4+wordSize
}

// holds reports whether the cell of a record in the main queue is long enough for another one with
// header h, however much of it that wastes.
func (c *cells) holds(ref handle, h header) bool {
	old := c.header(ref)
	if c.isLarge(old) || c.isLarge(h) || old.isRoot() {
		return false
	}
	p := &c.e.pool.pages[c.pageOf(ref)]
	return p.kind == mainCells && c.e.cellLen(h) <= c.e.classes.size(int(p.class))
}

// erase removes the record in en from the index and frees it.
func (s *shard) erase(p *partition, tag uint32, en entry) {
	ref := en.ref()
	s.changed(tag, ref)
	s.noteLost(tag, ref)
	s.loseRecord(ref)
	if s.feeding {
		s.feeds.logDelete(p, ref)
	}
	s.indexes.remove(p, tag, en)
	s.free(ref)
}

// eraseUnasked is erase of a record that expires or is evicted, which nobody's command has asked for.
func (s *shard) eraseUnasked(p *partition, tag uint32, en entry) {
	actor := s.actor
	s.actor = 0
	s.erase(p, tag, en)
	s.act(actor)
}

// free gives back all that a record has.
func (s *shard) free(ref handle) {
	h := s.cells.header(ref)
	s.account(h, s.cells.expireAt(ref, h), -1)
	switch {
	case s.cells.isLarge(h):
		s.countLarge(ref, -largeCost(h.bodyLen()))
		s.dropLarge(*s.cells.third(ref))
	case h.isRoot():
		s.values.doom(ref, h)
	}
	s.slabs.put(ref)
}

// queueOf is the queue that the record is in.
func (c *cells) queueOf(ref handle) kind { return c.e.pool.pages[c.pageOf(ref)].kind }

// fill writes key and value into the body of a record. putDatabase does the rest.
func (s *shard) fill(ref handle, h header, key, value []byte) {
	body := s.cells.body(ref, h)
	copy(body, key)
	copy(body[len(key)+int(h>>databaseBitShift):], value)
}
