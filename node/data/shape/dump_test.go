package shape

import (
	"math/bits"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// TestDumpOfEqualHashes holds a snapshot to the long elements that have one hash, as a cursor has
// it: in a table of 100,000 long elements there are some, mostly.
func TestDumpOfEqualHashes(t *testing.T) {
	e := openEngine(t, 64<<20)
	txn := e.Lock(1, 1)
	defer txn.Unlock()
	from, to := makeTable(t, txn, "from", 2), makeTable(t, txn, "to", 2)
	seen, twins := map[uint32]string{}, []string(nil)
	for i := 0; len(twins) == 0; i++ {
		key := "field:" + strconv.Itoa(i)
		h := bits.Reverse32(uint32(from.V.Hash([]byte(key))))
		if other := seen[h]; other != "" {
			twins = []string{other, key}
		}
		seen[h] = key
	}
	m := tableModel{tb: t, t: from, want: map[string]modelElement{}}
	for _, lengths := range [][2]int{{2000, 3000}, {2000, 3 * longString}, {5*longString + 7, 2 * longString}} {
		want := map[string]string{}
		for i, key := range twins {
			want[key] = strings.Repeat(strconv.Itoa(i+1), lengths[i])
			m.set([][]byte{[]byte(key), []byte(want[key])}, 0)
			to.Delete([]byte(key))
		}
		for place, done := (engine.Place{}), false; !done; {
			var delta []byte
			if delta, place, done = from.Dump(place, nil, longString); len(delta) > 4*longString {
				t.Fatalf("a delta has %d bytes", len(delta))
			}
			if _, err := to.Apply(delta); err != nil {
				t.Fatal(err)
			}
		}
		for key, value := range want {
			if e, ok := to.Get([]byte(key)); !ok || string(e.Value.Append(nil)) != value {
				t.Errorf("lengths %v: %s has not come whole: found %v", lengths, key, ok)
			}
		}
	}
}

// A dump that was in the middle of a long value goes on with the whole of the next one, if the first is
// gone meanwhile.
func TestDumpOfTheNextLongElement(t *testing.T) {
	e := openEngine(t, 64<<20)
	txn := e.Lock(1, 1)
	defer txn.Unlock()
	from, to := makeTable(t, txn, "from", 2), makeTable(t, txn, "to", 2)
	m := tableModel{tb: t, t: from, want: map[string]modelElement{}}
	values := map[string]string{}
	for _, key := range []string{"a", "b", "c"} { // in one block
		values[key] = strings.Repeat(key, 5*longString+1)
		m.set([][]byte{[]byte(key), []byte(values[key])}, 0)
	}
	first := ""
	for place, done := (engine.Place{}), false; !done; {
		var delta []byte
		delta, place, done = from.Dump(place, nil, longString)
		mustApply(t, to, delta)
		for key := range values {
			if _, begun := to.Get([]byte(key)); begun && first == "" {
				first = key
				from.Delete([]byte(key))
				mustApply(t, to, appendString([]byte{deltaDelete}, []byte(key)))
			}
		}
	}
	delete(values, first)
	for key, value := range values {
		if e, ok := to.Get([]byte(key)); !ok || string(e.Value.Append(nil)) != value {
			t.Errorf("%s has not come whole: found %v", key, ok)
		}
	}
}

// A dump of many elements makes a table elsewhere, though a table grows only as fast as elements come;
// also if the table changes its size meanwhile.
func TestDumpOfManyElements(t *testing.T) {
	for _, length := range []int{0, 100} {
		for _, change := range []int{0, 1, -1} {
			from, to := openEngine(t, 64<<20).Lock(1, 1), openEngine(t, 64<<20).Lock(1, 1)
			owner, copied := makeTable(t, from, "k", 2), makeTable(t, to, "k", 2)
			var w Work
			key := func(i int) []byte { return []byte("field:" + strconv.Itoa(i)) }
			n := 20_000
			set := func(i int) {
				value := []byte(strings.Repeat("v", length))
				if err := owner.Reserve(&w, [][]byte{key(i), value}, false); err != nil {
					t.Fatal(err)
				}
				if _, err := owner.Set(key(i), value, 0); err != nil {
					t.Fatal(err)
				}
				owner.NoteSet(&w, key(i), value, 0)
			}
			for i := range n {
				set(i)
			}
			w.Forget()
			calls := 0
			for place, done := (engine.Place{}), false; !done; calls++ {
				var delta []byte
				delta, place, done = owner.Dump(place, nil, 20_000)
				mustApply(t, copied, delta)
				for range 50 {
					switch change {
					case 1:
						set(n)
						n++
						value := []byte(strings.Repeat("v", length))
						mustApply(t, copied, copied.appendSet(nil, key(n-1), value, 0))
					case -1:
						n--
						owner.Delete(key(n))
						mustApply(t, copied, appendString([]byte{deltaDelete}, key(n)))
					}
				}
			}
			if got := elementsOf(copied); copied.Len() != n || len(got) != n || owner.Len() != n {
				t.Errorf("values of %d bytes: the copy has %d elements, want %d", length, len(got), n)
			}
			if err := copied.Check(); err != nil {
				t.Error(err)
			}
			if away := copied.V.Len(copied.Away); away > n/50 {
				t.Errorf("%d strings of the copy of %d elements are parts of their own", away, n)
			}
			from.Unlock()
			to.Unlock()
		}
	}
}
