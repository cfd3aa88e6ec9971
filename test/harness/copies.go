package harness

import (
	"context"
	"fmt"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

// AwaitCopies waits until the cluster, which has no secret, moves nothing and has a follower in sync
// for every partition: then nothing is lost when a node dies.
func (c *Cluster) AwaitCopies(within time.Duration) {
	c.T.Helper()
	why := ""
	Eventually(c.T, within, "all copies are in sync", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		t, err := member.FetchTable(ctx, nil, c.Node(0).Addr, nil)
		if err != nil || t == nil {
			why = fmt.Sprintf("no table: %v", err)
			return false
		}
		if why = c.OutOfSync(t, nil); len(t.Moves) > 0 {
			why = fmt.Sprintf("%d partitions move", len(t.Moves))
		}
		return why == ""
	}, func() string { return why })
}

// OutOfSync returns a description of a partition whose follower is not in sync, or "". The nodes
// that run obey t.
func (c *Cluster) OutOfSync(t *ring.Table, secret []byte) string {
	for _, m := range c.ByRole("node") {
		if !m.Running() || m.Stopped {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		r, err := member.FetchReport(ctx, nil, m.Addr, secret)
		cancel()
		if err != nil || r.Version != t.Version() {
			return fmt.Sprintf("%s reports %+v, not on epoch %d: %v", m.ID, r, t.Epoch, err)
		}
		for p, f := range t.Follower {
			if f == ring.NoNode {
				return fmt.Sprintf("partition %d has no follower", p)
			}
			if t.Nodes[f].ID == m.ID && r.Synced[p/8]&(1<<(p%8)) == 0 {
				return fmt.Sprintf("the copy of partition %d at %s is not in sync", p, m.ID)
			}
		}
	}
	return ""
}
