package streams

import (
	"math/rand/v2"
	"testing"
)

// A reader of a pin sees the stream as it was when its value was pinned, in slices, whatever is changed
// meanwhile.
func TestPinned(t *testing.T) {
	histories, read := 40, 0
	if testing.Short() {
		histories = 8
	}
	for range histories {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		m := newRig(t, seed)
		m.most = 2500
		for range 300 + m.r.IntN(600) {
			m.change()
		}
		if m.want != nil && readPinned(t, m) {
			read++
		}
	}
	if read == 0 {
		t.Error("no pin was read")
	}
}

// readPinned pins the stream and reads it, if it is big.
func readPinned(t *testing.T, m *rig) bool {
	x := m.owner.Lock(testPartition, m.now)
	item, _ := x.Peek(testKey)
	parts, big := x.Parts(item)
	if !big {
		x.Unlock()
		return false
	}
	pin, err := parts.PinValue()
	x.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	was := m.want.clone()
	slice := func(f func(v *view)) {
		for range 20 {
			m.change()
		}
		if !pin.Lock() {
			t.Fatal("the pin has broken")
		}
		now := m.want
		m.want = was
		v := pinned(pin)
		f(&v)
		m.want = now
		pin.Unlock()
	}
	from, at := minID, 0
	for done := false; !done; {
		slice(func(v *view) {
			if v.len() != len(was.entries) {
				t.Fatalf("%d entries, there were %d", v.len(), len(was.entries))
			}
			done = true
			left := 100
			v.each(from, func(id ID, e entry) bool {
				if left--; left < 0 {
					from, done = id, false
					return false
				}
				m.compareEntry(at, id, &e)
				at++
				return true
			})
		})
	}
	if at != len(was.entries) {
		t.Fatalf("%d entries were read of %d", at, len(was.entries))
	}
	slice(m.compareGroups)
	return true
}
