package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// claim has a claim wait for keys, for so long already. When it is its turn, it counts as served with "name key turn".
func (ws *waiters) claim(p uint16, owner string, waited time.Duration, keys ...string) *Waiter {
	w := waiterOf(owner, true)
	t := ws.e.Lock(p, 1)
	defer t.Unlock()
	var all [][]byte
	for _, k := range keys {
		all = append(all, []byte(k))
	}
	awaitWish(t, w, Wish{Type: TypeString, Keys: all, Since: -waited})
	return w
}

// TestClaims: a claim is told of its turn, and those behind it wait until the turn ends, whatever changes.
func TestClaims(t *testing.T) {
	ws := newWaiters(t)
	ws.claim(2, "a", 0, "x", "k")
	ws.claim(2, "b", 0, "k", "k")
	ws.await(2, "k", "k")
	ws.set(t, 2, "k")
	ws.want(t, "a 1 1")
	txn := ws.e.Lock(2, 1)
	if !txn.HasTurn(TypeString, nil, []byte("k")) || txn.HasTurn(TypeString, nil, []byte("x")) || txn.HasTurn(TypeHash, nil, []byte("k")) {
		t.Error("the wrong keys have a turn")
	}
	txn.Unlock()
	ws.e.EndTurn(2, TypeString, nil, []byte("k"), 7, 1)
	ws.want(t)
	ws.e.EndTurn(2, TypeString, nil, []byte("k"), 1, 1)
	ws.want(t, "b 0 2")
	ws.e.EndTurn(2, TypeString, nil, []byte("k"), 1, 1) // which was over
	ws.want(t)
	ws.set(t, 2, "k")
	ws.want(t)
	ws.e.EndTurn(2, TypeString, nil, []byte("k"), 2, 1)
	ws.want(t, "k") // which takes the key away
	ws.nobody(t)
}

// TestClaimAlone: a claim behind which nobody waits needs no turn, and leaves nothing behind.
func TestClaimAlone(t *testing.T) {
	ws := newWaiters(t)
	ws.claim(2, "a", 0, "k", "y", "k")
	ws.set(t, 2, "k")
	ws.want(t, "a 0 0")
	ws.nobody(t)
}

// TestClaimsByKeys: the first key of a claim that has a value is the one that it gets a turn at.
func TestClaimsByKeys(t *testing.T) {
	ws := newWaiters(t)
	ws.claim(2, "a", 0, "x", "y")
	ws.claim(2, "b", 0, "x", "y")
	ws.claim(2, "c", 0, "y")
	txn := ws.e.Lock(2, 1)
	for _, key := range []string{"y", "x"} { // as a transaction sets them
		if err := txn.Set([]byte(key), []byte("v"), TypeString, 0); err != nil {
			t.Fatal(err)
		}
	}
	txn.Unlock()
	ws.want(t, "a 0 1", "b 1 2")
}

// TestManyClaims: however many claims stand in front, each is told in its turn, with nobody left out.
func TestManyClaims(t *testing.T) {
	ws := newWaiters(t)
	const claims = 3 * servingSteps
	for i := range claims {
		ws.claim(2, fmt.Sprint(i), 0, "k")
	}
	ws.await(2, "k", "k")
	ws.set(t, 2, "k")
	for turn := range uint64(claims) {
		want := fmt.Sprintf("%d 0 %d", turn, turn+1)
		if !slices.Equal(ws.served, []string{want}) {
			t.Fatalf("served %q, want %q", ws.served, want)
		}
		ws.served = nil
		ws.e.EndTurn(2, TypeString, nil, []byte("k"), turn+1, 1)
	}
	ws.want(t, "k")
	ws.nobody(t)
}

// TestClaimsByAge: who has waited elsewhere stands where it would stand here.
func TestClaimsByAge(t *testing.T) {
	ws := newWaiters(t)
	age := func(n int) time.Duration { return time.Duration(n) * time.Second }
	for _, n := range []int{5, 3, 9, 4, 3} {
		ws.claim(2, fmt.Sprint(n), age(n), "k")
	}
	ws.set(t, 2, "k")
	var got []string
	for turn := uint64(1); len(ws.served) > 0; turn++ {
		got = append(got, ws.served[0][:1])
		ws.served = nil
		ws.e.EndTurn(2, TypeString, nil, []byte("k"), turn, 1)
	}
	if want := []string{"9", "5", "4", "3", "3"}; !slices.Equal(got, want) {
		t.Errorf("served by age %q, want %q", got, want)
	}

	for i := range 10 * maxGap { // among very many
		ws.claim(4, "young", age(i%2), "k")
	}
	ws.claim(4, "old", age(99), "k")
	ws.set(t, 4, "k")
	if len(ws.served) != 1 || ws.served[0][:3] != "old" {
		t.Errorf("served %q, want the oldest", ws.served)
	}
}
