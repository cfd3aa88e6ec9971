package engine

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/dunlin-cache/dunlin/internal/mapping"
)

// This file holds all of the package's unsafe code but that of await_packed.go. The rule that makes
// it safe: every pointer and slice made here points into a mapping that lives until Engine.Close,
// never into the Go heap, so the collector neither moves nor frees what is behind it. What a cell
// holds is protected by the lock of the shard that the cell's page belongs to.

// arena is one range of addresses. Reserving costs nothing: what is in use can be written, and memory
// stands behind a page of it from the first write until shrink.
type arena struct {
	mem   []byte
	base  unsafe.Pointer
	space *mapping.Space
}

const (
	// An arena becomes writable in steps of a stepShare-th, so that their number is bounded, and a
	// few idle steps stay writable.
	stepShare = 4096
	keptShare = 64
	minStep   = 64 << 10
)

// reserve maps n bytes of address space, aligned to huge pages. What is in use at a time is some
// most bytes.
func reserve(n int, most int64) (arena, error) {
	step := max(minStep, 1<<bits.Len64(uint64(most/stepShare)))
	space, err := mapping.Reserve(n, hugePage, step, max(step, int(most/keptShare)))
	if err != nil {
		return arena{}, err
	}
	mem := space.Bytes()
	return arena{mem: mem, base: unsafe.Pointer(unsafe.SliceData(mem)), space: space}, nil
}

// part is n bytes of the arena from off on, to be read and written only.
func (a *arena) part(off, n int) arena {
	mem := a.mem[off : off+n]
	return arena{mem: mem, base: unsafe.Pointer(unsafe.SliceData(mem))}
}

func (a *arena) close() error {
	if a.mem == nil {
		return nil
	}
	err := a.space.Free()
	a.mem, a.base, a.space = nil, nil, nil
	return err
}

// bytes is a view of [off, off+n), valid until the arena is closed.
func (a *arena) bytes(off uint64, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(a.base, off)), n)
}

// grow lets what begins at off, and is in use up to from bytes behind that, be written up to to. It
// reports whether the system commits that memory.
func (a *arena) grow(off uint64, from, to int64) bool {
	return a.space.Grow(int(off), int(from), int(to)) == nil
}

// shrink ends the use of all but to bytes of what grow was told, and gives the memory behind the rest
// back to the system. It reads as zeros afterwards.
func (a *arena) shrink(off uint64, from, to int64) {
	if err := a.space.Shrink(int(off), int(from), int(to)); err != nil {
		panic(fmt.Sprintf("BUG: cannot release %d bytes at %d: %v", from-to, off, err))
	}
}

// release gives the memory behind [off, off+n), which stays in use, back to the system; off is a
// multiple of osPage. It reads as zeros afterwards.
func (a *arena) release(off uint64, n int) {
	if err := mapping.Release(a.mem[off : off+uint64(n)]); err != nil {
		panic(fmt.Sprintf("BUG: cannot release %d bytes at %d: %v", n, off, err))
	}
}

// populate backs [off, off+n), which is about to be written, with memory.
func (a *arena) populate(off uint64, n int) { mapping.Populate(a.mem[off : off+uint64(n)]) }

// offset is where a byte of the arena lies.
func (a *arena) offset(b *byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(b)) - uintptr(a.base))
}

// firstOf is the first byte of a view, and bodyPart n bytes from the off-th on behind such a one.
func firstOf(view []byte) *byte { return unsafe.SliceData(view) }

func bodyPart(first *byte, off, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(first), off)), n)
}

// collapse puts huge pages behind [off, off+n), all of which is backed by memory.
func (a *arena) collapse(off uint64, n int) { mapping.Collapse(a.mem[off : off+uint64(n)]) }

// split keeps the kernel from putting a huge page where memory is about to be given back.
func (a *arena) split(off uint64, n int) { mapping.Split(a.mem[off : off+uint64(n)]) }

// cells are the addresses in which a cell is named by its handle, its offset divided by the grain: a
// window of the arena of pages. Engine.cells is all of the arena, in which no handle names anything.
type cells struct {
	arena
	e              *Engine
	start          uint32 // where the window begins in the arena, in units of 1<<windowUnitShift
	firstPage      uint32 // and the number of the page there; pages are numbered through all windows
	pageMask       uint32 // of the part of a page's number that counts from firstPage
	grainShift     uint8  // a handle step is 1<<grainShift bytes: 8, or more when 32 bits of 8 do not reach
	directoryShift uint8  // logarithm of the number of handles in a page
	pageUnitsShift uint8  // logarithm of a page's size in grains
	maxInline      int    // longest body in a cell
}

func (c *cells) at(h handle) unsafe.Pointer {
	if checked {
		c.check(h)
	}
	return unsafe.Add(c.base, uintptr(h)<<c.grainShift)
}

// word is the first word of the cell: a record's header, or the link of a free cell.
func (c *cells) word(h handle) *uint64 { return (*uint64)(c.at(h)) }

// second is the word behind it.
func (c *cells) second(h handle) *uint64 { return (*uint64)(unsafe.Add(c.at(h), wordSize)) }

// third is the word behind that.
func (c *cells) third(h handle) *uint64 { return (*uint64)(unsafe.Add(c.at(h), 2*wordSize)) }

// view is n bytes of the cell from its byte off on.
func (c *cells) view(h handle, off, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(c.at(h), off)), n)
}

// bucket is the i-th bucket of the cell; nil for the zero handle.
func (c *cells) bucket(h handle, i uint32) *bucket {
	if h == 0 {
		return nil
	}
	return (*bucket)(unsafe.Add(c.at(h), uintptr(i)*bucketSize))
}

// partition is the index whose cell this is: a crowd.
func (c *cells) partition(h handle) *partition { return (*partition)(c.at(h)) }

// head is the head of a value that is in the cell.
func (c *cells) head(h handle) *valueHead { return (*valueHead)(c.at(h)) }

// handle is the i-th handle in the cell, a directory of an index.
func (c *cells) handle(h handle, i uint32) *handle {
	return (*handle)(unsafe.Add(c.at(h), uintptr(i)*handleSize))
}

// cellOffset is where the cell begins in the window, in bytes.
func (c *cells) cellOffset(h handle) uint64 { return uint64(h) << c.grainShift }

// peek reads the word at off, for Touch: without a lock, wherever off may point. The mapping's size
// is a power of two, so that a mask keeps the address in it, and aligned. An atomic load costs no
// more than another one, and the compiler does not leave it out when nobody uses the result.
func (c *cells) peek(off uint64) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Add(c.base, off&uint64(len(c.mem)-wordSize))))
}

// peekHandle reads the handle at off, likewise.
func (c *cells) peekHandle(off uint64) handle {
	return handle(atomic.LoadUint32((*uint32)(unsafe.Add(c.base, off&uint64(len(c.mem)-handleSize)))))
}

// peekBucket is the bucket at off, whose fields are to be read like that.
func (c *cells) peekBucket(off uint64) *bucket {
	return (*bucket)(unsafe.Add(c.base, off&uint64(len(c.mem)-bucketSize)))
}

// partitionTables is the indexes of all sections.
func partitionTables(a *arena) []partition {
	return unsafe.Slice((*partition)(a.base), Databases*Partitions)
}

// isInFirst reports whether an index is in the first of the tables.
func isInFirst(a *arena, p *partition) bool {
	return a.offset((*byte)(unsafe.Pointer(p))) < uint64(tableSize)
}

// tableOf is the database whose table has an index.
func tableOf(a *arena, p *partition) uint8 {
	return uint8(a.offset((*byte)(unsafe.Pointer(p))) / uint64(tableSize))
}

// pageTable is the bookkeeping of all pages that could be, in a mapping of its own: memory stands
// behind what is used.
func pageTable(a *arena, n int) []page {
	return unsafe.Slice((*page)(a.base), n)
}

// ghostTable is n sets of the arena from the first-th on.
func ghostTable(a *arena, first, n int) []ghostSet {
	return unsafe.Slice((*ghostSet)(unsafe.Add(a.base, first*ghostSetSize)), n)
}

// extentIn is the i-th extent of the table.
func extentIn(table *arena, i int) *extent {
	return (*extent)(unsafe.Add(table.base, uintptr(i)*unsafe.Sizeof(extent{})))
}

const (
	extentSize    = int64(unsafe.Sizeof(extent{}))
	pageMetaSize  = int64(unsafe.Sizeof(page{}))
	headSize      = int64(unsafe.Sizeof(valueHead{}))
	shardSize     = int64(unsafe.Sizeof(shard{}))
	partitionSize = int64(unsafe.Sizeof(partition{}))
	engineSize    = int64(unsafe.Sizeof(Engine{}))
)

// The index and the walk rely on one bucket being one cache line.
var _ [bucketSize]byte = [unsafe.Sizeof(bucket{})]byte{}

// A set of ghosts never lies across two.
var _ [ghostSetSize]byte = [unsafe.Sizeof(ghostSet{})]byte{}
