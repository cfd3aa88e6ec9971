package main

import (
	"fmt"
	"math"
	"os"

	"github.com/dunlin-cache/dunlin/metrics/status"
	"github.com/dunlin-cache/dunlin/node"
)

// How the memory of a process is divided. --memory is the limit of all that a
// node has: values, index, bookkeeping and connections, which the engine counts,
// and what the process itself takes:
//
//	container  ├──────────────────── 100 % ────────────────────────────┤
//	--memory   ├─── 75 % ───────────────────────────┤ sockets' buffers in
//	resident   ├─── at most 1.10 x --memory ────────────┤   the kernel …
//	           │ values, index, buffers │ overhead  │ 10 %│
//	                                    └─ process ──────┘
//
// A tenth above the limit is the process's. What it needs beyond that is
// overhead, and so counts towards the limit: with small limits only.

const (
	laptopNodeMemory = size(1 << 30)   // node without a container limit
	localNodeMemory  = size(256 << 20) // each node of `dunlin local`

	// nodeShare is the part of a container's memory that a node's --memory
	// takes by default.
	nodeShare = 0.75
	// beyond is how much more than all limits together may be resident: a tenth.
	beyond = 10

	// binaryMemory is the resident part of the program (measured: 15 MiB).
	binaryMemory = 16 << 20
	// loopMemory is what an event loop keeps: free buffers, scratch space, its stack.
	loopMemory = 5 << 20

	// The Go heap gets a share of all limits together, at least what gossip, metrics
	// and tables need (measured: 4 MiB in use at rest, 13 MiB mapped under load with
	// a scrape every half second), and not more than is of use.
	goShare       = 16
	leastGoMemory = 24 << 20
	mostGoMemory  = 256 << 20

	// gcPercent lets a heap of a few MiB grow to the least share between two
	// collections. Above that, the limit decides.
	gcPercent = 400

	// A proxy's clients may have half of its container in buffers. Its heap has the
	// rest, less a tenth for what the runtime does not see.
	proxyBufferShare = 0.5
	proxyShare       = 0.9
	leastProxyHeap   = 64 << 20
	freeProxyHeap    = 1 << 30 // without a container: only bounds how far garbage piles up
)

func defaultNodeMemory() size {
	if limit := containerMemory(os.DirFS("/")); limit > 0 {
		return size(float64(limit) * nodeShare)
	}
	return laptopNodeMemory
}

// proxyBuffers returns what the clients of a proxy alone in its process may take for buffers.
// Without a container the bytes are only counted.
func proxyBuffers(container int64) int64 {
	if container == 0 {
		return math.MaxInt64
	}
	return int64(float64(container) * proxyBufferShare)
}

// proxyHeap returns what the Go heap of such a proxy may take while clients use buffers bytes.
func proxyHeap(container, buffers int64) int64 {
	if container == 0 {
		return freeProxyHeap
	}
	return max(int64(float64(container)*proxyShare)-buffers, leastProxyHeap)
}

// goMemory returns what the Go heap may take in a process whose nodes' limits add up to storage.
func goMemory(storage int64) int64 { return min(max(storage/goShare, leastGoMemory), mostGoMemory) }

// processOverhead returns how much of storage the process takes for itself.
func processOverhead(storage int64, loops int) int64 {
	return max(0, binaryMemory+goMemory(storage)+int64(loops)*loopMemory-storage/beyond)
}

// nodeOverhead returns the part of that which counts towards the limit of each node.
func nodeOverhead(storage int64, loops, nodes int) int64 {
	return processOverhead(storage, loops) / int64(nodes)
}

// checkMemory refuses a limit in which a node could not be run, and names the
// smallest that works, to the MiB.
func (o *options) checkMemory(nodes, loops int) error {
	if nodes == 0 {
		return nil
	}
	fits := func(memory size) bool {
		storage := int64(memory) * int64(nodes)
		return node.FitsMemory(int64(memory), nodeOverhead(storage, loops, nodes), loops)
	}
	if fits(o.memory) {
		return nil
	}
	const step = size(1 << 20)
	smallest := (o.memory + step - 1) / step * step
	for !fits(smallest) {
		smallest += step
	}
	return fmt.Errorf("--memory %s is too small with %s: the smallest that works is %s",
		o.memory.String(), plural(loops, "event loop", "event loops"), smallest.String())
}

// warnMemory logs when the limits cannot be kept in this container: the system
// would end the process before it evicts anything.
func (p *process) warnMemory(storage, container int64) {
	if most := storage + storage/beyond; container > 0 && most > container {
		p.log.Warn("--memory does not fit into this container, which ends the process when it is full",
			"memory", status.BytesText(storage), "resident_at_most", status.BytesText(most), "container", status.BytesText(container),
			"advice", "give at most three quarters of the container")
	}
}
