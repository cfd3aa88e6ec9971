package engine

import (
	"bytes"
	"fmt"
	"testing"
)

// TestResetWithWriters writes in the middle of a Reset: what was there before is gone, what is
// written since stays, and only the memory of before is freed.
func TestResetWithWriters(t *testing.T) {
	e := open(t, Config{MaxBytes: 16 << 20, Shards: 4})
	large := bytes.Repeat([]byte("L"), 100_000)
	value := func(i int) []byte {
		if i%500 == 0 {
			return large
		}
		return large[:i%100]
	}
	for i := range 10_000 {
		mustSet(t, e, uint16(i%64), fmt.Sprint("before:", i), value(i))
	}
	before := e.Used()
	for i := range e.shards {
		e.shards[i].renounce(42)
	}
	if st := e.Stats(); st.Keys != 0 || st.Values != 0 || st.Index != 0 || st.Volatile != 0 || st.Used != before {
		t.Errorf("%+v", st)
	}
	for i := range 5000 {
		mustSet(t, e, uint16(i%64), fmt.Sprint(i), value(i))
	}
	for range 100 {
		e.Sweep(1, 1000)
	}
	for i := range e.shards {
		e.freeRenounced(&e.shards[i])
	}
	for i := range 5000 {
		if got := get(e, uint16(i%64), fmt.Sprint(i)); !bytes.Equal(got, value(i)) {
			t.Fatalf("value %d is wrong", i)
		}
		if get(e, uint16(i%64), fmt.Sprint("before:", i)) != nil {
			t.Fatalf("key %d is still there", i)
		}
	}
	e.checkSums(t)
}

// TestResetEndsDrops resets in the middle of a Drop, whose next slice must find nothing to free.
func TestResetEndsDrops(t *testing.T) {
	const p, keys = 1, 1000
	e := open(t, Config{MaxBytes: 16 << 20, Shards: 4})
	fill := func() {
		for i := range keys {
			mustSet(t, e, p, fmt.Sprint(i), nil)
		}
	}
	fill()
	s := e.shardOf(p)
	d, _ := s.dropped.doom(p)
	s.dropped.drainSlice(d, keys/2)
	e.Reset(7)
	fill()
	if !s.dropped.drainSlice(d, keys/2) {
		t.Error("a drop goes on after a reset")
	}
	if e.Count(p) != keys {
		t.Errorf("%d keys are left of %d", e.Count(p), keys)
	}
	e.checkSums(t)
}
