package engine

import (
	"encoding/binary"
	"math/rand/v2"
)

// A value with parts gets another key in one step, however big it is: a new root names its head. So
// RENAME copies nothing, and a command that makes a big value builds it aside, in slices, and then
// gives it the key:
//
//	NewAside ─> Reserve, Add … ─> Unlock   Aside ─> Reserve, Add … ─> Unlock   Aside ─> Rename
//	   └ the key has what it had                                                  └ the key has the new value
//
// A value that is built aside is unfinished (parts_unfinished.go): no command finds it, and it may
// be evicted. Its effects go to receivers as they are made, but in no unit and no snapshot. A
// receiver renames its own copy when the rename effect comes. If it lacks the value, the snapshot
// that is on its way brings it under the new key (noteRenamed), or else the receiver asks for that.

// AsideKey names a value that is being built aside.
type AsideKey [1 + 2*wordSize]byte

// newAsideKey returns a key that no client can guess.
func newAsideKey() (k AsideKey) {
	binary.LittleEndian.PutUint64(k[1:], rand.Uint64())
	binary.LittleEndian.PutUint64(k[1+wordSize:], rand.Uint64())
	return k
}

// NewAside makes a value with parts that has no key yet; own is the number of the type's own bytes.
// It makes room for the root. The caller ends it with Rename, or with Delete.
func (t Txn) NewAside(typ Type, own int) (k AsideKey, v Parts, err error) {
	return t.newAside(typ, own, t.newHead())
}

// NewAsideLike is NewAside of a value with the type, the base, the salt, and as many own bytes as v,
// into which the parts of v can be copied as they are.
func (t Txn) NewAsideLike(v Parts) (k AsideKey, like Parts, err error) {
	head := t.newHead()
	head.base, head.salt = v.Base(), v.Salt()
	return t.newAside(v.Type(), len(v.Own()), head, v)
}

func (t Txn) newAside(typ Type, own int, like *valueHead, spared ...Parts) (k AsideKey, v Parts, err error) {
	k, like.aside = newAsideKey(), true
	if err := t.Reserve(Room{Roots: []int{len(k) + own}, Spared: spared}); err != nil {
		return k, v, err
	}
	v, err = t.newParts(k[:], typ, own, 0, like, true)
	return k, v, err
}

// Aside is the value that is being built aside under k. false: it was evicted, or its partition was
// dropped.
func (t Txn) Aside(k *AsideKey) (v Parts, ok bool) {
	item, found := t.peekAny(k[:])
	if !found {
		return v, false
	}
	return t.Parts(item)
}

// Rename gives the value the key in t's section, over any value that was there, and takes it from the
// key that it had, which may be one of another database (Select): v is void then, and the value is
// found with t. It expires at expireAt, never if that is 0. Rename makes room for the root. After an
// error nothing has changed but by eviction.
func (t Txn) Rename(v Parts, key []byte, expireAt int64) error {
	if err := t.Reserve(Room{Roots: []int{len(key) + len(v.Own())}, Spared: []Parts{v}}); err != nil {
		return err
	}
	return t.rename(v, key, expireAt, true)
}

// rename is Rename behind Reserve. whole: an unfinished value is whole with it.
func (t Txn) rename(v Parts, key []byte, expireAt int64, whole bool) error {
	if err := checkLengths(t.section, len(key), 0); err != nil {
		return err
	}
	s, own := t.s, len(v.Own())
	h := s.e.makeHeader(typeElsewhere, t.section, len(key), rootSize+own, true)
	if s.cells.isLarge(h) {
		return ErrKeyTooLong
	}
	s.quiet = true
	defer func() { s.quiet = false }()
	if err := s.indexes.prepare(t.p); err != nil {
		return err
	}
	to, err := s.newRecord(h, expireAt, mainCells)
	if err != nil {
		return err
	}
	from := v.head().root
	old := s.cells.header(from)
	body := s.cells.body(to, h)
	copy(body[t.putKey(body, key):], s.cells.body(from, old)[old.keyLen():])
	s.cells.setHeader(to, h.usedLike(old))
	en, tag := t.lookup(key) // which logs the key's expiry ahead of its new value
	v.head().aside = false
	s.feeds.logRename(v, t.section, key, expireAt)
	if whole {
		v.finish()
	}
	s.values.reroot(to, h)
	v.t.uproot(from, old)
	if en.found() {
		en, tag = t.lookup(key) // uproot may have moved the entry
	}
	t.Overwrite(key)
	t.publish(tag, en, to, h, expireAt)
	return nil
}

// uproot removes a root from which the value has gone.
func (t Txn) uproot(ref handle, h header) {
	s := t.s
	tag := s.tagOfRecord(ref, h)
	s.changed(tag, ref)
	s.noteLost(tag, ref)
	s.loseRecord(ref)
	s.indexes.remove(t.p, tag, s.indexes.mustFind(t.p, tag, ref))
	s.account(h, s.cells.expireAt(ref, h), -1)
	s.slabs.put(ref)
}

// logRename logs that the value, which has its old key still, gets another one in a section.
func (f *shardFeeds) logRename(v Parts, section uint16, key []byte, expireAt int64) {
	if !f.s.feeding {
		return
	}
	rest := binary.LittleEndian.AppendUint64(make([]byte, 0, wordSize+len(key)), uint64(expireAt))
	rest = append(rest, key...)
	for t := f.targetsOf(v.t.section); t != 0; t >>= 8 {
		second := partsWord(v.Incarnation()) | partsWord(DatabaseOf(section)^DatabaseOf(v.t.section))<<databasesShift | wholeBit
		if f.noteRenamed(v, t.first(), section, key) {
			second &^= wholeBit
		}
		f.logParts(targets(0).with(t.first()), EffectRename, v, second, rest)
	}
	f.quench()
}

// applyRename does what a rename effect says. If the value is not here, the key that it should get
// is lacking.
func (t Txn) applyRename(key []byte, second partsWord, rest []byte, shift int64, taker Taker) {
	at := ShiftExpiry(int64(binary.LittleEndian.Uint64(rest)), shift)
	name := rest[wordSize:]
	to := t.Select(DatabaseOf(t.section) ^ second.databases())
	v, ok := t.incarnate(key, second.incarnation())
	if ok && !t.s.isDue(t.section, at) {
		err := to.Reserve(Room{Roots: []int{len(name) + len(v.Own())}, Spared: []Parts{v}})
		if err == nil && to.rename(v, name, at, second.whole()) == nil {
			return
		}
	}
	t.Delete(key)
	to.Delete(name)
	if !t.s.isDue(t.section, at) {
		to.lacks(name, taker)
	}
}
