package engine

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// TestDensityOfHighLimits: a key costs as much where the limit is beyond what 32 bits name in grains
// of 8 bytes as where it is not.
func TestDensityOfHighLimits(t *testing.T) {
	oneGoroutine(t)
	const keys = 200_000
	var costs []float64
	for _, limit := range []int64{16 << 30, 64 << 30} { // pages of one size
		e := open(t, Config{MaxBytes: limit, Shards: 16})
		for i := range uint64(keys) {
			key := binary.BigEndian.AppendUint64(nil, i*prime1)
			mustSet(t, e, uint16(i%Partitions), string(key), make([]byte, 16+i%16))
		}
		st := e.Stats()
		costs = append(costs, float64(st.Used-st.Fixed)/keys)
		e.checkSums(t)
	}
	if costs[1] > 1.01*costs[0] {
		t.Errorf("a key costs %v bytes", costs)
	}
}

// TestWindows: shards of all windows share one budget, and lookups that wait together span windows.
func TestWindows(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 32 << 20, Shards: 8, windowReach: 256 << 20})
	if len(e.windows) != 4 {
		t.Fatalf("there are %d windows", len(e.windows))
	}
	value := make([]byte, 300)
	var probes []Probe
	for i := range 200_000 {
		p := uint16(i % Partitions)
		if i > 100_000 {
			p &^= 3 // all in one window
		}
		key := fmt.Sprint(i)
		mustSet(t, e, p, key, value[:i%300])
		if probes = append(probes, Probe{p, []byte(key)}); len(probes) == 10 {
			e.Touch(probes)
			probes = probes[:0]
		}
		if i%10_000 == 0 {
			e.Sweep(1, e.Pages())
			mustSet(t, e, p, "large", make([]byte, 100_000))
		}
	}
	e.checkSums(t)
	if st := e.Stats(); st.Used > st.Max || st.Keys < 50_000 || st.Evicted == 0 {
		t.Errorf("%+v", st)
	}
	e.Reset(1)
	e.checkSums(t)
}

// TestFullWindow: what all falls into one window has room for that, and no more.
func TestFullWindow(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 200 << 20, Shards: 16, windowReach: 64 << 20})
	for i := range 4096 {
		mustSet(t, e, 1, fmt.Sprint("other", i), make([]byte, 1000))
	}
	const n = 200_000
	for i := range n {
		mustSet(t, e, 16, fmt.Sprint(i), make([]byte, 1000))
	}
	if keys := e.Count(16); keys > 64<<10 || keys < 50_000 {
		t.Errorf("%d of %d keys are there", keys, n)
	}
	if keys := e.Count(1); keys != 4096 {
		t.Errorf("%d keys of another window are left", keys)
	}
	e.checkSums(t)
}

// TestLargeBesideFullWindow: a large value needs no page. A full window does not keep it from the
// memory of another one that is just being given back.
func TestLargeBesideFullWindow(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 200 << 20, Shards: 16, windowReach: 64 << 20, Policy: NoEviction})
	e.large.stopCollector()
	e.large.collector.stop = nil // what dies is released by who wants it
	mustSet(t, e, 0, "old", make([]byte, 100<<20))
	mustSet(t, e, 0, "too", make([]byte, 100<<10)) // keeps the page of both records
	s := &e.shards[0]
	for i := 0; !e.pool.isFull(s.window); i++ {
		with(e, 0, 1, func(x Txn) { _ = x.Set(fmt.Append(nil, i), make([]byte, 8000), TypeString, 0) })
		if i > 64<<20/8000 {
			t.Fatal("the window is not full")
		}
	}
	with(e, 0, 1, func(x Txn) {
		x.Delete([]byte("old"))
		if err := x.Set([]byte("new"), make([]byte, 60<<20), TypeString, 0); err != nil {
			t.Error(err)
		}
	})
	e.checkSums(t)
}
