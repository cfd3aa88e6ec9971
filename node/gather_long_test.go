package node

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// strainBy has a node, which has nothing to do, ask f whether loops are strained.
func strainBy(t *testing.T, n *Node, f func() bool) {
	t.Helper()
	before := n.cfg.Group.Each(func(*netloop.Loop) {})
	n.strained = f
	if err := errors.Join(before, n.cfg.Group.Each(func(*netloop.Loop) {})); err != nil {
		t.Fatal(err)
	}
}

// TestLongWorkRests: while loops are strained, there is a rest behind each long command: the next
// one waits, and no short one. There is none while somebody has waited for too long.
func TestLongWorkRests(t *testing.T) {
	n := startLeveled(t)
	var asked atomic.Int32
	strainBy(t, n, func() bool { asked.Add(1); return true })
	l := &n.gathers.long
	const work = 5 * time.Millisecond
	long := func() (began time.Time) {
		t.Helper()
		if err := (&gatherRun{node: n, lent: longLoans}).compute(t.Context(), func() error {
			for began = time.Now(); time.Since(began) < work; {
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return began
	}
	if first, second := long(), long(); second.Sub(first) < 10*work {
		t.Errorf("the second one begins %v behind the first one, which has worked for %v", second.Sub(first), work)
	}
	leave, err := enter(t.Context(), l.turn)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&gatherRun{node: n}).compute(t.Context(), func() error { return nil }); err != nil {
		t.Errorf("a short command: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.compute(t.Context(), func() error { return nil }) }()
	eventually(t, "somebody waits for too long", func() bool { return l.hurried.Load() == 1 })
	before := asked.Load()
	leave()
	if err := came(t, "its turn", ended); err != nil {
		t.Error(err)
	}
	eventually(t, "nobody waits", func() bool { return len(l.turn) == 0 && l.hurried.Load() == 0 })
	l.hurried.Add(1)
	long()
	eventually(t, "the place is free", func() bool { return len(l.turn) == 0 })
	l.hurried.Add(-1)
	if now := asked.Load(); now > before+1 {
		t.Errorf("it rests although somebody has waited for too long")
	}
}
