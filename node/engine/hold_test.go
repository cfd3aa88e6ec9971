package engine

import (
	"fmt"
	"testing"
)

// TestHold: a hold is seen by those who lock its partition, and by nobody else.
func TestHold(t *testing.T) {
	e := open(t, Config{MaxBytes: testMin, Shards: 4})
	const held, beside, elsewhere = 1, 5, 2 // 1 and 5 share a shard
	x := e.Lock(held, 0)
	h := x.Hold()
	x.Unlock()
	sees := func(p uint16, want *Hold) {
		t.Helper()
		with(e, p, 0, func(x Txn) {
			if got := x.Holder(); got != want {
				t.Errorf("partition %d has holder %v, want %v", p, got, want)
			}
		})
	}
	sees(held, h)
	sees(beside, nil)
	sees(elsewhere, nil)
	h.End()
	sees(held, nil)
}

// TestHoldStopsTime: in a held partition no key expires, whoever looks, until the hold has ended.
func TestHoldStopsTime(t *testing.T) {
	e := open(t, Config{MaxBytes: testMin, Shards: 4})
	x := e.Lock(1, 99)
	if err := x.Set([]byte("k"), []byte("value"), TypeString, 100); err != nil {
		t.Fatal(err)
	}
	h := x.Hold()
	x.Unlock()
	holderFinds := func(want bool) {
		t.Helper()
		x := h.Lock()
		defer x.Unlock()
		if _, found := x.Peek([]byte("k")); found != want {
			t.Errorf("the holder finds the key: %t", found)
		}
	}
	holderFinds(true)
	with(e, 1, 200, func(x Txn) {
		if _, found := x.Peek([]byte("k")); found {
			t.Error("an expired key is found by others")
		}
	})
	if n := e.Sweep(200, e.Pages()); n != 0 {
		t.Errorf("%d keys of a held partition expired", n)
	}
	holderFinds(true)
	h.End()
	if n := e.Sweep(200, e.Pages()); n != 1 {
		t.Errorf("%d keys expired after the hold, want 1", n)
	}
}

// TestHoldKeepsRecords: whatever comes to a full engine, no record of a held partition is evicted,
// under each policy that evicts.
func TestHoldKeepsRecords(t *testing.T) {
	oneGoroutine(t)
	for _, policy := range []Policy{AllKeys, VolatileTTL} {
		e := open(t, Config{MaxBytes: testMin, Shards: 1, Policy: policy})
		key := func(i int) []byte { return fmt.Appendf(nil, "key %d", i) }
		set := func(p uint16, i int) error {
			x := e.Lock(p, 0)
			defer x.Unlock()
			if err := x.Set(key(i), make([]byte, 100), TypeString, 1000); err != nil {
				return err
			}
			for range 3 * int(p-1) { // what is used drives what is not out of the main queue
				x.Find(key(i))
			}
			return nil
		}
		const kept = 100
		for i := range kept {
			if err := set(1, i); err != nil {
				t.Fatal(err)
			}
		}
		x := e.Lock(1, 0)
		h := x.Hold()
		x.Unlock()
		x = e.Lock(3, 0)
		empty := x.Hold()
		x.Unlock()
		for i := range 200_000 {
			if err := set(2, i); err != nil {
				t.Fatalf("policy %v, key %d: %v", policy, i, err)
			}
		}
		if st := e.Stats(); st.Evicted == 0 {
			t.Fatalf("policy %v: nothing was evicted", policy)
		}
		if n := e.Count(1); n != kept {
			t.Errorf("policy %v: %d of %d keys of the held partition are left", policy, n, kept)
		}
		if !h.IsWanted() || empty.IsWanted() {
			t.Errorf("policy %v: the hold is wanted: %t, and one without keys: %t", policy, h.IsWanted(), empty.IsWanted())
		}
		empty.End()
		h.End()
		for i := 0; i < 200_000 && e.Count(1) == kept; i++ {
			if err := set(2, i); err != nil {
				t.Fatalf("policy %v, key %d: %v", policy, i, err)
			}
		}
		if n := e.Count(1); n == kept {
			t.Errorf("policy %v: nothing of the partition was evicted after the hold", policy)
		}
		e.checkSums(t)
	}
}
