package engine

import (
	"encoding/binary"
	"testing"
)

// TestNoHeapAllocations covers every operation, in an engine that evicts all the time.
func TestNoHeapAllocations(t *testing.T) {
	e := open(t, Config{MaxBytes: 4 << 20, Shards: 8})
	var buf [40]byte
	key := func(i uint64) (uint16, []byte) {
		binary.LittleEndian.PutUint64(buf[:], i)
		return uint16(i % Partitions), buf[:8+i%32] // with both forms of the hash
	}
	value := make([]byte, 100_000)
	sizes := []int{20, 200, 2000, 50_000}
	n := uint64(0)
	none := func(what string, f func(x Txn, key []byte, size int)) {
		t.Helper()
		for range 5000 { // to a steady state
			n++
			p, k := key(n)
			with(e, p, 1, func(x Txn) { f(x, k, sizes[n%3]) })
		}
		if got := testing.AllocsPerRun(1000, func() {
			n++
			p, k := key(n)
			x := e.Lock(p, 1)
			f(x, k, sizes[n%uint64(len(sizes))])
			x.Unlock()
		}); got != 0 {
			t.Errorf("%s: %g allocations", what, got)
		}
	}
	set := func(x Txn, k []byte, size int, at int64) {
		if err := x.Set(k, value[:size], TypeString, at); err != nil {
			t.Error(err)
		}
	}
	none("Set", func(x Txn, k []byte, size int) { set(x, k, size, 0) })
	none("Set and Find", func(x Txn, k []byte, size int) {
		set(x, k, size, 5)
		if item, ok := x.Find(k); !ok || len(item.Value()) != size || len(item.Key()) != len(k) {
			t.Error("not found")
		}
	})
	var probes [3]Probe
	none("Touch", func(_ Txn, k []byte, _ int) {
		for i := range probes {
			probes[i] = Probe{uint16(i), k}
		}
		e.Touch(probes[:])
	})
	none("Set and Resize", func(x Txn, k []byte, size int) {
		set(x, k, size, 0)
		if _, err := x.Resize(k, size+50); err != nil {
			t.Error(err)
		}
	})
	none("Set and SetExpire", func(x Txn, k []byte, size int) {
		set(x, k, size, 0)
		if !x.SetExpire(k, 1000) {
			t.Error("not found")
		}
	})
	none("Set and Delete", func(x Txn, k []byte, size int) {
		set(x, k, size, 0)
		if !x.Delete(k) {
			t.Error("not found")
		}
	})
	if e.Stats().Evicted == 0 {
		t.Error("nothing was evicted")
	}
	walked := 0
	visit := func(Item) bool { walked++; return true }
	if got := testing.AllocsPerRun(100, func() {
		e.Walk(uint16(walked%Partitions), 0, 10, 1, visit)
		e.Sweep(2000, 100)
	}); got != 0 {
		t.Errorf("Walk and Sweep: %g allocations", got)
	}
}

// TestLargeValuesAllocateNothing covers staging and pinning, in an engine that evicts all the time.
func TestLargeValuesAllocateNothing(t *testing.T) {
	e := open(t, Config{MaxBytes: 4 << 20, Shards: 8})
	value, key := make([]byte, 300_000), []byte("key")
	n := uint16(0)
	round := func() {
		n++
		st, err := e.Stage(0, key, len(value))
		if err == nil {
			err = st.Write(value)
		}
		if err != nil {
			t.Fatal(err)
		}
		x := e.Lock(n%Partitions, 1)
		defer x.Unlock()
		if err := x.SetStaged(&st, TypeString, 0); err != nil {
			t.Fatal(err)
		}
		item, _ := x.Find(key)
		pin, ok := x.Pin(item)
		if !ok || len(pin.Value()) != len(value) {
			t.Fatal("not pinned")
		}
		pin.Release()
		if st, err = e.Stage(0, key, len(value)); err == nil {
			st.Discard()
		}
	}
	for range 100 {
		round()
	}
	if got := testing.AllocsPerRun(1000, round); got != 0 {
		t.Errorf("%g allocations", got)
	}
}
