package engine

import (
	"fmt"
	"testing"
)

func TestExpiry(t *testing.T) {
	e := open(t, Config{MaxBytes: testMin, Shards: 4})
	found := func(now int64, want bool, wantAt int64) {
		t.Helper()
		with(e, 1, now, func(x Txn) {
			item, ok := x.Find([]byte("k"))
			if ok != want || ok && (item.ExpireAt() != wantAt || string(item.Value()) != "value") {
				t.Errorf("at %d: found %t %q expiring at %d, want %t, %d", now, ok, item.body, item.expireAt, want, wantAt)
			}
		})
	}
	set := func(at int64) {
		with(e, 1, 0, func(x Txn) {
			if err := x.Set([]byte("k"), []byte("value"), TypeString, at); err != nil {
				t.Error(err)
			}
		})
	}
	setExpire := func(now, at int64, want bool) {
		t.Helper()
		with(e, 1, now, func(x Txn) {
			if got := x.SetExpire([]byte("k"), at); got != want {
				t.Errorf("SetExpire to %d at %d: %t", at, now, got)
			}
		})
	}
	set(100)
	found(99, true, 100)
	found(100, false, 0)
	if st := e.Stats(); st.Expired != 1 || st.Keys != 0 || st.Volatile != 0 {
		t.Errorf("%+v", st)
	}
	setExpire(0, 50, false)
	set(0)
	found(1<<50, true, 0)
	setExpire(0, 0, true)
	setExpire(0, 200, true)
	found(199, true, 200)
	setExpire(199, 0, true)
	found(1000, true, 0)
	setExpire(1000, 2000, true)
	setExpire(2000, 3000, false)
	set(100)
	set(0)
	found(100, true, 0)
	set(100)
	with(e, 1, 100, func(x Txn) {
		if x.Delete([]byte("k")) {
			t.Error("an expired key was deleted")
		}
	})
	if st := e.Stats(); st.Keys != 0 || st.Volatile != 0 || st.Values != 0 {
		t.Errorf("%+v", st)
	}
}

func TestSweep(t *testing.T) {
	const keys = 20_000
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 16})
	for i := range keys {
		with(e, uint16(i%Partitions), 0, func(x Txn) {
			if err := x.Set([]byte(fmt.Sprint(i)), []byte("v"), TypeString, int64(i%2)*1000); err != nil {
				t.Fatal(err)
			}
		})
	}
	if n := e.Sweep(999, 100*keys); n != 0 {
		t.Fatalf("%d keys expired too early", n)
	}
	swept := 0
	for range 40 { // 40 budgets of a tenth: four rounds
		n := e.Sweep(1000, keys/10)
		if n > keys/10+minPageSize/24 { // what is left of a page is looked at, too
			t.Fatalf("one call removed %d, its budget was %d", n, keys/10)
		}
		swept += n
	}
	if st := e.Stats(); swept != keys/2 || st.Keys != keys/2 || st.Volatile != 0 || st.Expired != keys/2 {
		t.Errorf("swept %d: %+v", swept, st)
	}
}

// TestSweepShrinksIndexes empties partitions by expiry, where no deletion helps the indexes to shrink.
func TestSweepShrinksIndexes(t *testing.T) {
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 4})
	for i := range 100_000 {
		with(e, uint16(i%16), 0, func(x Txn) {
			if err := x.Set([]byte(fmt.Sprint(i)), nil, TypeString, 1); err != nil {
				t.Fatal(err)
			}
		})
	}
	before := e.Stats().Index
	for range 1000 {
		e.Sweep(2, 10_000)
	}
	if st := e.Stats(); st.Keys != 0 || st.Index > before/1000 {
		t.Errorf("of %d bytes of indexes %d are left: %+v", before, st.Index, st)
	}
	e.checkSums(t)
}
