package engine

import (
	"encoding/binary"
	"testing"
)

// TestIndexOfAnySize fills one partition until its directory has several pages, and empties it
// again: no chain gets longer than chance has it, a walk meets every key, and the last key takes
// the last of the index with it.
func TestIndexOfAnySize(t *testing.T) {
	oneGoroutine(t)
	const p, keys = 77, 220_000
	e := open(t, Config{MaxBytes: 192 << 20, Shards: 64})
	key := make([]byte, 4)
	for i := range uint32(keys) {
		binary.LittleEndian.PutUint32(key, i)
		mustSet(t, e, p, string(key), nil)
	}
	s, part := e.shardOf(p), e.shardOf(p).partition(p)
	if deep := part.buckets > granule<<s.cells.directoryShift; !deep {
		t.Fatalf("%d keys have %d buckets: one page of directory suffices for them", keys, part.buckets)
	}
	if 2*part.count > growAt*(part.buckets+1) {
		t.Errorf("%d keys have %d buckets", part.count, part.buckets)
	}
	met := make([]bool, keys)
	for cursor, done := uint64(0), false; !done; {
		cursor, done = e.Walk(p, cursor, 1000, 0, func(item Item) bool {
			i := binary.LittleEndian.Uint32(item.Key())
			if met[i] {
				t.Errorf("key %d is met twice", i)
			}
			met[i] = true
			return true
		})
	}
	e.checkSums(t)
	for i := range uint32(keys) {
		binary.LittleEndian.PutUint32(key, i)
		if !met[i] {
			t.Fatalf("key %d is not met", i)
		}
		with(e, p, 0, func(x Txn) {
			if !x.Delete(key) {
				t.Fatalf("key %d is not there", i)
			}
		})
		if i == keys/4 { // some granules above one page
			e.checkSums(t)
		}
	}
	e.checkSums(t)
	if st := e.Stats(); st.Keys != 0 || st.Index > bucketSize {
		t.Errorf("an empty index has %d bytes", st.Index)
	}
}

// TestDropOfALargeIndex drops an index whose directory has several pages.
func TestDropOfALargeIndex(t *testing.T) {
	oneGoroutine(t)
	const p, keys = 77, 220_000
	e := open(t, Config{MaxBytes: 192 << 20, Shards: 64})
	key := make([]byte, 4)
	for i := range uint32(keys) {
		binary.LittleEndian.PutUint32(key, i)
		mustSet(t, e, p, string(key), nil)
	}
	s := e.shardOf(p)
	d, _ := s.dropped.doom(p)
	for i := 0; !s.dropped.drainSlice(d, drainAtOnce); i++ {
		if i%400 == 0 {
			e.checkSums(t)
		}
	}
	e.checkSums(t)
	if st := e.Stats(); st.Keys != 0 || st.Index > bucketSize {
		t.Errorf("a dropped index has %d bytes", st.Index)
	}
}
