package ring

import "testing"

func TestPartitionSet(t *testing.T) {
	for _, first := range []int{0, 1, 7, 8, 13, Partitions - 1, Partitions, Partitions + 8} {
		var got, want PartitionSet
		got.AddFrom(first)
		for p := first; p < Partitions; p++ {
			want.Add(uint16(p))
		}
		if got != want {
			t.Errorf("from %d: %x", first, got)
		}
	}
	all := AllPartitions()
	var some PartitionSet
	for _, p := range []uint16{0, 7, 8, 4095} {
		some.Add(p)
	}
	if got := all.Intersect(&some); got != some {
		t.Errorf("a part of the whole is %x, want %x", got, some)
	}
	rest := all
	rest.RemoveAll(&some)
	if rest.Has(7) || !rest.Has(9) || rest.Empty() {
		t.Errorf("the rest is %x", rest)
	}
	rest.AddAll(&some)
	if rest != all {
		t.Errorf("the rest and the part are %x", rest)
	}
	some.Remove(0)
	some.Remove(7)
	some.Remove(8)
	some.Remove(4095)
	if !some.Empty() {
		t.Errorf("what is left of nothing is %x", some)
	}
	if got, ok := DecodePartitionSet(all[:]); !ok || *got != all {
		t.Error("a set does not survive its encoding")
	}
	if _, ok := DecodePartitionSet(all[1:]); ok {
		t.Error("a set of 511 bytes was taken")
	}
}
