package broker

import (
	"testing"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestHandedByTheOwnerBefore: of a partition's channels a node has everything if the owner before
// says so, and nobody else. Without an owner before, that needs data of the first table.
func TestHandedByTheOwnerBefore(t *testing.T) {
	const anew, moved = 7, 8
	first := &ring.Table{Epoch: 1}
	first.Since[anew] = 1
	later := *first
	later.Epoch, later.Since[anew] = 2, 2
	var f Following
	v := &ownership.View{Table: first}
	want := func(p uint16, want bool) {
		t.Helper()
		if got := f.IsWhole(v, p); got != want {
			t.Errorf("partition %d of table %d is whole: %v, want %v", p, v.Table.Epoch, got, want)
		}
	}
	want(anew, true)
	v = &ownership.View{Table: &later}
	v.From[moved] = "b@1"
	want(anew, false)
	want(moved, false)
	handed := new(ring.PartitionSet)
	handed.Add(moved)
	f.Took(handed, "a@1")
	want(moved, false)
	f.Took(handed, "b@1")
	want(moved, true)
	f.forget(moved)
	want(moved, false)
}

// TestHandOverBehindAnAbsence: a node without which the cluster has gone on hands over no channels
// when it is back, and whoever follows is told of a gap. Otherwise it hands over those of the data, and
// those that it has lost unserved and has everything of.
func TestHandOverBehindAnAbsence(t *testing.T) {
	const served, whole, torn, stays = 3, 4, 5, 6
	nodes := []ring.Member{{ID: "a", Boot: 1}, {ID: "b", Boot: 2}}
	before, after := &ring.Table{Epoch: 8, Nodes: nodes}, &ring.Table{Epoch: 9, Nodes: nodes}
	old, next := &ownership.View{Table: before}, &ownership.View{Table: after, Self: 0}
	for _, p := range []uint16{served, whole, torn, stays} {
		old.Standing[p], old.From[p], old.Began[p] = ownership.Gained, "b@2", 8
		after.Owner[p] = 1
	}
	old.Standing[served] = ownership.Serving
	old.Standing[stays], next.Standing[stays], after.Owner[stays] = ownership.Serving, ownership.Serving, 0
	set := func(partitions ...uint16) (s ring.PartitionSet) {
		for _, p := range partitions {
			s.Add(p)
		}
		return s
	}
	all := Handed{Over: set(served, whole), Unserved: set(whole), Whole: set(served, whole), Gone: set(torn)}
	without := *next
	without.Self = -1
	for _, c := range []struct {
		away bool
		next *ownership.View
		want Handed
	}{
		{false, next, all},
		{true, next, Handed{Gone: set(served, whole, torn)}},
		{true, &without, all}, // it leaves
	} {
		var f Following
		f.Gained(8, 0)
		handed := set(served, whole, stays)
		f.Took(&handed, "b@2")
		if got := f.HandOver(ownership.HandOver{Old: old, Next: c.next, Away: c.away}, set(served), 0, 0); got != c.want {
			t.Errorf("away: %v, in the table: %v: it hands over %v, %v unserved, %v whole, and does not %v",
				c.away, c.next == next,
				got.Over == c.want.Over, got.Unserved == c.want.Unserved, got.Whole == c.want.Whole, got.Gone == c.want.Gone)
		}
		for _, p := range []uint16{served, whole, stays} {
			if got := f.IsWhole(old, p); got != (p == stays) {
				t.Errorf("away: %v: partition %d is whole afterwards: %v", c.away, p, got)
			}
		}
	}
}

// TestIsLate: who serves a partition by the table for which it is handed over, or by a later one, takes nothing of it.
func TestIsLate(t *testing.T) {
	v := &ownership.View{Table: &ring.Table{Epoch: 8}}
	v.Began[0], v.Began[1] = 3, 8 // 0 is served since long before the node that hands it over was told
	for _, c := range []struct {
		standing ownership.Standing
		epoch    uint64
		want     bool
	}{
		{ownership.Foreign, 8, false}, {ownership.Gained, 8, false}, {ownership.Serving, 7, true},
		{ownership.Serving, 8, true}, {ownership.Serving, 9, false},
	} {
		for p := range uint16(2) {
			v.Standing[p] = c.standing
			if got := IsLate(v, p, c.epoch); got != c.want {
				t.Errorf("standing %d in epoch 8, handed over for epoch %d: late is %v", c.standing, c.epoch, got)
			}
		}
	}
}
