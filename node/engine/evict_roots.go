package engine

// The roots of values with parts have a clock of their own. They form a ring, and a hand moves
// around it as the hands of the other clocks move over pages. A value counts as the number of pages
// that its parts fill, so the hand advances more slowly past big values: a round of this clock takes
// as long as a round of any other clock that frees as much. Parts have no uses, so no hand visits
// their cells. Only this clock's hand judges a root's cell.

const (
	// looksRoots is how many roots the hand passes before it evicts the next one, used or not.
	looksRoots = 64
)

// values is what a shard has of values with parts.
type values struct {
	s          *shard
	stash      []stashed // extents for parts that are to be added
	needs      []need    // cells that are being reserved
	offers     []*Staged // see Txn.Offer
	pinned     []*pinnedValue
	unfinished []handle // heads of the values whose snapshot has not ended, those of dropped partitions excepted
	pages      int64    // of parts, directories and heads
	unused     int64    // bytes of free cells of parts and directories
	sparse     int      // class in which compact looked last
	hand       handle   // the head that is judged next; 0: there is none
	passed     int64    // bytes behind the hand that were not counted as a page yet
	doomed     handle   // list of the heads of values that are to be freed, the first and
	last       handle   // the last one
}

func (v *values) adopted(k kind, bytes int64) {
	v.pages++
	if k == partCells {
		v.unused += bytes
	}
}

func (v *values) abandoned(k kind, bytes int64) {
	v.pages--
	if k == partCells {
		v.unused -= bytes
	}
}

// join puts a head directly behind the hand, so that it is visited last.
func (v *values) join(at handle) {
	h := v.s.cells.head(at)
	h.stamp = v.s.e.pool.tick.Load()
	if v.hand == 0 {
		h.ahead, h.behind, v.hand = at, at, at
		return
	}
	next := v.s.cells.head(v.hand)
	h.ahead, h.behind = v.hand, next.behind
	v.s.cells.head(next.behind).ahead = at
	next.behind = at
}

func (v *values) leave(at handle) {
	h := v.s.cells.head(at)
	if h.ahead == at {
		v.hand = 0
		return
	}
	v.s.cells.head(h.behind).ahead, v.s.cells.head(h.ahead).behind = h.ahead, h.behind
	if v.hand == at {
		v.hand = h.ahead
	}
}

// rootsAge is how long the root that waits longest has not been visited, in visits of pages; 0 if
// there is none.
func (v *values) rootsAge() uint32 {
	if v.hand == 0 {
		return 0
	}
	return v.s.e.pool.tick.Load() - v.s.cells.head(v.hand).stamp
}

// rootsAreColder reports whether the oldest root has waited much longer for a visit than the given
// class, the one that has waited longest; noClass: there is none.
func (v *values) rootsAreColder(class int) bool {
	return v.hand != 0 && (class == noClass || older(v.rootsAge(), v.s.clocks.age(class)))
}

// turnRoots moves the hand until a value is doomed, and reports whether one was.
func (v *values) turnRoots() bool {
	for looks := 0; v.hand != 0 && looks < 2*looksRoots; looks++ {
		at := v.hand
		h := v.s.cells.head(at)
		hdr := v.s.cells.header(h.root)
		switch {
		case h.spared || h.pinned || h.root == v.s.pinned || v.s.withholds(hdr):
		case v.s.isDue(hdr.partition(), v.s.cells.expireAt(h.root, hdr)):
			v.s.expire(h.root)
			return true
		case hdr.uses() > 0 && looks < looksRoots:
			v.s.cells.setHeader(h.root, v.s.e.aged(hdr))
		default:
			v.s.evict(h.root)
			return true
		}
		v.passed += h.bytes
		size := int64(v.s.e.pool.pageSize)
		h.stamp = v.s.e.pool.tick.Add(uint32(v.passed / size))
		v.passed %= size
		v.hand = h.ahead
	}
	return false
}

// isSpared reports whether a record with header h is a root that making room must leave alone.
func (v *values) isSpared(ref handle, h header) bool {
	if !h.isRoot() {
		return false
	}
	head := v.s.cells.head(v.s.cells.headOf(ref, h))
	return head.spared || head.pinned
}
