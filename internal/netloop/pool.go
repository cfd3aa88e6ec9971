package netloop

import "math/bits"

const (
	minClass    = 9  // 512 bytes
	maxClass    = 20 // 1 MiB: larger buffers are rare, and left to the garbage collector
	maxPooled   = 8 << 20
	poisonByte  = 0xDB
	poolClasses = maxClass - minClass + 1
)

// pool keeps a loop's free buffers, so that a connection holds one only while it has
// something in it. One list per power of two, last in first out: the buffer lent next
// is the one most likely still in the processor's cache.
type pool struct {
	free   [poolClasses][][]byte
	bytes  int  // capacity of all free buffers, at most maxPooled
	poison bool // tests: overwrite what comes back, so that a kept view is noticed
}

// get lends an empty buffer with room for at least n bytes.
func (p *pool) get(n int) []byte {
	class := max(bits.Len(uint(max(n, 1)-1)), minClass)
	if class > maxClass {
		return make([]byte, 0, n)
	}
	list := &p.free[class-minClass]
	last := len(*list) - 1
	if last < 0 {
		return make([]byte, 0, 1<<class)
	}
	b := (*list)[last]
	(*list)[last] = nil
	*list = (*list)[:last]
	p.bytes -= cap(b)
	return b
}

// put takes b back. Nobody may use b or a view of it afterwards. Any buffer will do,
// also one that append made.
func (p *pool) put(b []byte) {
	b = b[:0]
	if p.poison {
		overwrite(b[:cap(b)])
	}
	// Rounded down: a lent buffer is never smaller than its class says.
	class := bits.Len(uint(cap(b))) - 1
	if class < minClass || class > maxClass || p.bytes+cap(b) > maxPooled {
		return
	}
	p.bytes += cap(b)
	p.free[class-minClass] = append(p.free[class-minClass], b)
}

func overwrite(b []byte) {
	for n := copy(b, []byte{poisonByte}); n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}
