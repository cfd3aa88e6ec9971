package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestOrderByAge: whenever and however waiters come and go, they stand in the order in which they
// began to wait, also in a queue of very many, and the place of one is looked for among few.
func TestOrderByAge(t *testing.T) {
	for _, c := range []struct {
		name  string
		since func(i int, rng *rand.Rand) time.Duration
	}{
		{"in order", func(i int, _ *rand.Rand) time.Duration { return time.Duration(i) }},
		{"the other way round", func(i int, _ *rand.Rand) time.Duration { return -time.Duration(i) }},
		{"four proxies", func(i int, _ *rand.Rand) time.Duration { return time.Duration(i%500*4 + i/500) }},
		{"at random, many at once", func(_ int, rng *rand.Rand) time.Duration { return time.Duration(rng.IntN(300)) }},
		{"before the last", func(i int, _ *rand.Rand) time.Duration { return -time.Duration(i%100*1000 + i/100) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			ws, rng := newWaiters(t), rand.New(rand.NewPCG(1, 2))
			var there []*Waiter // in order
			for i := range 2000 {
				w := waiterOf(fmt.Sprint(i), false)
				txn := ws.e.Lock(2, 1)
				awaitWish(txn, w, Wish{Type: TypeString, Keys: [][]byte{[]byte("k")}, Since: c.since(i, rng)})
				txn.Unlock()
				at := len(there)
				for at > 0 && there[at-1].since > w.since {
					at--
				}
				there = slices.Insert(there, at, w)
				for range rng.IntN(4) / 2 * (1 + rng.IntN(2)*(i/1000)) {
					leaves := rng.IntN(len(there)) * rng.IntN(2)
					if ws.e.Leave(there[leaves]); len(there) == 1 {
						there = nil
						break
					}
					there = slices.Delete(there, leaves, leaves+1)
				}
				checkOrder(t, ws, there)
			}
			for len(there) > 0 {
				ws.e.Leave(there[0])
				there = there[1:]
				checkOrder(t, ws, there)
			}
		})
	}
}

// checkOrder checks that the queue of some waiters has them in their order, and few between two marks.
func checkOrder(t *testing.T, ws *waiters, want []*Waiter) {
	t.Helper()
	if len(want) == 0 {
		return
	}
	if len(want) == 1 && ws.e.shardOf(want[0].section).isAlone(want[0]) {
		return
	}
	a := ws.e.shardOf(want[0].section).queueOf(want[0], 0)
	var marks []milestone
	if a.details != nil {
		marks = a.details.marks
	}
	unmarked, gap := 0, 0
	at := a.first
	for i, w := range want {
		if at == nil || at.waiter() != w {
			t.Fatalf("%v does not stand at place %d of %d", ownerOf(w), i, len(want))
		}
		unmarked++
		if at.marked {
			if marks[gap].at != at {
				t.Fatalf("%v has another mark than number %d", ownerOf(w), gap)
			}
			unmarked = 0
			gap++
		}
		if unmarked > maxGap {
			t.Fatalf("%d places behind each other have no mark", unmarked)
		}
		at = at.next
	}
	if at != nil || gap != len(marks) || gap > 0 && marks[0].at != a.first || a.first.prev != &want[len(want)-1].first {
		t.Fatalf("the queue has others than %d waiters, or %d marks of which %d are there", len(want), len(marks), gap)
	}
}
