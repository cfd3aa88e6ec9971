package shape

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// unitBits are enough for the units of the longest string, orderBits for a place of blockAt and scanEnd.
const (
	unitBits  = 16
	orderBits = placeBits + 1
	passBits  = 5
)

const (
	// passCount is about how many elements the first pass of a dump has at most.
	passCount = 512
	// dumpBlocks is how many blocks a call of Dump looks at, at most: 0.15 ms if none is in a cache, and the
	// pass finds nothing in them.
	dumpBlocks = 256
)

// Dump appends a delta with the elements from a place on, about atMost bytes of them, and returns
// the place where to go on. It is for engine.Form.Dump.
//
// A place is one of blockAt, and how many units of longString bytes were dumped of the long
// elements whose hash it is. The table may change between two calls: so a block is dumped
// again until its long elements are through, and of elements with one hash the same unit goes
// together.
//
// In the order of the places, elements whose hashes end alike follow one another. A table of the same
// salt that is made of them would have all of the first ones in one block. So a dump has several
// passes. Each has about as many elements as all before it together, chosen by the front of their
// hashes, and finds a table with blocks for them.
func (t *Table) Dump(from engine.Place, dst []byte, atMost int) (delta []byte, next engine.Place, done bool) {
	p := decodePlace(from, t.Len(), atMost)
	for start := len(dst); ; p.pass, p.place, p.unit = p.pass-1, 0, 0 {
		if dst, done = t.dumpPass(&p, dst, start, atMost); !done {
			return dst, p.encode(), false
		}
		if p.pass == 0 {
			return dst, engine.Place{}, true
		}
	}
}

// dumpPlace is a place in a dump. Passes count down to 0.
type dumpPlace struct {
	place        uint64 // of blockAt
	unit         int
	pass, passes int
	blocks       int // that the present call may still look at
}

// decodePlace decodes a place. At the beginning of a dump of count elements it decides how many passes
// there are.
func decodePlace(place engine.Place, count, atMost int) (p dumpPlace) {
	from := place[0]
	if p.blocks = dumpBlocks; atMost == math.MaxInt {
		p.blocks = math.MaxInt
	}
	if from == 0 {
		p.passes = min(max(0, bits.Len(uint(count/passCount))), 1<<passBits-1)
		p.pass = p.passes
		return p
	}
	p.unit, from = int(from&(1<<unitBits-1)), from>>unitBits
	p.place, from = from&(1<<orderBits-1), from>>orderBits
	p.pass, p.passes = int(from&(1<<passBits-1)), int(from>>passBits)
	return p
}

func (p *dumpPlace) encode() engine.Place {
	passes := uint64(p.passes)<<passBits | uint64(p.pass)
	return engine.Place{(passes<<orderBits|p.place)<<unitBits | uint64(p.unit)}
}

// isPassOf reports whether an entry belongs to the present pass: by how many bits its hash begins with
// that are zeros. The entry's tag has the first ones.
func (t *Table) isPassOf(p *dumpPlace, b block, at place) bool {
	if p.passes == 0 {
		return true
	}
	zeros := bits.LeadingZeros8(b.slot(at.entry)[0])
	if zeros == 8 && p.passes > 8 {
		zeros = bits.LeadingZeros64(t.wholeHashOf(b, at))
	}
	return min(zeros, p.passes) == p.pass
}

// dumpPass goes on with a pass, and reports whether it is done.
func (t *Table) dumpPass(p *dumpPlace, dst []byte, start, atMost int) (delta []byte, done bool) {
	n := t.V.Len(t.Blocks)
	for n > 0 && p.place < scanEnd {
		number, after := blockAt(p.place, n)
		dst = t.dumpShort(dst, p, number)
		for {
			hash, found := t.nextLong(p, number)
			if !found {
				break
			}
			if hash != p.place {
				p.place, p.unit = hash, 0
			}
			for whole := false; !whole; p.unit++ {
				if len(dst)-start >= atMost {
					return dst, false
				}
				dst, whole = t.appendPieces(dst, number, hash, p.unit)
			}
			p.place, p.unit = p.place+1, 0
		}
		if after == 0 {
			break
		}
		p.place, p.unit = after, 0
		if p.blocks--; len(dst)-start >= atMost || p.blocks <= 0 {
			return dst, false
		}
	}
	return dst, true
}

// NoteAll logs all elements of a table that has just been made.
func (t *Table) NoteAll(w *Work) {
	if w.tooLong = t.V.Bytes() > engine.MaxNote; t.V.Fed() && !w.tooLong {
		w.delta, _, _ = t.Dump(engine.Place{}, w.delta[:0], math.MaxInt)
	}
	w.Note(t.V)
}

// isLong reports whether the element is dumped by itself.
func (e *Element) isLong() bool { return len(e.Key.bytes)+len(e.Value.bytes) > maxShort }

// maxShort is how many bytes an element has that is dumped with its block.
const maxShort = 1 << 10

// dumpShort appends the elements of a block, as far as they belong to the pass, that are not long.
func (t *Table) dumpShort(dst []byte, p *dumpPlace, number int) []byte {
	var key, value Decimal
	b := block(t.part(t.Blocks, number))
	for e, off := 0, blockHead; e < b.count(); e++ {
		at := place{e, off}
		off += b.size(e)
		if !t.isPassOf(p, b, at) {
			continue
		}
		if x := t.element(b, at); !x.isLong() && !t.isDue(x.ExpireAt) {
			dst = t.appendSet(dst, x.Key.Text(&key), x.Value.Text(&value), x.ExpireAt)
		}
	}
	return dst
}

// nextLong finds the first hash from the place on, with its bits reversed, that a long element of a
// block has which belongs to the pass.
func (t *Table) nextLong(p *dumpPlace, number int) (hash uint64, found bool) {
	b := block(t.part(t.Blocks, number))
	t.eachLong(number, func(h uint64, at place) {
		if h >= p.place && (!found || h < hash) && t.isPassOf(p, b, at) {
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
		f(uint64(bits.Reverse32(t.hashOf(b, at))), at)
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
	if total <= engine.ReplyPiece { // a longer extent is one of zeros
		clear(part[awaySize(len(piece)):awaySize(total)])
	}
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
