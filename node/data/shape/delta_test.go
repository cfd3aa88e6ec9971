package shape

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// elementsOf are the elements of a table, by key.
func elementsOf(t *Table) map[string]modelElement {
	all := map[string]modelElement{}
	for number := range t.V.Len(t.Blocks) {
		t.Each(number, func(e Element) {
			all[string(e.Key.Append(nil))] = modelElement{string(e.Value.Append(nil)), e.ExpireAt}
		})
	}
	return all
}

// TestDeltas changes a table at random, and applies the deltas to another one, between the pieces
// of a dump that begins somewhere on the way.
func TestDeltas(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		from, to := openEngine(t, 64<<20).Lock(1, 1), openEngine(t, 64<<20).Lock(1, 1)
		owner, copied := makeTable(t, from, "k", 2), makeTable(t, to, "k", 2)
		var w Work
		begin, place, begun, done := r.IntN(300), engine.Place{}, false, false
		for i := 0; i < 600 || !done; i++ {
			delta := changeAtRandom(t, r, owner, &w)
			if begun {
				mustApply(t, copied, delta)
			}
			if i < begin || done || r.IntN(3) == 0 {
				continue
			}
			begun = true
			var piece []byte
			piece, place, done = owner.Dump(place, nil, 100+r.IntN(5000))
			if len(piece) > 64<<10 {
				t.Fatalf("seed %d: a piece of a dump has %d bytes", seed, len(piece))
			}
			mustApply(t, copied, piece)
		}
		if want, got := elementsOf(owner), elementsOf(copied); !maps.Equal(got, want) {
			t.Fatalf("seed %d: the copy has %d elements, the table %d, or others", seed, len(got), len(want))
		}
		if err := copied.Check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		from.Unlock()
		to.Unlock()
	}
}

// changeAtRandom changes a table, and returns the delta.
func changeAtRandom(t *testing.T, r *rand.Rand, table *Table, w *Work) []byte {
	t.Helper()
	key, at := fmt.Append(nil, r.IntN(200)), table.V.Base()+1+int64(r.IntN(1000))
	if r.IntN(2) == 0 {
		at = 0
	}
	switch r.IntN(5) {
	case 0:
		table.Delete(key)
		return appendString([]byte{deltaDelete}, key)
	case 1:
		keys := [1][]byte{key}
		if err := table.ReserveTimes(w, keys[:]); err != nil {
			t.Fatal(err)
		}
		if _, err := table.SetExpireAt(key, at); err != nil {
			t.Fatal(err)
		}
		delta := appendString([]byte{deltaTime}, key)
		if at != 0 {
			return append(delta, varintOf(at-table.V.Base())...)
		}
		return append(delta, 0)
	}
	value := bytes.Repeat([]byte{'v'}, r.IntN(100))
	if r.IntN(40) == 0 {
		value = bytes.Repeat([]byte(fmt.Sprint(r.IntN(10))), r.IntN(100_000))
	}
	elements := [][]byte{key, value}
	if err := table.Reserve(w, elements, at != 0); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Set(key, value, at); err != nil {
		t.Fatal(err)
	}
	return table.appendSet(nil, key, value, at)
}

func varintOf(n int64) []byte {
	var d []byte
	for u := uint64(n)<<1 ^ uint64(n>>63); ; u >>= 7 {
		if u < 0x80 {
			return append(d, byte(u))
		}
		d = append(d, byte(u)|0x80)
	}
}

func mustApply(t *testing.T, table *Table, delta []byte) {
	t.Helper()
	if _, err := table.Apply(delta); err != nil {
		t.Fatal(err)
	}
}

// The changes of one delta are made in their order, though elements are set many at a time.
func TestDeltaOfOneElement(t *testing.T) {
	txn := openEngine(t, 16<<20).Lock(1, 1)
	defer txn.Unlock()
	table := makeTable(t, txn, "k", 2)
	set := func(value string) []byte { return table.appendSet(nil, []byte("f"), []byte(value), 0) }
	drop, until := appendString([]byte{deltaDelete}, []byte("f")), appendString([]byte{deltaTime}, []byte("f"))
	until = append(until, varintOf(500)...)
	for _, c := range []struct {
		name   string
		deltas [][]byte
		want   map[string]modelElement
	}{
		{"set, deleted", [][]byte{set("a"), drop}, map[string]modelElement{}},
		{"set, deleted, set", [][]byte{set("a"), drop, set("b")}, map[string]modelElement{"f": {"b", 0}}},
		{"set, expires", [][]byte{set("c"), until}, map[string]modelElement{"f": {"c", table.V.Base() + 500}}},
		{"expires, set", [][]byte{until, set("d")}, map[string]modelElement{"f": {"d", 0}}},
	} {
		mustApply(t, table, bytes.Join(c.deltas, nil))
		if got := elementsOf(table); !maps.Equal(got, c.want) {
			t.Errorf("%s: the table has %v, want %v", c.name, got, c.want)
		}
	}
}

// A delta of thousands of elements keeps as much scratch memory as one of applyAtOnce.
func TestDeltaOfManyElements(t *testing.T) {
	txn := openEngine(t, 16<<20).Lock(1, 1)
	defer txn.Unlock()
	table := makeTable(t, txn, "k", 2)
	var w Work
	var delta []byte
	for i := range 50 * applyAtOnce {
		delta = table.appendSet(delta, fmt.Append(nil, "field:", i), []byte("v"), 0)
	}
	if _, err := table.apply(&w, delta); err != nil {
		t.Fatal(err)
	}
	if n := table.Len(); n != 50*applyAtOnce {
		t.Errorf("the table has %d elements", n)
	}
	if cap(w.times) > 2*applyAtOnce || cap(w.args) > 4*applyAtOnce {
		t.Errorf("kept are %d times and %d arguments", cap(w.times), cap(w.args))
	}
}

// pieceOf is the delta of a piece of a long value.
func pieceOf(key string, total, offset int, bytes []byte) []byte {
	delta := appendString([]byte{deltaPiece}, []byte(key))
	delta = binary.AppendUvarint(binary.AppendUvarint(delta, uint64(total)), uint64(offset))
	return appendString(append(delta, 0), bytes)
}

// What pieces have not brought yet reads as zeros, and not as what lay in that memory before.
func TestPiecesMissing(t *testing.T) {
	txn := openEngine(t, 16<<20).Lock(1, 1)
	defer txn.Unlock()
	table := makeTable(t, txn, "k", 2)
	const total = 5 * longString
	old := bytes.Repeat([]byte("x"), total)
	mustApply(t, table, table.appendSet(nil, []byte("old"), old, 0))
	mustApply(t, table, appendString([]byte{deltaDelete}, []byte("old")))
	first := bytes.Repeat([]byte("1"), longString)
	mustApply(t, table, pieceOf("new", total, 0, first))
	e, ok := table.Get([]byte("new"))
	if !ok {
		t.Fatal("the element is not there")
	}
	want := append(bytes.Clone(first), make([]byte, total-longString)...)
	if got := e.Value.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("behind the first piece stands %.20q", got[min(longString, len(got)):])
	}
}

// A piece of a value that is no longer there, or has another length now, changes nothing.
func TestPieceOfAnotherValue(t *testing.T) {
	txn := openEngine(t, 16<<20).Lock(1, 1)
	defer txn.Unlock()
	table := makeTable(t, txn, "k", 2)
	value := string(bytes.Repeat([]byte("v"), 2*longString))
	mustApply(t, table, table.appendSet(nil, []byte("f"), []byte(value), 0))
	piece := bytes.Repeat([]byte("p"), 100)
	for _, total := range []int{2*longString + 1, 2*longString - 1, 10 * longString} {
		mustApply(t, table, pieceOf("f", total, total-100, piece))
		mustApply(t, table, pieceOf("f", total, 1, piece))
		mustApply(t, table, pieceOf("none", total, 1, piece))
	}
	if got := elementsOf(table); len(got) != 1 || got["f"].value != value {
		t.Errorf("the table has %d elements, and the value of f has changed: %t", len(got), got["f"].value != value)
	}
}

// FuzzDelta: whatever a delta has, the table stays whole, or the value is to be deleted.
func FuzzDelta(f *testing.F) {
	f.Add([]byte{deltaSet, 1, 'k', 1, 'v', deltaDelete, 1, 'k'})
	f.Add([]byte{deltaUntil, 1, 'k', 1, 'v', 8, deltaTime, 1, 'k', 0})
	f.Add(append([]byte{deltaPiece, 1, 'k', 0x80, 0x80, 2, 0, 0, 0xc8, 1}, make([]byte, 200)...))
	f.Fuzz(func(t *testing.T, delta []byte) {
		txn := openEngine(t, 16<<20).Lock(1, 1)
		defer txn.Unlock()
		table := makeTable(t, txn, "k", 2)
		_, err := table.Apply(delta)
		if err == nil || errors.Is(err, ErrMalformed) || errors.Is(err, engine.ErrMemory) {
			if err := table.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
