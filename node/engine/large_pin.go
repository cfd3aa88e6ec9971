package engine

// Pin keeps a large value unchanged and readable although its key is overwritten, evicted or
// dropped, and even when the Engine is closed. Its memory stays charged until the last pin of it is
// released. The zero Pin holds nothing.
type Pin struct {
	l      *largeSpace
	off    uint64
	keyLen uint32
	length uint32 // of the body
	first  bool   // nobody else had pinned the body
	reply  bool   // it is counted in largeSpace.replies
}

// Pin pins the value of an item found with t. It returns false if the value is not large: the
// caller copies it then.
func (t Txn) Pin(item Item) (Pin, bool) {
	s := t.s
	if !s.cells.isLarge(item.header) {
		return Pin{}, false
	}
	l := s.e.large
	return l.pin(l.offset(item.body), item.header.keyLen(), item.header.bodyLen()), true
}

// pinRoom: what is pinned leaves others a pinRoom-th of the limit, beside what large values leave anyway.
const pinRoom = 8

// PinsLeaveRoom reports whether what is pinned leaves others their memory, or was nothing before the last so many bytes.
// If not, whoever has pinned these gives them up. Memory counts as refused then.
func (e *Engine) PinsLeaveRoom(last int64) bool {
	l := e.large
	if l.pinned.Load() <= last || l.held() <= e.reclaimable()-e.pool.max.Load()/pinRoom {
		return true
	}
	l.refused.Add(1)
	return false
}

// pin pins the body at off, which somebody owns.
func (l *largeSpace) pin(off uint64, keyLen, length int) Pin {
	x := l.extent(off)
	first := x.refs.Add(1)&^ownerBit == 1
	if first {
		l.pinned.Add(int64(x.pages) * osPage)
	}
	l.users.Add(1)
	return Pin{l: l, off: off, keyLen: uint32(keyLen), length: uint32(length), first: first}
}

// Value is a view of the value outside the Go heap, not to be changed, valid until Release.
func (p *Pin) Value() []byte { return p.l.bytes(p.off, int(p.length))[p.keyLen:] }

// Adds is how many bytes were pinned that nobody else had pinned.
func (p *Pin) Adds() int64 {
	if !p.first {
		return 0
	}
	return int64(p.l.extent(p.off).pages) * osPage
}

// Live reports whether p is neither zero nor released.
func (p *Pin) Live() bool { return p.l != nil }

// OfReply reports whether p pins a part of a reply, see StageReply, and no key's value.
func (p *Pin) OfReply() bool { return p.reply }

// Holds reports whether the item still has the value that is pinned.
func (p *Pin) Holds(item Item) bool {
	return item.header.bodyLen() == int(p.length) && item.body == firstOf(p.l.bytes(p.off, 1))
}

// Release ends the pin, in any goroutine.
func (p *Pin) Release() {
	l := p.l
	p.l = nil
	x := l.extent(p.off)
	bytes := int64(x.pages) * osPage
	if p.reply {
		l.replies.Add(-bytes)
	}
	left := x.refs.Add(^uint32(0))
	if left&^ownerBit == 0 {
		l.pinned.Add(-bytes)
	}
	if left == 0 {
		l.dispose(p.off, x)
	}
	_ = l.leave()
}
