package streams

import (
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// entry is what a stream has under an ID: fields and their values. It is a view, valid until the next
// change.
type entry struct {
	fields int
	names  []byte // coded names of the block; nil: the names stand among the strings
	coded  []byte // coded strings
	own    []byte // numbers of parts that have strings of their own
	v      engine.Parts
	pin    *engine.ValuePin
}

// entry makes a view of an entry of a block.
func (b *big) entry(blk block, x *packedEntry) (e entry) {
	e.v, e.pin = b.v, b.pin
	switch x.kind {
	case kindSame:
		e.fields, e.names, e.coded = blk.fields(), blk.names(), x.body
	case kindNames:
		e.fields, e.coded, _ = fieldsOf(x.body)
	case kindAway:
		part := b.part(planeAway, int(binary.LittleEndian.Uint32(x.body)))
		e.fields, e.coded, _ = fieldsOf(shape.AwayString(part))
		e.own = x.body[awayBody:]
	}
	return e
}

// strings returns how many strings the entry has: twice as many as fields.
func (e *entry) strings() int { return 2 * e.fields }

// bytes is about how many bytes the strings have.
func (e *entry) bytes() int {
	n := len(e.names) + len(e.coded)
	for i := range len(e.own) / partNumber {
		n += len(e.ownString(i))
	}
	return n
}

// ownString is a string that is a part of its own.
func (e *entry) ownString(i int) []byte {
	if (i+1)*partNumber > len(e.own) {
		return nil
	}
	number := int(binary.LittleEndian.Uint32(e.own[i*partNumber:]))
	if e.pin != nil {
		return shape.AwayString(e.pin.Part(planeAway, number))
	}
	return shape.AwayString(e.v.Part(planeAway, number))
}

// each calls f for the strings, field and value in turn, until f returns false.
func (e *entry) each(f func(i int, s shape.Item) bool) {
	var at spot
	e.eachFrom(&at, f)
}

// spot is a place among the strings of an entry.
type spot struct {
	i    int // the string
	at   int // where it begins
	name int // where the next name of the block begins
}

// eachFrom is each from a spot on, which it advances: a string for which f returned false comes again.
func (e *entry) eachFrom(at *spot, f func(i int, s shape.Item) bool) {
	for ; at.i < 2*e.fields; at.i++ {
		from, where := e.coded, &at.at
		if e.names != nil && at.i%2 == 0 {
			from, where = e.names, &at.name
		}
		s, own, rest, ok := coded(from[*where:])
		switch {
		case !ok: // the fills of a malformed payload
			s, rest = shape.ViewItem(nil), nil
		case own >= 0:
			s = shape.ViewItem(e.ownString(own))
		}
		if !f(at.i, s) {
			return
		}
		*where = len(from) - len(rest)
	}
}

// each calls f for the entries from the first one on that is not below an ID, until f returns false.
func (b *big) each(from ID, f func(id ID, e entry) bool) {
	m := b.keys()
	for c := b.seekBlock(&m, from); c.HasPrefix(blockPrefix); c.Next() {
		number := int(binary.LittleEndian.Uint32(c.Value()))
		if !b.eachIn(b.part(planeBlocks, number), from, f) {
			return
		}
		b.passed(number)
	}
}

// eachIn is each of one block; it returns false if f has.
func (b *big) eachIn(blk block, from ID, f func(id ID, e entry) bool) bool {
	for at, end := blk.begin(), blk.used(); at < end; {
		x := blk.entry(at)
		at = x.end
		if x.kind != kindDead && !x.id.less(from) && !f(x.id, b.entry(blk, &x)) {
			return false
		}
	}
	return true
}

// eachBack calls f for the entries from the last one on that is not above an ID, in descending order,
// until f returns false.
func (b *big) eachBack(from ID, f func(id ID, e entry) bool) {
	m := b.keys()
	var key mapKey
	for c := m.SeekBack(key.block(from)); c.HasPrefix(blockPrefix); c.Prev() {
		number := int(binary.LittleEndian.Uint32(c.Value()))
		if !b.eachBackIn(b.part(planeBlocks, number), from, f) {
			return
		}
		b.passed(number)
	}
}

// eachBackIn is eachBack of one block; it returns false if f has.
func (b *big) eachBackIn(blk block, from ID, f func(id ID, e entry) bool) bool {
	var begins [mostInBlock]uint16
	n := 0
	for at, end := blk.begin(), blk.used(); at < end; n++ {
		x := blk.entry(at)
		if from.less(x.id) {
			break
		}
		begins[n] = uint16(at)
		at = x.end
	}
	for n--; n >= 0; n-- {
		if x := blk.entry(int(begins[n])); x.kind != kindDead && !f(x.id, b.entry(blk, &x)) {
			return false
		}
	}
	return true
}

// passed notes that all of a block was read from a pin.
func (b *big) passed(number int) {
	if b.pin != nil {
		b.pin.Done(planeBlocks, number)
	}
}

// blockPrefix is what the keys of blocks begin with.
var blockPrefix = []byte{keyBlock}

// seekBlock is a cursor at the block in which the entries from an ID on begin.
func (b *big) seekBlock(m *shape.Ordered, from ID) shape.Cursor {
	var key mapKey
	c := m.SeekBack(key.block(from))
	if !c.HasPrefix(blockPrefix) {
		c = m.Seek(blockPrefix)
	}
	return c
}

// find is the entry with an ID, and the number of its block.
func (b *big) find(id ID) (number int, x packedEntry, found bool) {
	tail, ok := b.tail()
	if !ok {
		return 0, x, false
	}
	if blk := block(b.part(planeBlocks, tail)); !id.less(blk.first()) {
		x, found = blk.find(id)
		return tail, x, found
	}
	m := b.keys()
	var key mapKey
	c := m.SeekBack(key.block(id))
	if !c.HasPrefix(blockPrefix) {
		return 0, x, false
	}
	number = int(binary.LittleEndian.Uint32(c.Value()))
	x, found = block(b.part(planeBlocks, number)).find(id)
	return number, x, found
}
