package engine

import "runtime"

// An index gives its cells back as it shrinks, or is dropped, but others have cells on the same
// pages. When indexes have left many of their pages sparse, the cells on these are gathered on the
// other pages, and the sparse ones go. A cell of an index does not say whose it is, so the indexes
// of the shard are walked through, and what lies on a page that is to go is moved.

const (
	// gatherShare: gathering is worth it when the pages that would be freed are at least a
	// gatherShare-th of the bytes of the indexes.
	gatherShare = 8
	// gatherAtOnce is how many granules are looked at under one lock, chooseAtOnce how many pages,
	// and gainsAtOnce how many pages go back to the system there, about: up to 50 µs.
	gatherAtOnce = 128
	chooseAtOnce = 64
	gainsAtOnce  = 4
)

// gathering chooses pages, walks through the indexes of a shard, and puts back into their lists
// those of the pages that are still there.
type gathering struct {
	mark  mark // of the shard
	stage gatheringStage

	class  int    // of cells, whose pages are being chosen
	begun  bool   // with the class
	page   uint32 // the next one, 0 behind the last
	free   uint32 // cells of the class on pages that stay
	toMove uint32 // cells of the class that need one

	chains  bool  // overflow buckets are to be moved
	table   uint8 // the database of the index in hand
	at      int   // the index in hand: a partition's number in the shard, twice, and one more for its crowd
	granule uint32
}

type gatheringStage uint8

const (
	choosing gatheringStage = iota
	moving
	ending
)

// gather frees sparse pages of the shard's indexes, if there are enough of them.
func (ix *indexes) gather() {
	w, more := ix.beginGathering()
	for more {
		runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
		more = ix.gatherSlice(&w)
	}
}

// beginGathering is the first slice. It reports whether there is more to do: with few pages it
// knows at once whether gathering is worth it.
func (ix *indexes) beginGathering() (w gathering, more bool) {
	ix.s.mu.Lock()
	defer ix.s.mu.Unlock()
	if ix.gathering || !ix.mayBeWorthIt() {
		return w, false
	}
	ix.gathering = true
	ix.leaving = ix.leaving[:0]
	w.mark = ix.s.mark
	ix.choose(&w)
	if w.stage == ending {
		more = !ix.endGathering()
	} else {
		more = true
	}
	return w, more
}

// mayBeWorthIt reports whether there are as many free cells as the pages that would be freed have,
// and so spares most calls the look at pages.
func (ix *indexes) mayBeWorthIt() bool {
	pages := int64(0)
	for class := range numClasses {
		if n := ix.s.e.classes.perPage[class]; n > 0 {
			pages += int64(ix.s.slabs.kinds[index].classes[class].cells / n)
		}
	}
	return ix.isWorthIt(pages)
}

func (ix *indexes) isWorthIt(pages int64) bool {
	return pages > 0 && gatherShare*pages*int64(ix.s.e.pool.pageSize) >= ix.s.sums.Index
}

// gatherSlice goes on with w, and reports whether there is more to do.
func (ix *indexes) gatherSlice(w *gathering) (more bool) {
	ix.s.mu.Lock()
	defer ix.s.mu.Unlock()
	if ix.s.mark != w.mark {
		return false // a Reset took everything
	}
	switch w.stage {
	case choosing:
		ix.choose(w)
	case moving:
		ix.moveSome(w)
	default:
		return !ix.endGathering()
	}
	return true
}

// choose goes on with choosing the pages that are to go. They are in no list meanwhile.
func (ix *indexes) choose(w *gathering) {
	for looks := 0; w.class < numClasses; w.class, w.begun = w.class+1, false {
		if c := &ix.s.slabs.kinds[index].classes[w.class]; !w.begun {
			w.begun, w.page, w.free, w.toMove = true, c.room, c.cells, 0
		}
		if w.free < ix.s.e.classes.perPage[w.class] {
			continue
		}
		for ; w.page != 0 && ix.hasRoom(w.page, w.class); looks++ {
			if looks == chooseAtOnce {
				return
			}
			ix.chooseNext(w)
		}
	}
	if w.stage = ending; ix.isWorthIt(int64(len(ix.leaving))) {
		w.stage = moving
	}
}

// hasRoom reports whether a page is in the list of a class. One that is not there any more ends the
// class: the next gathering comes to the others.
func (ix *indexes) hasRoom(pg uint32, class int) bool {
	p := &ix.s.e.pool.pages[pg]
	return p.mark() == ix.s.mark && p.kind == index && int(p.class) == class && !p.leaving &&
		uint32(p.live) < ix.s.e.classes.perPage[class]
}

// chooseNext chooses the next page of the class if it is at most half full, and if there are enough
// free cells on others.
func (ix *indexes) chooseNext(w *gathering) {
	pg := w.page
	p := &ix.s.e.pool.pages[pg]
	w.page = p.next
	perPage, live := ix.s.e.classes.perPage[w.class], uint32(p.live)
	if 2*live > perPage || w.free < perPage+w.toMove {
		return
	}
	w.free -= perPage - live
	w.toMove += live
	w.chains = w.chains || ix.s.e.classes.size(w.class) == bucketSize
	ix.s.slabs.leave(pg)
	ix.leaving = append(ix.leaving, pg)
}

// moveSome goes on with the walk through the indexes.
func (ix *indexes) moveSome(w *gathering) {
	gains := ix.s.gains + gainsAtOnce
	for budget := gatherAtOnce; w.table < Databases; w.table, w.at = w.table+1, 0 {
		table := ix.s.tableInUse(w.table)
		for budget > 0 && w.at < 2*len(table) {
			budget = ix.gatherIndex(w, &table[w.at/2], budget, gains)
		}
		if w.at < 2*len(table) {
			return
		}
	}
	for h := &ix.spare; *h != 0; h = &ix.cells.bucket(*h, 0).next {
		ix.relocate(h)
	}
	w.stage = ending
}

// endGathering puts the next pages back, and reports whether those were the last ones. What is
// still there has cells of dropped partitions, or others were given the free cells.
func (ix *indexes) endGathering() (whole bool) {
	first := max(0, len(ix.leaving)-chooseAtOnce)
	for _, pg := range ix.leaving[first:] {
		if p := &ix.s.e.pool.pages[pg]; p.mark() == ix.s.mark && p.kind == index && p.leaving {
			ix.s.slabs.stay(pg)
		}
	}
	ix.leaving = ix.leaving[:first]
	ix.gathering = first > 0
	return first == 0
}

// gatherIndex goes on with an index of p, and returns what is left of the budget, in granules. It
// ends when the shard has had so many gains.
func (ix *indexes) gatherIndex(w *gathering, p *partition, budget int, gains uint64) int {
	if w.at%2 == 1 {
		if p = ix.cells.crowd(p); p == nil {
			w.at++
			return budget
		}
	}
	for ; w.granule<<granuleShift < p.buckets; w.granule++ {
		if budget == 0 || ix.s.gains >= gains {
			return 0
		}
		budget--
		ix.gatherGranule(w, p)
	}
	ix.relocate(&p.root)
	if ix.cells.crowd(p) != nil {
		ix.relocate(&p.crowd)
	}
	w.at, w.granule = w.at+1, 0
	return max(0, budget-1)
}

func (ix *indexes) gatherGranule(w *gathering, p *partition) {
	if p.buckets > granule {
		ix.relocate(ix.cells.granuleAt(p, w.granule, p.buckets > granule<<ix.cells.directoryShift))
	}
	if !w.chains {
		return
	}
	first := w.granule << granuleShift
	for i := first; i < min(first+granule, p.buckets); i++ {
		for b := ix.cells.bucketAt(p, i); b.next != 0; b = ix.cells.bucket(b.next, 0) {
			ix.relocate(&b.next)
		}
	}
}

// relocate moves the cell that h names, if its page is to go and there is a free one elsewhere. It
// takes no new page.
func (ix *indexes) relocate(h *handle) {
	from := *h
	p := &ix.s.e.pool.pages[ix.cells.pageOf(from)]
	class := int(p.class)
	if !p.leaving || ix.s.slabs.kinds[index].classes[class].room == 0 {
		return
	}
	size := ix.s.e.classes.size(class)
	to := ix.s.slabs.takeFrom(index, class)
	copy(ix.cells.view(to, 0, size), ix.cells.view(from, 0, size))
	*h = to
	ix.s.slabs.put(from)
}
