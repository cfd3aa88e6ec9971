package keys

import (
	"testing"

	"github.com/dunlin-cache/dunlin/ring"
)

// TestSlotTags checks that each slot has a tag.
func TestSlotTags(t *testing.T) {
	for slot, tag := range slotTags() {
		if tag[0] == 0 || int(ring.Slot(tag[:])) != slot {
			t.Fatalf("slot %d has the tag %q", slot, tag[:])
		}
	}
}

// TestSlotCursors checks that a cursor leads back to where it comes from, and that its slot is right.
func TestSlotCursors(t *testing.T) {
	for _, slot := range []int{0, 1, 4, 15495, ring.Slots - 1} {
		for _, position := range []uint64{0, 1, 1 << 39, 1<<40 - 1} {
			cursor := slotCursor(slot, position)
			got, ok := parseSlotCursor(cursor)
			if !ok || got != position || int(ring.Slot(cursor)) != slot {
				t.Errorf("%s is position %d of slot %d, %v; want %d of %d", cursor, got, ring.Slot(cursor), ok, position, slot)
			}
		}
	}
}

func BenchmarkSlotTags(b *testing.B) {
	for b.Loop() {
		makeSlotTags()
	}
}
