package engine

import "encoding/binary"

// A value with parts is too big for one record: a big hash, list, set, sorted set or stream. The
// record that its key names is the root. It names a head, which has the engine's own bookkeeping,
// and the head finds the parts, each a cell of its own:
//
//	index ─> root: header │ key │ head, type │ the type's own bytes
//	                              ● <──────────────────────────────┐
//	                              ▼                                │
//	         head: root, incarnation, bytes, uses' clock           │
//	               four planes: directory, numbers ─> ● ● ● ●      │
//	                                                  │            │
//	                                                  └> part: head ● number │ bytes
//
// The engine does not know what parts mean. It has them by number, in four planes that count apart,
// so that a type can keep a table beside a tree. Numbers do not change when cells move, so
// references from one part to another are numbers. Numbers of a plane are dense: Add gives the next
// number, or one that was freed.
//
// A head does not move, since every part names it; roots, parts and directories do.

// Planes is how many planes a value with parts has, each with numbers of its own.
const Planes = 4

// Parts is a value with parts, found or made with a Txn and valid as long as that. It is a small
// value. Views of parts are valid until the next call that may move cells: Reserve, or whatever may
// evict.
type Parts struct {
	t  Txn
	at handle // the head
}

// Place is where the snapshot of a value goes on. Its meaning is its type's; the zero Place is the
// beginning.
type Place [4]uint64

// Form is what the type of a value with parts tells the engine. Its functions run under the shard's
// lock and must keep to the budget of steps of a command.
type Form struct {
	// Apply applies a delta to a value that another engine logged with Note, or dumped. It reserves
	// the memory it takes, and neither deletes the key nor notes the delta. The delta is not to be
	// changed or kept. After an error the key is deleted: there was no memory, or the delta is
	// malformed.
	Apply func(v Parts, delta []byte) error
	// Dump appends a delta that contains the elements of v from a place on, about atMost bytes of
	// them, and returns the place where to go on. done: there are no more.
	Dump func(v Parts, from Place, dst []byte, atMost int) (delta []byte, next Place, done bool)
	// Within appends what of a delta, which has just been made, concerns the elements that Dump had
	// dumped before the place, and returns the place that stands behind those elements now. It may
	// append nothing. nil: a receiver can apply each delta, whatever elements it has.
	Within func(v Parts, delta []byte, place Place, dst []byte) (within []byte, next Place)
	// Expire removes the elements of v that are due (SetDue), a bounded number of them, and notes
	// that; it removes v itself if no element is left. It must not Reserve. It is called again
	// while the value is due.
	Expire func(v Parts)
	// Own is how many own bytes a value has at least, whatever the sender says that its value has: another
	// build may keep less in them, or more.
	Own int
	// Free gets the type's own bytes of a value that dies, before its parts are freed. It may be
	// nil.
	Free func(own []byte)
}

// valueHead is the head of a value with parts, a cell of its own. Its first half word is never 0,
// which tells it from a free cell.
type valueHead struct {
	incarnation uint32 // of this value under its key, never 0
	root        handle // the record; 0 when the value is doomed
	ahead       handle // neighbours in the ring of roots (evict_roots.go); of a doomed value, the next one
	behind      handle
	stamp       uint32 // tick of the last visit of the roots' hand
	spared      bool   // making room must leave it alone
	pinned      bool   // it has pins (parts_pin.go)
	unfinished  bool   // its snapshot has begun and not ended (parts_unfinished.go)
	aside       bool   // it is being built aside (parts_rename.go)
	typ         Type
	ownLen      uint16
	salt        uint32 // see Parts.Salt
	bytes       int64  // of the head, its parts and their directories, with what is unused of their cells
	seed        uint64 // of Hash: the shard's, with the salt
	due         int64  // something in the value expires then, unix milliseconds; 0: nothing
	base        int64  // see Parts.Base
	planes      [Planes]plane
}

// plane is the numbers of some parts of a value, see parts_numbers.go.
type plane struct {
	directory handle
	span      uint32 // numbers from here on were never used, or are free
	parts     uint32
	next      uint32 // where a free number is looked for
}

// A root's value begins with the head's handle and the type; then come the type's own bytes.
const (
	rootType = 4
	rootSize = wordSize
)

// A part's cell begins with a word: the head, which is never 0, and what part of it this is.
//
//	bits 0-31 head    bits 32-58 number    bits 59-60 level in the directory, 0 for a part
//	                  bits 61-62 plane     bit 63 the bytes are in an extent
//
// Behind it are the part's bytes; or the offset of the extent and how many bytes there are.
type partWord uint64

const (
	partHeadSize = wordSize
	numberShift  = 32
	numberMask   = 1<<27 - 1
	levelShift   = 59
	planeShift   = 61
	awayBit      = 1 << 63
	awaySize     = 3 * wordSize
)

func makePartWord(head handle, plane int, level uint8, number uint32) partWord {
	return partWord(head) | partWord(number)<<numberShift | partWord(level)<<levelShift | partWord(plane)<<planeShift
}

func (w partWord) head() handle   { return handle(w) }
func (w partWord) number() uint32 { return uint32(w>>numberShift) & numberMask }
func (w partWord) level() uint8   { return uint8(w>>levelShift) & 3 }
func (w partWord) plane() int     { return int(w>>planeShift) & 3 }
func (w partWord) away() bool     { return w&awayBit != 0 }

// NewParts stores key with a value with parts, which has none yet, over any value that was there.
// own is the number of the type's own bytes, all zeros at first. The value expires at expireAt,
// never if that is 0. Like all changes of values with parts it takes memory without making room:
// ErrMemory if Reserve was not called for it, and the old value remains.
func (t Txn) NewParts(key []byte, typ Type, own int, expireAt int64) (Parts, error) {
	return t.newParts(key, typ, own, expireAt, t.newHead(), false)
}

// newHead is the part of a new value's head that tells it from others.
func (t Txn) newHead() *valueHead {
	n := t.s.values.nextIncarnation()
	return &valueHead{incarnation: n, salt: n, base: t.s.now}
}

// newParts is NewParts of a value whose incarnation, salt and base are those of like.
func (t Txn) newParts(key []byte, typ Type, own int, expireAt int64, like *valueHead, unfinished bool) (v Parts, err error) {
	s := t.s
	if typ <= TypeString || s.e.forms[typ].Apply == nil {
		panic("BUG: values of this type have no parts")
	}
	if err := checkLengths(t.section, len(key), 0); err != nil {
		return v, err
	}
	h := s.e.makeHeader(typeElsewhere, t.section, len(key), rootSize+own, true) // so that it can expire later without memory
	if s.cells.isLarge(h) {
		return v, ErrKeyTooLong
	}
	s.quiet = true
	defer func() { s.quiet = false }()
	if err := s.indexes.prepare(t.p); err != nil {
		return v, err
	}
	at := s.slabs.take(valueHeads, s.e.headClass())
	if at == 0 {
		return v, ErrMemory
	}
	ref, err := s.newRecord(h, expireAt, mainCells)
	if err != nil {
		s.slabs.put(at)
		return v, err
	}
	size := int64(s.e.classes.size(s.e.headClass()))
	*s.cells.head(at) = valueHead{
		incarnation: like.incarnation, salt: like.salt, base: like.base, aside: like.aside,
		root: ref, typ: typ, ownLen: uint16(own), bytes: size, seed: s.seed.Load() ^ uint64(like.salt)*prime2,
	}
	s.sums.Parts += size
	body := s.cells.body(ref, h)
	value := body[t.putKey(body, key):]
	clear(value)
	binary.LittleEndian.PutUint32(value, uint32(at))
	value[rootType] = byte(typ)
	s.values.join(at)
	en, tag := t.lookup(key)
	t.publish(tag, en, ref, h, expireAt)
	v = Parts{t, at}
	if unfinished {
		v.begin()
	}
	s.feeds.logBegin(v)
	return v, nil
}

// Parts is the value of an item found with t; false if it has no parts.
func (t Txn) Parts(item Item) (Parts, bool) {
	if !item.header.isRoot() {
		return Parts{}, false
	}
	return Parts{t, handle(binary.LittleEndian.Uint32(item.Value()))}, true
}

// headOf is the head of the value whose root is in the cell.
func (c *cells) headOf(ref handle, h header) handle {
	return handle(binary.LittleEndian.Uint32(c.body(ref, h)[h.keyLen():]))
}

func (v Parts) head() *valueHead { return v.t.s.cells.head(v.at) }

// Type is the type of the value.
func (v Parts) Type() Type { return v.head().typ }

// Incarnation tells the value from others that the key has had, or will have. It is never 0.
func (v Parts) Incarnation() uint32 { return v.head().incarnation }

// Base is the time, in unix milliseconds by this node's clock, to which all times in the value are
// relative: when the value was made, or the value from which it was copied. It does not change. A
// copy on another node has the same times, and a base by that node's clock. So nothing else in a
// value is shifted between clocks.
func (v Parts) Base() int64 { return v.head().base }

// Bytes is how much memory the value has besides its root: head, parts and their directories.
func (v Parts) Bytes() int64 { return v.head().bytes }

// Key is a view of the key.
func (v Parts) Key() []byte { return v.t.s.cells.key(v.head().root) }

// Own is a view of the type's own bytes, which may be changed.
func (v Parts) Own() []byte {
	s, ref := v.t.s, v.head().root
	h := s.cells.header(ref)
	return s.cells.body(ref, h)[h.keyLen()+rootSize:]
}

// Len is below what number all parts of the plane are. If none was freed but the last ones it is
// how many there are.
func (v Parts) Len(plane int) int { return int(v.head().planes[plane].span) }

// Count is how many parts the plane has.
func (v Parts) Count(plane int) int { return int(v.head().planes[plane].parts) }

// Delete removes the key. Its memory is freed in slices.
func (v Parts) Delete() { v.t.Delete(v.Key()) }

// SetDue says when the next thing in the value expires, in unix milliseconds; 0: nothing does.
// Form.Expire is then called.
func (v Parts) SetDue(at int64) {
	h := v.head()
	h.due = at
	v.t.s.cells.expiresAt(h.root, at)
}

// Now is the time of the Txn, unix milliseconds.
func (v Parts) Now() int64 { return v.t.s.now }

// Due is what SetDue has said last.
func (v Parts) Due() int64 { return v.head().due }

// nextIncarnation is a number that no value has whose key could be taken for another one.
func (v *values) nextIncarnation() uint32 {
	for {
		if n := v.s.e.incarnations.Add(1); n != 0 {
			return n
		}
	}
}

// takePart returns a cell for n bytes of parts, 0 if there is none without making room.
func (v *values) takePart(n int) handle { return v.s.slabs.take(partCells, v.s.e.classes.of(n)) }

func (e *Engine) headClass() int { return e.classes.of(int(headSize)) }

// Hash is a hash of bytes that clients cannot know. Values with different salts have independent
// hashes of the same bytes.
func (v Parts) Hash(b []byte) uint64 { return hash(v.head().seed, b) }

// Salt is what makes the hashes of a value its own, so that the elements of one table are in no order
// when they come to another table. It is the incarnation, on all nodes of a cluster. But a copy that was
// made with NewAsideLike has the salt of its original, and on other nodes its own incarnation.
func (v Parts) Salt() uint32 { return v.head().salt }
