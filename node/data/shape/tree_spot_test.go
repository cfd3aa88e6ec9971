package shape

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"
)

// byName finds the entry at a position by its first string, and gives it another rank or removes it.
func (m *treeModel) byName(position int, rank uint64) {
	x := m.want[position]
	s, ok := m.t.lookup([]byte(x.first), x.rank, true)
	if !ok || s.Rank != x.rank || m.t.Position(s) != position {
		m.tb.Fatalf("%q with rank %d is at %d, there %t; want %d", x.first, x.rank, m.t.Position(s), ok, position)
	}
	if s, ok := m.t.Lookup([]byte(x.first)); !ok || m.want[m.t.Position(s)].first != x.first {
		m.tb.Fatalf("%q is at %d, there %t", x.first, m.t.Position(s), ok)
	}
	if _, ok := m.t.Lookup([]byte(x.first + "x")); ok != slices.ContainsFunc(m.want, func(y treeEntry) bool { return y.first == x.first+"x" }) {
		m.tb.Fatalf("%q is there: %t", x.first+"x", ok)
	}
	if m.t.Items > 1 || rank%5 == 0 {
		if !m.t.Cut(x.rank, []byte(x.first)) || m.t.Cut(x.rank, []byte(x.first)) {
			m.tb.Fatalf("%q is not removed once", x.first)
		}
		m.want = slices.Delete(m.want, position, position+1)
		return
	}
	if rank%2 == 0 {
		rank = x.rank + rank%3 - 1 // near
	}
	now := treeEntry{rank: rank, first: x.first}
	if _, there := slices.BinarySearchFunc(m.want, now, compareEntries); there || m.failed(m.t.Move(s, rank, []byte(x.first))) {
		return
	}
	m.want = slices.Delete(m.want, position, position+1)
	at, _ := slices.BinarySearchFunc(m.want, now, compareEntries)
	m.want = slices.Insert(m.want, at, now)
}

// TestIndexCrowded: a bucket that has no room for more names refuses one, and stays as it is.
func TestIndexCrowded(t *testing.T) {
	x := openEngine(t, 64<<20).Lock(1, 1)
	defer x.Unlock()
	tree := makeTree(t, x, "k", 1, true)
	for i := 0; ; i++ {
		name := fmt.Append(nil, "member:", i)
		if bits.TrailingZeros64(tree.V.Hash(name)) < 12 {
			continue
		}
		before := tree.Len()
		if _, err := tree.Insert(uint64(i), name, nil); errors.Is(err, ErrCrowded) {
			if tree.Len() != before || before < 500 {
				t.Errorf("%d members, %d before the one that was refused", tree.Len(), before)
			}
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
}
