package engine

import (
	"fmt"
	"testing"
)

// sparseSection is the section with the keys of a partition: half of them are in another database.
func sparseSection(p uint16) uint16 { return Section(p, uint8(p/16%2)*5) }

// sparseIndexes makes indexes on many pages of one shard and leaves few of them: those of the
// partitions 0 and 16, of which the first is flooded.
func sparseIndexes(t *testing.T) (e *Engine, key func(p uint16, i int) string) {
	const seed, keys = 4711, 300
	e = open(t, Config{MaxBytes: 64 << 20, Shards: 1, Seed: seed})
	key = func(p uint16, i int) string {
		if p == 0 {
			return sameTag(seed, i)
		}
		return fmt.Sprint(i)
	}
	for i := range keys {
		for p := range uint16(200) {
			mustSet(t, e, sparseSection(p), key(p, i), nil)
		}
	}
	for p := range uint16(200) {
		if p%16 != 0 || p > 16 {
			e.Drop(p)
		}
	}
	return e, key
}

func (e *Engine) indexPageBytes() int64 { return e.pool.indexPages.Load() * int64(e.pool.pageSize) }

func TestGather(t *testing.T) {
	e, key := sparseIndexes(t)
	before := e.indexPageBytes()
	s := &e.shards[0]
	s.indexes.gather()
	e.checkSums(t)
	// In a few classes of cells one page is not full.
	if got, limit := e.indexPageBytes(), e.Stats().Index+6*int64(e.pool.pageSize); got > limit || before < 2*limit {
		t.Errorf("%d bytes of indexes have %d bytes of pages, they had %d", e.Stats().Index, got, before)
	}
	for _, p := range []uint16{0, 16} {
		for i := range e.Count(p) {
			if get(e, sparseSection(p), key(p, i)) == nil {
				t.Fatalf("key %d of partition %d is gone", i, p)
			}
		}
	}
	if w, more := s.indexes.beginGathering(); more {
		t.Errorf("there is always more to gather: %+v", w)
	}
}

// TestGatherInSlices has indexes grow, shrink, go and come between the slices.
func TestGatherInSlices(t *testing.T) {
	oneGoroutine(t)
	run := func(name string, between func(t *testing.T, e *Engine, slice int, key func(p uint16, i int) string)) {
		t.Run(name, func(t *testing.T) {
			e, key := sparseIndexes(t)
			before := e.indexPageBytes()
			s := &e.shards[0]
			w, more := s.indexes.beginGathering()
			if !more {
				t.Fatal("there is nothing to gather")
			}
			if _, again := s.indexes.beginGathering(); again {
				t.Error("two gather at a time")
			}
			for slice := 0; more; slice++ {
				between(t, e, slice, key)
				e.checkSums(t)
				more = s.indexes.gatherSlice(&w)
				e.checkSums(t)
			}
			if s.indexes.gathering || e.indexPageBytes() > before {
				t.Errorf("gathering: %t, %d bytes of pages, before %d", s.indexes.gathering, e.indexPageBytes(), before)
			}
		})
	}
	run("grow", func(t *testing.T, e *Engine, slice int, key func(p uint16, i int) string) {
		for p := range uint16(40) {
			for i := range 10 {
				mustSet(t, e, sparseSection(p), key(p, 300+slice*10+i), nil)
			}
		}
	})
	run("drop", func(t *testing.T, e *Engine, slice int, _ func(p uint16, i int) string) {
		s := &e.shards[0]
		if d, _ := s.dropped.doom(sparseSection(uint16(slice%2) * 16)); d != nil {
			s.dropped.drainSlice(d, 10) // the rest stays
		}
	})
	run("reset", func(_ *testing.T, e *Engine, slice int, _ func(p uint16, i int) string) {
		if slice == 1 {
			e.Reset(1)
		}
	})
}

// However many pages are to go, each lock is for a few: they are chosen, emptied and put back a few
// at a time.
func TestGatherLocksForFewPages(t *testing.T) {
	oneGoroutine(t)
	const keys, shards = 600, 8
	e := open(t, Config{MaxBytes: 31 << 20, Shards: shards, Seed: 4711}) // pages of 16 KiB
	for i := range keys {
		for p := uint16(0); p < Partitions; p += shards {
			mustSet(t, e, p, fmt.Sprint(i), nil)
		}
	}
	for p := uint16(0); p < Partitions; p += shards {
		if p%(16*shards) != 0 {
			e.Drop(p)
		}
	}
	s := &e.shards[0]
	chosen, freed := 0, 0
	w, more := s.indexes.beginGathering()
	for more {
		leaving, gains, stage := len(s.indexes.leaving), s.gains, w.stage
		more = s.indexes.gatherSlice(&w)
		chosen = max(chosen, len(s.indexes.leaving))
		if n := len(s.indexes.leaving) - leaving; max(n, -n) > chooseAtOnce {
			t.Errorf("stage %d: %d pages in one slice, want at most %d", stage, n, chooseAtOnce)
		}
		if n := int(s.gains - gains); n > 2*gainsAtOnce {
			t.Errorf("stage %d: %d pages are given back in one slice", stage, n)
		}
		freed += int(s.gains - gains)
	}
	e.checkSums(t)
	if chosen <= 2*chooseAtOnce || freed < chosen/2 {
		t.Errorf("%d pages were chosen and %d freed: too few to see", chosen, freed)
	}
}
