//go:build !linux || portable

package mapping

import "testing"

func TestWholePages(t *testing.T) {
	f := func(address uintptr, n, wantFrom, wantTo int) {
		t.Helper()
		if from, to := wholePages(address, n, 1<<14); from != wantFrom || to != wantTo {
			t.Errorf("%d bytes at %#x: [%d, %d), want [%d, %d)", n, address, from, to, wantFrom, wantTo)
		}
	}
	f(1<<20, 1<<14, 0, 1<<14)
	f(1<<20, 3<<14+4096, 0, 3<<14)
	f(1<<20+4096, 1<<14, 0, 0)
	f(1<<20+4096, 2<<14, 3*4096, 3*4096+1<<14)
	f(1<<20+4096, 4096, 0, 0)
	f(1<<20, 0, 0, 0)
}
