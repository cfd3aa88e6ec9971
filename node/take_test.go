package node

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// TestReleaseWaitsForTheHandOver: a node that ends when it is released has given all
// that was written to it to the next owner, even if that hears of it only later.
func TestReleaseWaitsForTheHandOver(t *testing.T) {
	nodes, table, key := startTrio(t)
	p := partitionOf(key)
	a := dial(t, nodes[0].Addr())
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moving, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	const count = 40 // less than a log holds
	value := bytes.Repeat([]byte("v"), 32<<10)
	for i := range count {
		a.sendArgs([]byte("SET"), fmt.Appendf(nil, "{%s}%d", key, i), value)
	}
	for range count {
		if got := a.next(); got != "OK" {
			t.Fatalf("SET answers %s", got)
		}
	}
	moved := altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	begun := time.Now()
	nodes[0].Release(ctx, moved)
	t.Logf("released in %v", time.Since(begun))
	if ctx.Err() != nil {
		t.Fatal("the node was not released in time")
	}
	if err := nodes[0].Close(); err != nil {
		t.Fatal(err)
	}
	if got := nodes[1].engine.Count(p); got != count {
		t.Errorf("released, and the next owner has %d keys, want %d", got, count)
	}
}
