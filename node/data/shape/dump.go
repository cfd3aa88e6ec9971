package shape

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// unitBits are enough for the units of the longest string.
const unitBits = 16

// Dump appends a delta with the elements from a place on, about atMost bytes of them, and returns
// the place where to go on. It is for engine.Form.Dump.
//
// A place is a cursor of Scan, and how many units of longString bytes were dumped of the long
// elements whose hash the cursor is. The table may change between two calls: so a block is dumped
// again until its long elements are through, and of elements with one hash the same unit goes
// together.
func (t *Table) Dump(from uint64, dst []byte, atMost int) (delta []byte, next uint64, done bool) {
	n, start := t.V.Len(t.Blocks), len(dst)
	cursor, unit := from>>unitBits, int(from&(1<<unitBits-1))
	for n > 0 && cursor < scanEnd {
		number, after := blockAt(cursor, n)
		dst = t.dumpShort(dst, number)
		for {
			hash, found := t.nextLong(number, cursor)
			if !found {
				break
			}
			if hash != cursor {
				cursor, unit = hash, 0
			}
			for whole := false; !whole; unit++ {
				if len(dst)-start >= atMost {
					return dst, cursor<<unitBits | uint64(unit), false
				}
				dst, whole = t.appendPieces(dst, number, hash, unit)
			}
			cursor, unit = cursor+1, 0
		}
		if after == 0 {
			break
		}
		if cursor, unit = after, 0; len(dst)-start >= atMost {
			return dst, cursor << unitBits, false
		}
	}
	return dst, 0, true
}

// NoteAll logs all elements of a table that has just been made.
func (t *Table) NoteAll(w *Work) {
	if t.V.Fed() {
		w.delta, _, _ = t.Dump(0, w.delta[:0], math.MaxInt)
	}
	w.Note(t.V)
}

// isLong reports whether the element is dumped by itself.
func (e *Element) isLong() bool { return len(e.Key.bytes)+len(e.Value.bytes) > maxShort }

// maxShort is how many bytes an element has that is dumped with its block.
const maxShort = 1 << 10

// dumpShort appends the elements of a block that are not long.
func (t *Table) dumpShort(dst []byte, number int) []byte {
	var key, value Decimal
	t.Each(number, func(e Element) {
		if !e.isLong() {
			dst = t.appendSet(dst, e.Key.Text(&key), e.Value.Text(&value), e.ExpireAt)
		}
	})
	return dst
}

// nextLong finds the first hash from a cursor on, with its bits reversed, that a long element of a
// block has.
func (t *Table) nextLong(number int, cursor uint64) (hash uint64, found bool) {
	t.eachLong(number, func(h uint64, _ place) {
		if h >= cursor && (!found || h < hash) {
			hash, found = h, true
		}
	})
	return hash, found
}

// eachLong calls f for the long elements of a block, with their hashes.
func (t *Table) eachLong(number int, f func(hash uint64, at place)) {
	b := block(t.part(t.Blocks, number))
	for e, off := 0, blockHead; e < b.count(); e++ {
		at := place{e, off}
		off += b.size(e)
		if codes := b.slot(e)[tagFront:]; codes[0] != codeAway && codes[t.Items-1] != codeAway {
			continue
		}
		if x := t.element(b, at); !x.isLong() || t.isDue(x.ExpireAt) {
			continue
		}
		f(uint64(bits.Reverse32(uint32(t.hashOf(b, at)))), at)
	}
}

// appendPieces appends a unit of the long elements that have a hash, and reports whether nothing is
// left of any. Mostly there is one.
func (t *Table) appendPieces(dst []byte, number int, hash uint64, unit int) (_ []byte, whole bool) {
	whole = true
	b := block(t.part(t.Blocks, number))
	t.eachLong(number, func(h uint64, at place) {
		if h == hash {
			var last bool
			dst, last = t.appendPiece(dst, t.element(b, at), unit)
			whole = whole && last
		}
	})
	return dst, whole
}

// appendPiece appends a long element, or a unit of its value, and reports whether nothing is left.
func (t *Table) appendPiece(dst []byte, e Element, unit int) (_ []byte, whole bool) {
	var key, number Decimal
	value := e.Value.Text(&number)
	if len(value) <= longString {
		return t.appendSet(dst, e.Key.Text(&key), value, e.ExpireAt), true
	}
	offset := unit * longString
	if offset >= len(value) {
		return dst, true
	}
	end := min(offset+longString, len(value))
	dst = appendString(append(dst, deltaPiece), e.Key.Text(&key))
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	dst = binary.AppendUvarint(dst, uint64(offset))
	time := int64(0)
	if e.ExpireAt != 0 {
		time = max(1, e.ExpireAt-t.V.Base())
	}
	dst = binary.AppendVarint(dst, time)
	return appendString(dst, value[offset:end]), end == len(value)
}

// setPiece applies a piece of a long value.
func (t *Table) setPiece(w *Work, d *deltaReader, key []byte) (soonest int64, err error) {
	total, offset, time, piece := int(d.uvarint()), int(d.uvarint()), d.varint(), d.string()
	if d.bad || t.Items < 2 || total <= longString || total > maxLong || offset < 0 || offset > total-len(piece) {
		return 0, ErrMalformed
	}
	if offset > 0 {
		b, at, found := t.lookup(key)
		if number, long := t.longPart(b, at, found, total); long {
			if part := t.V.Edit(t.Away, number); part != nil {
				copy(awayString(part)[offset:], piece)
			}
		}
		return 0, nil // or the element has changed: that was logged
	}
	at := int64(0)
	if time != 0 {
		at = max(1, t.V.Base()+time)
	}
	if len(piece) <= maxInside {
		return 0, ErrMalformed
	}
	w.args = append(w.args[:0], key, piece)
	w.times = append(w.times[:0], at)
	if err := t.setAll(w, d); err != nil {
		return 0, err
	}
	b, where, found := t.lookup(key)
	number, there := t.longPart(b, where, found, len(piece))
	if !there {
		return 0, ErrMalformed
	}
	if err := t.V.Reserve(awaySize(total)); err != nil {
		return 0, err
	}
	part, err := t.V.Resize(t.Away, number, awaySize(total))
	if err != nil {
		return 0, err
	}
	binary.LittleEndian.PutUint32(part, uint32(total))
	clear(part[awaySize(len(piece)):awaySize(total)])
	return at, nil
}

// maxLong is the longest value.
const maxLong = 512 << 20

// lookup finds a key, whether or not it has expired.
func (t *Table) lookup(key []byte) (b block, at place, found bool) {
	n := t.V.Len(t.Blocks)
	if n == 0 {
		return nil, at, false
	}
	h, p := t.V.Hash(key), probeOf(key)
	b = block(t.V.Part(t.Blocks, bucket(h, n)))
	at, found = t.find(b, tagOf(h), &p)
	return b, at, found
}

// longPart is the number of the part that has the value of an element, if that is so long.
func (t *Table) longPart(b block, at place, found bool, n int) (number int, ok bool) {
	if !found {
		return 0, false
	}
	code, item := b.item(at.entry, at.off, 1)
	if code != codeAway || len(t.away(item)) != n {
		return 0, false
	}
	return int(binary.LittleEndian.Uint32(item)), true
}
