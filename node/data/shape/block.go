package shape

import (
	"bytes"
	"encoding/binary"
)

// block is a sequence of entries in one piece of memory. An entry is one to three items. Their bytes
// stand behind one another from the front; the slots of the entries grow from the end towards them,
// so that an entry is appended without moving others.
//
//	count │ used │ front │ lead, items │ lead │ bytes of entry 0 │ bytes of entry 1 │ ... free ... │ slot 1 │ slot 0
//	  2      2       1        1                                                                     front bytes, codes
//
// What the front of a slot has is the shape's: a tag in a table, rank and tag in a ranked tree. The
// lead is the shape's too; most blocks have none.
type block []byte

const (
	blockHead  = 6
	frontOf    = 4
	itemsOf    = 5 // items, and 16 for each byte of the lead
	maxItems   = 3
	maxEntries = 1<<16 - 1
)

// initBlock makes b an empty block.
func initBlock(b []byte, front, items int) block {
	clear(b[:blockHead])
	b[frontOf], b[itemsOf] = byte(front), byte(items)
	block(b).setUsed(blockHead)
	return b
}

// lead gives an empty block a lead of n bytes.
func (b block) lead(n int) {
	b[itemsOf] |= byte(n << 4)
	b.setUsed(b.begin())
}

func (b block) count() int     { return int(binary.LittleEndian.Uint16(b)) }
func (b block) used() int      { return int(binary.LittleEndian.Uint16(b[2:])) }
func (b block) setCount(n int) { binary.LittleEndian.PutUint16(b, uint16(n)) }
func (b block) setUsed(n int)  { binary.LittleEndian.PutUint16(b[2:], uint16(n)) }
func (b block) front() int     { return int(b[frontOf]) }
func (b block) items() int     { return int(b[itemsOf] & 15) }
func (b block) begin() int     { return blockHead + int(b[itemsOf]>>4) } // of the bytes of entries
func (b block) slotLen() int   { return b.front() + b.items() }

// slot is the slot of an entry.
func (b block) slot(e int) []byte {
	w := b.slotLen()
	at := len(b) - (e+1)*w
	return b[at : at+w : at+w]
}

// need is how many bytes the block takes.
func (b block) need() int { return b.used() + b.count()*b.slotLen() }

// offset is where the bytes of an entry begin; of the one behind the last, where they will.
func (b block) offset(e int) int {
	if n := b.count(); e > n/2 {
		return b.used() - b.span(e, n)
	}
	return b.begin() + b.span(0, e)
}

// span is how many bytes the entries from one to another have.
func (b block) span(from, to int) (n int) {
	w, front := b.slotLen(), b.front()
	for at := len(b) - (from+1)*w; from < to; from, at = from+1, at-w {
		for _, code := range b[at+front : at+w] {
			n += int(stored[code])
		}
	}
	return n
}

// size is how many bytes an entry has, besides its slot.
func (b block) size(e int) int { return b.span(e, e+1) }

// item is the i-th item of an entry whose bytes begin at off.
func (b block) item(e, off, i int) (code byte, bytes []byte) {
	codes := b.slot(e)[b.front():]
	for _, code := range codes[:i] {
		off += int(stored[code])
	}
	n := int(stored[codes[i]])
	return codes[i], b[off : off+n : off+n]
}

// spread moves the slots, which end at an offset, to the end of the block.
func (b block) spread(end int) {
	n := b.count() * b.slotLen()
	copy(b[len(b)-n:], b[end-n:end])
}

// open makes room for an entry of size bytes in front of entry e, and returns its slot and where its
// bytes begin. There is room.
func (b block) open(e, size int) (slot []byte, off int) {
	n, w, used := b.count(), b.slotLen(), b.used()
	off = used
	if e < n {
		off = b.offset(e)
		copy(b[off+size:], b[off:used])
		low := len(b) - n*w
		copy(b[low-w:], b[low:len(b)-e*w])
	}
	b.setCount(n + 1)
	b.setUsed(used + size)
	return b.slot(e), off
}

// cut removes the entries from one to another, which have size bytes at off.
func (b block) cut(from, to, off, size int) {
	n, w, used := b.count(), b.slotLen(), b.used()
	copy(b[off:], b[off+size:used])
	low := len(b) - n*w
	copy(b[low+(to-from)*w:], b[low:len(b)-to*w])
	b.setCount(n - to + from)
	b.setUsed(used - size)
}

// stretch changes how many bytes the items of an entry have, which begin at off. There is room.
func (b block) stretch(off, size, to int) {
	if size == to {
		return
	}
	used := b.used()
	copy(b[off+to:], b[off+size:used])
	b.setUsed(used + to - size)
}

// widen gives all slots a further item, which no entry has. There is room for a byte an entry.
func (b block) widen() {
	n, w := b.count(), b.slotLen()
	for e := n - 1; e >= 0; e-- {
		at := len(b) - (e+1)*(w+1)
		copy(b[at:], b[len(b)-(e+1)*w:len(b)-e*w])
		b[at+w] = codeNone
	}
	b[itemsOf]++
}

// appendFrom appends an entry of another block with slots of the same form. There is room.
func (b block) appendFrom(from block, e, off, size int) {
	slot, at := b.open(b.count(), size)
	copy(slot, from.slot(e))
	copy(b[at:at+size], from[off:])
}

// giveTail moves the entries from one on to an empty block with slots of the same form. There is
// room.
func (b block) giveTail(to block, from int) {
	n, w, off, used := b.count(), b.slotLen(), b.offset(from), b.used()
	copy(to[to.begin():], b[off:used])
	copy(to[len(to)-(n-from)*w:], b[len(b)-n*w:len(b)-from*w])
	to.setCount(n - from)
	to.setUsed(to.begin() + used - off)
	b.setCount(from)
	b.setUsed(off)
}

// take appends the entries of another block with slots of the same form. There is room.
func (b block) take(from block) {
	n, m, w, used := b.count(), from.count(), b.slotLen(), b.used()
	copy(b[used:], from[from.begin():from.used()])
	copy(b[len(b)-(n+m)*w:], from[len(from)-m*w:])
	b.setCount(n + m)
	b.setUsed(used + from.used() - from.begin())
}

// each calls f with the place of each entry of a table's block.
func (b block) each(f func(at place)) {
	for at := (place{off: blockHead}); at.entry < b.count(); at.entry++ {
		f(at)
		at.off += b.size(at.entry)
	}
}

// hasAway reports whether a string of an entry is a part.
func (b block) hasAway() bool {
	for e := range b.count() {
		if bytes.IndexByte(b.slot(e)[b.front():], codeAway) >= 0 {
			return true
		}
	}
	return false
}
