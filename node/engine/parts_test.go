package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// makeBag makes a bag of n elements of size bytes each.
func makeBag(tb testing.TB, e *Engine, p uint16, key string, n, size int) {
	tb.Helper()
	with(e, p, 1, func(t Txn) {
		v := mustBag(tb, t, key)
		for i := range n {
			if err := bagReserve(v, size); err != nil {
				tb.Fatal(err)
			}
			_, part, err := v.Add(bagPlane(uint32(i)), bagHead+size)
			if err != nil {
				tb.Fatal(err)
			}
			binary.LittleEndian.PutUint64(part, uint64(size)<<32|uint64(i))
		}
	})
}

func hasBag(e *Engine, p uint16, key string) (there bool) {
	with(e, p, 1, func(t Txn) { _, there = bag(t, key) })
	return there
}

// A value may grow to its share of the limit, and a copy as far as its owner lets it. One that has more
// may not grow, but take what replaces other parts.
func TestMayGrow(t *testing.T) {
	const limit = 16 << 20
	e := open(t, Config{MaxBytes: 2 * limit, Shards: 1, Forms: bags(), Share: 4})
	makeBag(t, e, 1, "bag", 6, 1<<20)
	may := func(bytes int, want error) {
		t.Helper()
		with(e, 1, 1, func(x Txn) {
			v, _ := bag(x, "bag")
			if err := v.MayGrow(bytes); err != want {
				t.Errorf("%d bytes more: %v, not %v", bytes, err, want)
			}
			if err := bagReserve(v, 3<<20); err != nil {
				t.Error(err)
			}
		})
	}
	may(1<<20, nil)
	may(3<<20, ErrTooBig)
	if err := e.SetMaxBytes(limit); err != nil {
		t.Fatal(err)
	}
	may(1, ErrTooBig)
	may(0, nil)
	e.SetCopy(1, PlainCopy)
	may(1, nil)
}

// Parts are found by their numbers in directories of one, two and three levels, and while these
// shrink again.
func TestPartsNumbers(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 1, Forms: bags()})
	x := e.Lock(1, 1)
	defer x.Unlock()
	v, err := newBag(x, []byte("bag"), 0)
	if err != nil {
		t.Fatal(err)
	}
	empty := v.Bytes()
	check := func(n int) {
		t.Helper()
		x.s.mu.Unlock()
		e.checkSums(t)
		x.s.mu.Lock()
		for _, i := range []int{0, 1, n / 2, n - 2, n - 1} {
			if i < 0 || i >= n {
				continue
			}
			if got := binary.LittleEndian.Uint32(v.Part(2, i)); got != uint32(i) {
				t.Fatalf("part %d of %d says %d", i, n, got)
			}
		}
		if v.Len(2) != n || v.Part(2, n) != nil {
			t.Errorf("%d numbers of %d", v.Len(2), n)
		}
	}
	const most = fan*fan + 3*fan + 5
	for i := range most {
		n, part, err := v.Add(2, 8)
		if err != nil || n != i {
			t.Fatalf("part %d has number %d: %v", i, n, err)
		}
		binary.LittleEndian.PutUint32(part, uint32(i))
		switch i + 1 {
		case 1, minNode, minNode + 1, fan, fan + 1, 2*fan + 1, fan * fan, fan*fan + 1, most:
			check(i + 1)
		}
	}
	v.Free(2, 5)
	v.Free(2, 700)
	if v.Len(2) != most || v.Count(2) != most-2 || v.Part(2, 5) != nil {
		t.Errorf("%d parts of %d numbers", v.Count(2), v.Len(2))
	}
	for i := most - 1; i >= 0; i-- {
		if i != 5 && i != 700 {
			v.Free(2, i)
		}
		switch i {
		case fan * fan, fan*fan - 1, 2 * fan, fan, fan - 1, 300, 0:
			want := i
			if i == 701 {
				want = 700
			}
			check(want)
		}
	}
	if v.Bytes() != empty || v.Len(2) != 0 {
		t.Errorf("%d bytes are left of %d, %d numbers", v.Bytes(), empty, v.Len(2))
	}
}

// A freed number is given out again, so that numbers stay near to what there is.
func TestPartsReuseNumbers(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 1, Forms: bags()})
	makeBag(t, e, 1, "bag", 20_000, 10)
	with(e, 1, 1, func(x Txn) {
		v, _ := bag(x, "bag")
		r, span := rand.New(rand.NewPCG(1, 2)), v.Len(0)
		for range 50_000 {
			if n := r.IntN(v.Len(0)); v.Part(0, n) != nil {
				v.Free(0, n)
			}
			if v.Count(0) < span*3/4 {
				if _, _, err := v.Add(0, 18); err != nil {
					t.Fatal(err)
				}
			}
		}
		if v.Len(0) > span {
			t.Errorf("%d parts have numbers up to %d, at first %d", v.Count(0), v.Len(0), span)
		}
	})
}

// Whatever a command takes after Reserve is there, and nothing is evicted for it; what it spares is
// not evicted by Reserve.
func TestReserve(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 4 << 20, Shards: 1, Forms: bags()})
	makeBag(t, e, 1, "source", 300, 1000)
	makeBag(t, e, 1, "target", 300, 1000)
	for i := range 10_000 {
		mustSet(t, e, 1, fmt.Sprint("string:", i), make([]byte, 300))
	}
	if hasBag(e, 1, "source") {
		t.Fatal("the engine was to be full")
	}
	makeBag(t, e, 1, "source", 300, 1000)
	makeBag(t, e, 1, "target", 10, 1000)
	x := e.Lock(1, 1)
	defer x.Unlock()
	source, _ := bag(x, "source")
	target, _ := bag(x, "target")
	sizes := make([]int, 800)
	for i := range sizes {
		sizes[i] = 2000
	}
	sizes[17] = 100_000
	if err := x.Reserve(Room{Parts: sizes, Spared: []Parts{source, target}}); err != nil {
		t.Fatal(err)
	}
	if _, there := bag(x, "source"); !there {
		t.Fatal("a value was evicted that is spared")
	}
	before := e.sumsForTest()
	for _, size := range sizes {
		if _, part, err := target.Add(3, size); err != nil || len(part) < size {
			t.Fatalf("%d bytes, reserved: %d, %v", size, len(part), err)
		}
	}
	if after := e.sumsForTest(); after.Evicted != before.Evicted {
		t.Errorf("%d keys were evicted after the room was reserved", after.Evicted-before.Evicted)
	}
	if _, _, err := target.Add(3, 100_000); !errors.Is(err, ErrMemory) {
		t.Errorf("what was not reserved: %v", err)
	}
	if err := x.Reserve(Room{Parts: []int{5 << 20}}); !errors.Is(err, ErrNeverFits) {
		t.Errorf("more than there is: %v", err)
	}
	if len(bagContent(t, source)) != 300 {
		t.Error("the source has lost elements")
	}
}

// A big value dies in one step. Its parts are freed in slices; whoever needs memory does that
// before it evicts anything.
func TestDoomedParts(t *testing.T) {
	oneGoroutine(t)
	const n = 30_000
	e := open(t, Config{MaxBytes: 16 << 20, Shards: 1, Forms: bags()})
	s := e.shardOf(1)
	for name, end := range map[string]func(){
		"deleted":     func() { with(e, 1, 1, func(x Txn) { x.Delete([]byte("bag")) }) },
		"overwritten": func() { mustSet(t, e, 1, "bag", []byte("string")) },
		"dropped":     func() { e.Forget(1); s.dropped.drainFirst(1) },
	} {
		makeBag(t, e, 1, "bag", n, 200)
		before := e.Stats()
		end()
		if s.values.doomed == 0 || e.Stats().Parts < before.Parts*9/10 {
			t.Errorf("%s: %d bytes of %d are left", name, e.Stats().Parts, before.Parts)
		}
		if hasBag(e, 1, "bag") {
			t.Errorf("%s: it is still there", name)
		}
		slices := 0
		for ; s.dropped.drainFirst(drainAtOnce); slices++ {
		}
		if slices < n/drainAtOnce || e.Stats().Parts != 0 {
			t.Errorf("%s: freed in %d slices, %d bytes are left", name, slices, e.Stats().Parts)
		}
		e.checkSums(t)
	}
	makeBag(t, e, 1, "bag", n, 200)
	with(e, 1, 1, func(x Txn) { x.Delete([]byte("bag")) })
	for i := range 20_000 {
		mustSet(t, e, 1, fmt.Sprint("string:", i), make([]byte, 400))
	}
	if st := e.Stats(); st.Evicted != 0 {
		t.Errorf("%d keys were evicted beside %d bytes of a dead value", st.Evicted, st.Parts)
	}
}

// Big values that are used stay, those that are not go, in whatever order they came; and beside
// them strings that are not.
func TestRootsClock(t *testing.T) {
	e := open(t, Config{MaxBytes: 16 << 20, Shards: 1, Forms: bags()})
	const values, elements = 30, 400
	name := func(i int) string { return fmt.Sprint("bag:", i) }
	for i := range values {
		makeBag(t, e, uint16(i), name(i), elements, 600)
	}
	kept := 0
	for round := range 400 {
		for i := range 5 {
			if hasBag(e, uint16(i), name(i)) && round == 399 {
				kept++
			}
		}
		for i := range 50 {
			mustSet(t, e, 1, fmt.Sprint("string:", round, ":", i), make([]byte, 500))
		}
		if round%4 == 0 {
			makeBag(t, e, uint16(100+round), name(100+round), elements, 600)
		}
	}
	unused := 0
	for i := 5; i < values; i++ {
		if hasBag(e, uint16(i), name(i)) {
			unused++
		}
	}
	if kept < 4 || unused > values/3 {
		t.Errorf("of 5 values that were used %d are left, of %d others %d", kept, values-5, unused)
	}
	e.checkSums(t)
}

// Parts of sparse pages move together when memory is needed, and their values do not notice.
func TestPartsMove(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 8 << 20, Shards: 1, Policy: NoEviction, Forms: bags()})
	makeBag(t, e, 1, "bag", 24_000, 200)
	with(e, 1, 1, func(x Txn) {
		v, _ := bag(x, "bag")
		for plane := range Planes {
			for n := range v.Len(plane) {
				if n%4 != 0 {
					v.Free(plane, n)
				}
			}
		}
	})
	want := 0
	with(e, 1, 1, func(x Txn) { v, _ := bag(x, "bag"); want = len(bagContent(t, v)) })
	for i := range 8_000 {
		mustSet(t, e, 1, fmt.Sprint("string:", i), make([]byte, 300))
	}
	with(e, 1, 1, func(x Txn) {
		if v, ok := bag(x, "bag"); !ok || len(bagContent(t, v)) != want {
			t.Errorf("the value has lost elements, there %t", ok)
		}
	})
	e.checkSums(t)
}

// A part too big for a cell can be staged and pinned; what is pinned outlives its value.
func TestBigParts(t *testing.T) {
	e := open(t, Config{MaxBytes: 16 << 20, Shards: 1, Forms: bags()})
	makeBag(t, e, 1, "bag", 1, 10)
	st, err := e.StagePart(200_000)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Write(make([]byte, 200_000)); err != nil {
		t.Fatal(err)
	}
	x := e.Lock(1, 1)
	v, _ := bag(x, "bag")
	if err := x.Reserve(Room{Parts: []int{bagHead}, Spared: []Parts{v}}); err != nil {
		t.Fatal(err)
	}
	n, err := v.AddStaged(1, &st)
	if err != nil || len(v.Part(1, n)) != 200_000 {
		t.Fatalf("%d bytes, %v", len(v.Part(1, n)), err)
	}
	v.Edit(1, n)[5] = 7
	pin, ok := v.Pin(1, n)
	if _, small := v.Pin(0, 0); !ok || small || v.Edit(1, n) != nil || v.Edit(0, 0) == nil {
		t.Fatalf("pinned %t, a small part too: %t", ok, small)
	}
	item, _ := x.Find([]byte("bag"))
	if size, _ := x.Footprint([]byte("bag")); size < 200_000 || item.Type() != bagType {
		t.Errorf("type %d, %d bytes", item.Type(), size)
	}
	v.Delete()
	x.Unlock()
	e.shardOf(1).dropped.drainFirst(drainAtOnce)
	if len(pin.Value()) != 200_000 || pin.Value()[5] != 7 {
		t.Error("a pinned part has changed")
	}
	pin.Release()
	e.checkSums(t)
	if st := e.Stats(); st.Parts != 0 || st.Keys != 0 {
		t.Errorf("left: %+v", st)
	}
}

// A command on a value with parts allocates nothing.
func TestPartsAllocateNothing(t *testing.T) {
	e := open(t, Config{MaxBytes: 16 << 20, Shards: 1, Forms: bags()})
	makeBag(t, e, 1, "bag", 100, 20)
	sizes, spared := [1]int{}, [1]Parts{}
	i := 0
	if got := testing.AllocsPerRun(1000, func() {
		i++
		x := e.Lock(1, 1)
		v, _ := bag(x, "bag")
		sizes[0], spared[0] = bagHead+20+i%50, v
		if err := x.Reserve(Room{Parts: sizes[:], Spared: spared[:]}); err != nil {
			t.Error(err)
		}
		if _, err := v.Resize(1, i%v.Len(1), sizes[0]); err != nil {
			t.Error(err)
		}
		x.Unlock()
	}); got != 0 {
		t.Errorf("%g allocations", got)
	}
}
