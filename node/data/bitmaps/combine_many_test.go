package bitmaps

import (
	"fmt"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// TestManySourcesEndInTurns: the client of a BITOP leaves before its sources are combined. The loop releases some of
// them in a turn, and what they take is charged until all are released.
func TestManySourcesEndInTurns(t *testing.T) {
	e, err := engine.New(engine.Config{Shards: 1, MaxBytes: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	value := make([]byte, 16)
	for !e.IsLarge(10, len(value)) {
		value = make([]byte, 2*len(value))
	}
	var turns []func()
	r := &exec.Request{}
	r.Engine = e
	g := &gathered{
		w: r.NewResult(nil), turn: func(f func()) { turns = append(turns, f) }, large: map[engine.Pin]int{},
	}
	const sources = 4*releasedAtOnce + 1
	for i := range sources {
		key := fmt.Appendf(nil, "key-%d", i)
		txn := e.Lock(0, 0)
		if err := txn.Set(key, value, engine.TypeString, 0); err != nil {
			t.Fatal(err)
		}
		item, _ := txn.Peek(key)
		pin, isLarge := txn.Pin(item)
		txn.Unlock()
		if !isLarge {
			t.Fatal("the value is not large")
		}
		g.large[pin] = 1
	}
	if !g.w.Charge(sources * sourceSize) {
		t.Fatal("there is no memory")
	}
	g.End()
	n := 0
	for ; len(turns) > 0; n++ {
		if left, want := len(g.large), sources-(n+1)*releasedAtOnce; left != want {
			t.Fatalf("%d sources are left behind %d turns, want %d", left, n+1, want)
		}
		f := turns[0]
		turns = turns[1:]
		f()
	}
	if n != sources/releasedAtOnce || g.large != nil {
		t.Errorf("%d further turns, want %d; %d sources are not released", n, sources/releasedAtOnce, len(g.large))
	}
}
