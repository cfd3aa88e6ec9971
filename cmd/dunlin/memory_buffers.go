package main

import (
	"sync"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/node"
)

// clientBuffers is the memory budget of the clients of a proxy that is alone in its process.
type clientBuffers struct {
	most int64 // bytes
	used atomic.Int64
}

// Charge takes n bytes from the budget and reports whether they were available.
func (b *clientBuffers) Charge(n int64) bool {
	if b.used.Add(n) > b.most {
		b.used.Add(-n)
		return false
	}
	return true
}

// Refund returns n bytes to the budget.
func (b *clientBuffers) Refund(n int64) { b.used.Add(-n) }

// nodesBudget is the memory budget of the clients of a proxy that shares its process with nodes. It
// takes equal shares from all nodes, so that their limits hold for the process.
type nodesBudget struct {
	nodes []*node.Node

	mu    sync.Mutex
	total int64 // bytes taken; part determines how many of them each node gave
}

// Charge takes n bytes and reports whether every node could give its share.
func (b *nodesBudget) Charge(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, one := range b.nodes {
		if !one.Charge(b.part(i, n)) {
			for j, before := range b.nodes[:i] {
				before.Refund(b.part(j, n))
			}
			return false
		}
	}
	b.total += n
	return true
}

// Refund returns n bytes to the nodes.
func (b *nodesBudget) Refund(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, one := range b.nodes {
		one.Refund(-b.part(i, -n))
	}
	b.total -= n
}

// part returns by how much the share of the i-th node changes when the total grows by n bytes.
// Shares differ by at most one byte.
func (b *nodesBudget) part(i int, n int64) int64 {
	first, count := int64(i), int64(len(b.nodes))
	return (b.total+n+first)/count - (b.total+first)/count
}
