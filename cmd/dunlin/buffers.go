package main

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/node"
)

// bufferLimit is the budget of a proxy's clients.
type bufferLimit struct {
	most int64
	used atomic.Int64
}

// newBufferLimit leaves the other half of the container to the rest of the
// process. Without a container the bytes are only counted.
func newBufferLimit(container int64) *bufferLimit {
	if container == 0 {
		return &bufferLimit{most: math.MaxInt64}
	}
	return &bufferLimit{most: int64(float64(container) * proxyBufferShare)}
}

// Charge takes n bytes if they are there.
func (b *bufferLimit) Charge(n int64) bool {
	if b.used.Add(n) > b.most {
		b.used.Add(-n)
		return false
	}
	return true
}

// Refund gives n bytes back.
func (b *bufferLimit) Refund(n int64) { b.used.Add(-n) }

// nodesBudget has the clients of a proxy that shares its process with nodes take
// from all of them alike, so that their limits hold for the process.
type nodesBudget struct {
	nodes []*node.Node

	mu    sync.Mutex
	total int64 // bytes taken; part says which node has how many of them
}

// Charge takes n bytes if every node has its part.
func (b *nodesBudget) Charge(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, one := range b.nodes {
		if !one.Charge(b.part(i, n)) {
			for j := range i {
				b.nodes[j].Refund(b.part(j, n))
			}
			return false
		}
	}
	b.total += n
	return true
}

// Refund gives n bytes back.
func (b *nodesBudget) Refund(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, one := range b.nodes {
		one.Refund(-b.part(i, -n))
	}
	b.total -= n
}

// part is by how much what the i-th node has changes with n bytes more.
func (b *nodesBudget) part(i int, n int64) int64 {
	share := func(total int64) int64 {
		count := int64(len(b.nodes))
		return (total + int64(i)) / count
	}
	return share(b.total+n) - share(b.total)
}
