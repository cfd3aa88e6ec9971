package engine

import (
	"runtime"
	"slices"
)

// Room is the memory that a command is about to take for values with parts.
type Room struct {
	Parts  []int   // bytes of each part that is to be added, or resized to
	Roots  []int   // for each value that is to be made, the bytes of its key and of the type's own
	Spared []Parts // values that the command works on; the parts may be added to any of them, or to those to be made
}

// Reserve makes room for the parts and roots that a command is about to take, before the command
// changes anything. Until Unlock the command then finds its memory, and nothing that it takes
// evicts or moves anything. Reserve itself may evict everything but the spared values, and move all
// cells: items and views found before are void, Parts are not. ErrMemory: there is no room, and
// nothing has changed but by eviction.
func (t Txn) Reserve(r Room) error {
	s := t.s
	for _, v := range r.Spared {
		v.head().spared = true
	}
	s.frugal = s.copies.spares(t.section)
	err := t.reserve(r)
	s.frugal = false
	s.values.needs = s.values.needs[:0]
	for _, v := range r.Spared {
		v.head().spared = false
	}
	return err
}

// Reserve is Txn.Reserve for parts of v of these sizes.
func (v Parts) Reserve(sizes ...int) error {
	spared := [1]Parts{v}
	return v.t.Reserve(Room{Parts: sizes, Spared: spared[:]})
}

// need is how many free cells of a class are wanted.
type need struct {
	kind  kind
	class uint8
	cells uint32
}

// want notes that one more cell for size bytes is needed.
func (v *values) want(k kind, size int) {
	class := uint8(v.s.e.classes.of(size))
	for i := range v.needs {
		if n := &v.needs[i]; n.kind == k && n.class == class {
			n.cells++
			return
		}
	}
	v.needs = append(v.needs, need{k, class, 1})
}

// wanted is how many free cells of a class making room must leave, since they are reserved.
func (v *values) wanted(k kind, class int) uint32 {
	for _, n := range v.needs {
		if n.kind == k && int(n.class) == class {
			return n.cells
		}
	}
	return 0
}

// reserve is Reserve between the marks.
func (t Txn) reserve(r Room) error {
	s := t.s
	s.values.dropStash()
	bytes := 0
	for _, size := range r.Parts {
		bytes += partHeadSize + size
		switch {
		case size > MaxValueLen:
			return ErrValueTooLarge
		case size > s.e.maxPart():
			s.values.want(partCells, awaySize)
		default:
			s.values.want(partCells, partHeadSize+size)
		}
	}
	for _, v := range r.Spared {
		for i := range v.head().planes {
			s.values.wantNodes(&v.head().planes[i], len(r.Parts))
		}
	}
	for _, size := range r.Roots {
		h := s.e.makeHeader(typeElsewhere, t.section, size, rootSize, true)
		if s.cells.isLarge(h) {
			return ErrKeyTooLong
		}
		s.values.want(mainCells, s.e.cellLen(h))
		s.values.want(valueHeads, int(headSize))
		s.values.want(index, bucketSize) // for the entry
		s.values.want(index, bucketSize) // the first one of the partition
		for range Planes {
			s.values.wantNodes(&plane{}, len(r.Parts))
		}
	}
	if int64(bytes) > s.e.reclaimable() {
		return ErrNeverFits
	}
	if len(r.Roots) > 0 && t.p.buckets == 0 && !s.hasTable(t.p) {
		return ErrMemory
	}
	if !s.values.fillStash(r.Parts) {
		return ErrMemory
	}
	for waits := 0; waits < maxWaits; {
		if s.values.haveCells() {
			return nil
		}
		gained, busy := s.makeRoom(noClass)
		if gained {
			continue
		}
		if !busy {
			break
		}
		waits++
		runtime.Gosched()
	}
	if s.values.haveCells() { // as in await
		return nil
	}
	return ErrMemory
}

// MayHave reports whether a value with parts may take so many bytes, see Config.Share.
func (e *Engine) MayHave(bytes int64) bool { return e.share == 0 || bytes <= e.pool.max.Load()/e.share }

// MayGrow returns ErrTooBig if v may not take so many bytes more. It may always take none more, however
// big it is. What bounds it is who calls MayGrow for each string that is added, or gets longer: Reserve
// does not, for parts also move, and replace others. A copy takes what its owner has.
func (v Parts) MayGrow(bytes int) error { return v.mayTake(bytes, v.Bytes()+int64(bytes)) }

// MayAdjust is MayGrow for the few bytes by which an integer in v gets longer, or that a time takes. They
// may be half as much again, so that counters in a value that has too much go on, and what is in it can
// be told to expire.
func (v Parts) MayAdjust(bytes int) error { return v.mayTake(bytes, (v.Bytes()+int64(bytes))*2/3) }

func (v Parts) mayTake(bytes int, in int64) error {
	s := v.t.s
	if bytes <= 0 || s.e.MayHave(in) || s.copies.of(v.t.section) != NoCopy {
		return nil
	}
	return ErrTooBig
}

// haveCells takes pages until there are free cells for all needs, and reports whether there are.
// Compaction frees the pages that are then not used.
func (v *values) haveCells() bool {
	for _, n := range v.needs {
		for v.s.slabs.kinds[n.kind].classes[n.class].cells < n.cells {
			pg := v.s.slabs.newPage(true)
			if pg == 0 {
				return false
			}
			v.s.slabs.adopt(pg, n.kind, int(n.class))
		}
	}
	return true
}

// stashed is an extent that was reserved for a part of n bytes, charged. The next Reserve in the
// shard, or Sweep, gives back the extents that a command did not use.
type stashed struct {
	off uint64
	n   int
}

// fillStash takes the extents for parts that are too long for a cell. It may evict.
func (v *values) fillStash(parts []int) bool {
	for _, n := range parts {
		if n <= v.s.e.maxPart() {
			continue
		}
		off, ok := v.s.newLarge(n)
		if !ok {
			v.dropStash()
			return false
		}
		v.stash = append(v.stash, stashed{off, n})
	}
	return true
}

// unstash takes the extent that was reserved for a part of n bytes.
func (v *values) unstash(n int) (off uint64, ok bool) {
	for i, x := range v.stash {
		if x.n == n {
			v.stash = slices.Delete(v.stash, i, i+1)
			return x.off, true
		}
	}
	return 0, false
}

func (v *values) dropStash() {
	for _, x := range v.stash {
		v.s.dropLarge(x.off)
	}
	v.stash = v.stash[:0]
}
