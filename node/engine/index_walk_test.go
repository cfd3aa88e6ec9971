package engine

import (
	"fmt"
	"testing"
)

// TestWalkWhileChanging holds a walk to its promise: while other keys come and go and the index
// grows and shrinks under it, every key that stays is visited exactly once.
func TestWalkWhileChanging(t *testing.T) {
	oneGoroutine(t)
	const stay, p = 3000, 5
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 4})
	for i := range stay {
		mustSet(t, e, p, fmt.Sprint("stay:", i), []byte("v"))
	}
	visits := map[string]int{}
	for cursor, done, round := uint64(0), false, 0; !done; round++ {
		cursor, done = e.Walk(p, cursor, 20, 0, func(item Item) bool {
			visits[string(item.Key())]++
			return true
		})
		// The index swells for a third of the walk, then shrinks to what stays.
		for i := range 400 {
			key := fmt.Sprintf("go:%d:%d", round%25, i)
			if round%50 < 25 {
				mustSet(t, e, p, key, nil)
			} else {
				with(e, p, 0, func(x Txn) { x.Delete([]byte(key)) })
			}
		}
	}
	for i := range stay {
		if n := visits[fmt.Sprint("stay:", i)]; n != 1 {
			t.Fatalf("stay:%d was visited %d times, want once", i, n)
		}
	}
}

// TestWalkGoesOnElsewhere moves a partition in the middle of a walk: the cursor holds on another
// engine with the same seed, whatever its number of shards and other contents.
func TestWalkGoesOnElsewhere(t *testing.T) {
	a := open(t, Config{MaxBytes: 64 << 20, Shards: 4, Seed: 99})
	b := open(t, Config{MaxBytes: 32 << 20, Shards: 16, Seed: 99})
	const n, p = 1000, 4095
	for i := range n {
		mustSet(t, a, p, fmt.Sprint(i), nil)
		mustSet(t, b, p, fmt.Sprint(i), nil)
	}
	for i := range 5 * n {
		mustSet(t, b, p, fmt.Sprint("other:", i), nil)
	}
	seen := map[string]bool{}
	visit := func(item Item) bool { seen[string(item.Key())] = true; return true }
	cursor, done := a.Walk(p, 0, n/2, 0, visit)
	if done || len(seen) >= n {
		t.Fatalf("half a walk met %d keys", len(seen))
	}
	for !done {
		cursor, done = b.Walk(p, cursor, 100, 0, visit)
	}
	for i := range n {
		if !seen[fmt.Sprint(i)] {
			t.Fatalf("key %d was not visited", i)
		}
	}
}

func TestWalkStops(t *testing.T) {
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 4})
	walk := func(cursor uint64, max int) (visited int, next uint64, done bool) {
		next, done = e.Walk(1, cursor, max, 0, func(Item) bool { visited++; return visited < max })
		return visited, next, done
	}
	if n, next, done := walk(0, 10); n != 0 || next != WalkEnd || !done {
		t.Errorf("empty partition: got %d, %d, %t", n, next, done)
	}
	for i := range 1000 {
		mustSet(t, e, 1, fmt.Sprint(i), nil)
	}
	n, next, done := walk(0, 10)
	if n < 10 || n > 10+2*growAt || next == 0 || done {
		t.Errorf("first ten: got %d, %d, %t", n, next, done)
	}
	total := n
	for !done {
		n, next, done = walk(next, 10)
		total += n
	}
	if total != 1000 {
		t.Errorf("visited %d in all, want 1000", total)
	}
	if n, next, done := walk(WalkEnd, 10); n != 0 || next != WalkEnd || !done {
		t.Errorf("behind the end: got %d, %d, %t", n, next, done)
	}
}
