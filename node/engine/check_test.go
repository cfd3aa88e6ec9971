package engine

import (
	"fmt"
	"testing"
)

func (e *Engine) sumsForTest() (sum Sums) {
	for i := range e.shards {
		sum.add(e.shards[i].sums)
	}
	return sum
}

// checkSums walks through everything that there is and compares it with what is counted.
func (e *Engine) checkSums(tb testing.TB) {
	tb.Helper()
	e.large.settle()
	e.lockAll()
	defer e.unlockAll()
	pages, large := int64(e.pool.warms), int64(0)
	for i := range e.shards {
		s := &e.shards[i]
		var got Sums
		records, live := 0, int(s.keys())
		for d := range uint8(Databases) {
			for p := range s.tableInUse(d) {
				got.Index += s.checkIndex(tb, &s.table(d)[p], s.table(d)[p].buckets)
			}
		}
		for _, d := range s.dropped.list {
			buckets := d.buckets
			if d.emptied {
				buckets = d.left
			}
			got.Index += s.checkIndex(tb, &d.partition, buckets)
			live += int(d.count)
		}
		got.Index += int64(s.indexes.spares) * bucketSize
		clockPages := s.eachRecord(func(ref handle) {
			h := s.cells.header(ref)
			records++
			got.Values += h.recordLen()
			if s.cells.expireAt(ref, h) != 0 {
				got.Volatile++
			}
			if s.cells.isLarge(h) {
				large += largeCost(h.bodyLen())
				if x := e.large.extent(*s.cells.third(ref)); x.refs.Load()&ownerBit == 0 || int64(x.pages)*osPage != largeCost(h.bodyLen()) {
					tb.Errorf("a body of %d bytes has %d pages, refs %x", h.bodyLen(), x.pages, x.refs.Load())
				}
			}
		})
		pages += clockPages
		s.checkRoom(tb)
		partPages, extents := s.values.check(tb, &got)
		pages += partPages
		large += extents
		got.Ghosts = s.sums.Ghosts
		large += got.Ghosts
		want := s.sums
		want.Hits, want.Misses, want.Evicted, want.Expired, want.EvictedCopies, want.Holds, want.Recorded = 0, 0, 0, 0, 0, 0, 0
		if got != want || live != records || s.records != int64(records) {
			tb.Errorf("shard %d has %+v and %d records, counted %+v, %d and %d", i, got, records, want, live, s.records)
		}
	}
	pages += e.pool.indexPages.Load()
	large += e.large.staged.Load() + e.large.leaving.Load() + e.large.warmBytes.Load() + e.large.checkExtents(tb)
	if want := e.fixed.Load() + pages*e.pool.pageCost() + large + e.pool.outside.Load() + e.feeds.charged.Load(); e.pool.used.Load() != want {
		tb.Errorf("%d bytes are counted as used, %d are: %d pages, %d bytes of large bodies", e.pool.used.Load(), want, pages, large)
	}
}

// eachRecord calls f for every record in the shard's pages and returns how many pages there are.
func (s *shard) eachRecord(f func(handle)) (pages int64) {
	for _, at := range s.clocks.hands {
		first := at.page
		for pg := first; pg != 0; {
			pages++
			p := &s.e.pool.pages[pg]
			s.eachOnPage(pg, f)
			if pg = p.ahead; pg == first {
				break
			}
		}
	}
	for pg := s.small.tail; pg != 0; pg = s.e.pool.pages[pg].ahead {
		pages++
		s.eachOnPage(pg, f)
	}
	if pages != s.slabs.pages {
		panic(fmt.Sprintf("%d pages of records, counted %d", pages, s.slabs.pages))
	}
	return pages
}

// checkRoom compares the lists of pages with free cells with what is counted.
func (s *shard) checkRoom(tb testing.TB) {
	for k := range s.slabs.kinds {
		for class := range numClasses {
			c, free := &s.slabs.kinds[k].classes[class], uint32(0)
			for pg := c.room; pg != 0; pg = s.e.pool.pages[pg].next {
				p := &s.e.pool.pages[pg]
				if p.leaving || int(p.kind) != k || int(p.class) != class || uint32(p.live) == s.e.classes.perPage[class] {
					tb.Errorf("a page of kind %d and class %d is in the list of %d and %d; leaving %t, %d live cells", p.kind, p.class, k, class, p.leaving, p.live)
				}
				free += s.e.classes.perPage[class] - uint32(p.live)
			}
			if free != c.cells {
				tb.Errorf("pages of kind %d and class %d have %d free cells, counted %d", k, class, free, c.cells)
			}
		}
	}
}

func (s *shard) eachOnPage(pg uint32, f func(handle)) {
	p, live := &s.e.pool.pages[pg], 0
	for h := (hand{page: pg}); h.cell < uint32(p.bump); {
		if ref := s.e.step(&h); s.cells.header(ref).live() {
			live++
			at := s.cells.expireAt(ref, s.cells.header(ref))
			if h := s.cells.header(ref); h.isRoot() {
				if due := s.cells.head(s.cells.headOf(ref, h)).due; due != 0 && due < p.soonest.Load() {
					panic("something in a value is due before its page's time")
				}
			}
			if at != 0 && at < p.soonest.Load() {
				panic("a record expires before its page's time")
			}
			f(ref)
		}
	}
	if p.mark() != s.mark {
		panic("a page does not bear its shard's mark")
	}
	if live != int(p.live) {
		panic(fmt.Sprintf("a page of kind %d has %d live cells, counted %d", p.kind, live, p.live))
	}
}

// checkIndex checks the shape of an index of which the first buckets are there, and returns its
// size in bytes.
func (s *shard) checkIndex(tb testing.TB, p *partition, buckets uint32) (size int64) {
	size = s.checkEntries(tb, p, p, buckets) + s.storage(p, buckets)
	if c := s.cells.crowd(p); c != nil {
		size += s.checkEntries(tb, c, p, c.buckets) + s.storage(c, c.buckets) + s.e.cellSize(int(partitionSize))
	}
	return size
}

// checkEntries looks at the entries of p, the index of a partition or its crowd, and says how many
// bytes the overflow buckets have.
func (s *shard) checkEntries(tb testing.TB, p, whole *partition, buckets uint32) (size int64) {
	entries := uint32(0)
	if c := s.cells.crowd(p); c != nil {
		entries = c.count
	}
	for i := range buckets {
		for b := s.cells.bucketAt(p, i); b != nil; b = s.cells.bucket(b.next, 0) {
			for j, ref := range b.refs {
				if ref == 0 {
					if b.next != 0 {
						tb.Error("a bucket that is not the last has room")
					}
					continue
				}
				entries++
				if s.indexes.homeOf(p, b.tags[j], ref) != s.cells.bucketAt(p, i) {
					tb.Error("an entry is in the wrong bucket")
				}
				if in, tag := s.recordTag(ref, s.cells.header(ref)); in != whole || tag != b.tags[j] || s.indexes.mustFind(in, tag, ref).b != b {
					tb.Error("an entry has the wrong tag, or its record is not found by its cell")
				}
			}
			if b.next != 0 {
				size += bucketSize
			}
		}
	}
	if entries != p.count {
		tb.Errorf("an index has %d entries, counted %d", entries, p.count)
	}
	return size
}

func (e *Engine) cellSize(n int) int64 { return int64(e.classes.size(e.classes.of(n))) }

// storage is how many bytes the first buckets of an index take.
func (s *shard) storage(p *partition, buckets uint32) (size int64) {
	granules := int(p.buckets+granule-1) / granule
	if granules == 0 {
		return 0
	}
	if granules == 1 {
		return s.e.cellSize(int(maskFor(p.buckets)+1) * bucketSize)
	}
	perBlock := s.e.pool.pageSize / handleSize
	there := int(buckets+granule-1) / granule
	size = int64(there) * s.e.cellSize(granule*bucketSize)
	if granules > perBlock {
		granules = (granules + perBlock - 1) / perBlock
		size += int64((there+perBlock-1)/perBlock) * int64(s.e.pool.pageSize)
	}
	return size + s.e.cellSize(int(directoryLen(uint32(granules)))*handleSize)
}

// checkExtents says how many bytes the bookkeeping has, after it has looked at every extent.
func (l *largeSpace) checkExtents(tb testing.TB) int64 {
	tb.Helper()
	fresh, free, leaving, pinned, warm := 0, 0, int64(0), int64(0), int64(0)
	for size := range largeSizes {
		fresh += int(l.fresh[size])
		for number := range l.fresh[size] {
			x := l.extentAt(size, number)
			refs, bytes := x.refs.Load(), int64(x.pages)*osPage
			if refs&ownerBit == 0 {
				leaving += bytes
			}
			if refs&^ownerBit != 0 {
				pinned += bytes
			}
		}
		for number := l.warm[size]; number != 0; {
			x := l.extentAt(size, number-1)
			if x.refs.Load() != 0 || x.pages == 0 {
				tb.Errorf("a warm extent has %d pages, refs %x", x.pages, x.refs.Load())
			}
			warm += int64(x.pages) * osPage
			number = x.next
		}
		for number := l.free[size]; number != 0; free++ {
			x := l.extentAt(size, number-1)
			if x.refs.Load() != 0 || x.pages != 0 {
				tb.Errorf("a free extent has %d pages, refs %x", x.pages, x.refs.Load())
			}
			number = x.next
		}
	}
	if fresh-free != l.taken {
		tb.Errorf("%d extents of %d are free, %d counted as taken", free, fresh, l.taken)
	}
	if leaving -= warm; warm != l.warmBytes.Load() {
		tb.Errorf("%d bytes are warm, counted %d", warm, l.warmBytes.Load())
	}
	if leaving != l.leaving.Load() || pinned != l.pinned.Load() {
		tb.Errorf("leaving %d, pinned %d bytes, counted %d, %d", leaving, pinned, l.leaving.Load(), l.pinned.Load())
	}
	return int64(fresh) * extentSize
}

// checkCounts compares Counts and CountsIn with Count and CountSection.
func (e *Engine) checkCounts(tb testing.TB) {
	tb.Helper()
	var counts, sum [Partitions]uint32
	e.Counts(&counts)
	for d := range uint8(Databases) {
		var in [Partitions]uint32
		e.CountsIn(d, &in)
		for p, n := range in {
			if want := e.CountSection(Section(uint16(p), d)); int(n) != want {
				tb.Errorf("%d keys are in partition %d of database %d, not %d", n, p, d, want)
			}
			sum[p] += n
		}
	}
	for p, n := range counts {
		if want := e.Count(uint16(p)); int(n) != want || n != sum[p] {
			tb.Errorf("%d keys are in partition %d, not %d, nor %d", n, p, want, sum[p])
		}
	}
}
