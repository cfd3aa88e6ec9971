package mapping

import (
	"bytes"
	"testing"
)

// TestRelease checks that released memory reads as zeros and its neighbours are unchanged, whatever
// the page size of the system.
func TestRelease(t *testing.T) {
	const n, unit = 1 << 20, 4 << 10
	mem, err := Reserve(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Free(mem); err != nil {
			t.Error(err)
		}
	})
	f := func(from, to int) {
		t.Helper()
		for i := range mem {
			mem[i] = 1
		}
		if err := Release(mem[from:to]); err != nil {
			t.Fatal(err)
		}
		zeros, ones := bytes.Count(mem[from:to], []byte{0}), bytes.Count(mem, []byte{1})
		if zeros != to-from || ones != n-zeros {
			t.Errorf("[%d, %d): %d bytes read as zeros, %d beside them kept", from, to, zeros, ones)
		}
		mem[from] = 1 // released memory can be written again
	}
	f(0, n)
	f(unit, 2*unit)
	f(unit, n-unit)
	f(5*unit, 6*unit)
	Populate(mem[:16*unit])
	Collapse(mem)
	Split(mem)
	f(0, 16*unit)
}
