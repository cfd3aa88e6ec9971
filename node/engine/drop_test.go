package engine

import (
	"fmt"
	"sync"
	"testing"
)

// TestDropIsAtomic holds Drop to its promise in the middle of its work: nothing of before is seen,
// everything written since stays, also through a second drop's beginning and through eviction,
// which meets doomed records, too.
func TestDropIsAtomic(t *testing.T) {
	const p, keys, slice = 9, 3000, 10
	e := open(t, Config{MaxBytes: 2 << 20, Shards: 2})
	s := e.shardOf(p)
	write := func(value string) {
		for i := range keys {
			mustSet(t, e, p, fmt.Sprint(i), []byte(value))
		}
	}
	write("first")
	first, n := s.dropped.doom(p)
	if n != keys || e.Count(p) != 0 || e.Stats().Keys != 0 {
		t.Fatalf("dropped %d keys of %d; %d are left, %d in all", n, keys, e.Count(p), e.Stats().Keys)
	}
	if _, done := e.Walk(p, 0, 1, 0, func(Item) bool { t.Error("a walk met a key"); return true }); !done || get(e, p, "1") != nil {
		t.Error("the partition is not empty")
	}
	write("second")
	second, _ := s.dropped.doom(p)
	write("third")
	e.checkSums(t)
	for i := range keys {
		s.dropped.drainSlice(first, slice)
		s.dropped.drainSlice(second, slice)
		if got := string(get(e, p, fmt.Sprint(i))); got != "third" {
			t.Fatalf("key %d is %q", i, got)
		}
	}
	if len(s.dropped.list) != 0 || e.Count(p) != keys {
		t.Errorf("%d indexes are still doomed, %d keys are left", len(s.dropped.list), e.Count(p))
	}
	e.checkSums(t)
}

// TestDoomedRecordsAreFound has everything that comes to records by their cells come to doomed
// ones, of a partition that was dropped twice.
func TestDoomedRecordsAreFound(t *testing.T) {
	const p, keys = 9, 6000
	run := func(name string, work func(s *shard), freed bool) {
		t.Run(name, func(t *testing.T) {
			e := open(t, Config{MaxBytes: 2 << 20, Shards: 1})
			s := e.shardOf(p)
			fill := func(keys int) *doomed {
				for i := range keys {
					with(e, p, 0, func(x Txn) {
						if err := x.Set([]byte(fmt.Sprint(i)), make([]byte, i%200), TypeString, int64(i%2)*1000); err != nil {
							t.Fatal(err)
						}
					})
				}
				d, _ := s.dropped.doom(p)
				return d
			}
			older := fill(keys / 2)
			for older.count > 5 {
				s.dropped.drainSlice(older, 3)
			}
			d := fill(keys)
			s.dropped.drainSlice(d, keys/2)
			left, changes := d.count, s.changes
			work(s)
			if d.count < left != freed || s.changes == changes {
				t.Errorf("%d records are left of %d; %d were met", d.count, left, s.changes-changes)
			}
			e.checkSums(t)
			for !s.dropped.drainSlice(d, 100) || !s.dropped.drainSlice(older, 100) {
			}
			e.checkSums(t)
			if st := e.Stats(); st.Evicted+st.Expired != 0 {
				t.Errorf("what was dropped counts as evicted or expired: %+v", st)
			}
		})
	}
	run("sweep", func(s *shard) {
		for pg := range s.e.Pages() {
			s.sweepPage(uint32(pg)+1, 1000)
		}
	}, true)
	run("compact", func(s *shard) {
		for s.slabs.compact() {
		}
	}, false)
	run("evict", func(s *shard) {
		for range 200 {
			s.reclaim(noClass, looksOwn)
		}
	}, true)
}

// TestDropUnderWriters drops a partition again and again while others write to it.
func TestDropUnderWriters(t *testing.T) {
	const p, users, writes = 3, 2, 20_000
	e := open(t, Config{MaxBytes: 3 << 20, Shards: 4})
	var writers, droppers sync.WaitGroup
	written := make(chan struct{})
	for u := range users {
		writers.Go(func() {
			for i := range writes {
				mustSet(t, e, uint16(p+i%2*4), fmt.Sprint(u, i%3000), make([]byte, i%100))
			}
		})
		droppers.Go(func() {
			for {
				e.Drop(p)
				select {
				case <-written:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(written)
	droppers.Wait()
	e.checkSums(t)
	e.Drop(p)
	e.Drop(p + 4)
	e.checkSums(t)
	if st := e.Stats(); st.Keys != 0 || st.Values != 0 || st.Index > int64(len(e.shards))*bucketSize {
		t.Errorf("%+v", st)
	}
}
