package hyperloglog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// must returns a value, and panics if there is an error.
func must(t testing.TB, value []byte, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func add(t testing.TB, value []byte, element string) ([]byte, bool) {
	t.Helper()
	value, changed, err := Add(value, []byte(element))
	return must(t, value, err), changed
}

// TestAgainstRegisters adds elements and compares the value with plain registers, at every eighth
// step.
func TestAgainstRegisters(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	value := AppendEmpty(nil)
	var want, got Registers
	for i := range 3000 {
		e := strconv.Itoa(random.IntN(8000))
		index, n := place([]byte(e))
		var changed bool
		if value, changed = add(t, value, e); changed != (n > want[index]) {
			t.Fatalf("step %d: adding %s says changed %v", i, e, changed)
		}
		want[index] = max(want[index], n)
		if i%8 > 0 {
			continue
		}
		clear(got[:])
		if err := got.Merge(value); err != nil || got != want {
			t.Fatalf("step %d: %v, or other registers than were set", i, err)
		}
		if IsDense(value) != (len(value) == DenseSize) || !IsDense(value) && len(value) > maxSparse || !Is(value) {
			t.Fatalf("step %d: %d bytes, dense %v", i, len(value), IsDense(value))
		}
		if count, err := Count(value); err != nil || count != want.Count() {
			t.Fatalf("step %d: count %d, %v, of the registers %d", i, count, err, want.Count())
		}
	}
	if !IsDense(value) {
		t.Error("the value never became dense")
	}
}

// TestStore checks that a merge, which stores registers in ascending order, gives the same
// registers as Add in any order, wherever the search begins.
func TestStore(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	for _, size := range []int{0, 1, 20, 300, 1200, 3000} {
		a, b := AppendEmpty(nil), AppendEmpty(nil)
		for i := range size {
			a, _ = add(t, a, strconv.Itoa(i))
			b, _ = add(t, b, strconv.Itoa(random.IntN(2*size)))
		}
		var all, got Registers
		if all.Merge(a) != nil || all.Merge(b) != nil {
			t.Fatal("cannot merge")
		}
		slow := bytes.Clone(a)
		for i, n := range all {
			if n > 0 {
				w := writer{value: slow} // from the beginning, each time
				if _, err := w.set(i, n); err != nil {
					t.Fatal(err)
				}
				slow = w.value
			}
		}
		stored, err := all.Store(a)
		must(t, stored, err)
		if got.Merge(stored) != nil || got != all || !bytes.Equal(stored, slow) {
			t.Errorf("%d elements: not the union is stored", size)
		}
	}
}

func TestPromote(t *testing.T) {
	value, _ := add(t, AppendEmpty(nil), "x")
	Cache(value, 1)
	dense, err := Promote(bytes.Clone(value))
	must(t, dense, err)
	var a, b Registers
	if a.Merge(value) != nil || b.Merge(dense) != nil || a != b {
		t.Error("other registers than before")
	}
	if n, ok := Cached(dense); !ok || n != 1 || !IsDense(dense) || !Is(dense) {
		t.Errorf("dense %v with estimate %d, %v", IsDense(dense), n, ok)
	}
	// A register that the sparse encoding cannot have.
	w := writer{value: bytes.Clone(value)}
	if changed, err := w.set(5, maxVal+1); !changed || err != nil || !IsDense(w.value) ||
		denseRegister(w.value[headerSize:], 5) != maxVal+1 {
		t.Errorf("a high register: changed %v, %v, dense %v", changed, err, IsDense(w.value))
	}
}

func TestCached(t *testing.T) {
	value := AppendEmpty(nil)
	if n, ok := Cached(value); n != 0 || !ok {
		t.Errorf("new: %d, %v", n, ok)
	}
	Cache(value, 1<<40+5)
	if n, ok := Cached(value); n != 1<<40+5 || !ok {
		t.Errorf("noted: %d, %v", n, ok)
	}
	Invalidate(value)
	if _, ok := Cached(value); ok {
		t.Error("still holds")
	}
}

func TestIs(t *testing.T) {
	f := func(value string, want bool) {
		t.Helper()
		if Is([]byte(value)) != want {
			t.Errorf("%.20q of %d bytes: %v", value, len(value), !want)
		}
	}
	header := "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	f("", false)
	f(header[:15], false)
	f(header, true) // Is does not look at registers
	f("HYLL\x02"+header[5:], false)
	f("HYLL\x00"+header[5:], false)
	f("HYLL\x00"+header[5:]+string(make([]byte, DenseSize-headerSize)), true)
	f("HYLL\x00"+header[5:]+string(make([]byte, DenseSize-headerSize+1)), false)
	f("hyll"+header[4:], false)
}

// TestError checks that, over many sets of each size, the estimates lie around the truth with a
// standard error of 0.81 %, which is 1.04 / sqrt(16384). The streams are the same in every run.
func TestError(t *testing.T) {
	if testing.Short() {
		t.Skip("ten million additions")
	}
	const sets = 100
	sizes := []int{1000, 5000, 20_000, 50_000, 100_000}
	squares, sums := make([]float64, len(sizes)), make([]float64, len(sizes))
	element := make([]byte, 16)
	for set := range sets {
		value := AppendEmpty(make([]byte, 0, MaxSize))
		next := 0
		for i := range sizes[len(sizes)-1] {
			binary.LittleEndian.PutUint64(element, uint64(set))
			binary.LittleEndian.PutUint64(element[8:], uint64(i))
			value, _, _ = Add(value, element)
			if i+1 == sizes[next] {
				n, err := Count(value)
				if err != nil {
					t.Fatal(err)
				}
				off := float64(n)/float64(i+1) - 1
				squares[next] += off * off
				sums[next] += off
				next++
			}
		}
	}
	for i, size := range sizes {
		standard, mean := math.Sqrt(squares[i]/sets), sums[i]/sets
		t.Logf("%d elements: standard error %.2f %%, mean %+.2f %%", size, 100*standard, 100*mean)
		if limit := 0.0081; standard > limit || math.Abs(mean) > limit/4 {
			t.Errorf("%d elements: standard error %.2f %%, mean %+.2f %%", size, 100*standard, 100*mean)
		}
	}
}

// TestImpossibleRegisters checks that registers that no hash can produce have an estimate too.
func TestImpossibleRegisters(t *testing.T) {
	var r Registers
	for i := range r {
		r[i] = registerMax
	}
	if n := r.Count(); n != math.MinInt64 {
		t.Errorf("count %d", n)
	}
}

func TestNoAllocations(t *testing.T) {
	value := AppendEmpty(make([]byte, 0, MaxSize))
	var e [8]byte
	n := uint64(0)
	if got := testing.AllocsPerRun(5000, func() {
		n++
		binary.LittleEndian.PutUint64(e[:], n)
		value, _, _ = Add(value, e[:])
		_, _ = Count(value)
	}); got != 0 || !IsDense(value) {
		t.Errorf("%v allocations an element, dense %v", got, IsDense(value))
	}
}

func FuzzValue(f *testing.F) {
	f.Add(AppendEmpty(nil), []byte("x"))
	f.Add([]byte("HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f"), []byte("x"))
	f.Add([]byte("HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\xff\xff\xff\x7f\xf3"), []byte("y"))
	f.Fuzz(func(t *testing.T, value, element []byte) {
		if !Is(value) {
			return
		}
		var before, after Registers
		valid := before.Merge(value) == nil
		if _, err := Count(value); err == nil && !valid {
			t.Fatal("counted what cannot be merged")
		}
		got, changed, err := Add(bytes.Clone(value), element)
		if !valid {
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			_, _ = before.Store(value)
			return
		}
		i, n := place(element)
		if err != nil || changed != (before[i] < n) {
			t.Fatalf("changed %v, %v; the register was %d, the element's is %d", changed, err, before[i], n)
		}
		before[i] = max(before[i], n)
		if err := after.Merge(got); err != nil || before != after {
			t.Fatalf("other registers: %v", err)
		}
	})
}
