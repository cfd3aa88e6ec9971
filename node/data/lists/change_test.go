package lists

import (
	"math"
	"strconv"
	"testing"

	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// TestRemoveEqualIsBounded holds one run of LREM to the elements that it may look at, however far
// those that it removes are from one another.
func TestRemoveEqualIsBounded(t *testing.T) {
	e, err := engine.New(engine.Config{
		MaxBytes: 64 << 20, Shards: 1, Seed: 1,
		Forms: map[engine.Type]engine.Form{engine.TypeList: shape.ListForm},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const apart, length = 1000, 100_000
	remove := func(back bool) {
		txn, key := e.Lock(1, 1), []byte("key")
		defer txn.Unlock()
		if err := txn.Reserve(engine.Room{Roots: []int{len(key) + shape.ListOwn}}); err != nil {
			t.Fatal(err)
		}
		v, err := txn.NewParts(key, engine.TypeList, shape.ListOwn, 0)
		if err != nil {
			t.Fatal(err)
		}
		l := list{txn: txn, key: key, found: true, big: true, tree: shape.ListOf(v, new(shape.Work))}
		for i := range length {
			if err := l.tree.Insert(i, [][]byte{strconv.AppendInt(nil, int64(i%apart), 10)}, false); err != nil {
				t.Fatal(err)
			}
		}
		rest := edit{}
		if back {
			rest.position = length
		}
		for ended := false; !ended; {
			before, removed := rest.position, rest.removed
			if ended, err = l.removeEqual(&rest, []byte("7"), math.MaxInt, back); err != nil {
				t.Fatal(err)
			}
			looked := rest.position - before + rest.removed - removed
			if back {
				looked = before - rest.position
			}
			if looked > searchAtOnce {
				t.Fatalf("back %v: one run looked at %d elements, at most %d are allowed", back, looked, searchAtOnce)
			}
		}
		if rest.removed != length/apart || l.len() != length-length/apart {
			t.Fatalf("back %v: %d removed, %d left", back, rest.removed, l.len())
		}
	}
	remove(false)
	remove(true)
}
