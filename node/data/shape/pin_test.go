package shape

import (
	"fmt"
	"testing"
)

// A reader of a pin sees table and tree as they were when the value was pinned, in slices, whatever
// is changed meanwhile.
func TestPinned(t *testing.T) {
	e := openEngine(t, 64<<20)
	x := e.Lock(1, 1)
	v, w := makeValue(t, x, "both"), Work{}
	table := &Table{V: v, Blocks: testBlocks, Away: testAway, Items: 1, Now: 1}
	tree := &Tree{V: v, Leaves: testLeaves, Nodes: testNodes, Away: testAway, Own: TableOwn, Items: 1}
	const n = 20_000
	name := func(i int) []byte {
		if i%1000 == 0 {
			return fmt.Append(modelBytes(1, 1500), i)
		}
		return fmt.Append(nil, "element:", i)
	}
	add := func(i int) {
		if err := table.Reserve(&w, [][]byte{name(i)}, false); err != nil {
			t.Fatal(err)
		}
		if _, err := table.Set(name(i), nil, 0); err != nil {
			t.Fatal(err)
		}
		if err := tree.InsertAt(tree.Len(), name(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		add(i)
	}
	pin, err := v.PinValue()
	if err != nil {
		t.Fatal(err)
	}
	x.Unlock()
	next, changed := 0, 0
	slice := func(read func()) {
		x := e.Lock(1, 1)
		for range 400 {
			if changed < n {
				table.Delete(name(changed))
				tree.Delete(tree.Len() / 2)
			} else {
				add(changed)
			}
			changed++
		}
		x.Unlock()
		if !pin.Lock() {
			t.Fatal("the pin has broken")
		}
		read()
		pin.Unlock()
	}
	oldTree := *tree
	oldTree.Pin = pin
	for next < n {
		slice(func() {
			left := 500
			next = oldTree.Walk(next, func(x Entry) bool {
				if left--; left < 0 {
					return false
				}
				if got := string(x.First.Append(nil)); got != string(name(next+499-left)) {
					t.Fatalf("entry %d is %q", next+499-left, got)
				}
				return true
			})
		})
	}
	oldTable, seen := *table, map[string]bool{}
	oldTable.Pin = pin
	for number, blocks := 0, 1; number < blocks; {
		slice(func() {
			blocks = pin.Len(testBlocks)
			for range min(50, blocks-number) {
				oldTable.Each(number, func(e Element) { seen[string(e.Key.Append(nil))] = true })
				number++
			}
		})
	}
	pin.Release()
	for i := range n {
		if !seen[string(name(i))] {
			t.Fatalf("element %d was not seen", i)
		}
	}
	if len(seen) != n || oldTable.Len() != n || oldTree.Len() != n {
		t.Errorf("%d elements were seen, %d are counted", len(seen), oldTable.Len())
	}
}
