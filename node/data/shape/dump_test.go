package shape

import (
	"math/bits"
	"strconv"
	"strings"
	"testing"
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
		for place, done := uint64(0), false; !done; {
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
