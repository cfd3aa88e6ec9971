package engine

// A change of a key is logged where it happens, since the record is at hand there, and in the
// processor's cache: the function that writes a record calls stored, and erase logs the delete,
// whatever the reason and the Txn. Only the view that Resize returns is written to by the caller:
// its record waits in shardFeeds.view until something else is changed, or for Unlock.

// stored logs what the record has now.
func (f *shardFeeds) stored(ref handle) {
	if f.s.feeding {
		f.logStored(ref)
	}
}

// logStored is apart so that stored costs no call where nothing is fed.
func (f *shardFeeds) logStored(ref handle) {
	f.logRecord(ref)
	f.quench()
}

// viewed notes that the value of the record is about to be written to.
func (f *shardFeeds) viewed(ref handle) {
	if f.s.feeding {
		f.view = ref
	}
}

// endView logs the record whose value was to be written to.
func (f *shardFeeds) endView() {
	if ref := f.view; ref != 0 {
		f.view = 0
		f.logRecord(ref)
	}
}

func (f *shardFeeds) logRecord(ref handle) {
	h := f.s.cells.header(ref)
	if t := f.targetsOf(h.partition()); t != 0 {
		if h.isRoot() {
			f.logExpiry(t, h, ref, f.s.cells.expireAt(ref, h))
			return
		}
		f.logItem(t, Item{h, f.s.cells.expireAt(ref, h), firstOf(f.s.cells.body(ref, h))})
	}
}

func (f *shardFeeds) logItem(t targets, item Item) {
	h, body := f.effectOf(item)
	f.logTo(t, h, item.expireAt, body)
}

// logSnapshot logs an item as a part of a snapshot: even if a unit gathers.
func (f *shardFeeds) logSnapshot(r Receiver, item Item) {
	h, body := f.effectOf(item)
	f.logs[r].put(f.s, h, item.expireAt, body)
}

// effectOf returns the word of the effect that says what the item has, and what is behind it.
func (f *shardFeeds) effectOf(item Item) (h header, body []byte) {
	h = item.header
	if f.s.cells.isLarge(h) {
		return otherEffect(EffectLarge, h.partition(), h.keyLen()) | h&databaseBit, bodyPart(item.body, 0, h.keyLen())
	}
	return h, bodyPart(item.body, 0, h.bodyLen())
}

// logTo logs an effect for the receivers, of which there is one at least.
func (f *shardFeeds) logTo(t targets, h header, second int64, body []byte) {
	if f.mayGather() {
		if u := f.unitOf(h.partition()); u != nil {
			for ; t != 0; t >>= 8 {
				f.gather(u, t.first(), h, second, body, nil)
			}
			return
		}
	}
	f.logs[t.first()].put(f.s, h, second, body)
	for t >>= 8; t != 0; t >>= 8 {
		// The log of one may have overflowed to make room for that of another: then it has no more
		// of the partition.
		if r := t.first(); f.targetsOf(h.partition()).has(r) {
			f.logs[r].put(f.s, h, second, body)
		}
	}
}

// logDelete logs that a record goes, which the index p names.
func (f *shardFeeds) logDelete(p *partition, ref handle) {
	h := f.s.cells.header(ref)
	t := f.targetsOf(h.partition())
	if t == 0 || f.s.dropped.isDoomed(p) {
		return // it is no key any more
	}
	key := f.s.cells.fullKey(ref)
	f.logTo(t, otherEffect(EffectDelete, h.partition(), h.keyLen())|h&databaseBit, 0, key)
}

// logClear logs that sections have no keys any more.
func (f *shardFeeds) logClear(of sections) {
	if t := f.targetsOf(of.partition); t != 0 {
		h, body := f.clearing(of)
		f.logTo(t, h, 0, body)
	}
}

// clearing is what says that sections have no keys any more. Where no other database has any, all of the
// partition is cleared: a receiver that knows database 0 only then sees what it knows.
func (f *shardFeeds) clearing(of sections) (h header, body []byte) {
	for d := range uint8(Databases) {
		if (d < of.from || d >= of.to) && f.s.partition(Section(of.partition, d)).buckets != 0 {
			return otherEffect(EffectClear, of.partition, 1) | databaseBit, []byte{of.from}
		}
	}
	return otherEffect(EffectClear, of.partition, 0), nil
}

// endTxn is Unlock where something is fed.
func (f *shardFeeds) endTxn() {
	f.endView()
	if f.unit != nil {
		f.endOwnUnit()
	}
	thirsty := f.thirsty
	f.thirsty = false
	f.s.mu.Unlock()
	if thirsty {
		f.s.e.refillFeeds()
	}
}

// quench has the blocks' reserve filled if this shard has found it low.
func (f *shardFeeds) quench() {
	if f.thirsty {
		f.thirsty = false
		f.s.e.refillFeeds()
	}
}

// clear logs that all partitions of the shard have no keys any more.
func (f *shardFeeds) clear() {
	for i := range f.targets {
		f.logClear(allOf(uint16(i<<f.s.e.shardShift | f.s.number)))
	}
}
