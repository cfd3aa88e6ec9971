package engine

// What becomes of a key is logged where it happens, since the record is at hand there, and in the
// processor's cache: stored by whoever writes it, deleted by erase, for whatever reason and in
// whosever Txn. Only the view that Resize returns is written to by the caller: its record waits in
// shard.view until something else is changed, or for Unlock.

// stored logs what the record has now.
func (s *shard) stored(ref handle) {
	if s.feeding {
		s.logStored(ref)
	}
}

// logStored is apart so that stored costs no call where nothing is fed.
func (s *shard) logStored(ref handle) {
	s.logRecord(ref)
	s.quench()
}

// viewed notes that the value of the record is about to be written to.
func (s *shard) viewed(ref handle) {
	if s.feeding {
		s.view = ref
	}
}

// endView logs the record whose value was to be written to.
func (s *shard) endView() {
	if ref := s.view; ref != 0 {
		s.view = 0
		s.logRecord(ref)
	}
}

func (s *shard) logRecord(ref handle) {
	h := s.cells.header(ref)
	if t := s.targetsOf(h.partition()); t != 0 {
		if h.isRoot() {
			s.logExpiry(t, h, ref, s.cells.expireAt(ref, h))
			return
		}
		s.logItem(t, Item{h, s.cells.expireAt(ref, h), firstOf(s.cells.body(ref, h))})
	}
}

func (s *shard) logItem(t targets, item Item) {
	h := item.header
	body := bodyPart(item.body, 0, h.bodyLen())
	if s.cells.isLarge(h) {
		h = otherEffect(EffectLarge, h.partition(), h.keyLen())
		body = item.Key()
	}
	s.logTo(t, h, item.expireAt, body)
}

// logTo logs an effect for the receivers, of which there is one at least.
func (s *shard) logTo(t targets, h header, second int64, body []byte) {
	if s.unit {
		for u := t; u != 0; u >>= 8 {
			s.openUnit(s.logs[u.first()], h.partition())
		}
	}
	s.logs[t.first()].put(s, h, second, body)
	for t >>= 8; t != 0; t >>= 8 {
		// The log of one may have overflown to make room for that of another: then it has no more
		// of the partition.
		if r := t.first(); s.targetsOf(h.partition()).has(r) {
			s.logs[r].put(s, h, second, body)
		}
	}
}

// logDelete logs that a record goes, which the index p names.
func (s *shard) logDelete(p *partition, ref handle) {
	h := s.cells.header(ref)
	t := s.targetsOf(h.partition())
	if t == 0 || s.dropped.isDoomed(p) {
		return // it is no key any more
	}
	key := s.cells.body(ref, h)[:h.keyLen()]
	s.logTo(t, otherEffect(EffectDelete, h.partition(), h.keyLen()), 0, key)
}

// logClear logs that partition p has no keys any more.
func (s *shard) logClear(p uint16) {
	if t := s.targetsOf(p); t != 0 {
		s.logTo(t, otherEffect(EffectClear, p, 0), 0, nil)
	}
}

// endFed is Unlock where something is fed.
func (s *shard) endFed() {
	s.endView()
	if s.unit {
		s.endUnit()
	}
	thirsty := s.thirsty
	s.thirsty = false
	s.mu.Unlock()
	if thirsty {
		s.e.refillFeeds()
	}
}

// quench has the blocks' reserve filled if this shard has found it low.
func (s *shard) quench() {
	if s.thirsty {
		s.thirsty = false
		s.e.refillFeeds()
	}
}

// clearFeeds logs that all partitions of the shard have no keys any more.
func (s *shard) clearFeeds() {
	for i := range s.targets {
		s.logClear(uint16(i<<s.e.shardShift | s.number))
	}
}
