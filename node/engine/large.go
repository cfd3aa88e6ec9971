package engine

import (
	"errors"
	"math/bits"
	"sync"
	"sync/atomic"
)

// largeSpace holds the bodies that are too big for cells, each contiguous in an extent of its own.
// An extent is a power of two of addresses; only the body's whole system pages have memory and are
// charged. Addresses are plenty, so each size of extents has a region that does not fill up before
// the budget does. Nothing is ever moved to fight fragmentation, and there is one mapping (a
// mapping for each value would meet the kernel's limit of 65,530).
type largeSpace struct {
	arena
	table       arena // an extent each, by region and number
	regionShift uint8 // a region is 1<<regionShift bytes of addresses
	pool        *pool

	overhead atomic.Int64 // bytes charged for extents that were ever used
	promised atomic.Int64 // bytes that staged bodies have, and soon will have, see promiseStep
	refused  atomic.Int64 // see Engine.Refused
	staged   atomic.Int64 // bytes charged for staged bodies
	pinned   atomic.Int64 // bytes of bodies that are pinned
	replies  atomic.Int64 // bytes charged for parts of replies, staged or pinned
	leaving  atomic.Int64 // bytes charged for bodies without an owner: pinned still, or dead
	users    atomic.Int64 // the engine, each staged body, each pin: the last one unmaps

	warmBytes atomic.Int64 // bytes charged for warm extents
	deads     atomic.Int32 // dead bodies

	mu        sync.Mutex // innermost lock but that of a mapping.Space
	fresh     [largeSizes]uint32
	free      [largeSizes]uint32 // lists of extents without memory: number + 1, 0 for none
	dead      [largeSizes]uint32 // lists of extents whose memory is to be given back
	warm      [largeSizes]uint32 // lists of extents whose memory is kept for another body
	taken     int                // extents that are neither fresh nor free
	releasing int                // pieces that are just being given back

	collector collector
}

// extent is the bookkeeping of one extent. A body has one owner, its record or the Staged that
// writes it, and any number of pins. The last of them to go gives the memory back.
//
//	free ──▶ staged ──▶ record ──▶ dead ──▶ free
//	    └─────────────────▲  └▶ pinned ─▲ └─▶ warm ──▶ staged, record, free
type extent struct {
	refs atomic.Uint32 // ownerBit, and how many pins
	// pages is how many system pages are charged, from the beginning on. It is the owner's to
	// change while there are no pins; of a dead body it is protected by largeSpace.mu, and so are
	// the others.
	pages     uint32
	next      uint32 // in the list of free or dead extents of this size: number + 1
	releasing uint32 // pieces of it that are just being given back
}

const (
	osPage         = 4096
	minExtentShift = 12
	maxExtentShift = 30 // the longest key and value together
	largeSizes     = maxExtentShift - minExtentShift + 1

	// The system is asked for memory at once for so much of a body: less is not worth the call, and
	// more would leave the processor's cache before it is written to.
	populateFrom = 16 << 10
	populateTo   = 256 << 10

	ownerBit = 1 << 31
)

// reserveLarge makes room for bodies of up to reach bytes in all. Each body fills more than half of
// its extent, so twice the reach in each region suffices.
func reserveLarge(reach int64, p *pool) (*largeSpace, error) {
	l := &largeSpace{regionShift: uint8(bits.Len64(uint64(2*reach - 1))), pool: p}
	l.users.Store(1)
	var err error
	if l.arena, err = reserve(largeSizes<<l.regionShift, reach/2); err != nil {
		return l, err
	}
	l.table, err = reserve(int(largeSizes<<(l.regionShift-minExtentShift)*extentSize), 0)
	return l, err
}

// largeCost is what a body of n bytes is charged.
func largeCost(n int) int64 { return int64(n+osPage-1) &^ (osPage - 1) }

// extentShift is the logarithm of the size of the extent for a body of n bytes.
func extentShift(n int) int { return max(minExtentShift, bits.Len(uint(n-1))) }

// take returns the offset of a free extent for a body of n bytes, which read as zeros, with its
// first owner. The caller charges its pages, and calls grow before they are written. The caller has
// charged extentSize, too, which take refunds if the extent is not fresh. take fails when the
// addresses are used up, which requires a limit raised as far as possible, or when the system commits
// no more memory.
func (l *largeSpace) take(n int) (off uint64, ok bool) {
	shift := extentShift(n)
	size := shift - minExtentShift
	l.mu.Lock()
	number := l.fresh[size]
	first := l.free[size]
	switch {
	case first != 0:
		number = first - 1
		l.free[size] = l.extentAt(size, number).next
	case uint64(number) == 1<<(int(l.regionShift)-shift) || !l.growTable(size, number):
		l.mu.Unlock()
		l.pool.refund(extentSize)
		return 0, false
	default:
		l.fresh[size]++
		l.overhead.Add(extentSize)
	}
	l.taken++
	l.mu.Unlock()
	if first != 0 {
		l.pool.refund(extentSize)
	}
	l.extentAt(size, number).refs.Store(ownerBit)
	return l.offsetOf(size, number), true
}

// growTable lets the bookkeeping of one more extent be written.
func (l *largeSpace) growTable(size int, number uint32) bool {
	return l.table.grow(l.tableOf(size), int64(number)*extentSize, int64(number+1)*extentSize)
}

// tableOf is where the bookkeeping of extents of a size begins.
func (l *largeSpace) tableOf(size int) uint64 {
	return uint64(size) << (l.regionShift - minExtentShift) * uint64(extentSize)
}

// grow lets the body at off, which has n charged bytes from now on, be written. It reports whether the
// system commits that memory.
func (l *largeSpace) grow(off uint64, n int64) bool {
	x := l.extent(off)
	if !l.arena.grow(off, int64(x.pages)*osPage, n) {
		return false
	}
	x.pages = uint32(n / osPage)
	return true
}

// shrink gives back the memory of the body at off but for n bytes.
func (l *largeSpace) shrink(off uint64, n int64) {
	x := l.extent(off)
	l.arena.shrink(off, int64(x.pages)*osPage, n)
	x.pages = uint32(n / osPage)
}

// untake makes an extent free again that take returned and that has no memory.
func (l *largeSpace) untake(off uint64) {
	size, number := l.place(off)
	l.mu.Lock()
	l.putFree(size, number, l.extentAt(size, number))
	l.mu.Unlock()
}

// offsetOf is where an extent begins.
func (l *largeSpace) offsetOf(size int, number uint32) uint64 {
	return uint64(size)<<l.regionShift + uint64(number)<<(minExtentShift+size)
}

// place returns the size and number of the extent that begins at off.
func (l *largeSpace) place(off uint64) (size int, number uint32) {
	size = int(off >> l.regionShift)
	return size, uint32(off & (1<<l.regionShift - 1) >> (minExtentShift + size))
}

// extent is the bookkeeping of the extent at off.
func (l *largeSpace) extent(off uint64) *extent { return l.extentAt(l.place(off)) }

func (l *largeSpace) extentAt(size int, number uint32) *extent {
	return extentIn(&l.table, size<<(l.regionShift-minExtentShift)+int(number))
}

// disown ends the ownership of the body at off. It reports whether the body is dead; otherwise pins
// still hold the memory.
func (l *largeSpace) disown(off uint64) bool { return l.leaveTo(off, (*largeSpace).dispose) }

// abandon is disown for one of many bodies that may die under one lock: what is not kept warm is left to
// the collector.
func (l *largeSpace) abandon(off uint64) bool { return l.leaveTo(off, (*largeSpace).bury) }

func (l *largeSpace) leaveTo(off uint64, end func(l *largeSpace, off uint64, x *extent)) bool {
	x := l.extent(off)
	l.leaving.Add(int64(x.pages) * osPage)
	if x.refs.And(^uint32(ownerBit)) != ownerBit {
		return false
	}
	end(l, off, x)
	return true
}

// held is how many bytes cannot be evicted: those of values that are being written, or pinned.
func (l *largeSpace) held() int64 { return l.promised.Load() + l.pinned.Load() }

// isShared reports whether the body at off is pinned and so must not be written to. The caller owns
// the body, so no pins are added meanwhile.
func (l *largeSpace) isShared(off uint64) bool {
	return l.extent(off).refs.Load()&^uint32(ownerBit) != 0
}

// resize changes the body at off from old to n bytes, keeps the bytes that both have and returns
// the body's new offset. New bytes read as zeros. The caller has charged for n and a fresh extent,
// and refunds after resize when n is less.
func (l *largeSpace) resize(off uint64, old, n int) (uint64, bool) {
	if extentShift(old) == extentShift(n) {
		l.pool.refund(extentSize)
		return off, l.resizeInPlace(off, old, n)
	}
	to, ok := l.take(n)
	if !ok {
		return 0, false
	}
	if !l.grow(to, largeCost(n)) {
		l.untake(to)
		return 0, false
	}
	// Piece by piece, from the front, giving back the memory behind each: at no time is there more
	// than one piece too much.
	for from := 0; from < old; from += releasePiece {
		if from < n {
			end := min(from+releasePiece, old, n)
			copy(l.bytes(to+uint64(from), end-from), l.bytes(off+uint64(from), end-from))
		}
		l.release(off+uint64(from), int(largeCost(min(releasePiece, old-from))))
	}
	l.shrink(off, 0)
	x := l.extent(off)
	x.refs.Store(0)
	l.dispose(off, x)
	return to, true
}

func (l *largeSpace) resizeInPlace(off uint64, old, n int) bool {
	if n <= old {
		l.shrink(off, largeCost(n))
		return true
	}
	if !l.grow(off, largeCost(n)) {
		return false
	}
	// Behind the old last page memory is fresh; in that page an earlier, longer body may show.
	end := min(int(largeCost(old)), n)
	clear(l.bytes(off+uint64(old), end-old))
	return true
}

// forget makes all extents fresh again, if all are free.
func (l *largeSpace) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken > 0 {
		return
	}
	for size := range largeSizes {
		l.table.shrink(l.tableOf(size), int64(l.fresh[size])*extentSize, 0)
		l.fresh[size], l.free[size] = 0, 0
	}
	l.pool.refund(l.overhead.Swap(0))
}

// leave ends the use of the space by the engine, a staged body or a pin.
func (l *largeSpace) leave() error {
	if l.users.Add(-1) > 0 {
		return nil
	}
	return errors.Join(l.close(), l.table.close())
}
