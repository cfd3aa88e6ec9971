package main

import (
	"fmt"
	"os"

	"github.com/dunlin-cache/dunlin/metrics/status"
	"github.com/dunlin-cache/dunlin/node"
)

// This file divides the memory of a process. --memory limits all that a node uses: values, index,
// bookkeeping and connections, which the engine counts, and what the process itself needs:
//
//	container  ├──────────────────── 100 % ────────────────────────────┤
//	--memory   ├─── 75 % ───────────────────────────┤ sockets' buffers in
//	resident   ├─── at most 1.10 x --memory ────────────┤   the kernel …
//	           │ values, index, buffers │ overhead  │ 10 %│
//	                                    └─ process ──────┘
//
// The process may use a tenth beyond the limit. If it needs more, the rest is overhead and counts
// towards the limit. Only processes with small limits have overhead.

const (
	laptopNodeMemory = size(1 << 30)   // node without a container limit
	localNodeMemory  = size(256 << 20) // each node of `dunlin local`

	// nodeShare is the default of --memory, as a share of the container's memory.
	nodeShare = 0.75
	// beyond is how much memory beyond all limits together may be resident: one tenth.
	beyond = 10

	// binaryMemory is about the resident part of the program's file once the process has forgotten
	// what only the start needs, see mapping.ForgetProgram. Measured at rest: 8 MiB; with a load,
	// scrapes and collections: 13 to 15; in a second of all that clients can do at once 17.3, see
	// watchProgram. What is above 15 covers moments in which the Go heap has more than its limit.
	binaryMemory = 15<<20 + 768<<10
	// loopMemory is what an event loop has beside its free buffers: scratch space, its stack.
	loopMemory = 1 << 20
	// A loop keeps free buffers: at most mostKept, or a part of the limits in which there are
	// keptShare for all loops.
	mostKept  = 4 << 20
	keptShare = 128

	// The Go heap gets a share of all limits together. It gets at least what gossip, metrics and
	// tables need, for the first node and for each other one, and no more than it can use. One node
	// has 2 MiB in use at rest, and the runtime counts 6 MiB beside the heap. A process that needs more
	// gets more, of its nodes' limits: see heapUse.
	goShare       = 16
	leastGoMemory = 14 << 20
	moreGoMemory  = 5 << 20
	mostGoMemory  = 256 << 20
	// untouched is what the runtime counts in every process and never touches: a process of which
	// it counted 12 MiB had 9 MiB of anonymous memory in all.
	untouched = 3 << 20

	// gcPercent lets a heap of a few MiB grow to the least share between two collections. A larger
	// heap is governed by the limit.
	gcPercent = 400

	// A proxy's clients may use half of its memory for buffers. The heap gets the rest, less a
	// tenth for what the runtime does not count.
	proxyBufferShare = 0.5
	proxyShare       = 0.9
	leastProxyHeap   = 64 << 20

	// Without a container, a proxy has a share of the machine's memory, as much as a node has on a
	// machine of which nothing is known.
	machineShare = 0.25
	laptopMemory = 4 << 30
)

func defaultNodeMemory() size {
	if limit := containerMemory(os.DirFS("/")); limit > 0 {
		return size(float64(limit) * nodeShare)
	}
	return laptopNodeMemory
}

// proxyMemory returns how many bytes a proxy that is alone in its process may use: its container's
// or, without one, a share of the machine's. 0 stands for unknown.
func proxyMemory(container, machine int64) int64 {
	if machine == 0 {
		machine = laptopMemory
	}
	if container == 0 {
		return int64(float64(machine) * machineShare)
	}
	return container
}

// proxyBuffers returns how many of those bytes the buffers of its clients may take.
func proxyBuffers(memory int64) int64 { return int64(float64(memory) * proxyBufferShare) }

// proxyHeap returns the limit of the Go heap of such a proxy while its clients use buffers bytes
// outside of it.
func proxyHeap(memory, buffers int64) int64 {
	return max(int64(float64(memory)*proxyShare)-buffers, leastProxyHeap)
}

// goMemory returns the limit of the Go heap in a process whose nodes' limits add up to storage.
func goMemory(storage int64, nodes int) int64 {
	least := leastGoMemory + int64(nodes-1)*moreGoMemory
	return min(max(storage/goShare, least), mostGoMemory)
}

// keptBuffers returns how many bytes of free buffers each loop keeps, in a proxy too.
func keptBuffers(storage int64, loops int) int64 {
	if storage == 0 {
		return mostKept
	}
	return min(mostKept, storage/keptShare/int64(loops))
}

// processMemory returns how many bytes the process needs beside what its nodes count. Each loop keeps
// kept bytes of free buffers.
func processMemory(storage, kept int64, loops, nodes int) int64 {
	loop := loopMemory + kept
	return binaryMemory + goMemory(storage, nodes) - untouched + int64(loops)*loop
}

// nodeOverhead returns the part of processMemory that counts towards the limit of each node.
func nodeOverhead(storage, kept int64, loops, nodes int) int64 {
	return overheadOf(processMemory(storage, kept, loops, nodes), storage, nodes)
}

// overheadOf returns the part of what a process needs that counts towards the limit of each node.
func overheadOf(process, storage int64, nodes int) int64 {
	return max(0, process-storage/beyond) / int64(nodes)
}

// checkMemory refuses a limit that is too small to run a node. The error names the smallest limit
// that works, rounded up to a MiB.
func (o *options) checkMemory(nodes, loops int) error {
	if nodes == 0 {
		return nil
	}
	fits := func(memory size) bool {
		storage := int64(memory) * int64(nodes)
		return node.FitsMemory(int64(memory), nodeOverhead(storage, keptBuffers(storage, loops), loops, nodes), loops)
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

// warnMemory logs a warning if the limits do not fit into this container: the system would kill the
// process before it evicts anything.
func (p *process) warnMemory(storage, container int64) {
	if most := storage + storage/beyond; container > 0 && most > container {
		p.log.Warn("--memory is too large for this container, which kills the process when its memory is full",
			"memory", status.BytesText(storage), "resident_at_most", status.BytesText(most), "container", status.BytesText(container),
			"advice", "give at most three quarters of the container")
	}
}
