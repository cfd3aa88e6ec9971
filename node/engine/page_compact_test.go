package engine

import (
	"fmt"
	"testing"
)

// TestEvacuationEnds: a page is only emptied into others if all of its records find a cell there. Here
// they are smaller than their cells. If some had to stay, two pages could be emptied into one another
// for ever, and whoever makes room would not end.
func TestEvacuationEnds(t *testing.T) {
	const (
		small  = 19 // class of the records: 20 grains
		middle = 24 // of the cells that they are in: the largest that a small record may move to
		large  = 28 // of the other free cells: a middle record may move there, a small one may not
	)
	e := open(t, Config{MaxBytes: 16 << 20, Shards: 1, Policy: NoEviction})
	s := &e.shards[0]
	sb := &s.slabs
	if !sb.near(mainCells, small, middle) || !sb.near(mainCells, middle, large) || sb.near(mainCells, small, large) {
		t.Fatal("the classes do not lie as the test needs them")
	}
	// fill writes a page of records of the class and deletes those that keep does not name.
	fill := func(class int, keep func(i int) bool) (left []string) {
		n := int(e.classes.perPage[class])
		key := func(i int) string { return fmt.Sprintf("%d:%04d", class, i) }
		value := make([]byte, e.classes.size(class)-8-len(key(0)))
		for i := range n {
			mustSet(t, e, 0, key(i), value)
		}
		for i := range n {
			if keep(i) {
				left = append(left, key(i))
			} else {
				with(e, 0, 0, func(x Txn) { x.Delete([]byte(key(i))) })
			}
		}
		return left
	}
	fill(large, func(i int) bool { return i == 0 })
	keys := fill(small, func(i int) bool { return i < 100 })
	var refs []handle
	s.eachRecord(func(ref handle) {
		if e.classes.of(e.cellLen(s.cells.header(ref))) == small {
			refs = append(refs, ref)
		}
	})
	if len(refs) != len(keys) {
		t.Fatalf("%d records are of class %d, want %d", len(refs), small, len(keys))
	}
	for _, ref := range refs {
		p, tag := s.recordTag(ref, s.cells.header(ref))
		sb.move(ref, sb.take(mainCells, middle), p, tag)
	}
	pg := sb.kinds[mainCells].classes[middle].room
	if pg == 0 {
		t.Fatal("no page has cells of the middle class")
	}
	if !sb.evacuate(pg) {
		t.Error("a page was left half empty, though there are cells for all of its records")
	}
	for _, k := range keys {
		if get(e, 0, k) == nil {
			t.Errorf("%s is gone", k)
		}
	}
	e.checkSums(t)
}
