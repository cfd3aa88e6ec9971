package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

// resident is how much memory of the process is in RAM, in bytes, without garbage of the Go heap.
func resident(tb testing.TB) int64 {
	tb.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		tb.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		tb.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestResidentStaysWithinTheLimit writes several times the limit in changing sizes. What the system
// says must agree with what is counted.
func TestResidentStaysWithinTheLimit(t *testing.T) {
	if raceDetector {
		t.Skip("the detector's own memory is resident, too")
	}
	const limit = 40 << 20
	before := resident(t)
	e := open(t, Config{MaxBytes: limit, Shards: 16})
	value := make([]byte, 3<<20)
	highest := int64(0)
	written := 0
	for i, size := range []int{200, 1000, 30_000, 3 << 20, 500} {
		for n := 0; n < limit*3/2; n += size + 60 {
			key := binary.BigEndian.AppendUint64([]byte{byte(i)}, uint64(n))
			mustSet(t, e, uint16(n/(size+60))%Partitions, string(key), value[:size])
			if written++; written%1024 == 0 || size > 1<<20 {
				highest = max(highest, e.Used())
			}
		}
		if grown := resident(t) - before; grown > limit*110/100 {
			t.Errorf("after values of %d bytes: %d MiB are resident, the limit is %d", size, grown>>20, limit>>20)
		}
	}
	if highest > limit || highest < limit*9/10 {
		t.Errorf("%d bytes were used at most, the limit is %d", highest, limit)
	}
	e.checkSums(t)
	e.Reset(1)
	if grown := resident(t) - before; grown > limit/5 {
		t.Errorf("after a reset %d MiB are resident", grown>>20)
	}
}

func TestEmptyEngineIsSmall(t *testing.T) {
	e := open(t, Config{MaxBytes: 1 << 30, Shards: 64})
	if st := e.Stats(); st.Used >= 1<<20 {
		t.Errorf("an empty engine uses %d bytes", st.Used)
	}
}

func TestLargeValues(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 150 << 20, Shards: 16})
	value := make([]byte, 64<<20)
	for i := range value {
		value[i] = byte(i ^ i>>8 ^ i>>16)
	}
	for i := range 20_000 {
		mustSet(t, e, uint16(i%Partitions), fmt.Sprint(i), value[:100])
	}
	for i := range 4 { // 256 MiB through 150
		mustSet(t, e, uint16(i), "big", value[i:])
		if got := get(e, uint16(i), "big"); !bytes.Equal(got, value[i:]) {
			t.Fatalf("value %d differs", i)
		}
	}
	// The same key over and over, in other sizes: the new body takes the old one's place.
	for _, n := range []int{64 << 20, 20_000, 64 << 20, 1 << 20, 0, 64 << 20} {
		mustSet(t, e, 9, "same", value[:n])
		if got := get(e, 9, "same"); !bytes.Equal(got, value[:n]) {
			t.Fatalf("value of %d bytes differs", n)
		}
	}
	// Nearly all that there is.
	most := make([]byte, e.reclaimable()-2*osPage)
	mustSet(t, e, 10, "most", most)
	if e.Stats().Used > 150<<20 {
		t.Errorf("%+v", e.Stats())
	}
	e.checkSums(t)
}

func TestSetMaxBytes(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 32 << 20, Shards: 8})
	value := make([]byte, 300)
	fill := func() {
		for i := range 100_000 {
			mustSet(t, e, uint16(i%Partitions), fmt.Sprint(i), value)
		}
	}
	fill()
	if err := e.SetMaxBytes(8 << 20); err != nil {
		t.Fatal(err)
	}
	if st := e.Stats(); st.Used > 8<<20 || st.Keys < 15_000 {
		t.Errorf("after shrinking: %+v", st)
	}
	if err := e.SetMaxBytes(64 << 20); err != nil {
		t.Fatal(err)
	}
	fill()
	if st := e.Stats(); st.Keys != 100_000 {
		t.Errorf("after growing: %+v", st)
	}
	if err := e.SetMaxBytes(1000); err == nil || !strings.Contains(err.Error(), "the smallest is 3mb") {
		t.Errorf("1000 bytes: %v", err)
	}
	if err := e.SetMaxBytes(1 << 50); err == nil {
		t.Error("a pebibyte works")
	}
	e.checkSums(t)
}

// TestShrinkFarBelow: when the limit falls below what the indexes alone have, they shrink with the
// records, and what is left is full of records again.
func TestShrinkFarBelow(t *testing.T) {
	oneGoroutine(t)
	const before, after = 64 << 20, 4 << 20
	e := open(t, Config{MaxBytes: before, Shards: 4})
	value := make([]byte, 20)
	for i := range before / 100 {
		mustSet(t, e, uint16(i%Partitions), fmt.Sprint(i), value)
	}
	if st := e.Stats(); st.Index < after {
		t.Fatalf("the indexes have %d bytes only", st.Index)
	}
	if err := e.SetMaxBytes(after); err != nil {
		t.Error(err)
	}
	st := e.Stats()
	if st.Used > after || st.Keys < after/200 || st.Index > after/2 {
		t.Errorf("%d bytes are used by %d keys, %d bytes of indexes", st.Used, st.Keys, st.Index)
	}
	e.checkSums(t)
}

// TestMemoryFollowsTheSizes fills up with one size of values and then with another: memory must
// flow from one class of cells to the other, and from shard to shard.
func TestMemoryFollowsTheSizes(t *testing.T) {
	oneGoroutine(t)
	const limit = 6 << 20
	e := open(t, Config{MaxBytes: limit, Shards: 4})
	fill := func(size int, partitions int) int64 {
		value := make([]byte, size)
		for i := range 3 * limit / size {
			mustSet(t, e, uint16(i%partitions), fmt.Sprint(size, i), value)
		}
		st := e.Stats()
		t.Logf("values of %d bytes over %d partitions: %+v", size, partitions, st)
		return st.Values
	}
	if got := fill(200, Partitions); got < limit*6/10 {
		t.Errorf("values fill %d bytes of %d", got, limit)
	}
	if got := fill(1500, Partitions); got < limit*6/10 {
		t.Errorf("larger values fill %d bytes of %d", got, limit)
	}
	if got := fill(100, 3); got < limit/2 {
		t.Errorf("three shards alone fill %d bytes of %d", got, limit)
	}
	e.checkSums(t)
}
