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
