package order

// Room is the memory for pipes' buffers, which all Machines of a process share. Its methods may be
// called for several Machines at once.
type Room interface {
	// Free reports whether n more bytes are left.
	Free(n int) bool
	// Ample reports whether less than half is used.
	Ample() bool
	// Use counts n more bytes of buffers; n is negative when they are gone.
	Use(n int)
}

// smallBuffer is up to how many bytes a pipe's buffer may have, whatever the others have: small
// requests reach every node.
const smallBuffer = 16 << 10

// crowded reports whether the buffers of all pipes leave no room for n more bytes in this one's,
// which does not fit them as it is.
func (p *Pipe) crowded(n int) bool {
	room := p.Node.room
	if room == nil || len(p.buf)+n <= smallBuffer {
		return false
	}
	dead := int(p.acked - p.base) // makeRoom drops these bytes
	if dead >= len(p.buf)/2 && len(p.buf)-dead+n <= cap(p.buf) {
		return false
	}
	return !room.Free(n)
}

// mustPark reports whether a request of n bytes must be parked, because nothing is outstanding whose
// reply would make room for it.
func (p *Pipe) mustPark(n int) bool {
	return p.inflight.len() == 0 && !p.fits(n) && n <= HugeRequest && p.crowded(n)
}

// settle counts the pipe's buffer as it is now.
func (p *Pipe) settle() {
	size := p.Size()
	if size == p.counted {
		return
	}
	if room := p.Node.room; room != nil {
		room.Use(size - p.counted)
	}
	p.counted = size
}

// keepsBuffer reports whether the pipe keeps its buffer while nothing is outstanding.
func (p *Pipe) keepsBuffer() bool {
	size, room := cap(p.buf), p.Node.room
	return size <= keepPipeBuf && (size <= smallBuffer || room == nil || room.Ample())
}
