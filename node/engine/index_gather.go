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
	// gatherAtOnce is how many granules are looked at under one lock: up to 50 µs.
	gatherAtOnce = 128
)

// gathering is a walk through the indexes of a shard.
type gathering struct {
	mark    mark  // of the shard
	chains  bool  // overflow buckets are to be moved
	table   uint8 // the database of the index in hand
	at      int   // the index in hand: a partition's number in the shard, twice, and one more for its crowd
	granule uint32
}

// gather frees sparse pages of the shard's indexes, if there are enough of them.
func (ix *indexes) gather() {
	w, more := ix.beginGathering()
	for more {
		runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
		more = ix.gatherSlice(&w)
	}
}

// beginGathering chooses the pages that are to go, and reports whether it is worth it. They are in no
// list meanwhile.
func (ix *indexes) beginGathering() (w gathering, worthIt bool) {
	ix.s.mu.Lock()
	defer ix.s.mu.Unlock()
	if ix.gathering {
		return w, false
	}
	ix.leaving = ix.leaving[:0]
	for class := range numClasses {
		ix.chooseLeaving(class)
	}
	if n := int64(len(ix.leaving) * ix.s.e.pool.pageSize); n == 0 || gatherShare*n < ix.s.sums.Index {
		return w, false
	}
	w.mark = ix.s.mark
	for _, pg := range ix.leaving {
		p := &ix.s.e.pool.pages[pg]
		w.chains = w.chains || ix.s.e.classes.size(int(p.class)) == bucketSize
		ix.s.slabs.unlinkRoom(pg)
		p.leaving = true
	}
	ix.gathering = true
	return w, true
}

// chooseLeaving chooses pages of a class that are at most half full, as many as there are free
// cells for on others.
func (ix *indexes) chooseLeaving(class int) {
	perPage := ix.s.e.classes.perPage[class]
	free, toMove := ix.s.slabs.kinds[index].classes[class].cells, uint32(0)
	if free < perPage {
		return
	}
	for pg := ix.s.slabs.kinds[index].classes[class].room; pg != 0; pg = ix.s.e.pool.pages[pg].next {
		live := uint32(ix.s.e.pool.pages[pg].live)
		if 2*live <= perPage && free >= perPage+toMove {
			free -= perPage - live
			toMove += live
			ix.leaving = append(ix.leaving, pg)
		}
	}
}

// gatherSlice goes on with w, and reports whether there is more to do.
func (ix *indexes) gatherSlice(w *gathering) (more bool) {
	ix.s.mu.Lock()
	defer ix.s.mu.Unlock()
	if ix.s.mark != w.mark {
		return false // a Reset took everything
	}
	for budget := gatherAtOnce; w.table < Databases; w.table, w.at = w.table+1, 0 {
		table := ix.s.tableInUse(w.table)
		for budget > 0 && w.at < 2*len(table) {
			budget = ix.gatherIndex(w, &table[w.at/2], budget)
		}
		if w.at < 2*len(table) {
			return true
		}
	}
	ix.endGathering()
	return false
}

func (ix *indexes) endGathering() {
	for h := &ix.spare; *h != 0; h = &ix.cells.bucket(*h, 0).next {
		ix.relocate(h)
	}
	for _, pg := range ix.leaving {
		// What is still there has cells of dropped partitions, or others were given the free cells.
		if p := &ix.s.e.pool.pages[pg]; p.mark() == ix.s.mark && p.leaving {
			p.leaving = false
			ix.s.slabs.linkRoom(pg)
		}
	}
	ix.gathering = false
}

// gatherIndex goes on with an index of p, and returns what is left of the budget, in granules.
func (ix *indexes) gatherIndex(w *gathering, p *partition, budget int) int {
	if w.at%2 == 1 {
		if p = ix.cells.crowd(p); p == nil {
			w.at++
			return budget
		}
	}
	for ; w.granule<<granuleShift < p.buckets; w.granule++ {
		if budget == 0 {
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
