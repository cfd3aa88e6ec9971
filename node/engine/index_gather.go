package engine

import "runtime"

// An index gives its cells back as it shrinks, or is dropped, but others have cells on the same
// pages. When indexes have left many of their pages sparse, the cells on these are gathered on the
// other pages, and the sparse ones go. A cell of an index does not say whose it is, so the indexes
// of the shard are walked through, and what lies on a page that is to go is moved.

const (
	// gatherShare: it is worth it when the pages that would go are one byte in so many of the
	// indexes.
	gatherShare = 8
	// gatherAtOnce is how many granules are looked at under one lock: up to 50 µs.
	gatherAtOnce = 128
)

// gathering is a walk through the indexes of a shard.
type gathering struct {
	mark    mark // of the shard
	chains  bool // overflow buckets are to be moved
	at      int  // the index in hand: a partition's number in the shard, twice, and one more for its crowd
	granule uint32
}

// gather frees sparse pages of the shard's indexes, if there are enough of them.
func (s *shard) gather() {
	w, more := s.beginGathering()
	for more {
		runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
		more = s.gatherSlice(&w)
	}
}

// beginGathering chooses the pages that are to go, and reports whether it is worth it. They are in no
// list meanwhile.
func (s *shard) beginGathering() (w gathering, worthIt bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gathering {
		return w, false
	}
	s.leaving = s.leaving[:0]
	for class := range numClasses {
		s.chooseLeaving(class)
	}
	if n := int64(len(s.leaving) * s.e.pool.pageSize); n == 0 || gatherShare*n < s.sums.Index {
		return w, false
	}
	w.mark = s.mark
	for _, pg := range s.leaving {
		p := &s.e.pool.pages[pg]
		w.chains = w.chains || s.e.classes.size(int(p.class)) == bucketSize
		s.unlinkRoom(pg)
		p.leaving = true
	}
	s.gathering = true
	return w, true
}

// chooseLeaving chooses pages of a class that are at most half full, as many as there are free
// cells for on others.
func (s *shard) chooseLeaving(class int) {
	perPage := s.e.classes.perPage[class]
	free, toMove := s.slabs[index].classes[class].cells, uint32(0)
	if free < perPage {
		return
	}
	for pg := s.slabs[index].classes[class].room; pg != 0; pg = s.e.pool.pages[pg].next {
		live := uint32(s.e.pool.pages[pg].live)
		if 2*live <= perPage && free >= perPage+toMove {
			free -= perPage - live
			toMove += live
			s.leaving = append(s.leaving, pg)
		}
	}
}

// gatherSlice goes on with w, and reports whether there is more to do.
func (s *shard) gatherSlice(w *gathering) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mark != w.mark {
		return false // a Reset took everything
	}
	for budget := gatherAtOnce; budget > 0 && w.at < 2*len(s.partitions); {
		budget = s.gatherIndex(w, &s.partitions[w.at/2], budget)
	}
	if w.at < 2*len(s.partitions) {
		return true
	}
	s.endGathering()
	return false
}

func (s *shard) endGathering() {
	for h := &s.spare; *h != 0; h = &s.cells.bucket(*h, 0).next {
		s.relocate(h)
	}
	for _, pg := range s.leaving {
		// What is still there has cells of dropped partitions, or others were given the free cells.
		if p := &s.e.pool.pages[pg]; p.mark() == s.mark && p.leaving {
			p.leaving = false
			s.linkRoom(pg)
		}
	}
	s.gathering = false
}

// gatherIndex goes on with an index of p, and returns what is left of the budget, in granules.
func (s *shard) gatherIndex(w *gathering, p *partition, budget int) int {
	if w.at%2 == 1 {
		if p = s.cells.crowd(p); p == nil {
			w.at++
			return budget
		}
	}
	for ; w.granule<<granuleShift < p.buckets; w.granule++ {
		if budget == 0 {
			return 0
		}
		budget--
		s.gatherGranule(w, p)
	}
	s.relocate(&p.root)
	if s.cells.crowd(p) != nil {
		s.relocate(&p.crowd)
	}
	w.at, w.granule = w.at+1, 0
	return max(0, budget-1)
}

func (s *shard) gatherGranule(w *gathering, p *partition) {
	if p.buckets > granule {
		s.relocate(s.cells.granuleAt(p, w.granule, p.buckets > granule<<s.cells.directoryShift))
	}
	if !w.chains {
		return
	}
	first := w.granule << granuleShift
	for i := first; i < min(first+granule, p.buckets); i++ {
		for b := s.cells.bucketAt(p, i); b.next != 0; b = s.cells.bucket(b.next, 0) {
			s.relocate(&b.next)
		}
	}
}

// relocate moves the cell that h names, if its page is to go and there is a free one elsewhere. It
// takes no new page.
func (s *shard) relocate(h *handle) {
	from := *h
	p := &s.e.pool.pages[s.cells.pageOf(from)]
	class := int(p.class)
	if !p.leaving || s.slabs[index].classes[class].room == 0 {
		return
	}
	size := s.e.classes.size(class)
	to := s.takeFrom(index, class)
	copy(s.cells.view(to, 0, size), s.cells.view(from, 0, size))
	*h = to
	s.put(from)
}
