package ticket

import (
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// pipe is a pipe of a proxy's process of that boot.
type pipe int64

func (p pipe) Boot() int64 { return int64(p) }

// ample is a heap that never ends.
type ample struct{}

func (ample) Charge(int64) bool                         { return true }
func (ample) Refund(int64)                              {}
func (ample) StageReply(int) (s engine.Staged, _ error) { return s, nil }

var _ exec.Heap = ample{}

// TestTicketsBehindOneThatMoves: a proxy fetches the replies of one session one after the other, so
// those behind are spared while the one in front moves. Not for ever, and not those in front of it.
func TestTicketsBehindOneThatMoves(t *testing.T) {
	const patience, size = 3, 1 << 30
	k := Keeper[pipe]{open: make(map[uint64]*ticket[pipe])}
	for number, p := range []pipe{1, 1, 1, 2} {
		k.open[uint64(number+1)] = &ticket[pipe]{pipe: p, size: size, heap: ample{}}
	}
	moving := k.open[2]
	for look := 1; look <= sparedLooks*patience+patience+1; look++ {
		moving.fetched += size / (2 * patience)
		moving.size = moving.fetched + 1 // it does not become the slowest
		k.BreakSlow(patience)
		for number, last := range map[uint64]int{1: patience, 3: sparedLooks*patience + patience, 4: patience} {
			if open := k.open[number] != nil; open != (look <= last) {
				t.Fatalf("look %d: ticket %d is open: %t", look, number, open)
			}
		}
	}
	if k.open[2] != moving {
		t.Error("the ticket that moved has ended")
	}
}
