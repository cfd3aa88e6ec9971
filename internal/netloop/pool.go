package netloop

import (
	"fmt"
	"math/bits"

	"github.com/dunlin-cache/dunlin/internal/mapping"
)

// pool is the memory of a loop's connection buffers; a connection has a buffer only while there is
// something in it. The memory lies outside the Go heap. In the heap, a returned buffer would be
// garbage for an unknown time, and garbage can be as much again as all buffers of a node. Outside,
// its memory is free at once, and so is the budget that it was charged to.
//
//	addresses  │ 4 KiB cells … │ 8 KiB cells … │ … │ 2 GiB cells … │   a region each
//	writable     where a cell is lent, in steps of 1 MiB, and a few idle steps
//	memory       behind cells that are lent, and Config.Keep of free ones
//
// A buffer is a cell or the front of one: beyond maxKeptClass it has only the bytes that were asked
// for, rounded to pages, and may be extended in place, a little at a time. Addresses cost nothing,
// so no cell is ever split, and a view kept too long reads another buffer's bytes or zeros, but
// never faults.
type pool struct {
	space   *mapping.Space
	mem     []byte // of space
	classes [poolClasses]poolClass
	shift   int  // a region is 1<<shift bytes of addresses
	keep    int  // the most that kept may be
	kept    int  // bytes of free cells that have memory
	lent    int  // bytes of the lent buffers
	poison  bool // tests: overwrite returned buffers, so that a kept view is noticed
}

// poolClass has the cells of one size, identified by their index in the region. The cell freed last
// is lent first: it is most likely still in the processor's cache.
type poolClass struct {
	warm, cold []int // free cells, with and without memory
	fresh      int   // index of the first cell that was never lent
}

const (
	minClass     = 12 // 4 KiB, a page of the system
	maxKeptClass = 20 // 1 MiB: larger buffers are rare
	maxClass     = 31 // enough for the default of SetMaxInput and a read
	poolClasses  = maxClass - minClass + 1
	regionShift  = 34 // 16 GiB of addresses for each class
	// smallRegionShift is for a process that may have few addresses (RLIMIT_AS). There are no buffers
	// beyond a region.
	smallRegionShift = 27
	maxKept          = 4 << 20
	poolStep         = 1 << 20 // so much at a time becomes writable
	poisonByte       = 0xDB
)

// open reserves the addresses.
func (p *pool) open() (err error) {
	for _, p.shift = range []int{regionShift, smallRegionShift} {
		if p.space, err = mapping.Reserve(poolClasses<<p.shift, 1<<minClass, poolStep, maxKept); err == nil {
			p.mem = p.space.Bytes()
			break
		}
	}
	return err
}

func (p *pool) close() {
	if err := p.space.Free(); err != nil {
		panic(fmt.Sprintf("BUG: cannot unmap buffers: %v", err))
	}
	p.space, p.mem = nil, nil
}

func classOf(n int) int { return max(bits.Len(uint(max(n, 1)-1)), minClass) }

// bufferSize returns the capacity of a buffer for n bytes in a cell of the class.
func bufferSize(n, class int) int {
	if class <= maxKeptClass {
		return 1 << class
	}
	const page = 1 << minClass
	return (n + page - 1) &^ (page - 1)
}

// get lends an empty buffer with room for at least n bytes in a cell of the class, which must be
// large enough; nil if there is none, or if the system commits no more memory.
func (p *pool) get(n, class int) []byte {
	if class > min(maxClass, p.shift) {
		return nil
	}
	c := &p.classes[class-minClass]
	size := bufferSize(n, class)
	if len(c.warm) > 0 {
		var cell int
		cell, c.warm = pop(c.warm)
		p.kept -= size
		return p.lend(cell, class, size)
	}
	cell, rest := c.fresh, c.cold
	if len(rest) > 0 {
		cell, rest = pop(rest)
	}
	if cell == 1<<(p.shift-class) || p.space.Grow(p.cellPlace(cell, class), 0, size) != nil {
		return nil
	}
	if c.cold = rest; cell == c.fresh {
		c.fresh++
	}
	return p.lend(cell, class, size)
}

func (p *pool) lend(cell, class, size int) []byte {
	p.lent += size
	off := p.cellPlace(cell, class)
	return p.mem[off : off : off+size]
}

// cellPlace is the offset of a cell.
func (p *pool) cellPlace(cell, class int) int { return (class-minClass)<<p.shift + cell<<class }

func pop(list []int) (last int, rest []int) {
	return list[len(list)-1], list[:len(list)-1]
}

// owns reports whether get returned b.
func (p *pool) owns(b []byte) bool {
	return cap(b) > 0 && addressOf(b)-addressOf(p.mem) < uintptr(len(p.mem))
}

// place returns the offset of a buffer and the class of its cell.
func (p *pool) place(b []byte) (off, class int) {
	off = int(addressOf(b) - addressOf(p.mem))
	return off, minClass + off>>p.shift
}

// extend returns b with room for at least n bytes in the same place, or nil if its cell is too
// small, or the system commits no more memory.
func (p *pool) extend(b []byte, n int) []byte {
	off, class := p.place(b)
	if n > 1<<class {
		return nil
	}
	size := bufferSize(n, class)
	if p.space.Grow(off, cap(b), size) != nil {
		return nil
	}
	p.lent += size - cap(b)
	return p.mem[off : off+len(b) : off+size]
}

// put takes back a buffer that get returned. Nobody may use it or a view of it afterwards.
func (p *pool) put(b []byte) {
	if !p.owns(b) {
		panic("BUG: a buffer is given back that was not lent")
	}
	b = b[:cap(b)]
	if p.poison {
		overwrite(b)
	}
	off, class := p.place(b)
	cell := off & (1<<p.shift - 1)
	c := &p.classes[class-minClass]
	p.lent -= len(b)
	if class <= maxKeptClass && p.kept+len(b) <= p.keep {
		p.kept += len(b)
		c.warm = append(c.warm, cell>>class)
		return
	}
	if err := p.space.Shrink(off, len(b), 0); err != nil {
		panic(fmt.Sprintf("BUG: cannot give a buffer back: %v", err))
	}
	c.cold = append(c.cold, cell>>class)
}

// trimAtOnce is how many free buffers lose their memory in an iteration: some 50 µs.
const trimAtOnce = 64

// trim takes the memory of free buffers that are more than the pool keeps, the largest first. It
// reports whether there are more of them.
func (p *pool) trim() (more bool) {
	for class, left := maxKeptClass, trimAtOnce; class >= minClass; class-- {
		c := &p.classes[class-minClass]
		for ; len(c.warm) > 0 && p.kept > p.keep; left-- {
			if left == 0 {
				return true
			}
			var cell int
			cell, c.warm = pop(c.warm)
			if err := p.space.Shrink(p.cellPlace(cell, class), 1<<class, 0); err != nil {
				panic(fmt.Sprintf("BUG: cannot give a buffer back: %v", err))
			}
			p.kept -= 1 << class
			c.cold = append(c.cold, cell)
		}
	}
	return false
}

// release returns the memory behind b to the system. b begins at a page.
func release(b []byte) {
	if err := mapping.Release(b); err != nil {
		panic(fmt.Sprintf("BUG: cannot give memory of a buffer back: %v", err))
	}
}

// isLarge reports whether b is a buffer whose memory returns to the system with it.
func (p *pool) isLarge(b []byte) bool {
	if !p.owns(b) {
		return false
	}
	_, class := p.place(b)
	return class > maxKeptClass
}

// move copies b[from:] to to, piece by piece, and frees b's memory behind what is copied: at no
// time does more than one piece exist twice.
func (p *pool) move(to, b []byte, from int) {
	const piece = 1 << maxKeptClass
	gone := 0 // the memory before it
	for from < len(b) {
		end := from &^ (piece - 1)
		release(b[gone:end])
		gone, end = end, min(end+piece, len(b))
		to = to[copy(to, b[from:end]):]
		from = end
	}
}

func overwrite(b []byte) {
	for n := copy(b, []byte{poisonByte}); n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}
