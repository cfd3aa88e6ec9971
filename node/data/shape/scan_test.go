package shape

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// scanned is a table or a ranked tree, as tests of scans use it.
type scanned interface {
	add(tb testing.TB, names [][]byte)
	scan(cursor uint64, atLeast int) (names [][]byte, next uint64)
	Len() int
	Check() error
}

type scannedTable struct{ *Table }

func (s scannedTable) add(tb testing.TB, names [][]byte) {
	tb.Helper()
	var w Work
	for part := range slices.Chunk(names, applyAtOnce) {
		if err := s.Reserve(&w, part, false); err != nil {
			tb.Fatalf("behind %d elements: %v", s.Len(), err)
		}
		for _, name := range part {
			if _, err := s.Set(name, nil, 0); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

func (s scannedTable) scan(cursor uint64, atLeast int) (names [][]byte, next uint64) {
	next = s.Scan(cursor, func(int) bool { return len(names) >= atLeast }, keyWeight, func(e Element) {
		names = append(names, e.Key.Append(nil))
	})
	return names, next
}

func keyWeight(e Element) int { return e.Key.Size() }
func entryWeight(x Entry) int { return x.First.Size() }

type scannedTree struct{ *Tree }

func (s scannedTree) add(tb testing.TB, names [][]byte) {
	tb.Helper()
	for _, name := range names {
		if _, err := s.Insert(uint64(len(name)), name, nil); err != nil {
			tb.Fatalf("behind %d members: %v", s.Len(), err)
		}
	}
}

func (s scannedTree) scan(cursor uint64, atLeast int) (names [][]byte, next uint64) {
	next = s.Scan(cursor, func(int) bool { return len(names) >= atLeast }, entryWeight, func(x Entry) {
		names = append(names, x.First.Append(nil))
	})
	return names, next
}

// scannedKinds are the kinds of values that can be scanned.
var scannedKinds = map[string]func(t *testing.T, x engine.Txn, key string) scanned{
	"table": func(t *testing.T, x engine.Txn, key string) scanned { return scannedTable{makeTable(t, x, key, 1)} },
	"tree":  func(t *testing.T, x engine.Txn, key string) scanned { return scannedTree{makeTree(t, x, key, 1, true)} },
}

// A call passes at most scanRoom bytes of long strings, or one of them, also if they are in one block; and
// each comes once.
func TestScanOfLongStrings(t *testing.T) {
	for kind, of := range scannedKinds {
		t.Run(kind, func(t *testing.T) {
			x := openEngine(t, 64<<20).Lock(1, 1)
			defer x.Unlock()
			s, seen := of(t, x, "k"), map[string]bool{}
			for i := range 200 {
				size := []int{60_000, 20_000, 5, 300, 2000}[i%5]
				s.add(t, [][]byte{fmt.Appendf(nil, "%0*d", size, i)})
			}
			calls := 0
			for cursor := uint64(0); calls == 0 || cursor != 0; calls++ {
				var names [][]byte
				total := 0
				names, cursor = s.scan(cursor, 1000)
				for _, name := range names {
					total += len(name)
					if seen[string(name)] {
						t.Errorf("a call has returned %.9q again", name[len(name)-5:])
					}
					seen[string(name)] = true
				}
				if total > scanRoom+4096 && len(names) > 1 {
					t.Errorf("a call has returned %d bytes of %d strings", total, len(names))
				}
			}
			if len(seen) != 200 || calls > 100 {
				t.Errorf("%d elements of 200 in %d calls", len(seen), calls)
			}
		})
	}
}

// What a scan of one value finds goes into another one in that order.
func TestScanIntoAnother(t *testing.T) {
	const count = 40_000
	for kind, of := range scannedKinds {
		t.Run(kind, func(t *testing.T) {
			x := openEngine(t, 64<<20).Lock(1, 1)
			defer x.Unlock()
			from, to := of(t, x, "from"), of(t, x, "to")
			for i := range count {
				from.add(t, [][]byte{strconv.AppendInt([]byte("m"), int64(i), 36)})
			}
			for cursor, calls := uint64(0), 0; calls == 0 || cursor != 0; calls++ {
				var names [][]byte
				names, cursor = from.scan(cursor, 500)
				to.add(t, names)
			}
			if err := to.Check(); err != nil || to.Len() != count {
				t.Errorf("%d elements, error %v", to.Len(), err)
			}
			if table, ok := to.(scannedTable); ok && table.V.Count(table.Away) > 0 {
				t.Errorf("%d strings are parts of their own: blocks are crowded", table.V.Count(table.Away))
			}
		})
	}
}

// Strings whose hashes in one value end alike have hashes of all kinds in another value.
func TestOrdersOfTwoValues(t *testing.T) {
	x := openEngine(t, 64<<20).Lock(1, 1)
	defer x.Unlock()
	a, b := makeValue(t, x, "a"), makeValue(t, x, "b")
	for what, name := range map[string]func(i int) string{
		"numbers": strconv.Itoa,
		"short":   func(i int) string { return strconv.FormatInt(int64(i), 36) },
		"8 bytes": func(i int) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(i))) },
		"long":    func(i int) string { return strings.Repeat("x", 30) + strconv.Itoa(i) },
	} {
		var ends, fronts [16]int
		for i := range 1 << 16 {
			s := []byte(name(i))
			if a.Hash(s)<<56 == 0 {
				h := b.Hash(s)
				ends[h&15]++
				fronts[h>>60]++
			}
		}
		// 16 on average: 50 or more have a probability of 10⁻¹¹.
		if slices.Max(ends[:]) >= 50 || slices.Max(fronts[:]) >= 50 {
			t.Errorf("%s: %d and %d", what, ends, fronts)
		}
	}
}

// A cursor of another order begins the scan anew, so that what stayed is seen; but not for ever.
func TestScanOfAnotherOrder(t *testing.T) {
	x := openEngine(t, 64<<20).Lock(1, 1)
	defer x.Unlock()
	names := make([][]byte, 400)
	for i := range names {
		names[i] = []byte("member:" + strconv.Itoa(i))
	}
	fill := func(key string) scanned {
		x.Delete([]byte(key))
		s := scannedTable{makeTable(t, x, key, 1)}
		s.add(t, names)
		return s
	}
	s := fill("k")
	seen, cursor := s.scan(0, 300)
	if cursor == 0 || cursor >= 1<<53 {
		t.Fatalf("the cursor is %d", cursor)
	}
	s = fill("k")
	again, cursor := s.scan(cursor, 300)
	rest, end := s.scan(cursor, 300)
	if len(seen) < 300 || len(again)+len(rest) != len(names) || end != 0 {
		t.Errorf("%d elements, then %d and %d of %d; the cursor is %d", len(seen), len(again), len(rest), len(names), end)
	}
	calls := 0
	for cursor = 1; cursor != 0; calls++ {
		if calls > 1000 {
			t.Fatal("the scan does not end")
		}
		_, cursor = fill("k").scan(cursor, 1)
	}
	for _, none := range []uint64{1 << cursorBits, 1<<64 - 1} {
		if got, next := s.scan(none, 1); len(got) != 0 || next != 0 {
			t.Errorf("%d is taken for a cursor", none)
		}
	}
}

// A copy that is made part by part has the order of its original: a scan goes on in it.
func TestScanOfCopy(t *testing.T) {
	x := openEngine(t, 64<<20).Lock(1, 1)
	defer x.Unlock()
	v := makeTable(t, x, "k", 1).V
	_, like, err := x.NewAsideLike(v)
	if err != nil {
		t.Fatal(err)
	}
	name := []byte("name")
	if like.Hash(name) != v.Hash(name) || like.Incarnation() == v.Incarnation() {
		t.Error("the copy has another salt, or the same incarnation")
	}
	if other := makeTable(t, x, "other", 1).V; other.Hash(name) == v.Hash(name) {
		t.Error("two values have one hash of a name")
	}
}

// Who knows the order of a table can fill one block: further elements of that block are refused, and
// nothing else is.
func TestOneCrowdedBlock(t *testing.T) {
	x := openEngine(t, 64<<20).Lock(1, 1)
	defer x.Unlock()
	for items := 1; items <= 2; items++ {
		table := makeTable(t, x, "k", items)
		value := [][]byte{[]byte("a value of some bytes")}[:items-1]
		var w Work
		set := func(name []byte) error {
			err := table.Reserve(&w, append([][]byte{name}, value...), false)
			if err == nil {
				_, err = table.Set(name, append(value, nil)[0], 0)
			}
			return err
		}
		for i := 0; ; i++ {
			name := fmt.Append(nil, "member:", i)
			if table.V.Hash(name)&(1<<12-1) != 0 {
				continue
			}
			before := table.Len()
			err := set(name)
			if errors.Is(err, ErrCrowded) {
				if table.Len() != before || before < 150 {
					t.Errorf("%d elements, %d before the one that was refused", table.Len(), before)
				}
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		crowded := table.Len()
		var others [][]byte // of other blocks, while there are so few
		for i := range 1000 {
			if name := fmt.Append(nil, "other:", i); table.V.Hash(name)&15 != 0 {
				others = append(others, name)
			}
		}
		for _, name := range others {
			if err := set(name); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for _, name := range others {
			if !table.Delete(name) {
				t.Fatalf("%s has gone", name)
			}
		}
		if err := table.Check(); err != nil || table.Len() != crowded {
			t.Errorf("%d elements of %d, error %v", table.Len(), crowded, err)
		}
	}
}
