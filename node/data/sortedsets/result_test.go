package sortedsets

import (
	"fmt"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// endless is a heap without a limit.
type endless struct{}

func (endless) Charge(int64) bool                     { return true }
func (endless) Refund(int64)                          {}
func (endless) StageReply(int) (engine.Staged, error) { return engine.Staged{}, engine.ErrMemory }

// TestResultsGrowInPieces: what a result has stays where it is while more is added, and comes out
// in its order.
func TestResultsGrowInPieces(t *testing.T) {
	x := NewResult(endless{})
	const many = 20*listPiece + 7
	add := func(from, to int) {
		for i := from; i < to; i++ {
			x.Add(fmt.Appendf(nil, "m%06d", i*7919%many), float64(i%5))
		}
	}
	add(0, listPiece)
	entry, text := x.list.at(0), &x.list.at(0).member[0]
	add(listPiece, many)
	if x.list.at(0) != entry || &x.list.at(0).member[0] != text {
		t.Error("a whole piece was copied")
	}
	if cap(x.text) > textPiece {
		t.Errorf("a piece of text has %d bytes", cap(x.text))
	}
	for !x.Order(100) {
	}
	last := x.First()
	for n := 1; x.Len() > 0; n++ {
		s := x.First()
		if s.Score < last.Score || s.Score == last.Score && string(s.member) <= string(last.member) {
			t.Fatalf("entry %d is %q with %g, behind %q with %g", n, s.member, s.Score, last.member, last.Score)
		}
		last = s
	}
}
