//go:build linux && !race

package node

import (
	"bytes"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// What a command takes of the Go heap is charged. The test asks every command what TestTimeLaw asks, without garbage
// collections, and compares what the process allocates with the most that is charged beside data meanwhile, and with
// the length of the request, whose buffer is charged, but maybe by the floor of the connections. Values, buffers and
// replies are not in the Go heap: the engine and netloop charge these before they map memory.
const (
	// heapSlack and heapTimes are what a command may allocate: so many bytes, and so many times what is charged.
	// With garbage collections, less is in use at a time.
	heapSlack = 1 << 20
	heapTimes = 4
	// chargePeriod is how often the test looks at what is charged.
	chargePeriod = 50 * time.Microsecond
	// garbageMost is how much garbage the test lets lie: a collection takes as long as a command.
	garbageMost = 128 << 20
)

// heapAllocs returns how many bytes were allocated since the process has begun, but for some kilobytes.
func heapAllocs() int64 { return heapMetric("/gc/heap/allocs:bytes") }

// heapMetric returns a number of bytes of runtime/metrics.
func heapMetric(name string) int64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// mostCharged returns what the node charges at most beside data, from now until stop is called.
func mostCharged(n *Node) (stop func() int64) {
	outside, heap := n.engine.Outside(), n.HeapMemory()
	var most atomic.Int64
	look := func() {
		now := max(n.engine.Outside()-outside, n.HeapMemory()-heap)
		for last := most.Load(); now > last && !most.CompareAndSwap(last, now); {
			last = most.Load()
		}
	}
	n.OnHeapStep(1, look) // a quick script's charge lasts for less than the period
	beat, end := time.NewTicker(chargePeriod), make(chan struct{})
	go func() {
		for {
			select {
			case <-beat.C:
				look()
			case <-end:
				return
			}
		}
	}()
	return func() int64 {
		beat.Stop()
		close(end)
		n.OnHeapStep(math.MaxInt64, func() {})
		return most.Load()
	}
}

// lastWord is in the reply to the request behind the one that is measured.
var lastWord = []byte("behind the request\r\n")

// allocated executes a request. It returns what was allocated, and what was charged for that.
func (rig *lawRig) allocated(way string, args [][]byte, scratch []byte) (bytes, charged int64) {
	c, raw := rig.open(way, args)
	defer c.conn.Close()
	raw = resp.AppendRequest(raw, []byte("PING"), lastWord[:len(lastWord)-2])
	c.conn.SetDeadline(time.Now().Add(lawPatience))
	if heapMetric("/memory/classes/heap/objects:bytes") > garbageMost {
		runtime.GC()
	}
	stop := mostCharged(rig.node)
	before := heapAllocs()
	c.sendRaw(raw)
	c.skipTo(lastWord, scratch)
	return heapAllocs() - before, stop() + int64(len(raw))
}

// skipTo reads replies until they end with a word, or the connection does. It allocates nothing.
func (c *client) skipTo(word, scratch []byte) {
	kept := 0
	for !bytes.HasSuffix(scratch[:kept], word) {
		if kept > len(scratch)/2 {
			kept = copy(scratch, scratch[kept-len(word):kept])
		}
		n, err := c.conn.Read(scratch[kept:])
		if err != nil {
			return
		}
		kept += n
	}
}

// TestMemoryLaw: no command allocates much that is not charged.
func TestMemoryLaw(t *testing.T) {
	if locksAreTimed {
		t.Skip("the build tag checked allocates as well")
	}
	rig := newLawRig(t, startLeveled)
	scratch := make([]byte, 1<<20)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	judge := func(row *command.Command, way, pattern string, args [][]byte) {
		most := func(charged int64) int64 { return heapSlack + heapTimes*charged }
		measure := func() (allocated, charged int64) {
			rig.fill()
			return rig.allocated(way, args, scratch)
		}
		allocated, charged := measure()
		for try := 1; try < tries && allocated > most(charged); try++ {
			time.Sleep(time.Duration(try) * tryPause) // a busy machine may not look at the charge in time
			allocated, charged = measure()
		}
		if allocated > heapSlack/2 {
			t.Logf("%s: %.70s: %d allocated, %d charged", way, pattern, allocated, charged)
		}
		if allocated > most(charged) {
			t.Errorf("%s: %.70s allocates %d bytes, of which %d are charged", way, pattern, allocated, charged)
		}
	}
	for row := range rowsOfLaw() {
		inMulti := 0
		eachRequest(row, hostile[row.Name], func(way, pattern string, args [][]byte) {
			switch {
			case way == "MULTI":
				if inMulti++; inMulti == 1 { // it is like all others
					judge(row, way, pattern, args)
				}
			case way == "client":
				judge(row, way, pattern, args)
			}
		})
	}
}
