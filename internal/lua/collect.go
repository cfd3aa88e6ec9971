package lua

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"
)

// Go's collector is paced by allocations, but none of them waits for it: a script that makes strings of 30 MB and
// forgets them would have several at a time before the first is free, far above the memory limit of the runtime. So
// a script collects before an allocation that is large, if there is no room for that below the limit.
const (
	// largeAllocation is from how many bytes on an allocation is large.
	largeAllocation = 256 << 10
	// leastGarbage, and a garbageShare of the objects, is by how much these must have grown since the last such collection,
	// which takes the longer the more of them there are.
	leastGarbage, garbageShare = 4 << 20, 16
)

// collected is how many bytes of objects there were behind the last collection here.
var collected atomic.Int64

// collectFor makes room for n bytes, if that is possible: it takes some milliseconds.
func collectFor(n int) {
	used, objects, limit := runtimeUse()
	last := collected.Load()
	if objects < last {
		last = 0 // the runtime has collected meanwhile
	}
	if used+int64(n) <= limit || objects < last+max(leastGarbage, last/garbageShare) {
		return
	}
	runtime.GC()
	_, objects, _ = runtimeUse()
	collected.Store(objects)
}

// runtimeUse returns how many bytes the runtime uses, those of objects among them, and its memory limit.
func runtimeUse() (used, objects, limit int64) {
	samples := [...]metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/gomemlimit:bytes"},
	}
	metrics.Read(samples[:])
	at := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	return at(0) - at(1) - at(2), at(3), at(4)
}
