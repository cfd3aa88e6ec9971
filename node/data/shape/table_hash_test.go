package shape

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// Every element is drawn equally often, also when the table has become nearly empty.
func TestTableRandomIsUniform(t *testing.T) {
	e := openEngine(t, 64<<20)
	x := e.Lock(1, 1)
	defer x.Unlock()
	table, w := makeTable(t, x, "set", 1), Work{}
	fill := func(n int) {
		for i := range n {
			if err := table.Reserve(&w, [][]byte{fmt.Append(nil, "member:", i)}, false); err != nil {
				t.Fatal(err)
			}
			if _, err := table.Set(fmt.Append(nil, "member:", i), nil, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, left := range []int{1000, 90} {
		fill(10_000)
		for i := 10_000; i > left; {
			i--
			table.Delete(fmt.Append(nil, "member:", i))
		}
		draws, tries := 50*left, 0
		got := map[string]int{}
		for range draws {
			e, ok := table.Random(func(n uint32) uint32 { tries++; return r.Uint32N(n) })
			if !ok {
				t.Fatal("nothing was drawn")
			}
			got[string(e.Key.Append(nil))]++
		}
		chi := 0.0
		for _, n := range got {
			chi += float64((n-50)*(n-50)) / 50
		}
		if float64(tries)/2/float64(draws) > 16 {
			t.Errorf("%d of 10000 elements: %.1f draws for one", left, float64(tries)/2/float64(draws))
		}
		if len(got) != left || chi > float64(left)*1.5 {
			t.Errorf("%d of %d elements were drawn, chi² %.0f", len(got), left, chi)
		}
	}
}

// Elements whose keys hash to one block are stored, with their strings in parts, and refused when
// there are hundreds of them. The table stays whole.
func TestTableCrowded(t *testing.T) {
	e := openEngine(t, 64<<20)
	x := e.Lock(1, 1)
	defer x.Unlock()
	table, w := makeTable(t, x, "hash", 2), Work{}
	value, n := modelBytes(5, 100), 0
	var keys [][]byte
	for i := 0; ; i++ {
		key := fmt.Append(nil, "field:", i)
		if bits.TrailingZeros64(table.V.Hash(key)) < 12 {
			continue
		}
		keys = append(keys, key)
		err := table.Reserve(&w, [][]byte{key, value}, true)
		if errors.Is(err, ErrCrowded) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := table.Set(key, value, 100); err != nil {
			t.Fatal(err)
		}
		n++
	}
	if err := table.Check(); err != nil || n < 100 {
		t.Fatalf("%d elements: %v", n, err)
	}
	for _, key := range keys[:n] {
		if got, ok := table.Get(key); !ok || string(got.Value.Append(nil)) != string(value) {
			t.Fatalf("element %q: %t", key, ok)
		}
	}
	for _, key := range keys[:n] {
		table.Delete(key)
	}
	if table.Len() != 0 || table.V.Count(testAway) != 0 {
		t.Errorf("%d elements are left, %d parts", table.Len(), table.V.Count(testAway))
	}
}
