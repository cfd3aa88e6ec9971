package engine

import (
	"math/bits"
	"sync"
)

// largeSpace holds the bodies that are too big for cells, each contiguous in a slot of its own. A slot is a power of
// two of addresses, of which only the body's whole system pages have memory and are charged. Addresses are plenty, so
// each slot size has a region that can never fill up before the budget does; nothing is ever moved to fight
// fragmentation, and the number of mappings stays one (a mapping for each value would meet the kernel's limit of
// 65,530 of them).
type largeSpace struct {
	arena
	regionShift uint8 // a region is 1<<regionShift bytes of addresses

	mu    sync.Mutex // innermost lock
	fresh [largeSlots]uint32
	free  [largeSlots][]uint32 // slots given back, by number within their region
}

const (
	osPage       = 4096
	minSlotShift = 12
	maxSlotShift = 30 // the longest key and value together
	largeSlots   = maxSlotShift - minSlotShift + 1
)

// reserveLarge makes room for bodies of up to reach bytes in all. Each body fills more than half of its slot, so twice
// the reach in each region suffices.
func reserveLarge(reach int64) (*largeSpace, error) {
	shift := uint8(bits.Len64(uint64(2*reach - 1)))
	a, err := reserve(largeSlots << shift)
	return &largeSpace{arena: a, regionShift: shift}, err
}

// largeCost is what a body of n bytes is charged.
func largeCost(n int) int64 { return int64(n+osPage-1) &^ (osPage - 1) }

// slotShift is the logarithm of the slot size for a body of n bytes.
func slotShift(n int) int { return max(minSlotShift, bits.Len(uint(n-1))) }

// slot returns the offset of a free slot for n bytes, which read as zeros. The caller has charged for them.
func (l *largeSpace) slot(n int) uint64 {
	shift := slotShift(n)
	size := shift - minSlotShift
	l.mu.Lock()
	defer l.mu.Unlock()
	number := l.fresh[size]
	if free := l.free[size]; len(free) > 0 {
		number = free[len(free)-1]
		l.free[size] = free[:len(free)-1]
	} else {
		l.fresh[size]++
	}
	return uint64(size)<<l.regionShift + uint64(number)<<shift
}

// drop frees the slot of a body of n bytes and the memory behind it. The caller refunds it afterwards.
func (l *largeSpace) drop(off uint64, n int) {
	l.release(off, int(largeCost(n)))
	shift := slotShift(n)
	size := shift - minSlotShift
	l.mu.Lock()
	defer l.mu.Unlock()
	number := uint32((off - uint64(size)<<l.regionShift) >> shift)
	l.free[size] = append(l.free[size], number)
}

// resize changes the body at off from old to n bytes, keeps what both have and returns where it is now. Bytes that
// are new read as zeros. The caller has charged for n, and refunds after it when n is less.
func (l *largeSpace) resize(off uint64, old, n int) uint64 {
	if slotShift(old) == slotShift(n) {
		l.resizeInPlace(off, old, n)
		return off
	}
	to := l.slot(n)
	// Piece by piece, from the front, giving back the memory behind each: at no time is there more than one piece too much.
	const piece = 1 << 20
	for from := 0; from < old; from += piece {
		if from < n {
			end := min(from+piece, old, n)
			copy(l.bytes(to+uint64(from), end-from), l.bytes(off+uint64(from), end-from))
		}
		l.release(off+uint64(from), int(largeCost(min(piece, old-from))))
	}
	l.drop(off, old)
	return to
}

func (l *largeSpace) resizeInPlace(off uint64, old, n int) {
	if n > old {
		// Behind the old last page memory is fresh; in that page an earlier, longer body may show.
		end := min(int(largeCost(old)), n)
		clear(l.bytes(off+uint64(old), end-old))
		return
	}
	from := largeCost(n)
	l.release(off+uint64(from), int(largeCost(old)-from))
}
