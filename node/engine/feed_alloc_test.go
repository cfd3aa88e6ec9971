package engine

import (
	"encoding/binary"
	"testing"
)

// A command on a fed partition allocates nothing, nor does whoever collects and applies, also where
// something is evicted for what is written.
func TestFeedAllocatesNothing(t *testing.T) {
	oneGoroutine(t)
	e, replica := open(t, Config{MaxBytes: 4 << 20, Shards: 8}), open(t, Config{MaxBytes: 3 << 20, Shards: 8})
	for r := range Receiver(2) {
		e.OpenFeed(r, func() {})
		for p := range uint16(Partitions) {
			e.Feed(p, r, Mark{})
		}
	}
	var keyBuf [16]byte
	value, out := make([]byte, 2000), make([]byte, 0, 64<<10)
	taker := &takesAll{}
	n := uint64(0)
	round := func() {
		n++
		binary.LittleEndian.PutUint64(keyBuf[:], n)
		x := e.Lock(uint16(n%Partitions), 1)
		if err := x.Set(keyBuf[:], value[:500+n%1000], TypeString, 0); err != nil {
			t.Fatal(err)
		}
		x.Find(keyBuf[:])
		if view, err := x.Resize(keyBuf[:], 2000); err != nil || len(view) != 2000 {
			t.Fatal(err)
		}
		x.SetExpire(keyBuf[:], 1000)
		if n%16 == 0 {
			x.Delete(keyBuf[:])
		}
		x.Unlock()
		for r := range Receiver(2) {
			out, _ = e.Collect(r, int(n%8), out[:0], 48<<10)
		}
		if err := replica.Apply(out, 0, 1, taker); err != nil {
			t.Fatal(err)
		}
	}
	for range 8000 {
		round()
	}
	if got := testing.AllocsPerRun(1000, round); got != 0 {
		t.Errorf("%g allocations", got)
	}
	if e.Stats().Evicted == 0 || replica.Stats().Evicted == 0 {
		t.Error("nothing was evicted")
	}
	if got := e.Overflowed(0, nil); len(got) > 0 {
		t.Errorf("%d partitions overflowed", len(got))
	}
	e.checkSums(t)
}
