package proxy

import (
	"testing"

	"github.com/dunlin-cache/dunlin/ring"
)

func TestPartitionsFrom(t *testing.T) {
	for _, first := range []int{0, 1, 7, 8, 13, ring.Partitions - 1, ring.Partitions} {
		var got, want partitionSet
		got.addFrom(first)
		for p := first; p < ring.Partitions; p++ {
			want.add(p)
		}
		if got != want {
			t.Errorf("from %d: %x", first, got)
		}
	}
}
