package engine

import (
	"encoding/binary"
)

// A value with parts is too big to be logged whole after each change. Each change is logged as a
// delta, in the words of the value's type, and so is a snapshot, in chunks. Effects name the
// incarnation of the value. A receiver that has another incarnation under the key, or none, cannot
// apply the delta: it lacks the key until it is sent anew.
//
//	begin   second: incarnation │ type │ flags │ length of the type's own bytes    rest: expiry │ base
//	delta   second: incarnation │ flag                                             rest: what Form.Apply is given
//	expire  second: incarnation                                                    rest: expiry
//	rename  second: incarnation │ databases │ flag                                 rest: expiry │ the other key
//
// The begin effect of a snapshot says that the value is unfinished, and the snapshot's last delta
// that it is whole. In between the key is absent for commands (parts_unfinished.go). The begin
// effect of a new value says that it is whole at once. The databases of a rename are those of both
// keys, one XOR the other: 0 where the value stays in its database.

// Lacker is a Taker that learns which keys it lacks.
type Lacker interface {
	// Lacks is called under the shard's lock for a key of p whose value is missing or another one:
	// there was no memory for it, or it was evicted before a delta came. The sender sends it anew
	// with SendAnew.
	Lacks(p uint16, key []byte)
}

// partsWord is the second word of an effect on a value with parts.
type partsWord uint64

const (
	formShift = 32
	useShift  = 40
	ownShift  = 48
	beginSize = 2 * wordSize // of what is behind the key in a begin effect

	databasesShift = 32 // of a rename

	unfinishedBit = 1 << 42 // of a begin effect: the value is not whole before a delta says so
	wholeBit      = 1 << 42 // of a delta or a rename: the value is whole with it
)

func (w partsWord) incarnation() uint32 { return uint32(w) }
func (w partsWord) typ() Type           { return Type(w >> formShift) }
func (w partsWord) uses() int           { return int(w>>useShift) & maxUses }
func (w partsWord) own() int            { return int(w >> ownShift) }
func (w partsWord) unfinished() bool    { return w&unfinishedBit != 0 }
func (w partsWord) whole() bool         { return w&wholeBit != 0 }
func (w partsWord) databases() uint8    { return uint8(w>>databasesShift) & (Databases - 1) }

// partsWordOf is the second word of an effect.
func partsWordOf(effect []byte) partsWord {
	return partsWord(binary.LittleEndian.Uint64(effect[wordSize:]))
}

// checkParts is CheckEffects for an effect on a value with parts.
func checkParts(kind EffectKind, effect []byte, admits func(typ Type, value []byte) error) error {
	second, rest := partsWordOf(effect), len(partRest(effect))
	switch {
	case second.incarnation() == 0, kind == EffectBegin && rest != beginSize, kind == EffectExpire && rest != wordSize,
		kind == EffectRename && (rest < wordSize || rest > wordSize+MaxKeyLen):
		return ErrEffects
	case kind == EffectBegin && second.typ() > lastForm:
		return UnknownEffect{EffectSet, second.typ()}
	case kind == EffectBegin && admits != nil:
		return admits(second.typ(), nil)
	}
	return nil
}

// Fed reports whether somebody receives the deltas of the value. If not, Note(nil) is enough.
func (v Parts) Fed() bool { return v.t.s.feeding && v.t.s.feeds.targetsOf(v.t.section) != 0 }

// Note logs a change of the value. The caller notes each change before the next command, or the end
// of the unit, by a delta that Form.Apply understands, or by nil if receivers need not know. If the
// delta is too long for a log, the receivers get the partition anew.
func (v Parts) Note(delta []byte) { v.note(delta, 0) }

// NoteUnseen is Note of a change that no client can see, and that is therefore none for those who watch or
// track the key.
func (v Parts) NoteUnseen(delta []byte) {
	if v.t.s.noting {
		v.t.s.feeds.endView()
		v.logDelta(delta, 0)
	}
}

// note is Note with a flag for the delta: wholeBit or none.
func (v Parts) note(delta []byte, flag partsWord) {
	s := v.t.s
	if !s.noting {
		return
	}
	s.noteChange(tagOf(s.seed.Load(), v.Key()), v.head().root)
	if delta != nil {
		v.logDelta(delta, flag)
	}
}

func (v Parts) logDelta(delta []byte, flag partsWord) {
	s := v.t.s
	t, second := s.feeds.targetsOf(v.t.section), partsWord(v.Incarnation())|flag
	if t != 0 && len(delta) > min(maxUnit, s.e.feeds.longest()/2) {
		s.feeds.stopAll(PartitionOf(v.t.section))
		return
	}
	if t != 0 && (flag == wholeBit || s.e.forms[v.Type()].Within != nil) {
		t = s.feeds.logWithin(t, v, second, delta)
	}
	s.feeds.logParts(t, EffectDelta, v, second, delta)
	s.feeds.quench()
}

// logWithin logs a delta for the receivers that a snapshot of the value is on its way to: they get
// what concerns the elements that they have, and the value is whole with the end of that snapshot.
// It returns the other receivers.
func (f *shardFeeds) logWithin(t targets, v Parts, second partsWord, delta []byte) (others targets) {
	within := f.s.e.forms[v.Type()].Within
	for ; t != 0; t >>= 8 {
		r := t.first()
		b := f.begunChunks(v, r)
		if b == nil {
			others = others.with(r)
			continue
		}
		part := delta
		if within != nil {
			part, b.from = within(v, delta, b.from, nil)
		}
		if len(part) > 0 {
			f.logParts(targets(0).with(r), EffectDelta, v, second&^wholeBit, part)
		}
	}
	return others
}

// logParts logs an effect on a value with parts.
func (f *shardFeeds) logParts(t targets, kind EffectKind, v Parts, second partsWord, rest []byte) {
	if len(rest) > maxRest {
		panic("BUG: a delta is too long")
	}
	if t == 0 {
		return
	}
	key := f.s.cells.fullKey(v.head().root)
	h := otherEffect(kind, v.t.section, len(key)).withRest(len(rest))
	for ; t != 0; t >>= 8 {
		// As in logTo: the log of one may have overflowed for that of another.
		if r := t.first(); f.targetsOf(v.t.section).has(r) {
			if u := f.unitOf(v.t.section); u != nil && !v.head().aside {
				f.gather(u, r, h, int64(second), key, rest)
			} else {
				f.logs[r].putParts(f.s, h, second, key, rest)
			}
		}
	}
}

// logBegin logs that the key has a new value without parts, if that is fed.
func (f *shardFeeds) logBegin(v Parts) {
	if f.s.feeding {
		t := f.targetsOf(v.t.section)
		f.logBeginTo(t, v, v.head().unfinished)
		if v.head().aside {
			f.noteAside(v, t)
		}
		f.quench()
	}
}

func (f *shardFeeds) logBeginTo(t targets, v Parts, unfinished bool) {
	second, rest := f.beginning(v, unfinished)
	f.logParts(t, EffectBegin, v, second, rest[:])
}

// beginning is what a begin effect says of the value.
func (f *shardFeeds) beginning(v Parts, unfinished bool) (second partsWord, rest [beginSize]byte) {
	h := v.head()
	hdr := f.s.cells.header(h.root)
	second = partsWord(h.incarnation) | partsWord(h.typ)<<formShift | partsWord(hdr.uses())<<useShift | partsWord(h.ownLen)<<ownShift
	if unfinished {
		second |= unfinishedBit
	}
	binary.LittleEndian.PutUint64(rest[:], uint64(f.s.cells.expireAt(h.root, hdr)))
	binary.LittleEndian.PutUint64(rest[wordSize:], uint64(h.base))
	return second, rest
}

// logExpiry logs when a value with parts expires.
func (f *shardFeeds) logExpiry(t targets, h header, ref handle, at int64) {
	v := Parts{Txn{s: f.s, section: f.s.cells.section(ref, h)}, f.s.cells.headOf(ref, h)}
	var rest [wordSize]byte
	binary.LittleEndian.PutUint64(rest[:], uint64(at))
	f.logParts(t, EffectExpire, v, partsWord(v.Incarnation()), rest[:])
}

// appendParts appends what makes a value with parts elsewhere.
func (t Txn) appendParts(dst []byte, v Parts) []byte {
	key := t.s.cells.fullKey(v.head().root)
	second, rest := t.s.feeds.beginning(v, true)
	effect := func(kind EffectKind, second partsWord, n int) {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(otherEffect(kind, t.section, len(key)).withRest(n)))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(second))
		dst = append(dst, key...)
	}
	effect(EffectBegin, second, len(rest))
	dst = append(dst, rest[:]...)
	dump := t.s.e.forms[v.Type()].Dump
	for from, done := (Place{}), false; !done; {
		var delta []byte
		delta, from, done = dump(v, from, nil, chunkSize)
		second = partsWord(v.Incarnation())
		if done {
			second |= wholeBit
		}
		effect(EffectDelta, second, len(delta))
		dst = append(dst, delta...)
	}
	return dst
}

// applyParts does to a value with parts what an effect of a known kind says.
func (t Txn) applyParts(kind EffectKind, effect, key []byte, shift int64, taker Taker) error {
	if err := checkParts(kind, effect, nil); err != nil {
		return err
	}
	second := partsWordOf(effect)
	rest := partRest(effect)
	switch kind {
	case EffectBegin:
		return t.applyBegin(key, second, rest, shift, taker)
	case EffectRename:
		t.applyRename(key, second, rest, shift, taker)
		return nil
	}
	v, ok := t.incarnate(key, second.incarnation())
	if !ok {
		t.lacks(key, taker)
		return nil
	}
	if kind == EffectExpire {
		en, tag := t.lookup(key)
		t.setExpire(en, tag, ShiftExpiry(int64(binary.LittleEndian.Uint64(rest)), shift))
		return nil
	}
	if err := t.s.e.forms[v.Type()].Apply(v, rest); err != nil {
		t.Delete(key)
		t.lacks(key, taker)
		return nil
	}
	if second.whole() {
		v.finish()
	}
	v.note(rest, second&wholeBit)
	return nil
}

// applyBegin makes a value with parts. The effect is not changed, but its bytes may lie in the
// engine's way: key is copied.
func (t Txn) applyBegin(key []byte, second partsWord, rest []byte, shift int64, taker Taker) error {
	typ := second.typ()
	if t.s.e.forms[typ].Apply == nil {
		return UnknownEffect{EffectSet, typ}
	}
	at := ShiftExpiry(int64(binary.LittleEndian.Uint64(rest)), shift)
	base := int64(binary.LittleEndian.Uint64(rest[wordSize:])) + shift
	t.Delete(key)
	if t.s.isDue(t.section, at) {
		return nil
	}
	own := max(second.own(), t.s.e.forms[typ].Own)
	err := t.Reserve(Room{Roots: []int{len(key) + own}})
	if err == nil {
		n := second.incarnation()
		head := &valueHead{incarnation: n, salt: n, base: base}
		_, err = t.newParts(key, typ, own, at, head, second.unfinished())
	}
	if err != nil {
		t.lacks(key, taker)
		return nil
	}
	t.SetUses(key, second.uses())
	return nil
}

// incarnate is the value of key if that has parts and is this incarnation.
func (t Txn) incarnate(key []byte, incarnation uint32) (v Parts, ok bool) {
	item, found := t.peekAny(key)
	if !found {
		return v, false
	}
	v, ok = t.Parts(item)
	return v, ok && v.Incarnation() == incarnation
}

func (t Txn) lacks(key []byte, taker Taker) {
	if l, ok := taker.(Lacker); ok {
		l.Lacks(t.section, key)
	}
}
