package engine

import (
	"fmt"
	"strconv"
	"testing"
)

// newPositions is newWaiters for waiters whose values are numbers, and their commands keep them. Who was looked at
// is counted.
func newPositions(t *testing.T) (ws *waiters, looked *int) {
	ws, looked = newWaiters(t), new(int)
	ws.e.servers.Serve = func(t Txn, w *Waiter) (func(), bool, int) {
		*looked++
		name := ownerOf(w).(string)
		if ws.keeps[name] {
			return nil, false, 0
		}
		return func() { ws.served = append(ws.served, name) }, true, 0
	}
	return ws, looked
}

// behind has somebody wait for what comes behind a position, in a group if that is not "".
func (ws *waiters) behind(p uint16, owner, group string, position uint64, keys ...string) *Waiter {
	w := waiterOf(owner, false)
	ws.wish(p, w, group, position, keys...)
	return w
}

func (ws *waiters) wish(p uint16, w *Waiter, group string, position uint64, keys ...string) {
	wish := Wish{Type: TypeString}
	if group != "" {
		wish.Group = []byte(group)
	}
	for _, k := range keys {
		wish.Keys, wish.Positions = append(wish.Keys, []byte(k)), append(wish.Positions, Position{Lo: position})
	}
	t := ws.e.Lock(p, 1)
	defer t.Unlock()
	awaitWish(t, w, wish)
}

func (ws *waiters) setEnd(t *testing.T, p uint16, key string, end uint64) {
	t.Helper()
	txn := ws.e.Lock(p, 1)
	defer txn.Unlock()
	if err := txn.Set([]byte(key), strconv.AppendUint(nil, end, 10), TypeString, 0); err != nil {
		t.Fatal(err)
	}
}

// lookedAt checks how many waiters were looked at since the last call.
func lookedAt(t *testing.T, looked *int, want int) {
	t.Helper()
	if *looked != want {
		t.Errorf("%d waiters were looked at, want %d", *looked, want)
	}
	*looked = 0
}

// TestPositions: all those are served that the value has passed, and nobody is looked at by a change that adds
// nothing.
func TestPositions(t *testing.T) {
	ws, looked := newPositions(t)
	for _, p := range []uint64{5, 9, 3, 5} {
		ws.behind(2, fmt.Sprint(p), "", p, "k")
	}
	far := ws.behind(2, "far", "", 1000, "k")
	ws.setEnd(t, 2, "k", 3)
	lookedAt(t, looked, 0)
	ws.setEnd(t, 2, "k", 6)
	ws.want(t, "5", "3", "5")
	lookedAt(t, looked, 3)
	a := far.extra.queue
	if a.details.least != (Position{Lo: 9}) {
		t.Errorf("the least position is %v", a.details.least)
	}
	ws.setEnd(t, 2, "k", 10)
	ws.want(t, "9")
	ws.behind(2, "new", "", 10, "k")
	if a.details.least != (Position{Lo: 10}) {
		t.Errorf("the least position is %v", a.details.least)
	}
	ws.e.Leave(far)
	ws.setEnd(t, 2, "k", 11)
	ws.want(t, "new")
	ws.nobody(t)
}

// TestPositionsKept: who was looked at and waits on does not hide others, and comes again with the next change.
func TestPositionsKept(t *testing.T) {
	ws, looked := newPositions(t)
	ws.keeps["keeps"] = true
	keeps := ws.behind(2, "keeps", "", 1, "k")
	ws.behind(2, "other", "", 1, "k", "k")
	ws.setEnd(t, 2, "k", 2)
	ws.want(t, "other")
	ws.setEnd(t, 2, "k", 2)
	lookedAt(t, looked, 3)
	txn := ws.e.Lock(2, 1)
	txn.Saw(keeps, []Position{{Lo: 2}})
	txn.Unlock()
	ws.setEnd(t, 2, "k", 2)
	lookedAt(t, looked, 0)
	if least := keeps.extra.queue.details.least; least != (Position{Lo: 2}) {
		t.Errorf("the least position is %v", least)
	}
	ws.e.Leave(keeps)
	ws.nobody(t)
}

// TestPositionsMany: very many waiters are served in slices, and those that are passed over are not looked at
// again by the next slice.
func TestPositionsMany(t *testing.T) {
	ws, looked := newPositions(t)
	const clients = 20 * servingSteps
	var all []*Waiter
	for i := range clients {
		ws.keeps[fmt.Sprint(i)] = i%2 == 0
		all = append(all, ws.behind(2, fmt.Sprint(i), "", uint64(i%4), "k"))
	}
	ws.setEnd(t, 2, "k", 3) // a quarter has seen that
	if len(ws.holds) != 1 {
		t.Fatalf("%d holds", len(ws.holds))
	}
	h := ws.holds[0]
	for turns := 0; !h.ServeOn(); turns++ {
		if turns > clients {
			t.Fatal("the slices do not end")
		}
		ws.e.Leave(all[turns]) // perhaps the one with whom the next slice would begin
	}
	h.End()
	lookedAt(t, looked, clients*3/4)
	if len(ws.served) != clients/4 {
		t.Errorf("%d are served", len(ws.served))
	}
	for _, w := range all {
		ws.e.Leave(w)
	}
	ws.nobody(t)
}

// TestPositionsManyLeave: those with whom a slice would go on leave in between.
func TestPositionsManyLeave(t *testing.T) {
	ws, _ := newPositions(t)
	var all []*Waiter
	for range 3 * servingSteps {
		all = append(all, ws.behind(2, "w", "", 0, "k"))
	}
	ws.setEnd(t, 2, "k", 1)
	h := ws.holds[0]
	for _, w := range all[servingSteps : servingSteps+10] {
		if !ws.e.Leave(w) {
			t.Error("it was served")
		}
	}
	for !h.ServeOn() {
	}
	h.End()
	if n := len(ws.served); n != len(all)-10 {
		t.Errorf("%d are served", n)
	}
	ws.nobody(t)
}

// TestGroups: each group has an order of its own. When its first finds nothing, nobody behind it is looked at.
func TestGroups(t *testing.T) {
	ws, looked := newPositions(t)
	ws.setEnd(t, 2, "k", 1)
	for _, name := range []string{"a1", "b1", "a2", "b2", "a3"} {
		ws.behind(2, name, name[:1], 1, "k")
	}
	all := ws.behind(2, "all", "", 1, "k")
	ws.setEnd(t, 2, "k", 1)
	lookedAt(t, looked, 0)
	ws.keeps["a2"], ws.keeps["b2"] = true, true
	ws.setEnd(t, 2, "k", 2)
	ws.want(t, "a1", "b1", "all")
	lookedAt(t, looked, 5)
	if ws.e.Leave(all) {
		t.Error("it still waited")
	}
}

// TestGroupsLost: those in a group are served when the value goes, whatever comes in its place, others are not.
func TestGroupsLost(t *testing.T) {
	key := []byte("k")
	for name, lose := range map[string]func(e *Engine){
		"deleted": func(e *Engine) {
			txn := e.Lock(2, 1)
			defer txn.Unlock()
			txn.Delete(key)
		},
		"another type": func(e *Engine) {
			txn := e.Lock(2, 1)
			defer txn.Unlock()
			_ = txn.Set(key, make([]byte, 200), TypeHash, 0)
		},
		"deleted and made again": func(e *Engine) {
			txn := e.Lock(2, 1)
			defer txn.Unlock()
			txn.Delete(key)
			_ = txn.Set(key, []byte("1"), TypeString, 0)
		},
		"signaled": func(e *Engine) {
			txn := e.Lock(2, 1)
			defer txn.Unlock()
			txn.Signal(key)
		},
		"expired": func(e *Engine) {
			txn := e.Lock(2, 1)
			txn.SetExpire(key, 5)
			txn.Unlock()
			e.Sweep(9, 1000)
		},
		"dropped": func(e *Engine) { e.DropUnheld(2, func() bool { return true }) },
	} {
		t.Run(name, func(t *testing.T) {
			ws, _ := newPositions(t)
			ws.setEnd(t, 2, "k", 1)
			ws.setEnd(t, 4, "m", 1)
			ws.behind(2, "a", "g", 1, "k", "l")
			ws.behind(2, "b", "g", 1, "k")
			stays, other := ws.behind(2, "stays", "", 1, "k"), ws.behind(4, "other", "g", 1, "m")
			lose(ws.e)
			ws.want(t, "a", "b")
			if !ws.e.Leave(stays) || !ws.e.Leave(other) {
				t.Error("somebody else was served")
			}
			ws.nobody(t)
		})
	}
}

// TestGroupsMany: a group that loses its value is served in slices.
func TestGroupsMany(t *testing.T) {
	ws, _ := newPositions(t)
	for range 3*servingSteps + 1 {
		ws.behind(2, "w", "g", 1, "k")
	}
	ws.e.DropUnheld(2, func() bool { return true }) // nothing is there
	ws.setEnd(t, 2, "k", 1)
	ws.want(t)
	ws.e.DropUnheld(2, func() bool { return true })
	if len(ws.holds) != 1 {
		t.Fatalf("%d holds", len(ws.holds))
	}
	for !ws.holds[0].ServeOn() {
	}
	ws.holds[0].End()
	if n := len(ws.served); n != 3*servingSteps+1 {
		t.Errorf("%d are served", n)
	}
	ws.nobody(t)
}

// TestRetry: who wants something that time brings is served out of turn, when its partition is free.
func TestRetry(t *testing.T) {
	ws, looked := newPositions(t)
	ws.setEnd(t, 2, "k", 1)
	first := ws.behind(2, "first", "g", 1, "k")
	w := ws.behind(2, "w", "g", 1, "k")
	ws.keeps["w"] = true
	ws.e.Retry(w, 1)
	lookedAt(t, looked, 1)
	txn := ws.e.Lock(2, 1)
	h := txn.Hold()
	txn.Unlock()
	ws.keeps["w"] = false
	ws.e.Retry(w, 1)
	ws.e.Retry(w, 1)
	gone := ws.behind(2, "gone", "g", 1, "k")
	ws.e.Retry(gone, 1)
	ws.e.Leave(gone)
	ws.want(t)
	h.End()
	ws.want(t, "w")
	ws.e.Retry(w, 1) // in vain
	ws.want(t)
	ws.e.Leave(first)
	ws.nobody(t)
}

// TestRecheckOfGroups: who waited where nobody was served is looked at, whatever it has seen.
func TestRecheckOfGroups(t *testing.T) {
	ws, _ := newPositions(t)
	ws.setEnd(t, 2, "k", 1)
	w := ws.behind(2, "w", "g", 1, "k")
	ws.fenced = true
	txn := ws.e.Lock(2, 1)
	txn.Delete([]byte("k"))
	txn.Unlock()
	ws.fenced = false
	ws.want(t)
	ws.e.Recheck(w, 1)
	ws.want(t, "w")
	ws.nobody(t)
}

// TestClaimsBehind: a claim with a position is told when there is something behind it. It has a turn in a group only.
func TestClaimsBehind(t *testing.T) {
	ws := newWaiters(t)
	claim := func(owner, group string, keys ...string) {
		ws.wish(2, waiterOf(owner, true), group, 1, keys...)
	}
	ws.setEnd(t, 2, "k", 1)
	ws.setEnd(t, 2, "l", 1)
	claim("a", "", "l", "k")
	claim("b", "", "k")
	claim("g", "g", "l", "k")
	claim("h", "g", "k")
	ws.setEnd(t, 2, "k", 1)
	ws.want(t)
	ws.setEnd(t, 2, "k", 2)
	ws.want(t, "a 1 0", "b 0 0", "g 1 1")
	ws.setEnd(t, 2, "k", 3)
	ws.want(t)
	ws.e.EndTurn(2, TypeString, []byte("g"), []byte("k"), 1, 1)
	ws.want(t, "h 0 0")
	ws.nobody(t)
}

// TestClaimsOfLostGroups: a claim is told when its value has gone, so that its command says so.
func TestClaimsOfLostGroups(t *testing.T) {
	ws := newWaiters(t)
	ws.setEnd(t, 2, "k", 1)
	ws.wish(2, waiterOf("a", true), "g", 1, "l", "k")
	w := ws.behind(2, "x", "g", 1, "k")
	txn := ws.e.Lock(2, 1)
	txn.Delete([]byte("k"))
	_ = txn.Set([]byte("l"), []byte("1"), TypeString, 0)
	_ = txn.Set([]byte("k"), []byte("1"), TypeString, 0)
	txn.Unlock()
	ws.want(t, "a 1 1")
	ws.e.Leave(w)
	ws.nobody(t)
}
