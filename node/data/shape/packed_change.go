package shape

import "encoding/binary"

// Pack changes packed values. It works on a copy: the record has the old value until the new one is
// stored with Txn.Set, so nothing fails halfway. Each loop has one, so that a change allocates
// nothing. A change that would exceed the limits of the kind is refused, and nothing has changed.
type Pack struct {
	Packed
	buf [1 + packedBase + MaxPackedList + 16]byte
}

// Open begins with a record's value, or with an empty one if value is nil. Times are relative to
// now if the value has none yet.
func (p *Pack) Open(kind *Kind, value []byte, now int64) {
	p.Packed = Packed{Kind: kind, base: now}
	room := p.buf[1+packedBase : 1+packedBase+kind.MaxBytes]
	if value == nil {
		p.b = initBlock(room, kind.front(), kind.Items)
		return
	}
	old := ReadPacked(kind, value)
	copy(room, old.b)
	p.b = room
	p.b.spread(len(old.b))
	if old.b.items() > kind.Items {
		p.base = old.base
	}
}

// Bytes is the value for the record, valid until the next call of a method of p. The value is not
// to be changed any more before Open.
func (p *Pack) Bytes() []byte {
	b := p.b
	need, n := b.need(), b.count()*b.slotLen()
	copy(b[need-n:], b[len(b)-n:])
	if b.items() == p.Kind.Items {
		p.buf[packedBase] = 0
		return p.buf[packedBase : 1+packedBase+need]
	}
	p.buf[0] = timedFlag
	binary.LittleEndian.PutUint64(p.buf[1:], uint64(p.base))
	return p.buf[:1+packedBase+need]
}

// fits reports whether the block may become so much longer.
func (p *Pack) fits(more int) bool { return p.b.need()+more <= p.Kind.UpTo }

// Insert inserts an entry in front of another one, or behind the last: strings as many as the kind
// has items, and a rank if it is ranked. The entry never expires.
func (p *Pack) Insert(entry int, rank uint64, first, second []byte) bool {
	probes := [2]probe{probeOf(first)}
	size := probes[0].size()
	if p.Kind.Items > 1 {
		probes[1] = probeOf(second)
		size += probes[1].size()
	}
	if p.Len() == p.Kind.Most || !p.fits(size+p.b.slotLen()) || probes[0].code == codeAway || probes[1].code == codeAway {
		return false
	}
	slot, off := p.b.open(entry, size)
	if p.Kind.Ranked {
		binary.LittleEndian.PutUint64(slot, rank)
	}
	codes := slot[p.b.front():]
	for i := range p.Kind.Items {
		codes[i] = probes[i].code
		probes[i].put(p.b[off : off+probes[i].size()])
		off += probes[i].size()
	}
	if len(codes) > p.Kind.Items {
		codes[p.Kind.Items] = codeNone
	}
	return true
}

// Replace gives an entry another string.
func (p *Pack) Replace(entry, i int, s []byte) bool {
	x := probeOf(s)
	if x.code == codeAway {
		return false
	}
	dst := p.stretch(entry, i, x.code)
	if dst == nil {
		return false
	}
	x.put(dst)
	return true
}

// stretch gives an item another code, and returns its bytes; nil if the block would be too long.
func (p *Pack) stretch(entry, i int, code byte) []byte {
	codes, off := p.b.slot(entry)[p.b.front():], p.b.offset(entry)
	for _, code := range codes[:i] {
		off += int(stored[code])
	}
	before, after := int(stored[codes[i]]), int(stored[code])
	if !p.fits(after - before) {
		return nil
	}
	p.b.stretch(off, before, after)
	codes[i] = code
	return p.b[off : off+after]
}

// SetExpireAt has an entry expire at a time, in unix milliseconds, never if that is 0.
func (p *Pack) SetExpireAt(entry int, at int64) bool {
	switch {
	case p.b.items() > p.Kind.Items:
	case at == 0:
		return true
	case !p.fits(p.b.count() + expirySize):
		return false
	default:
		p.b.widen()
	}
	if at == 0 {
		p.stretch(entry, p.Kind.Items, codeNone)
		return true
	}
	dst := p.stretch(entry, p.Kind.Items, codeInt+expirySize)
	if dst == nil {
		return false
	}
	putTime(dst, at-p.base)
	return true
}

// putTime writes a time that is relative to a base.
func putTime(dst []byte, at int64) {
	putInt(dst, uint64(min(max(at, 1), 1<<(8*expirySize-1)-1)))
}

// Delete removes an entry.
func (p *Pack) Delete(entry int) { p.DeleteSome(entry, 1) }

// DeleteSome removes n entries from one on.
func (p *Pack) DeleteSome(entry, n int) {
	p.b.cut(entry, entry+n, p.b.offset(entry), p.b.span(entry, entry+n))
}

// SetRank changes the rank of an entry that stays where it is in the order.
func (p *Pack) SetRank(entry int, rank uint64) {
	binary.LittleEndian.PutUint64(p.b.slot(entry), rank)
}
