package shape

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// Limits of a table. Splits keep the mean of its blocks below fullCount entries and fullBytes bytes,
// merges above half of that. So nearly all blocks have at most twice as much. A block of crowdedAt
// bytes keeps further strings in parts, and so holds some hundred more.
const (
	fullCount  = 16
	fullBytes  = 512
	crowdedAt  = 2 << 10
	maxBlock   = 4080 // of any shape: less than the longest part in the smallest pages
	maxInside  = 191  // bytes of a string in a block of a table
	expirySize = 6
	tagFront   = 1
)

// ErrCrowded is the error for an element whose hash a few hundred others have.
var ErrCrowded = errors.New("too many elements have one hash")

// Table finds elements by a key, in a value with parts: linear hashing (Litwin 1980) whose buckets
// are blocks. An element is a key, as many further strings as the table has items for, and perhaps a
// time when it expires. Part n of the plane Blocks is bucket n, so the number of parts is all that
// says how far the table has grown:
//
//	        level L: 2^L blocks        split so far
//	┌────┬────┬────┬────┬────┬────┬────┬────┬────┬────┐
//	│ 0  │ 1  │ 2  │ 3  │ 4  │ 5  │ 6  │ 7  │ 8  │ 9  │      the next split: block 2 to 2 and 10
//	└────┴────┴────┴────┴────┴────┴────┴────┴────┴────┘
//	  └─ hash mod 16 ─┘└────── hash mod 8 ───┘└ mod 16 ┘
//
// A Table is a small value, made by the type of the value for each command.
type Table struct {
	V      engine.Parts
	Pin    *engine.ValuePin // not nil: the table is read as it was when the value was pinned
	Blocks int              // the plane of the blocks
	Away   int              // the plane of strings too long for a block; other shapes of the value may share it
	Own    int              // where in the value's own bytes the table's TableOwn bytes begin
	Items  int              // strings of an element: 1 of a set, 2 of a hash
	Now    int64            // unix milliseconds: what has expired by then is absent
}

// TableOwn is how many own bytes a value needs for a table. They are zeros at first.
const TableOwn = 24

// tableState is the own bytes of a table.
//
//	count │ expiring │ bytes of all blocks' entries │ most │ next │ round
//	  4        4                  8                    2      2       1
//
// most is at least as many entries as any block has; next is that of the blocks that were split,
// merged or added to since round, see note.
type tableState []byte

func (s tableState) count() int        { return int(binary.LittleEndian.Uint32(s)) }
func (s tableState) expiring() int     { return int(binary.LittleEndian.Uint32(s[4:])) }
func (s tableState) bytes() int        { return int(binary.LittleEndian.Uint64(s[8:])) }
func (s tableState) most() int         { return int(binary.LittleEndian.Uint16(s[16:])) }
func (s tableState) next() int         { return int(binary.LittleEndian.Uint16(s[18:])) }
func (s tableState) addCount(n int)    { binary.LittleEndian.PutUint32(s, uint32(s.count()+n)) }
func (s tableState) addExpiring(n int) { binary.LittleEndian.PutUint32(s[4:], uint32(s.expiring()+n)) }
func (s tableState) addBytes(n int)    { binary.LittleEndian.PutUint64(s[8:], uint64(s.bytes()+n)) }

// note takes into account that a block has n entries.
func (s tableState) note(n int) {
	if n > s.most() {
		binary.LittleEndian.PutUint16(s[16:], uint16(n))
	}
	if n > s.next() {
		binary.LittleEndian.PutUint16(s[18:], uint16(n))
	}
}

// turn is called when the table has n blocks after a split or merge. From one power of two to
// another every block has been split, or made by a merge, so next is then the most of all.
func (s tableState) turn(n int) {
	if n&(n-1) != 0 {
		return
	}
	if level := byte(bits.TrailingZeros(uint(n))); level != s[20] {
		copy(s[16:18], s[18:20])
		s[20] = level
	}
	clear(s[18:20])
}

func (t *Table) state() tableState { return tableState(ownBytes(t.V, t.Pin)[t.Own : t.Own+TableOwn]) }

func (t *Table) part(plane, number int) []byte { return partOf(t.V, t.Pin, plane, number) }

// TableLen is Table.Len, by the own bytes of a value whose table has its own ones first.
func TableLen(own []byte) int { return tableState(own).count() }

// Len is how many elements the table has, with those that have expired and were not removed yet.
func (t *Table) Len() int { return t.state().count() }

// Bytes is how many bytes the elements take in their blocks.
func (t *Table) Bytes() int { return t.state().bytes() }

// Expiring is how many elements have a time when they expire.
func (t *Table) Expiring() int { return t.state().expiring() }

// Element is what a table has under a key. Its items are views, valid until the next call that may
// change the value.
type Element struct {
	Key      Item
	Value    Item  // of a table of two items
	ExpireAt int64 // unix milliseconds; 0: never
}

// bucket is the block of a hash in a table of n.
func bucket(h uint64, n int) int {
	mask := uint64(1)<<bits.Len(uint(n-1)) - 1
	b := h & mask
	if b >= uint64(n) {
		b &= mask >> 1
	}
	return int(b)
}

func tagOf(h uint64) byte { return byte(h >> 56) }

// place is where a block has an entry.
type place struct {
	entry, off int
}

// find looks for a key in a block.
func (t *Table) find(b block, tag byte, key *probe) (at place, found bool) {
	if len(b) == 0 {
		return place{}, false
	}
	w, n := b.slotLen(), b.count()
	off := blockHead
	for e, i := 0, len(b)-w; e < n; e, i = e+1, i-w {
		if b[i] == tag && t.keyIs(b, b[i+tagFront], off, key) {
			return place{e, off}, true
		}
		for _, code := range b[i+tagFront : i+w] {
			off += int(stored[code])
		}
	}
	return place{n, off}, false
}

func (t *Table) keyIs(b block, code byte, off int, key *probe) bool {
	if code == codeAway {
		return string(t.away(b[off:])) == string(key.s)
	}
	return key.is(code, b[off:off+int(stored[code])])
}

// away is the string in the part that an item names.
func (t *Table) away(item []byte) []byte {
	return awayString(t.part(t.Away, int(binary.LittleEndian.Uint32(item))))
}

// element is the entry at a place.
func (t *Table) element(b block, at place) (e Element) {
	codes, off := b.slot(at.entry)[tagFront:], at.off
	e.Key = t.resolve(codes[0], b[off:])
	off += int(stored[codes[0]])
	if t.Items > 1 {
		e.Value = t.resolve(codes[1], b[off:])
		off += int(stored[codes[1]])
	}
	if len(codes) > t.Items && codes[t.Items] != codeNone {
		e.ExpireAt = t.V.Base() + decodeInt(b[off:off+expirySize])
	}
	return e
}

func (t *Table) resolve(code byte, b []byte) Item {
	if code == codeAway {
		return Item{code, t.away(b)}
	}
	n := int(stored[code])
	return Item{code, b[:n:n]}
}

// expireAt is when an entry expires, 0 if never.
func (t *Table) expireAt(b block, at place) int64 {
	if b.items() == t.Items {
		return 0
	}
	code, bytes := b.item(at.entry, at.off, t.Items)
	if code == codeNone {
		return 0
	}
	return t.V.Base() + decodeInt(bytes)
}

func (t *Table) isDue(at int64) bool { return at != 0 && at <= t.Now }

// Get returns the element of a key.
func (t *Table) Get(key []byte) (e Element, ok bool) {
	n := t.V.Len(t.Blocks)
	if n == 0 {
		return e, false
	}
	h, p := t.V.Hash(key), probeOf(key)
	b := block(t.V.Part(t.Blocks, bucket(h, n)))
	at, found := t.find(b, tagOf(h), &p)
	if !found {
		return e, false
	}
	e = t.element(b, at)
	return e, !t.isDue(e.ExpireAt)
}

// Has reports whether there is an element of a key.
func (t *Table) Has(key []byte) bool {
	n := t.V.Len(t.Blocks)
	if n == 0 {
		return false
	}
	h, p := t.V.Hash(key), probeOf(key)
	b := block(t.V.Part(t.Blocks, bucket(h, n)))
	at, found := t.find(b, tagOf(h), &p)
	return found && !t.isDue(t.expireAt(b, at))
}
