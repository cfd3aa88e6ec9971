package ring

import (
	"errors"
	"testing"
)

func TestParseDatabases(t *testing.T) {
	check := func(in string, want Databases, text string) {
		t.Helper()
		got, err := ParseDatabases(in)
		if err != nil || got != want || got.String() != text {
			t.Errorf("ParseDatabases(%q) = %#x (%q), %v, want %#x (%q)", in, got, got, err, want, text)
		}
	}
	check("", 0, "")
	check("8-15", 0xff00, "8-15")
	check("8,9,12-13", 0x3300, "8-9,12-13")
	check("3, 1 ,2", 0x000e, "1-3")
	check("15,8-9,8", 0x8300, "8-9,15")
	check("0", 1, "0")
	for _, in := range []string{"16", "x", ",", "8-", "-8", "9-8", "8-16", "8--9", "+8", "8 9"} {
		if got, err := ParseDatabases(in); err == nil {
			t.Errorf("ParseDatabases(%q) = %q, want an error", in, got)
		}
	}
	if _, err := ParsePinned("0-3"); !errors.Is(err, ErrPinsDefault) {
		t.Errorf("ParsePinned(0-3) = %v, want %v", err, ErrPinsDefault)
	}
	for s := range 1 << MaxDatabases {
		if got, err := ParseDatabases(Databases(s).String()); err != nil || got != Databases(s) {
			t.Fatalf("ParseDatabases(%q) = %q, %v", Databases(s), got, err)
		}
	}
}

func TestPlacement(t *testing.T) {
	settings, err := (*Settings)(nil).With(1, map[string]string{PinnedSetting: "3,8-15"})
	if err != nil {
		t.Fatal(err)
	}
	p := PlacementOf(settings)
	shards, nodes := map[uint16]bool{}, map[uint16]bool{}
	for d := range uint8(MaxDatabases) {
		pinned := d == 3 || d >= 8
		if p.Pins(d) != pinned || p.Pinned().Has(d) != pinned {
			t.Errorf("database %d: pinned is %t, want %t", d, p.Pins(d), pinned)
		}
		for _, key := range []string{"", "foo", "{bar}x"} {
			want, got := Slot([]byte(key)), p.SlotOf(d, []byte(key))
			if pinned {
				want = PinnedPartition(d) * slotsPerPartition
			}
			if got != want || p.PartitionOf(d, []byte(key)) != want/slotsPerPartition {
				t.Errorf("slot of %q in database %d is %d, want %d", key, d, got, want)
			}
		}
		at := PinnedPartition(d)
		if at >= Partitions || shards[at%MaxDatabases] || nodes[at*MaxDatabases/Partitions] {
			t.Errorf("database %d is pinned to partition %d, too near to another one", d, at)
		}
		shards[at%MaxDatabases], nodes[at*MaxDatabases/Partitions] = true, true
	}
	if PlacementOf(nil) != (Placement{}) {
		t.Error("the empty document pins databases")
	}
	if allocs := testing.AllocsPerRun(100, func() { p.SlotOf(8, []byte("foo")) }); allocs != 0 {
		t.Errorf("SlotOf allocates %v times", allocs)
	}
}
