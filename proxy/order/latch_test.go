package order

import (
	"testing"
)

// The pause before a RETRY grows while a node goes on refusing under one table, and begins small
// again with the next: nodes that come and go bring one every quarter of a second, and each is
// through in milliseconds.
func TestPausesBeginAnewWithATable(t *testing.T) {
	var l latch
	var r Request
	refused := func(epoch uint64, want int) {
		t.Helper()
		l.add(&r, nil, 0, epoch)
		if l.rounds != want {
			t.Errorf("%d rounds after a refusal of epoch %d, want %d", l.rounds, epoch, want)
		}
		l.rounds++ // as RETRY does
	}
	refused(7, 0)
	refused(7, 1)
	refused(7, 2)
	refused(6, 3) // by a node that has fallen behind
	refused(8, 0)
	refused(8, 1)
}
