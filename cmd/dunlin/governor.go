package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/node"
)

// governor keeps the Go runtime's limit in step with the nodes' limits, which
// CONFIG SET maxmemory changes, and with what of the heap their connections
// have, which counts towards those limits.
type governor struct {
	loops     int
	container int64 // 0: none
	byHand    bool  // GOMEMLIMIT is set: the runtime's limit is the operator's
	setLimit  func(int64)
	collect   func()
	goUse     func() int64 // bytes that the runtime has from the system

	mu      sync.Mutex
	nodes   []*node.Node
	buffers *bufferLimit // of a proxy alone in its process

	limit int64 // the runtime's, as set last
	floor int64 // goUse after the last collection that it was made for; 0: below the limit
}

// governEvery is how often the governor looks.
const governEvery = time.Second

func newGovernor(loops int, container int64) *governor {
	g := &governor{
		loops: loops, container: container, byHand: os.Getenv("GOMEMLIMIT") != "",
		setLimit: func(n int64) { debug.SetMemoryLimit(n) },
		collect:  debug.FreeOSMemory,
		goUse:    goUse,
		buffers:  newBufferLimit(container),
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	return g
}

// run governs until ctx ends.
func (g *governor) run(ctx context.Context) {
	tick := time.NewTicker(governEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.govern()
		}
	}
}

// add has a node's limit govern, too.
func (g *governor) add(n *node.Node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nodes = append(g.nodes, n)
}

// clients is the budget of a proxy alone in its process.
func (g *governor) clients() *bufferLimit { return g.buffers }

// shared is the budget of a proxy beside the nodes added so far.
func (g *governor) shared() *nodesBudget {
	g.mu.Lock()
	defer g.mu.Unlock()
	return &nodesBudget{nodes: slices.Clone(g.nodes)}
}

// govern adapts what has changed.
func (g *governor) govern() {
	g.mu.Lock()
	defer g.mu.Unlock()
	storage, counted := int64(0), int64(0)
	for _, n := range g.nodes {
		storage += n.MaxMemory()
		counted += n.HeapMemory()
	}
	if len(g.nodes) > 0 {
		share := processOverhead(storage, g.loops) / int64(len(g.nodes))
		for _, n := range g.nodes {
			n.SetOverhead(share) // else at the next look, when more may have been evicted
		}
	}
	limit := goMemory(storage) + counted + counted/4
	if len(g.nodes) == 0 {
		limit = proxyMemory(g.container, g.buffers.used.Load())
	}
	g.setRuntime(limit)
}

func proxyMemory(container, buffers int64) int64 {
	if container == 0 {
		return freeProxyMemory
	}
	return max(int64(float64(container)*proxyShare)-buffers, leastProxyMemory)
}

// setRuntime sets the runtime's limit. A heap that is idle above it is collected
// now: the runtime would wait until something is allocated.
func (g *governor) setRuntime(limit int64) {
	if g.byHand {
		return
	}
	if limit != g.limit {
		g.limit = limit
		g.setLimit(limit)
	}
	switch use := g.goUse(); {
	case use <= limit:
		g.floor = 0
	case g.floor == 0 || use > g.floor+limit/8: // else it is what cannot be collected
		g.collect()
		g.floor = g.goUse()
	}
}

// goUse is what the memory limit is about, see runtime/debug.SetMemoryLimit.
func goUse() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
