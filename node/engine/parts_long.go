package engine

// A part can have 512 MiB. Nobody copies such a one under a shard's lock:
//
//	read     PinView: the reply is sent from where the part lies
//	write    Stage ─> Write … ─> Lock ─> Offer ─> AddStaged: the bytes were there before the lock
//	move     Detach ─> Offer ─> AddStaged: they change their owner
//	copies   NoteTooLong: they get it in chunks, as in a snapshot

// PinView pins the body that a view of a part begins in, so that the view stays as it is until the pin
// is released. It is called with the shard of the part locked. false: the part is in a cell, and the
// caller copies the view.
func (e *Engine) PinView(view []byte) (Pin, bool) {
	l := e.large
	if len(view) == 0 {
		return Pin{}, false
	}
	off := l.offset(firstOf(view))
	if off >= largeSizes<<l.regionShift {
		return Pin{}, false
	}
	size := int(off >> l.regionShift)
	off &^= 1<<(minExtentShift+size) - 1
	return l.pin(off, 0, int(l.extent(off).pages)*osPage), true
}

// Offer has Offered find staged values that are not ended, until the next Offer or Unlock.
func (t Txn) Offer(all ...*Staged) {
	t.s.values.offers = append(t.s.values.offers[:0], all...)
	t.s.ending = true
}

// forgetOffers is called when the shard is unlocked: then the staged values are their owner's again.
func (v *values) forgetOffers() {
	clear(v.offers)
	v.offers = v.offers[:0]
}

// Offered returns the staged value that a view begins in, behind its first skip bytes; nil if none was
// offered.
func (v Parts) Offered(view []byte, skip int) *Staged {
	for _, st := range v.t.s.values.offers {
		if st.Live() && st.Left() == 0 && len(view) == st.bodyLen()-skip &&
			firstOf(view) == firstOf(st.e.large.bytes(st.off+uint64(skip), 1)) {
			return st
		}
	}
	return nil
}

// StagedRoom is what Reserve is asked for a part that AddStaged will add.
const StagedRoom = awaySize - partHeadSize

// Detach takes the bytes of a part that is in an extent, and leaves a part of which the first bytes are
// zeros. What it returns is offered or attached again, or discarded. false: the part is in a cell, and
// nothing has changed.
func (v Parts) Detach(plane, number int) (st Staged, ok bool) {
	s := v.t.s
	ref := *s.cells.partAt(&v.head().planes[plane], uint32(number))
	w := s.cells.partWord(ref)
	if !w.away() {
		return st, false
	}
	v.save(plane, uint32(number))
	off, n := *s.cells.second(ref), int(*s.cells.third(ref))
	*s.cells.word(ref) = uint64(w &^ awayBit)
	*s.cells.second(ref), *s.cells.third(ref) = 0, 0
	v.charge(-largeCost(n))
	l := s.e.large
	st = Staged{e: s.e, off: off, valueLen: n, written: n, promised: largeCost(n)}
	l.promised.Add(st.promised)
	l.staged.Add(int64(l.extent(off).pages) * osPage)
	l.users.Add(1)
	return st, true
}

// Attach gives a part the bytes back that Detach took.
func (v Parts) Attach(plane, number int, st *Staged) {
	s := v.t.s
	ref := *s.cells.partAt(&v.head().planes[plane], uint32(number))
	*s.cells.word(ref) |= awayBit
	*s.cells.second(ref), *s.cells.third(ref) = st.off, uint64(st.valueLen)
	v.charge(largeCost(st.valueLen))
	st.end()
	_ = s.e.large.leave()
}

// MaxNote is how many bytes of strings a delta may have. With more, the caller notes the change by
// NoteTooLong.
const MaxNote = maxUnit - 64<<10

// NoteTooLong notes a change of the value that is too long for a delta: receivers get the partition
// anew.
func (v Parts) NoteTooLong() {
	v.Note(nil)
	if v.Fed() {
		v.t.s.feeds.stopAll(PartitionOf(v.t.section))
	}
}

// BeginUnit is Txn.BeginUnit for a change of the value that takes several notes.
func (v Parts) BeginUnit() { v.t.BeginUnit() }
