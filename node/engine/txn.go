package engine

// Txn is the right to work on one section: its shard is locked from Engine.Lock to Unlock. It is a
// small value; use it in one goroutine, and lock no other partition meanwhile.
type Txn struct {
	s       *shard
	p       *partition
	section uint16
	within  bool // see Within
}

// Lock locks the shard of a section. nowMilli is the time that decides what is expired, in unix
// milliseconds.
func (e *Engine) Lock(section uint16, nowMilli int64) Txn {
	s := e.shardOf(section)
	s.mu.Lock()
	s.now = nowMilli
	return Txn{s: s, p: s.partition(section), section: section}
}

// Select is t for another database of its partition. Both are valid until Unlock, which is called
// for one of them.
func (t Txn) Select(database uint8) Txn {
	t.section = Section(PartitionOf(t.section), database)
	t.p = t.s.partition(t.section)
	return t
}

// Section returns what t works on.
func (t Txn) Section() uint16 { return t.section }

// Unlock ends the work. Items found with t are void after it.
func (t Txn) Unlock() {
	switch {
	case t.within:
	case t.s.ending:
		t.s.endTxn()
	default:
		t.s.mu.Unlock()
	}
}

// endTxn is Unlock where something is fed or offered, a key is due, or a page is to be emptied.
func (s *shard) endTxn() {
	s.actor = 0
	if s.owes {
		victim := s.victim
		s.owes, s.victim = false, 0
		defer func() { s.e.makeAhead(s, victim) }()
	}
	if len(s.awaits.due) > 0 {
		deliver := s.serveDue()
		defer func() {
			for _, f := range deliver {
				f()
			}
		}()
	}
	if len(s.values.offers) > 0 {
		s.values.forgetOffers()
	}
	if s.feeding {
		s.feeds.endTxn()
		return
	}
	s.ending = false
	s.mu.Unlock()
}

// Find returns the item of key and counts as a use of it. An expired item is removed and not found;
// in a copy it is there.
func (t Txn) Find(key []byte) (Item, bool) {
	en, _ := t.lookup(key)
	if !en.found() {
		t.s.sums.Misses++
		return Item{}, false
	}
	t.s.cells.touch(en.ref())
	item := t.s.cells.item(en.ref())
	if item.header.isRoot() && t.s.values.isUnfinished(en.ref(), item.header) {
		t.s.sums.Misses++
		return Item{}, false
	}
	t.s.sums.Hits++
	return item, true
}

// Peek is Find without being counted.
func (t Txn) Peek(key []byte) (Item, bool) {
	en, _ := t.lookup(key)
	if !t.isThere(en) {
		return Item{}, false
	}
	return t.s.cells.item(en.ref()), true
}

// Delete removes key and reports whether it was there.
func (t Txn) Delete(key []byte) bool {
	en, tag := t.lookup(key)
	if !en.found() {
		t.s.loseKey(t.section, key)
		return false
	}
	there := t.isThere(en)
	t.s.erase(t.p, tag, en)
	t.s.indexes.tidy(t.p, 2)
	return there
}

// Set stores key with a value of type typ, over any value that was there. It expires at expireAt,
// in unix milliseconds, never if that is 0. key and value are copied; value must not be a view into
// the engine.
//
// ErrMemory: nothing more may be evicted, or the value is too large for the limit; the old value
// remains. With AllKeys every value fits that leaves room for the index, unless what is staged,
// pinned or charged by the caller takes the memory, or another shard has it and is locked. Small
// values find memory even then, in the shard's own pages.
func (t Txn) Set(key, value []byte, typ Type, expireAt int64) error {
	if err := checkStore(typ, t.section, len(key), len(value)); err != nil {
		return err
	}
	s := t.s
	if err := s.indexes.prepare(t.p); err != nil {
		return err
	}
	h := s.e.makeHeader(typ, t.section, len(key), len(value), expireAt != 0)
	en, tag := t.lookup(key)
	if en.found() {
		ref := en.ref()
		done, err := t.overwrite(en, h, expireAt, key, value)
		if done {
			t.putDatabase(ref, h)
			s.changed(tag, ref)
			s.feeds.stored(ref)
		}
		if done || err != nil {
			return err
		}
		if s.e.Policy() == AllKeys && s.cells.isLarge(s.cells.header(en.ref())) {
			// The old body goes first, so that the two need not fit side by side.
			s.erase(t.p, tag, en)
			en = entry{}
		}
	}
	changes := s.changes
	ref, err := s.newRecord(h, expireAt, t.queueFor(en, tag, h))
	if s.changes != changes {
		en, _ = t.lookup(key) // making room may have evicted or moved it
	}
	if err != nil {
		if en.found() && s.cells.holds(en.ref(), h) { // so a value that gets shorter needs no memory
			t.overwriteIn(en.ref(), h, expireAt, key, value)
			t.putDatabase(en.ref(), h)
			s.changed(tag, en.ref())
			s.feeds.stored(en.ref())
			return nil
		}
		return err
	}
	s.fill(ref, h, key, value)
	t.putDatabase(ref, h)
	t.publish(tag, en, ref, h, expireAt)
	s.feeds.stored(ref)
	return nil
}

// queueFor returns the queue for a new record, or for a record that replaces the one in en.
func (t Txn) queueFor(en entry, tag uint32, h header) kind {
	if en.found() {
		return t.s.cells.queueOf(en.ref())
	}
	return t.s.entrance(t.section, tag, h)
}

// overwrite stores the new value where the old one is, if it fits there. Behind it, and behind
// overwriteIn, stands putDatabase.
func (t Txn) overwrite(en entry, h header, expireAt int64, key, value []byte) (done bool, err error) {
	s, ref := t.s, en.ref()
	old := s.cells.header(ref)
	switch {
	case s.cells.fits(ref, old, h):
	case s.cells.isLarge(old) && s.cells.isLarge(h) && s.reuses(ref, old, h):
		if err := s.resizeLarge(ref, old, h.bodyLen()); err != nil {
			return false, err
		}
	default:
		return false, nil
	}
	t.overwriteIn(ref, h, expireAt, key, value)
	return true, nil
}

// overwriteIn stores the new value in the cell of the old one.
func (t Txn) overwriteIn(ref handle, h header, expireAt int64, key, value []byte) {
	s := t.s
	old := s.cells.header(ref)
	s.account(old, s.cells.expireAt(ref, old), -1)
	s.account(h, expireAt, 1)
	s.reshape(ref, old, h.usedLike(old))
	s.cells.setExpireAt(ref, h, expireAt)
	s.fill(ref, h, key, value)
}

// Resize makes the value of key n bytes long and returns it to be written to, valid until the next
// call on t or Unlock. Old bytes stay, new bytes are zeros. Type and expiry stay. ErrNotFound, or
// the errors of Set.
func (t Txn) Resize(key []byte, n int) ([]byte, error) {
	if err := checkLengths(t.section, len(key), n); err != nil {
		return nil, err
	}
	en, tag := t.lookup(key)
	if !t.isThere(en) {
		return nil, ErrNotFound
	}
	s, ref := t.s, en.ref()
	old := s.cells.header(ref)
	if err := checkStore(old.typ(), t.section, len(key), n); err != nil {
		return nil, err
	}
	h := s.e.withValueLen(old, n)
	switch {
	case s.cells.fits(ref, old, h):
		s.account(old, 0, -1)
		s.account(h, 0, 1)
		s.changed(tag, ref)
		s.reshape(ref, old, h)
		clear(s.cells.body(ref, h)[min(old.bodyLen(), h.bodyLen()):])
	case s.cells.isLarge(old) && s.cells.isLarge(h) && !s.cells.isShared(ref):
		if err := s.resizeLarge(ref, old, h.bodyLen()); err != nil {
			return nil, err
		}
		s.account(old, 0, -1)
		s.account(h, 0, 1)
		s.changed(tag, ref)
		s.cells.setHeader(ref, h)
	default:
		var err error
		if ref, err = t.relocate(tag, ref, h, s.cells.expireAt(ref, old), mainCells); err != nil {
			return nil, err
		}
	}
	s.feeds.viewed(ref)
	return s.cells.body(ref, h)[h.keyLen():], nil
}

// ResizeCost is how many bytes Resize of an item found with t to a value of n bytes copies, or
// takes from others.
func (t Txn) ResizeCost(item Item, n int) int {
	s, old := t.s, item.header
	h := s.e.withValueLen(old, n)
	if s.cells.isLarge(old) && s.cells.isLarge(h) && extentShift(old.bodyLen()) == extentShift(h.bodyLen()) && !s.e.large.isShared(s.e.large.offset(item.body)) {
		return max(0, n-old.valueLen())
	}
	return n
}

// SetExpire sets the time when key expires, in unix milliseconds, never if at is 0. It returns
// false if there is no such key, or, where nothing may be evicted, no memory for the eight bytes
// that a first expiry takes.
func (t Txn) SetExpire(key []byte, at int64) bool {
	en, tag := t.lookup(key)
	return t.isThere(en) && t.setExpire(en, tag, at)
}

// setExpire is SetExpire of the record in en.
func (t Txn) setExpire(en entry, tag uint32, at int64) bool {
	s, ref := t.s, en.ref()
	h := s.cells.header(ref)
	if h.hasExpiry() {
		s.changed(tag, ref)
		// An expiry of 0 keeps its word: taking it out would move the body for the sake of eight
		// bytes.
		s.account(h, s.cells.expireAt(ref, h), -1)
		s.account(h, at, 1)
		s.cells.setExpireAt(ref, h, at)
		s.feeds.stored(ref)
		return true
	}
	if at == 0 {
		return true
	}
	s.upkeep = true
	ref, err := t.relocate(tag, ref, h|expiryBit, at, s.cells.queueOf(ref))
	s.upkeep = false
	if err == nil {
		s.feeds.stored(ref)
	}
	return err == nil
}

// lookup finds key, and its tag. An expired record is removed and not found, but for that of a copy.
func (t Txn) lookup(key []byte) (entry, uint32) {
	s := t.s
	tag := tagOf(s.seed.Load(), key)
	en := s.indexes.lookup(t.p, tag, key)
	if !en.found() {
		return en, tag
	}
	ref := en.ref()
	hdr := s.cells.header(ref)
	if hdr.isRoot() && t.expireElements(ref, hdr) {
		return entry{}, tag
	}
	if s.isDue(t.section, s.cells.expireAt(ref, hdr)) {
		if h := t.Holder(); h != nil && s.now != h.now {
			return entry{}, tag // it may expire for the holder only
		}
		s.sums.Expired++
		s.announce(ref, Expired)
		s.eraseUnasked(t.p, tag, en)
		return entry{}, tag
	}
	return en, tag
}

// expireElements removes some elements that are due from the value whose root is in the cell, and
// reports whether the value is gone. In a copy, and in a partition that somebody else holds,
// nothing is removed.
func (t Txn) expireElements(ref handle, hdr header) (gone bool) {
	s := t.s
	at := s.cells.headOf(ref, hdr)
	head := s.cells.head(at)
	if head.due == 0 || head.due > s.now || s.copies.has(t.section) || head.unfinished {
		return false
	}
	if h := t.Holder(); h != nil && s.now != h.now {
		return false
	}
	actor := s.actor
	s.actor = 0
	s.e.forms[head.typ].Expire(Parts{t, at})
	s.act(actor)
	return head.root == 0
}

// publish makes the record ref the one of its key, in place of the record in en, if any.
func (t Txn) publish(tag uint32, en entry, ref handle, h header, expireAt int64) {
	s := t.s
	s.account(h, expireAt, 1)
	s.changed(tag, ref)
	if !en.found() {
		s.indexes.insert(t.p, tag, ref)
		if s.e.announcesNew.Load() {
			s.announce(ref, Created)
		}
		if s.copies.kind != nil && s.copies.spares(t.section) {
			s.copies.setRoom(true)
		}
		return
	}
	s.noteLost(tag, ref)
	old := en.ref()
	s.cells.setHeader(ref, h.usedLike(s.cells.header(old)))
	en.b.refs[en.i] = ref
	s.free(old)
}

// relocate moves a record to a new cell, and to or from the large space, with header h, which
// differs in the length of the value or in having an expiry. What both values have is kept, what is
// new is zeros.
func (t Txn) relocate(tag uint32, ref handle, h header, expireAt int64, k kind) (handle, error) {
	s := t.s
	s.pinned = ref
	to, err := s.newRecord(h, expireAt, k)
	s.pinned = 0
	if err != nil {
		return 0, err
	}
	body := s.cells.body(to, h)
	kept := copy(body, s.cells.body(ref, s.cells.header(ref)))
	clear(body[kept:])
	if h.isRoot() {
		s.values.reroot(to, h)
		s.cells.setHeader(ref, s.cells.header(ref)&^typeMask|header(TypeString)) // it has no parts to be freed
	}
	t.publish(tag, s.indexes.mustFind(t.p, tag, ref), to, h, expireAt)
	return to, nil
}

// checkStore checks what is to be stored in a section as a value of type typ.
func checkStore(typ Type, section uint16, key, value int) error {
	if typ == TypeNone || typ > lastType {
		panic("BUG: a value without a type")
	}
	if typ != TypeString && value == MaxValueLen {
		return ErrValueTooLarge
	}
	return checkLengths(section, key, value)
}

func checkLengths(section uint16, key, value int) error {
	switch {
	case key >= MaxKeyLen && (key > MaxKeyLen || section >= Partitions):
		return ErrKeyTooLong
	case value > MaxValueLen:
		return ErrValueTooLarge
	}
	return nil
}
