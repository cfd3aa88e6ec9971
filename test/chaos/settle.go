package chaos

import (
	"cmp"
	"fmt"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// MustTarget returns the target: the owner of each partition, as an index into ids.
func MustTarget(ids []string) []uint16 {
	owner, err := ring.Target(ids)
	if err != nil {
		panic(err)
	}
	return owner
}

// SettleTime is how long the cluster may take until all moves are done.
const SettleTime = time.Minute

// RunningNodes returns the ids of the nodes that run and are not stopped.
func (x *Rig) RunningNodes() (ids []string) {
	for _, m := range x.C.ByRole("node") {
		if m.Running() && !m.Stopped {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// CountViolations returns how many violations were noted so far.
func (x *Rig) CountViolations() int {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	return len(x.violations)
}

// Settle waits until all members show one table that equals the target, and until all copies that
// the table names are in sync. It returns how long it took until all members showed one table.
func (x *Rig) Settle(what string) (view time.Duration) {
	x.T.Helper()
	begin, why := time.Now(), ""
	harness.Eventually(x.T, cmp.Or(x.Within, SettleTime), "all is settled, "+what, func() bool {
		epoch := uint64(0)
		if epoch, why = x.C.Agreed(); why != "" {
			return false
		}
		if view == 0 {
			view = time.Since(begin)
		}
		why = x.unsettled(epoch)
		return why == ""
	}, func() string { return why }, x.Shown)
	return view
}

// unsettled returns what is missing in an epoch, or "".
func (x *Rig) unsettled(epoch uint64) string {
	t := x.Tables.ofEpoch(epoch)
	if t == nil {
		return fmt.Sprintf("the table of epoch %d was not seen", epoch)
	}
	if why := x.offTarget(t); why != "" {
		return why
	}
	if x.Copies < 2 {
		return sheltered(t)
	}
	return x.C.OutOfSync(t, []byte(x.Secret))
}

// offTarget returns what the running nodes still have to move, or "".
func (x *Rig) offTarget(t *ring.Table) string {
	if len(t.Moves) > 0 {
		return fmt.Sprintf("%d moves in epoch %d", len(t.Moves), t.Epoch)
	}
	ids := x.RunningNodes()
	if len(ids) == 0 {
		return "no node runs"
	}
	target := MustTarget(ids)
	for p := range uint16(ring.Partitions) {
		if t.OwnerOf(p).ID != ids[target[p]] {
			return fmt.Sprintf("partition %d belongs to %s, the target is %s", p, t.OwnerOf(p).ID, ids[target[p]])
		}
	}
	return ""
}

// sheltered returns a description of a partition with one copy whose owner before still keeps its data, or "".
// The table that follows says that it does not.
func sheltered(t *ring.Table) string {
	for p, f := range t.Follower {
		if f != ring.NoNode {
			return fmt.Sprintf("%s still keeps partition %d, which it had before", t.Nodes[f].ID, p)
		}
	}
	return ""
}
