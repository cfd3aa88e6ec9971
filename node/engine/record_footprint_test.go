package engine

import (
	"bytes"
	"testing"
)

// TestFootprint: what Footprint says of keys, summed, is what they added to the memory in use, as
// near as an average can be. So is what a walk says of them.
func TestFootprint(t *testing.T) {
	oneGoroutine(t)
	f := func(valueLen, keys int, tolerance float64) {
		t.Helper()
		e := open(t, Config{MaxBytes: 512 << 20, Shards: 4})
		before := e.Used()
		sum := int64(0)
		for i := range keys {
			key := []byte{'k', byte(i), byte(i >> 8), byte(i >> 16)}
			p := uint16(i % Partitions)
			txn := e.Lock(p, 1)
			if err := txn.Set(key, bytes.Repeat([]byte{'v'}, valueLen), TypeString, 0); err != nil {
				t.Fatal(err)
			}
			n, found := txn.Footprint(key)
			txn.Unlock()
			if !found || n < int64(len(key)+valueLen) {
				t.Fatalf("Footprint of %d bytes = %d, %v", len(key)+valueLen, n, found)
			}
			sum += n
		}
		if used := e.Used() - before; float64(sum) < (1-tolerance)*float64(used) || float64(sum) > (1+tolerance)*float64(used) {
			t.Errorf("%d values of %d bytes: footprints add up to %d, memory in use grew by %d", keys, valueLen, sum, used)
		}
		walked := int64(0)
		for p := range uint16(Partitions) {
			for cursor, done := uint64(0), false; !done; {
				cursor, done = e.Walk(p, cursor, 1000, 1, func(item Item) bool { walked += e.ItemBytes(item); return true })
			}
		}
		if float64(walked) < 0.98*float64(sum) || float64(walked) > 1.1*float64(sum) {
			t.Errorf("%d values of %d bytes: a walk adds up to %d, footprints to %d", keys, valueLen, walked, sum)
		}
	}
	f(10, 200_000, 0.35) // buckets of a growing index are not full
	f(1000, 50_000, 0.1)
	f(1<<20, 50, 0.1)

	e := open(t, Config{MaxBytes: 64 << 20, Shards: 4})
	txn := e.Lock(1, 1)
	defer txn.Unlock()
	if n, found := txn.Footprint([]byte("nothing")); found || n != 0 {
		t.Errorf("Footprint of a missing key = %d, %v", n, found)
	}
}
