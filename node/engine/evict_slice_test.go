package engine

import (
	"fmt"
	"testing"
)

// sliceRig is an engine with one shard and pages of 64 KiB whose memory is full of records of 24 bytes.
type sliceRig struct {
	t *testing.T
	e *Engine
	s *shard
	n int // keys that were written
}

func newSliceRig(t *testing.T) *sliceRig {
	e := open(t, Config{MaxBytes: pagesPerShard * maxPageSize, Shards: 1})
	r := &sliceRig{t: t, e: e, s: &e.shards[0]}
	for !e.pool.tight() {
		r.write(1000)
	}
	return r
}

func (r *sliceRig) write(n int) {
	for range n {
		mustSet(r.t, r.e, 0, r.key(r.n), []byte("value"))
		r.n++
	}
}

func (r *sliceRig) key(i int) string { return fmt.Sprintf("k%08d", i) }

// use has all records used so often that a hand spares them.
func (r *sliceRig) use() {
	r.s.eachRecord(func(ref handle) { r.s.cells.setHeader(ref, r.s.cells.header(ref)|usesMask) })
}

// free counts the slices until a page is free, none of which may do more than its share. It calls
// between in front of each.
func (r *sliceRig) free(what string, slice func() bool, between func()) {
	r.t.Helper()
	for gains, slices := r.s.gains, 1; ; slices++ {
		between()
		changes := r.s.changes
		if !slice() {
			r.t.Fatalf("%s: there is no room, after %d slices", what, slices)
		}
		if n := r.s.changes - changes; n > roomAtOnce+judgeSteps {
			r.t.Fatalf("%s: %d records went or moved under one lock, want at most %d", what, n, roomAtOnce+judgeSteps)
		}
		if r.s.gains != gains {
			break
		}
		if slices > 2*slicesAtOnce {
			r.t.Fatalf("%s: no page is free after %d slices", what, slices)
		}
	}
}

// TestRoomInSlices: who makes room without a shard of his own locks one for few records at a time,
// whatever these are.
func TestRoomInSlices(t *testing.T) {
	oneGoroutine(t)
	for what, prepare := range map[string]func(r *sliceRig){
		"records of the main queue": func(*sliceRig) {},
		"used records":              (*sliceRig).use,
		"small queue": func(r *sliceRig) {
			r.write(100_000)
			if !r.s.small.overfull() {
				r.e.balance.share.Store(minShare)
			}
			if !r.s.small.overfull() {
				t.Fatal("the small queue has too few records")
			}
		},
		"small queue that was used": func(r *sliceRig) {
			r.write(100_000)
			r.e.balance.share.Store(minShare)
			r.use()
		},
		"sparse pages": func(r *sliceRig) {
			r.e.SetPolicy(NoEviction)
			for i := range r.n {
				if i%2 == 0 {
					with(r.e, 0, 0, func(x Txn) { x.Delete([]byte(r.key(i))) })
				}
			}
		},
	} {
		for who, slice := range map[string]func(r *sliceRig) bool{
			"Charge":      func(r *sliceRig) bool { further, _ := r.e.reclaimAnywhere(); return further },
			"SetMaxBytes": func(r *sliceRig) bool { further, _ := r.e.makeRoomSlice(); return further },
		} {
			t.Run(what+"/"+who, func(t *testing.T) {
				r := newSliceRig(t)
				prepare(r)
				for range 3 {
					r.free(what, func() bool { return slice(r) }, func() {})
				}
				r.e.checkSums(t)
			})
		}
	}
}

// TestRoomBesideWriters: what others write between two slices does not come to the page that is
// being emptied, although that has most of the free cells.
func TestRoomBesideWriters(t *testing.T) {
	oneGoroutine(t)
	r := newSliceRig(t)
	if err := r.e.SetMaxBytes(2 * r.e.MaxBytes()); err != nil { // so that nobody else makes room
		t.Fatal(err)
	}
	r.free("records", func() bool { further, _ := r.e.makeRoomSlice(); return further }, func() { r.write(2 * roomAtOnce) })
	r.e.checkSums(t)
}

// TestRoomIsLeft: when nobody makes room any more, the free cells of the page that was being
// emptied are used again, and under another policy the rest of it stays.
func TestRoomIsLeft(t *testing.T) {
	oneGoroutine(t)
	begun := func() *sliceRig {
		r := newSliceRig(t)
		for slices := 0; r.s.slabs.emptying.at.page == 0 || r.s.slabs.emptying.at.cell < roomAtOnce; slices++ {
			if slices > 2*slicesAtOnce {
				t.Fatalf("no slice of %d ends within a page", slices)
			}
			r.e.makeRoomSlice()
		}
		if !r.s.slabs.emptying.evicts {
			t.Fatal("the records are moved")
		}
		return r
	}
	r := begun()
	r.e.Sweep(0, 1)
	if pg := r.s.slabs.emptying.at.page; pg != 0 {
		t.Errorf("page %d is left over", pg)
	}
	r.e.checkSums(t)
	r = begun()
	r.e.SetPolicy(VolatileTTL)
	evicted := r.e.Stats().Evicted
	for range slicesAtOnce {
		r.e.makeRoomSlice()
	}
	if n := r.e.Stats().Evicted - evicted; n > 0 {
		t.Errorf("%d records are evicted that do not expire", n)
	}
	r.e.checkSums(t)
	r = begun()
	r.e.Reset(1)
	r.write(1000)
	r.e.checkSums(t)
}
