package shape

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// deleteRange deletes entries in runs of so many steps, and compares those that go.
func (m *treeModel) deleteRange(position, n, steps int) {
	n = min(n, len(m.want)-position)
	for n > 0 {
		at, each := position, func(x Entry) { m.compare(position, x); position++ }
		if steps%2 == 0 {
			each = nil
		}
		removed := m.t.DeleteRange(at, n, steps, each)
		if removed < 1 || removed > n || each != nil && position != at+removed {
			m.tb.Fatalf("%d of %d entries are removed, %d seen", removed, n, position-at)
		}
		position = at
		m.want = slices.Delete(m.want, at, at+removed)
		n -= removed
	}
}

// tombstones makes random changes of a ranked tree in which whole leaves go, and returns the most stale
// entries that its index had.
func (m *treeModel) tombstones(r *rand.Rand, steps int) (most int) {
	random := func() treeEntry {
		return treeEntry{uint64(r.IntN(1000)), fmt.Sprint("m:", r.IntN(1<<20)), ""}
	}
	for step := range steps {
		position := r.IntN(len(m.want) + 1)
		switch r.IntN(8) {
		case 0, 1, 2:
			for range 200 {
				m.insert(0, random())
			}
		case 3, 4:
			m.deleteRange(position, 1+r.IntN(1500), 1+r.IntN(200))
		case 5:
			for range min(50, len(m.want)) {
				m.byName(r.IntN(len(m.want)), uint64(r.IntN(1000)))
			}
		case 6:
			m.delete(position, r.IntN(200))
		case 7:
			seen := map[string]bool{}
			see := func(x Entry) { seen[string(x.First.Append(nil))] = true }
			for cursor, more := uint64(0), true; more; more = cursor != 0 {
				cursor = m.t.Scan(cursor, func(int) bool { return true }, func(Entry) int { return 1 }, see)
			}
			for _, x := range m.want {
				delete(seen, x.first)
			}
			if len(seen) > 0 {
				m.tb.Fatalf("a scan saw %d entries that are not there", len(seen))
			}
		}
		stale := m.t.state().stale()
		if most = max(most, stale); stale > 2*len(m.want)+400 {
			m.tb.Fatalf("%d entries of the index are stale beside %d", stale, len(m.want))
		}
		if step%8 == 0 {
			m.check()
		}
	}
	return most
}

// Whole leaves go from a tree, their entries of the index later, and nobody sees these.
func TestTombstones(t *testing.T) {
	for _, full := range []bool{false, true} {
		seed := rand.Uint64()
		t.Logf("seed %d, full %t", seed, full)
		e := openEngine(t, 8<<20)
		if full {
			fillEngine(t, e)
		}
		x := e.Lock(1, 1)
		m := &treeModel{tb: t, t: makeTree(t, x, "tree", 1, true)}
		if most := m.tombstones(rand.New(rand.NewPCG(seed, 1)), 200); most == 0 && !full {
			t.Error("no entry was ever stale")
		}
		m.check()
		m.deleteRange(0, len(m.want), 100)
		m.check()
		x.Unlock()
	}
}

// A window slides over ranks: the tree stays as big as it is, and so does its index.
func TestStaleEntriesAreSwept(t *testing.T) {
	x := openEngine(t, 64<<20).Lock(1, 1)
	defer x.Unlock()
	tree := makeTree(t, x, "k", 1, true)
	const size = 3000
	for i := range 10 * size {
		if _, err := tree.Insert(uint64(i), fmt.Append(nil, "m:", i), nil); err != nil {
			t.Fatal(err)
		}
		if i%size == size-1 {
			tree.DeleteRange(0, tree.Len()-size, math.MaxInt, nil)
		}
		if stale := tree.state().stale(); stale > 3*size/2 {
			t.Fatalf("%d entries of the index are stale beside %d", stale, size)
		}
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
}

// A bucket that is full of stale entries takes as many new ones.
func TestStaleEntriesCrowdNobody(t *testing.T) {
	x := openEngine(t, 64<<20).Lock(1, 1)
	defer x.Unlock()
	tree, next := makeTree(t, x, "k", 1, true), 0
	insert := func(rank uint64, name []byte) error {
		_, err := tree.Insert(rank, name, nil)
		return err
	}
	crowd := func() error { // inserts one more of those that have one bucket
		for {
			name := fmt.Append(nil, "member:", next)
			if next++; bits.TrailingZeros64(tree.V.Hash(name)) >= 8 {
				return insert(1, name)
			}
		}
	}
	const others = 4000
	for i := range others {
		if err := insert(0, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for err := crowd(); !errors.Is(err, ErrCrowded); err = crowd() {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	tree.DeleteRange(others, n, math.MaxInt, nil)
	stale := tree.state().stale()
	for i := range n {
		if err := crowd(); err != nil {
			t.Fatalf("beside %d stale entries and %d others a new one is refused: %v", stale, i, err)
		}
	}
	if stale < n/2 || tree.Len() != others+n {
		t.Errorf("%d stale entries and %d others, want %d", stale, tree.Len(), others+n)
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
}

// A reader of a pin sees leaves that go whole meanwhile, and those whose numbers others get.
func TestPinnedLeavesGoWhole(t *testing.T) {
	e := openEngine(t, 64<<20)
	x := e.Lock(1, 1)
	tree := makeTree(t, x, "k", 1, true)
	const size = 5000
	insert := func(i int) {
		if _, err := tree.Insert(uint64(i), fmt.Append(nil, "m:", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range size {
		insert(i)
	}
	pin, err := tree.V.PinValue()
	if err != nil {
		t.Fatal(err)
	}
	x.Unlock()
	old := *tree
	old.Pin = pin
	for next, round := 0, 1; next < size; round++ {
		x := e.Lock(1, 1)
		tree.DeleteRange(0, 400, math.MaxInt, nil)
		for i := range 400 {
			insert(size*round + i)
		}
		x.Unlock()
		if !pin.Lock() {
			t.Fatal("the pin has broken")
		}
		at, end := next, next+300
		next = old.Walk(next, func(x Entry) bool {
			if at == end {
				return false
			}
			if got := string(x.First.Append(nil)); got != fmt.Sprint("m:", at) || x.Rank != uint64(at) {
				t.Fatalf("entry %d is %q with rank %d", at, got, x.Rank)
			}
			at++
			return true
		})
		pin.Unlock()
	}
	pin.Release()
	x = e.Lock(1, 1)
	defer x.Unlock()
	if err := tree.Check(); err != nil || tree.state().stale() == 0 {
		t.Errorf("%d stale entries: %v", tree.state().stale(), err)
	}
}
