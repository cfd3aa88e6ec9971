package main

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	laptopNodeMemory = size(1 << 30)   // node without a container limit
	localNodeMemory  = size(256 << 20) // each node of `dunlin local`

	// nodeShare is the part of a container's memory that a node's --memory
	// takes by default. The process may use 1.10 times its limit, and the Go
	// heap, thread stacks and socket buffers come on top.
	nodeShare = 0.70

	// leastGoMemory is room enough for the Go heap of any process of ours: a
	// lower limit would have the collector run for nothing.
	leastGoMemory = 192 << 20
)

func defaultNodeMemory() size {
	if limit := containerMemory(); limit > 0 {
		return size(float64(limit) * nodeShare)
	}
	return laptopNodeMemory
}

// limitGoMemory sets the runtime's soft limit, unless GOMEMLIMIT already does.
// The nodes' storage is outside the Go heap and does not count for the limit,
// so the heap may use what the container has left over, less a tenth for what
// the runtime does not see (stacks of the kernel, socket buffers). Without a
// container the limit only bounds how far garbage may pile up.
func limitGoMemory(storage int64) int64 {
	if os.Getenv("GOMEMLIMIT") != "" {
		return debug.SetMemoryLimit(-1)
	}
	limit := goMemoryLimit(containerMemory(), storage)
	debug.SetMemoryLimit(limit)
	return limit
}

func goMemoryLimit(container, storage int64) int64 {
	left := storage/8 + 1<<30
	if container > 0 {
		left = int64(float64(container)*0.9) - storage
	}
	return max(left, leastGoMemory)
}

// containerMemory returns the memory limit of this container's cgroup in
// bytes, or 0 when there is none. Inside a container its own group is mounted
// at the root, under version 2 and version 1 alike.
func containerMemory() int64 {
	for _, file := range []string{
		"/sys/fs/cgroup/memory.max",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes",
	} {
		if text, err := os.ReadFile(file); err == nil {
			return parseMemoryLimit(string(text))
		}
	}
	return 0
}

// parseMemoryLimit reads "max" and version 1's "no limit" (a number near
// 2^63) as 0.
func parseMemoryLimit(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/2 {
		return 0
	}
	return n
}
