package engine

// Staged is a large value on its way in: its memory is charged and written piece by piece without any lock, and a Txn
// publishes it in the time of a small one. It is used by one goroutine, which ends it with SetStaged or Discard.
type Staged struct {
	e        *Engine
	off      uint64
	keyLen   int
	valueLen int
	written  int // bytes of the body
}

// IsLarge says whether a value can be staged: whether key and value are too long for a cell.
func (e *Engine) IsLarge(keyLen, valueLen int) bool { return keyLen+valueLen > e.maxInline }

// Stage begins a value of n bytes under key, which is copied. Nothing is evicted for what is only announced: memory is
// taken as pieces come. But if all that is being staged, and what is pinned, cannot fit together, that is ErrMemory now.
func (e *Engine) Stage(key []byte, n int) (Staged, error) {
	if err := checkLengths(len(key), n); err != nil {
		return Staged{}, err
	}
	st := Staged{e: e, keyLen: len(key), valueLen: n}
	body := st.bodyLen()
	if body <= e.maxInline {
		panic("BUG: a staged value is not large")
	}
	l := e.large
	l.promised.Add(largeCost(body))
	if l.held() > e.reclaimable() || !e.charge(extentSize) {
		l.promised.Add(-largeCost(body))
		return Staged{}, e.lack(body)
	}
	off, ok := l.take(body)
	if !ok {
		l.promised.Add(-largeCost(body))
		return Staged{}, ErrMemory
	}
	l.users.Add(1)
	st.off = off
	if err := st.Write(key); err != nil {
		st.Discard()
		return Staged{}, err
	}
	return st, nil
}

func (st *Staged) bodyLen() int { return st.keyLen + st.valueLen }

// Live says whether st is neither zero nor ended.
func (st *Staged) Live() bool { return st.e != nil }

// Key is a view of the key, valid until st ends.
func (st *Staged) Key() []byte { return st.e.large.bytes(st.off, st.keyLen) }

// Value is a view of what is written of the value, valid until st ends.
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
	}
	return nil
}

// extend is charge, and has the system put memory behind the piece at once.
func (st *Staged) extend(n int) ([]byte, error) {
	before := largeCost(st.written)
	view, err := st.charge(n)
	if after := largeCost(st.written); after-before >= populateFrom {
		st.e.large.populate(st.off+uint64(before), int(after-before))
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
	cost := largeCost(end) - largeCost(from)
	if !st.e.charge(cost) {
		return nil, ErrMemory
	}
	l := st.e.large
	l.extent(st.off).pages += uint32(cost / osPage)
	l.staged.Add(cost)
	st.written = end
	return l.bytes(st.off+uint64(from), end-from), nil
}

// Discard gives up the value.
func (st *Staged) Discard() {
	l := st.e.large
	st.end()
	l.disown(st.off)
	_ = l.leave()
}

// end takes the value out of what is being staged.
func (st *Staged) end() {
	l := st.e.large
	l.promised.Add(-largeCost(st.bodyLen()))
	l.staged.Add(-int64(l.extent(st.off).pages) * osPage)
	st.e = nil
}

// SetStaged is Set with a value that was staged, whole, under its key. Unless it fails, st is ended.
func (t Txn) SetStaged(st *Staged, typ Type, expireAt int64) error {
	if st.Left() > 0 {
		panic("BUG: a staged value is not complete")
	}
	s := t.s
	if err := s.prepare(t.p); err != nil {
		return err
	}
	key := st.Key()
	h := s.e.makeHeader(typ, t.number, st.keyLen, st.valueLen, expireAt != 0)
	sl, tag := t.lookup(key)
	if !sl.found() || !s.isLarge(s.header(sl.ref())) {
		changes := s.changes
		ref, err := s.newCell(h, expireAt, t.queueFor(sl, tag, h), st.off)
		if err != nil {
			return err
		}
		if s.changes != changes {
			sl, _ = t.lookup(key) // making room may have evicted or moved it
		}
		t.publish(tag, sl, ref, h, expireAt)
	} else {
		s.replaceLarge(sl.ref(), h, expireAt, st.off)
	}
	l := st.e.large
	st.end()
	return l.leave()
}
