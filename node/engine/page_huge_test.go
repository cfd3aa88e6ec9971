package engine

import (
	"encoding/binary"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// hugeBytes is how much of the engine's cells has huge pages behind it.
func hugeBytes(t *testing.T) (n int64) {
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`AnonHugePages: +(\d+) kB`).FindAllSubmatch(text, -1) {
		kb, _ := strconv.ParseInt(string(m[1]), 10, 64)
		n += kb << 10
	}
	return n
}

// What is full becomes huge, and resident memory does not grow by it; what is given back is small
// again.
func TestHugePages(t *testing.T) {
	before := hugeBytes(t)
	e := open(t, Config{MaxBytes: 256 << 20, Shards: 16})
	value := make([]byte, 1000)
	for i := range 60_000 {
		key := binary.BigEndian.AppendUint64(nil, uint64(i))
		mustSet(t, e, uint16(i%Partitions), string(key), value)
	}
	deadline := time.Now().Add(20 * time.Second)
	for e.pool.blocks.running.Load() && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	huge := int64(0)
	for _, b := range e.pool.blocks.all {
		if b.huge {
			huge += hugePage
		}
	}
	got := hugeBytes(t) - before
	t.Logf("%d MiB are used, %d in whole blocks, %d huge for the system", e.Used()>>20, huge>>20, got>>20)
	if huge < e.Used()*3/4 {
		t.Errorf("%d bytes are used, and %d in huge pages", e.Used(), huge)
	}
	if got == 0 {
		t.Log("this system gives no huge pages")
	}
	e.Reset(1)
	for i, b := range e.pool.blocks.all {
		if b.huge {
			t.Fatalf("block %d of an empty engine is huge", i)
		}
	}
	if left := hugeBytes(t) - before; left > 0 {
		t.Errorf("an empty engine has %d bytes in huge pages", left)
	}
}
