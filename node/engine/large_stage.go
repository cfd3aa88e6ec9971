package engine

// Staged is a large value that is being received. Its memory is charged and written piece by piece
// without any lock; then a Txn publishes it in the time of a small value. One goroutine uses it,
// and ends it with SetStaged or Discard.
type Staged struct {
	e        *Engine
	off      uint64
	section  uint16 // of the key
	keyLen   int    // as in a record
	valueLen int
	written  int // bytes of the body
	dirty    int // so many of them have memory from another body, which is not zeros
	promised int64
	frugal   bool
	reply    bool // it is counted in largeSpace.replies
}

// promiseStep is how many bytes a staged value may reserve beyond those that have arrived. So a
// client that announces half a gigabyte and sends nothing reserves only this much.
const promiseStep = 128 << 10

// IsLarge reports whether a value can be staged: whether key and value are too long for a cell.
func (e *Engine) IsLarge(keyLen, valueLen int) bool { return keyLen+valueLen > e.cells.maxInline }

// Stage begins a value of n bytes under a key of a section, which is copied. Nothing is evicted yet:
// memory is taken as the pieces come, and promised in steps. ErrMemory: what is promised to staged
// values, and pinned, could not fit together.
func (e *Engine) Stage(section uint16, key []byte, n int) (Staged, error) {
	return e.stage(key, n, Staged{section: section})
}

// StagePart is Stage of a part of a value, which has no key, for AddStaged.
func (e *Engine) StagePart(n int) (Staged, error) { return e.stage(nil, n, Staged{}) }

// StageFor is Stage for a key that another node sends: in a spare copy it evicts nothing but records
// of such.
func (e *Engine) StageFor(section uint16, key []byte, n int) (Staged, error) {
	s := e.shardOf(section)
	s.mu.Lock()
	spare := s.copies.spares(section)
	s.mu.Unlock()
	return e.stage(key, n, Staged{section: section, frugal: spare})
}

// stage begins st, of which the caller sets the section and how room is made.
func (e *Engine) stage(key []byte, n int, st Staged) (Staged, error) {
	if err := checkLengths(st.section, len(key), n); err != nil {
		return Staged{}, err
	}
	st.e, st.keyLen, st.valueLen = e, len(key)+st.marker(), n
	body := st.bodyLen()
	l := e.large
	if largeCost(body) > e.reclaimable() {
		return Staged{}, ErrNeverFits
	}
	if !st.promise(0) || !st.takeExtent() {
		l.promised.Add(-st.promised)
		l.refused.Add(1)
		return Staged{}, e.lack(body)
	}
	l.users.Add(1)
	err := st.Write(key)
	if err == nil && st.marker() > 0 {
		err = st.Write([]byte{DatabaseOf(st.section)})
	}
	if err != nil {
		st.Discard()
		return Staged{}, err
	}
	return st, nil
}

// marker is how many bytes there are behind the key that name its database.
func (st *Staged) marker() int {
	if st.section >= Partitions {
		return 1
	}
	return 0
}

// StageReply begins n bytes, up to ReplyPiece, of a reply that is not sent yet. No key gets them:
// they end with Pin or Discard. Like Charge, StageReply and Write may be called with a Txn: they
// make no room in its shard, nor in any other one that is locked.
func (e *Engine) StageReply(n int) (Staged, error) {
	st, err := e.stage(nil, n, Staged{reply: true})
	if err != nil {
		return Staged{}, err
	}
	e.large.replies.Add(int64(e.large.extent(st.off).pages) * osPage)
	return st, nil
}

// ReplyPiece is the longest part of a reply that can be staged, in bytes. Its memory can stay with the
// process for the next one.
const ReplyPiece = 1 << warmShift

// promise promises what the body has at n bytes, and a step more. It fails if everything that is
// promised and pinned could then not fit.
func (st *Staged) promise(n int) bool {
	more := largeCost(min(n+promiseStep, st.bodyLen())) - st.promised
	st.promised += more
	st.e.large.promised.Add(more)
	return st.e.leavesRoom()
}

func (st *Staged) takeExtent() (ok bool) {
	if extentShift(st.bodyLen()) <= warmShift {
		return st.takeMedium()
	}
	if ok = st.take(extentSize); ok {
		st.off, ok = st.e.large.take(st.bodyLen())
	}
	return ok
}

// takeMedium takes a warm extent, or one with all the memory at once, for a body that is not very
// large.
func (st *Staged) takeMedium() (ok bool) {
	l, cost := st.e.large, largeCost(st.bodyLen())
	for further := true; !ok; {
		if st.off, ok = l.takeWarm(st.bodyLen()); ok {
			st.dirty = int(l.extent(st.off).pages) * osPage
			l.staged.Add(int64(st.dirty))
			return true
		}
		if ok = st.e.pool.charge(cost + extentSize); ok {
			break
		}
		if !further {
			return false
		}
		further = st.makeRoom() // if not, once more: as in shard.await
	}
	if st.off, ok = l.take(st.bodyLen()); !ok {
		st.e.pool.refund(cost)
		return false
	}
	if !l.grow(st.off, cost) {
		l.untake(st.off)
		st.e.pool.refund(cost)
		return false
	}
	l.staged.Add(cost)
	l.populate(st.off, int(cost))
	return true
}

// take takes n bytes of the budget and makes room if necessary, holding one shard's lock at a time
// for a short while. Unless st is a reply, the caller holds none, and so can wait for each.
func (st *Staged) take(n int64) bool {
	for further := true; !st.e.pool.charge(n); {
		if !further {
			return false
		}
		further = st.makeRoom() // if not, once more: as in shard.await
	}
	return true
}

func (st *Staged) makeRoom() bool {
	e := st.e
	switch {
	case st.reply:
		return e.makeRoomElsewhere()
	case st.frugal:
		return e.large.reclaim() || e.reclaimAnySpare() || e.pool.chillWarm()
	}
	return e.makeRoom()
}

func (st *Staged) bodyLen() int { return st.keyLen + st.valueLen }

// Live reports whether st is neither zero nor ended.
func (st *Staged) Live() bool { return st.e != nil }

// Key is a view of the key, valid until st ends.
func (st *Staged) Key() []byte { return st.e.large.bytes(st.off, st.keyLen-st.marker()) }

// Value is a view of the bytes of the value that are written, valid until st ends.
func (st *Staged) Value() []byte {
	return st.e.large.bytes(st.off, st.written)[st.keyLen:]
}

// Left is how many bytes of the value are still to be written.
func (st *Staged) Left() int { return st.bodyLen() - st.written }

// Write appends a piece to the value. After ErrMemory nothing remains but Discard.
func (st *Staged) Write(piece []byte) error {
	for len(piece) > 0 {
		view, err := st.extend(len(piece))
		if err != nil {
			return err
		}
		piece = piece[copy(view, piece):]
	}
	return nil
}

// Skip appends n zeros to the value.
func (st *Staged) Skip(n int) error {
	for n > 0 {
		view, err := st.charge(n)
		if err != nil {
			return err
		}
		n -= len(view)
		if from := st.written - len(view); from < st.dirty {
			clear(view[:min(len(view), st.dirty-from)])
		}
	}
	return nil
}

// extend is charge, and has the system put memory behind the piece at once.
func (st *Staged) extend(n int) ([]byte, error) {
	l := st.e.large
	before := int64(l.extent(st.off).pages) * osPage
	view, err := st.charge(n)
	if after := int64(l.extent(st.off).pages) * osPage; after-before >= populateFrom {
		l.populate(st.off+uint64(before), int(after-before))
	}
	return view, err
}

// charge returns the next n bytes of the value, or somewhat less, after making room for them.
func (st *Staged) charge(n int) ([]byte, error) {
	if n > st.Left() {
		panic("BUG: a staged value is longer than announced")
	}
	from := st.written
	end := min(from+n, from&^(releasePiece-1)+releasePiece)
	l := st.e.large
	x := l.extent(st.off)
	if cost := largeCost(end) - int64(x.pages)*osPage; cost > 0 {
		if largeCost(end) > st.promised && !st.promise(end) || !st.take(cost) {
			l.refused.Add(1)
			return nil, ErrMemory
		}
		if !l.grow(st.off, largeCost(end)) {
			st.e.pool.refund(cost)
			l.refused.Add(1)
			return nil, ErrMemory
		}
		l.staged.Add(cost)
		if st.reply {
			l.replies.Add(cost)
		}
	}
	st.written = end
	return l.bytes(st.off+uint64(from), end-from), nil
}

// Pin ends st. What was written stays as it is until the pin is released, and has no other owner.
func (st *Staged) Pin() Pin {
	l := st.e.large
	p := l.pin(st.off, st.keyLen, st.written)
	p.reply = st.reply
	st.end()
	l.disown(st.off)
	_ = l.leave()
	return p
}

// Discard gives up the value.
func (st *Staged) Discard() {
	l := st.e.large
	if st.reply {
		l.replies.Add(-int64(l.extent(st.off).pages) * osPage)
	}
	st.end()
	l.disown(st.off)
	_ = l.leave()
}

// end removes the value from the count of staged bytes.
func (st *Staged) end() {
	l := st.e.large
	l.promised.Add(-st.promised)
	l.staged.Add(-int64(l.extent(st.off).pages) * osPage)
	st.e = nil
}

// SetStaged is Set with a staged value, which is complete, under its key in t's section. Unless it
// fails, st is ended.
func (t Txn) SetStaged(st *Staged, typ Type, expireAt int64) error {
	if DatabaseOf(st.section) != DatabaseOf(t.section) {
		panic("BUG: a value was staged for another database")
	}
	if st.Left() > 0 {
		panic("BUG: a staged value is not complete")
	}
	if st.bodyLen() <= t.s.cells.maxInline {
		panic("BUG: a staged value is not large")
	}
	key := st.Key()
	if err := checkStore(typ, t.section, len(key), st.valueLen); err != nil {
		return err
	}
	s := t.s
	s.frugal = s.copies.spares(t.section)
	defer func() { s.frugal = false }()
	if err := s.indexes.prepare(t.p); err != nil {
		return err
	}
	h := s.e.makeHeader(typ, t.section, len(key), st.valueLen, expireAt != 0)
	en, tag := t.lookup(key)
	if !en.found() || !s.cells.isLarge(s.cells.header(en.ref())) {
		changes := s.changes
		ref, err := s.newCell(h, expireAt, t.queueFor(en, tag, h), st.off)
		if err != nil {
			return err
		}
		if s.changes != changes {
			en, _ = t.lookup(key) // making room may have evicted or moved it
		}
		t.publish(tag, en, ref, h, expireAt)
		s.feeds.stored(ref)
	} else {
		s.replaceLarge(en.ref(), h, expireAt, st.off)
		s.changed(tag, en.ref())
		s.feeds.stored(en.ref())
	}
	l := st.e.large
	st.end()
	return l.leave()
}
