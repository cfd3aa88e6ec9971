package node

import (
	"context"

	"github.com/dunlin-cache/dunlin/ring"
)

// Release obeys t, which takes everything from this node, and returns when the new
// owners have all that it had. Until then it must be a member of its cluster: nobody
// waits for the rest from a node that is gone. Must not be called on a loop.
func (n *Node) Release(ctx context.Context, t *ring.Table) {
	n.SetTable(t)
	if err := n.awaitHandOvers(ctx); err != nil {
		n.log.Warn("leaving before all was handed over", "error", err)
	}
}
