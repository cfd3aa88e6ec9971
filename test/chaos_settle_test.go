package test

import (
	"context"
	"fmt"
	"time"

	verbs "github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

func mustTarget(ids []string) []uint16 {
	owner, err := ring.Target(ids)
	if err != nil {
		panic(err)
	}
	return owner
}

// settleTime is for all moves to be done.
const settleTime = time.Minute

// runningNodes are the ids of the nodes that run.
func (x *chaos) runningNodes() (ids []string) {
	for _, m := range x.c.byRole("node") {
		if m.running() && !m.stopped {
			ids = append(ids, m.id)
		}
	}
	return ids
}

func (x *chaos) countViolations() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.violations)
}

// settle waits until all show one table, which is as the ring says, and all copies
// that it names are in sync. It returns how long it took until all showed one table.
func (x *chaos) settle(what string) (view time.Duration) {
	x.t.Helper()
	begin, why := time.Now(), ""
	eventually(x.t, settleTime, "all is settled, "+what, func() bool {
		epoch := uint64(0)
		if epoch, why = x.c.agreed(); why != "" {
			return false
		}
		if view == 0 {
			view = time.Since(begin)
		}
		why = x.unsettled(epoch)
		return why == ""
	}, func() string { return why }, x.shown)
	return view
}

// unsettled says what is still to be done in an epoch.
func (x *chaos) unsettled(epoch uint64) string {
	t := x.tables.ofEpoch(epoch)
	if t == nil {
		return fmt.Sprintf("the table of epoch %d was not seen", epoch)
	}
	if len(t.Moves) > 0 {
		return fmt.Sprintf("%d moves in epoch %d", len(t.Moves), epoch)
	}
	ids := x.runningNodes()
	target := mustTarget(ids)
	for p := range uint16(ring.Partitions) {
		if t.OwnerOf(p).ID != ids[target[p]] {
			return fmt.Sprintf("partition %d belongs to %s, the ring says %s", p, t.OwnerOf(p).ID, ids[target[p]])
		}
	}
	if x.copies < 2 {
		return ""
	}
	return x.outOfSync(t)
}

// outOfSync names a copy that is not in sync.
func (x *chaos) outOfSync(t *ring.Table) string {
	for _, m := range x.c.byRole("node") {
		if !m.running() || m.stopped {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		r, err := verbs.FetchReport(ctx, nil, m.addr, nil)
		cancel()
		if err != nil || r.Version != t.Version() {
			return fmt.Sprintf("%s reports %+v, not on epoch %d: %v", m.id, r, t.Epoch, err)
		}
		for p, f := range t.Follower {
			if f == ring.NoNode {
				return fmt.Sprintf("partition %d has no follower", p)
			}
			if t.Nodes[f].ID == m.id && r.Synced[p/8]&(1<<(p%8)) == 0 {
				return fmt.Sprintf("the copy of partition %d at %s is not in sync", p, m.id)
			}
		}
	}
	return ""
}
