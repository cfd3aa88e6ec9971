package shape

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

const (
	testLeaves = 0
	testNodes  = 1
	testIndex  = 2
)

func makeTree(tb testing.TB, t engine.Txn, key string, items int, ranked bool) *Tree {
	tb.Helper()
	return &Tree{V: makeValue(tb, t, key), Leaves: testLeaves, Nodes: testNodes, Index: testIndex, Away: testAway, Own: TableOwn, Items: items, Ranked: ranked}
}

// treeModel runs the same operations on a tree and on a slice.
type treeModel struct {
	tb     testing.TB
	t      *Tree
	want   []treeEntry
	w      Work
	height int // the most it was
	full   int // changes without memory
}

type treeEntry struct {
	rank          uint64
	first, second string
}

func compareEntries(a, b treeEntry) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.first, b.first))
}

func (m *treeModel) failed(err error) bool {
	if err != nil && !errors.Is(err, engine.ErrMemory) {
		m.tb.Fatal(err)
	}
	if err != nil {
		m.full++
	}
	return err != nil
}

func (m *treeModel) insert(position int, x treeEntry) {
	second := []byte(nil)
	if m.t.Items > 1 {
		second = []byte(x.second)
	} else {
		x.second = ""
	}
	if !m.t.Ranked {
		position %= len(m.want) + 1
		x.rank = 0
		if !m.failed(m.t.InsertAt(position, []byte(x.first), second)) {
			m.want = slices.Insert(m.want, position, x)
		}
		return
	}
	at, there := slices.BinarySearchFunc(m.want, x, compareEntries)
	added, err := m.t.Insert(x.rank, []byte(x.first), second)
	if m.failed(err) {
		return
	}
	if got, found := m.t.Find(x.rank, []byte(x.first)); got != at || !found || added == there {
		m.tb.Fatalf("%d, %q at position %d, added %t; want %d, there %t", x.rank, x.first, got, added, at, there)
	}
	if added {
		m.want = slices.Insert(m.want, at, x)
	}
}

// insertMany inserts entries; in a tree without ranks, after memory was reserved for all of them.
func (m *treeModel) insertMany(position int, xs []treeEntry) {
	position = position % (len(m.want) + 1)
	if m.t.Ranked {
		for _, x := range xs {
			m.insert(0, x)
		}
		return
	}
	var all [][]byte
	for _, x := range xs {
		all = append(all, []byte(x.first))
		if m.t.Items > 1 {
			all = append(all, []byte(x.second))
		}
	}
	if m.failed(m.t.ReserveAt(&m.w, position, all)) {
		return
	}
	full := m.full
	for _, x := range xs {
		m.insert(position, x)
	}
	if m.full != full {
		m.tb.Fatal("there was no memory for reserved entries")
	}
	m.t.Settle()
}

func (m *treeModel) delete(position, n int) {
	for n > 0 {
		got := m.t.DeleteSome(position, n)
		if want := min(n, len(m.want)-position); got < min(1, want) || got > want {
			m.tb.Fatalf("%d entries removed of %d", got, want)
		}
		if got == 0 {
			return
		}
		m.want = slices.Delete(m.want, position, position+got)
		n -= got
	}
}

func (m *treeModel) compare(position int, x Entry) {
	want := m.want[position]
	second := ""
	if m.t.Items > 1 {
		second = string(x.Second.Append(nil))
	}
	if x.Rank != want.rank || string(x.First.Append(nil)) != want.first || second != want.second {
		m.tb.Fatalf("entry %d: %d, %q, %q; want %+v", position, x.Rank, x.First.Append(nil), second, want)
	}
}

func (m *treeModel) step(op byte, a, b uint32) {
	x := treeEntry{uint64(a >> 4 % 7), string(modelString(a)), string(modelString(b))}
	if a%3 == 0 {
		x.rank = uint64(b)
	}
	position := 0
	if len(m.want) > 0 {
		position = int(b>>3) % len(m.want)
	}
	switch {
	case op < 100:
		m.insert(int(b>>3), x)
	case op < 120:
		var xs []treeEntry
		for i := range 5 + a>>8%60 {
			x.first, x.rank = string(modelString(a+i)), x.rank+uint64(i*(b%5))
			xs = append(xs, x)
		}
		if b%4 > 1 {
			position = len(m.want) * int(b%2)
		}
		m.insertMany(position, xs)
	case op < 180:
		m.delete(position, 1)
	case op < 184:
		m.delete(position, int(a%300))
	case op < 200 && len(m.want) > 0 && (!m.t.Ranked || m.t.Items > 1):
		i := m.t.Items - 1
		if !m.failed(m.t.Replace(position, i, []byte(x.second))) {
			*[]*string{&m.want[position].first, &m.want[position].second}[i] = x.second
		}
	case op < 220 && len(m.want) > 0:
		m.compare(position, m.t.At(position))
	case op < 226 && m.t.Ranked && len(m.want) > 0:
		m.byName(position, x.rank)
	case op < 235 && m.t.Ranked:
		at, there := slices.BinarySearchFunc(m.want, x, compareEntries)
		if got, found := m.t.Find(x.rank, []byte(x.first)); got != at || found != there {
			m.tb.Fatalf("%d, %q is at %d, %t; want %d, %t", x.rank, x.first, got, found, at, there)
		}
	case op < 245:
		at, left := position, int(a%200)
		next := m.t.Walk(position, func(x Entry) bool {
			if left--; left < 0 {
				return false
			}
			m.compare(at, x)
			at++
			return true
		})
		if want := min(len(m.want), position+int(a%200)); at != want || next != want {
			m.tb.Fatalf("a walk has ended at %d, %d; want %d", at, next, want)
		}
	case op < 250:
		at, left := position, int(a%200)
		next := m.t.WalkBack(position, func(x Entry) bool {
			if left--; left < 0 {
				return false
			}
			at--
			m.compare(at, x)
			return true
		})
		if want := max(0, position-int(a%200)); at != want || next != want {
			m.tb.Fatalf("a walk back has ended at %d, %d; want %d", at, next, want)
		}
	case op == 250:
		m.check()
	case op == 251 && b%8 == 0:
		m.delete(0, len(m.want)-3)
	}
	m.height = max(m.height, m.t.state().height())
}

func (m *treeModel) check() {
	if err := m.t.Check(); err != nil {
		m.tb.Fatal(err)
	}
	at := 0
	m.t.Walk(0, func(x Entry) bool {
		m.compare(at, x)
		at++
		return true
	})
	if at != len(m.want) || m.t.Len() != len(m.want) {
		m.tb.Fatalf("%d entries, counted %d, want %d", at, m.t.Len(), len(m.want))
	}
}

func runTree(tb testing.TB, items int, ranked, full bool, ops func() (op byte, a, b uint32, ok bool)) *treeModel {
	e := openEngine(tb, 4<<20)
	if full {
		fillEngine(tb, e)
	}
	t := e.Lock(1, 1)
	defer t.Unlock()
	m := &treeModel{tb: tb, t: makeTree(tb, t, "tree", items, ranked)}
	for {
		op, a, b, ok := ops()
		if !ok {
			break
		}
		m.step(op, a, b)
	}
	m.check()
	m.delete(0, len(m.want))
	m.check()
	if v := m.t.V; v.Count(testLeaves)+v.Count(testNodes)+v.Count(testAway) != 0 {
		tb.Errorf("an empty tree has %d leaves, %d nodes, %d strings in parts", v.Count(testLeaves), v.Count(testNodes), v.Count(testAway))
	}
	return m
}

func TestTreeModel(t *testing.T) {
	for _, full := range []bool{false, true} {
		for form := range 4 {
			seed, steps := rand.Uint64(), 6_000
			r := rand.New(rand.NewPCG(seed, 1))
			m := runTree(t, 1+form%2, form >= 2, full, func() (byte, uint32, uint32, bool) {
				steps--
				return byte(r.Uint32()), r.Uint32(), r.Uint32(), steps > 0
			})
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
			if m.height == 0 && !full {
				t.Error("the tree had one leaf at most")
			}
			if full && m.full == 0 {
				t.Error("there was always memory")
			}
		}
	}
}

func FuzzTree(f *testing.F) {
	f.Add(byte(0), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 150, 1, 2, 3, 4, 5, 6, 7, 8, 250, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, form byte, ops []byte) {
		ops = ops[:min(len(ops), 9*2000)]
		runTree(t, 1+int(form&1), form&2 != 0, form&4 != 0, func() (op byte, a, b uint32, ok bool) {
			if len(ops) < 9 {
				return 0, 0, 0, false
			}
			op, a, b = ops[0], binary.LittleEndian.Uint32(ops[1:]), binary.LittleEndian.Uint32(ops[5:])
			ops = ops[9:]
			return op, a, b, true
		})
	})
}

// A tree of several levels grows, and is emptied from its middle.
func TestTreeOfManyLevels(t *testing.T) {
	for _, ranked := range []bool{false, true} {
		manyLevels(t, ranked)
	}
}

func manyLevels(t *testing.T, ranked bool) {
	e := openEngine(t, 256<<20)
	x := e.Lock(1, 1)
	defer x.Unlock()
	tree, n := makeTree(t, x, "tree", 1, ranked), 40_000
	long := modelBytes(7, 180)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		var err error
		if ranked {
			_, err = tree.Insert(uint64(r.Uint32()>>8%64), fmt.Append(long[:len(long):len(long)], i), nil)
		} else {
			err = tree.InsertAt(r.IntN(i+1), fmt.Append(long[:len(long):len(long)], i), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if height := tree.state().height(); height < 2 {
		t.Errorf("a tree of %d entries has height %d", n, height)
	}
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
	for tree.Len() > 0 {
		tree.DeleteSome(tree.Len()/2, 1+r.IntN(50))
		if r.IntN(500) == 0 {
			if err := tree.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tree.Check(); err != nil || tree.V.Count(testNodes) != 0 {
		t.Errorf("%d nodes are left: %v", tree.V.Count(testNodes), err)
	}
}
