package engine

import (
	"encoding/binary"
	"errors"
	"testing"
)

// pinBag pins the bag under key.
func pinBag(tb testing.TB, e *Engine, p uint16, key string) (pin *ValuePin) {
	tb.Helper()
	with(e, p, 1, func(t Txn) {
		v, ok := bag(t, key)
		if !ok {
			tb.Fatalf("%s is not there", key)
		}
		var err error
		if pin, err = v.PinValue(); err != nil {
			tb.Fatal(err)
		}
	})
	return pin
}

// readPinned reads the numbers of a pinned bag from one on to another one, and returns how many
// elements it had; -1 if the pin has broken.
func readPinned(tb testing.TB, pin *ValuePin, from, to int) (n int) {
	tb.Helper()
	if !pin.Lock() {
		return -1
	}
	defer pin.Unlock()
	for plane := range Planes {
		for number := from; number < min(to, pin.Len(plane)); number++ {
			if part := pin.Part(plane, number); part != nil {
				if id := int(binary.LittleEndian.Uint32(part)); id != number*Planes+plane {
					tb.Fatalf("part %d of plane %d is element %d", number, plane, id)
				}
				n++
			}
			pin.Done(plane, number)
		}
	}
	return n
}

// Copies for pins are limited: the pin that has most to read breaks, others are kept.
func TestSlowestPinBreaks(t *testing.T) {
	const elements, size = 400, 1500
	e := open(t, Config{MaxBytes: 4 << 20, Shards: 1, Forms: bags()})
	makeBag(t, e, 1, "bag", elements, size)
	slow, fast := pinBag(t, e, 1, "bag"), pinBag(t, e, 1, "bag")
	if n := readPinned(t, fast, elements/Planes/2, elements); n != elements/2 {
		t.Fatalf("%d elements, want the half of %d", n, elements)
	}
	with(e, 1, 1, func(x Txn) {
		v, _ := bag(x, "bag")
		for id := range uint32(elements) {
			binary.LittleEndian.PutUint32(v.Edit(bagPlane(id), int(id)/Planes), id+1000*Planes)
		}
	})
	if n := readPinned(t, slow, 0, elements); n != -1 {
		t.Errorf("the slow pin has %d elements, and should have broken", n)
	}
	if kept := e.pinnedParts.Load(); kept > e.MaxBytes()/pinShare {
		t.Errorf("%d bytes are kept for pins", kept)
	}
	if n := readPinned(t, fast, 0, elements/Planes/2); n != elements/2 {
		t.Errorf("the other pin has %d elements left, want %d", n, elements/2)
	}
	fast.Release()
	slow.Release()
	if n := e.pinnedParts.Load(); n != 0 || e.Outside() != 0 {
		t.Errorf("%d bytes are kept for no pin, %d are charged", n, e.Outside())
	}
	e.checkSums(t)
}

// What dies while it is pinned is freed after the pin, and is what breaks first when too much is
// pinned. A value alone may not be more.
func TestPinnedValueDies(t *testing.T) {
	const elements, size = 400, 1500
	e := open(t, Config{MaxBytes: 4 << 20, Shards: 1, Policy: NoEviction, Forms: bags()})
	s := e.shardOf(1)
	makeBag(t, e, 1, "bag", elements, size)
	pin := pinBag(t, e, 1, "bag")
	with(e, 1, 1, func(x Txn) { x.Delete([]byte("bag")) })
	for s.dropped.drainFirst(drainAtOnce) {
	}
	if n := readPinned(t, pin, 0, elements); n != elements || e.Stats().Parts == 0 {
		t.Errorf("%d elements are left of a pinned value, in %d bytes", n, e.Stats().Parts)
	}
	e.checkSums(t)
	makeBag(t, e, 1, "bag", elements, size)
	second := pinBag(t, e, 1, "bag") // the two are more than pins may keep
	if readPinned(t, pin, 0, elements) != -1 || readPinned(t, second, 0, elements) != elements {
		t.Error("the first pin should have broken, and not the second")
	}
	for s.dropped.drainFirst(drainAtOnce) {
	}
	e.checkSums(t)
	second.Release()
	makeBag(t, e, 1, "huge", 2*elements, size)
	with(e, 1, 1, func(x Txn) {
		v, _ := bag(x, "huge")
		if _, err := v.PinValue(); !errors.Is(err, ErrPinned) {
			t.Errorf("a value of %d bytes is pinned: %v", v.Bytes(), err)
		}
	})
	with(e, 1, 1, func(x Txn) { x.Delete([]byte("huge")) })
	for s.dropped.drainFirst(drainAtOnce) {
	}
	if n := e.pinnedParts.Load(); n != 0 {
		t.Errorf("%d bytes are kept for no pin", n)
	}
	e.checkSums(t)
	third := pinBag(t, e, 1, "bag")
	e.Reset(2)
	if third.Lock() {
		t.Error("a pin has outlived a reset")
	}
	third.Release()
}

// A part in an extent is not copied but pinned itself, and Resize gives the value another one.
func TestPinnedBigPart(t *testing.T) {
	const size = 100_000
	e := open(t, Config{MaxBytes: 16 << 20, Shards: 1, Forms: bags()})
	makeBag(t, e, 1, "bag", 1, size)
	pin := pinBag(t, e, 1, "bag")
	with(e, 1, 1, func(x Txn) {
		v, _ := bag(x, "bag")
		if v.Edit(0, 0) != nil {
			t.Error("a pinned part in an extent can be edited")
		}
		if err := v.Reserve(bagHead + size); err != nil {
			t.Fatal(err)
		}
		part, err := v.Resize(0, 0, bagHead+size)
		if err != nil {
			t.Fatal(err)
		}
		binary.LittleEndian.PutUint32(part, 77)
	})
	if n := readPinned(t, pin, 0, 1); n != 1 {
		t.Errorf("%d elements", n)
	}
	pin.Release()
	with(e, 1, 1, func(x Txn) {
		v, _ := bag(x, "bag")
		if part := v.Edit(0, 0); part == nil || binary.LittleEndian.Uint32(part) != 77 {
			t.Error("the part is not what it became")
		}
	})
	e.checkSums(t)
}
