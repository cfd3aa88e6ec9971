package shape

import (
	"encoding/binary"
	"math/bits"
)

// moreSplits is how many blocks are split beyond one for each new element.
const moreSplits = 2

// growFor splits blocks until the table is as large as it should be with so many more elements of so
// many bytes. Without memory it stays smaller.
func (t *Table) growFor(count, bytes int) error {
	n := t.V.Len(t.Blocks)
	if n == 0 {
		if err := t.first(); err != nil {
			return err
		}
		n = 1
	}
	state := t.state()
	want := max((state.count()+count)/fullCount, (state.bytes()+bytes)/fullBytes)
	want = min(want, n+count+moreSplits) // there may have been no memory for many elements
	for ; n < want; n++ {
		if !t.split(n) {
			break
		}
	}
	return nil
}

// first gives the table its first block.
func (t *Table) first() error {
	size := blockHead + tagFront + t.Items
	if err := t.V.Reserve(size); err != nil {
		return err
	}
	_, b, err := t.V.Add(t.Blocks, size)
	if err == nil {
		initBlock(b, tagFront, t.Items)
	}
	return err
}

// leaving is a bit for each entry of a block.
type leaving [(maxBlock/(1+tagFront) + 63) / 64]uint64

func (l *leaving) has(e int) bool { return l[e/64]&(1<<(e%64)) != 0 }

// split gives a table of n blocks one more: it gets what belongs there of the block that is next in
// turn. It reports whether there was memory.
func (t *Table) split(n int) bool {
	level := bits.Len(uint(n)) - 1
	from := n - 1<<level
	b := block(t.V.Part(t.Blocks, from))
	var moves leaving
	size, w, off := blockHead, b.slotLen(), blockHead
	for e := range b.count() {
		at := place{e, off}
		n := b.size(e)
		if t.hashOf(b, at)>>level&1 != 0 {
			moves[e/64] |= 1 << (e % 64)
			size += w + n
		}
		off += n
	}
	if err := t.V.Reserve(size); err != nil {
		return false
	}
	b = block(t.V.Edit(t.Blocks, from))
	number, part, err := t.V.Add(t.Blocks, size)
	if err != nil {
		return false
	}
	if number != n {
		panic("BUG: the numbers of a table's blocks have gaps")
	}
	to := initBlock(part, tagFront, b.items())
	b.divide(to, &moves)
	state := t.state()
	state.note(b.count())
	state.note(to.count())
	state.turn(n + 1)
	fit(t.V, t.Blocks, from)
	return true
}

// hashOf is the hash of an entry's key, as far as it decides in which block the entry is.
func (t *Table) hashOf(b block, at place) uint32 {
	code, raw := b.slot(at.entry)[tagFront], b[at.off:]
	if code == codeAway {
		return awayHash(t.part(t.Away, int(binary.LittleEndian.Uint32(raw))))
	}
	return uint32(t.wholeHashOf(b, at))
}

// wholeHashOf is the hash of an entry's key.
func (t *Table) wholeHashOf(b block, at place) uint64 {
	var buf Decimal
	e := t.resolve(b.slot(at.entry)[tagFront], b[at.off:])
	return t.V.Hash(e.Text(&buf))
}

// divide moves the entries that leave to another block, which has room.
func (b block) divide(to block, moves *leaving) {
	w, n := b.slotLen(), b.count()
	kept, end, off := 0, blockHead, blockHead
	for e := range n {
		size := b.size(e)
		if moves.has(e) {
			to.appendFrom(b, e, off, size)
		} else {
			copy(b[end:end+size], b[off:])
			copy(b[len(b)-(kept+1)*w:], b.slot(e))
			end += size
			kept++
		}
		off += size
	}
	b.setCount(kept)
	b.setUsed(end)
}

// Delete removes the element of a key, and reports whether there was one.
func (t *Table) Delete(key []byte) bool {
	n := t.V.Len(t.Blocks)
	if n == 0 {
		return false
	}
	h, p := t.V.Hash(key), probeOf(key)
	number := bucket(h, n)
	at, found := t.find(t.V.Part(t.Blocks, number), tagOf(h), &p)
	if !found {
		return false
	}
	b := block(t.V.Edit(t.Blocks, number))
	there := !t.isDue(t.expireAt(b, at))
	t.remove(b, at)
	fit(t.V, t.Blocks, number)
	t.shrink()
	return there
}

// remove removes an entry.
func (t *Table) remove(b block, at place) {
	codes, off := b.slot(at.entry)[tagFront:], at.off
	for _, code := range codes {
		if code == codeAway {
			t.V.Free(t.Away, int(binary.LittleEndian.Uint32(b[off:])))
		}
		off += int(stored[code])
	}
	state := t.state()
	state.addCount(-1)
	state.addBytes(at.off - off - b.slotLen())
	if len(codes) > t.Items && codes[t.Items] != codeNone {
		state.addExpiring(-1)
	}
	b.cut(at.entry, at.entry+1, at.off, off-at.off)
}

// shrink merges the last blocks with those that they were split from, if the table has more blocks
// than it should.
func (t *Table) shrink() {
	for range moreSplits {
		n, state := t.V.Len(t.Blocks), t.state()
		if n > 1 && state.count() < n*fullCount/2 && state.bytes() < n*fullBytes/2 {
			t.merge(n - 1)
		}
	}
}

// merge puts the last block's entries into the block that it was split from, if there is a free
// cell for them.
func (t *Table) merge(last int) {
	into := last - 1<<(bits.Len(uint(last))-1)
	from, b := block(t.V.Part(t.Blocks, last)), block(t.V.Part(t.Blocks, into))
	size := from.need() + b.need() - blockHead
	if from.items() != b.items() {
		size += from.count() + b.count()
	}
	if size > maxBlock {
		return
	}
	b, ok := growFree(t.V, t.Blocks, into, size)
	if !ok {
		return
	}
	wide := max(from.items(), b.items())
	if b.items() < wide {
		b.widen()
		t.state().addBytes(b.count())
	}
	narrow, w := from.items() < wide, from.slotLen()
	for e, off := 0, blockHead; e < from.count(); e++ {
		size := from.size(e)
		slot, at := b.open(b.count(), size)
		copy(slot, from.slot(e)[:w])
		copy(b[at:at+size], from[off:])
		if narrow {
			slot[w] = codeNone
		}
		off += size
	}
	state := t.state()
	if narrow {
		state.addBytes(from.count())
	}
	t.V.Free(t.Blocks, last)
	state.note(b.count())
	state.turn(last)
	fit(t.V, t.Blocks, into)
}
