package engine

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"unsafe"
)

// waiters are the waiters of a test, and what they were served with.
type waiters struct {
	e      *Engine
	served []string
	keeps  map[string]bool // those whose commands go on waiting
	holds  []*Hold
	fenced bool // nobody is served
}

func newWaiters(t *testing.T) *waiters {
	ws := &waiters{keeps: make(map[string]bool)}
	ws.e = open(t, Config{MaxBytes: 16 << 20, Shards: 2, Servers: Servers{
		Serves: func(uint16) bool { return !ws.fenced },
		Serve: func(t Txn, w *Waiter) (func(), bool, int) {
			name := ownerOf(w).(string)
			if ws.keeps[name] {
				return nil, false, 0
			}
			t.Delete([]byte(name))
			return func() { ws.served = append(ws.served, name) }, true, 0
		},
		Finds: func(_ Txn, w *Waiter) bool { return !ws.keeps[ownerOf(w).(string)] },
		Tell: func(w *Waiter, turn Turn) func() {
			told := fmt.Sprintf("%v %d %d", ownerOf(w), turn.Key, turn.Number)
			return func() { ws.served = append(ws.served, told) }
		},
		ServeOn: func(h *Hold) { ws.holds = append(ws.holds, h) },
		End:     func(t Txn, item Item) Position { return ws.endOf(item) },
	}})
	return ws
}

// owned is a waiter, and what a test knows of it.
type owned struct {
	Waiter
	owner any
}

func waiterOf(owner any, claims bool) *Waiter {
	return &(&owned{Waiter: Waiter{Claims: claims}, owner: owner}).Waiter
}

// ownerOf returns what waiterOf was given.
func ownerOf(w *Waiter) any { return (*owned)(unsafe.Pointer(w)).owner }

// awaitWish is Await with a text that is the keys.
func awaitWish(t Txn, w *Waiter, wish Wish) {
	var text []byte
	var parts []Part
	for _, key := range wish.Keys {
		parts = append(parts, Part{At: uint32(len(text)), Len: uint16(len(key))})
		text = append(text, key...)
	}
	t.Await(w, wish, string(text), parts)
}

func (ws *waiters) await(p uint16, owner string, keys ...string) *Waiter {
	w := waiterOf(owner, false)
	t := ws.e.Lock(p, 1)
	defer t.Unlock()
	var all [][]byte
	for _, k := range keys {
		all = append(all, []byte(k))
	}
	awaitWish(t, w, Wish{Type: TypeString, Keys: all})
	return w
}

func (ws *waiters) set(t *testing.T, p uint16, key string) {
	t.Helper()
	txn := ws.e.Lock(p, 1)
	if err := txn.Set([]byte(key), []byte("v"), TypeString, 0); err != nil {
		t.Fatal(err)
	}
	txn.Unlock()
}

// endOf is the number that a value is, or the end.
func (ws *waiters) endOf(item Item) Position {
	if n, err := strconv.ParseUint(string(item.Value()), 10, 64); err == nil {
		return Position{Lo: n}
	}
	return End
}

// want checks who was served since the last call.
func (ws *waiters) want(t *testing.T, names ...string) {
	t.Helper()
	if !slices.Equal(ws.served, names) {
		t.Errorf("served %q, want %q", ws.served, names)
	}
	ws.served = nil
}

// nobody checks that the shards have forgotten all waiters, so that changes cost nothing.
func (ws *waiters) nobody(t *testing.T) {
	t.Helper()
	for i := range ws.e.shards {
		if s := &ws.e.shards[i]; !s.awaits.none() || len(s.awaits.groups) > 0 || len(s.awaits.due) > 0 || s.noting || s.ending {
			t.Errorf("shard %d: %d keys are awaited, %d due, noting %v, ending %v",
				i, len(s.awaits.alone)+len(s.awaits.keys), len(s.awaits.due), s.noting, s.ending)
		}
	}
}

// TestAwait: waiters are served in order, once each, by keys of their partition.
func TestAwait(t *testing.T) {
	ws := newWaiters(t)
	ws.await(2, "a", "x", "a", "a")
	ws.await(2, "b", "b", "a")
	ws.await(4, "a", "a") // the same shard, another partition
	ws.set(t, 3, "a")
	ws.set(t, 2, "other")
	ws.want(t)
	ws.set(t, 2, "a")
	ws.want(t, "a") // which has taken the key away
	ws.set(t, 2, "a")
	ws.want(t, "b")
	ws.set(t, 4, "a")
	ws.want(t, "a")
	ws.nobody(t)
}

// TestAwaitKeepsPlace: whoever is not served keeps its place, and does not keep others from being served.
func TestAwaitKeepsPlace(t *testing.T) {
	ws := newWaiters(t)
	ws.keeps["first"] = true
	first := ws.await(2, "first", "k")
	ws.await(2, "k", "k")
	ws.set(t, 2, "k")
	ws.want(t, "k")
	if !ws.e.Leave(first) || ws.e.Leave(first) {
		t.Error("a waiter leaves once")
	}
	ws.nobody(t)
}

// TestAwaitReset: a reset gives the keys of waiters new places.
func TestAwaitReset(t *testing.T) {
	ws := newWaiters(t)
	ws.await(2, "k", "k")
	ws.e.Reset(7)
	ws.set(t, 2, "k")
	ws.want(t, "k")
	ws.nobody(t)
}

// TestAwaitInCopy: nobody takes anything from a copy.
func TestAwaitInCopy(t *testing.T) {
	ws := newWaiters(t)
	w := ws.await(2, "k", "k")
	ws.e.SetCopy(2, SpareCopy)
	ws.set(t, 2, "k")
	ws.want(t)
	ws.e.Leave(w)
	ws.nobody(t)
}

// TestAwaitHold: a held partition serves its waiters when the hold ends, and others at once.
func TestAwaitHold(t *testing.T) {
	ws := newWaiters(t)
	ws.await(2, "k", "k")
	ws.await(4, "l", "l")
	txn := ws.e.Lock(2, 1)
	h := txn.Hold()
	txn.Unlock()
	txn = h.Lock()
	if err := txn.Set([]byte("k"), []byte("v"), TypeString, 0); err != nil {
		t.Fatal(err)
	}
	txn.Unlock()
	ws.set(t, 4, "l")
	ws.want(t, "l")
	h.End()
	ws.want(t, "k")
	ws.nobody(t)
}

// TestAwaitMany: the partition is held until all are served.
func TestAwaitMany(t *testing.T) {
	ws := newWaiters(t)
	const clients = 3*servingSteps + 1
	txn := ws.e.Lock(2, 1)
	for i := range clients {
		awaitWish(txn, waiterOf("none", false), Wish{Type: TypeString, Keys: [][]byte{[]byte("k"), []byte(fmt.Sprint(i))}})
	}
	txn.Unlock()
	ws.set(t, 2, "k")
	if len(ws.served) != servingSteps || len(ws.holds) != 1 {
		t.Fatalf("%d are served under one lock, and there are %d holds", len(ws.served), len(ws.holds))
	}
	h, turns := ws.holds[0], 1
	for !h.ServeOn() {
		turns++
	}
	if turns != 3 || len(ws.served) != clients {
		t.Errorf("%d are served after %d turns", len(ws.served), turns)
	}
	h.End()
	ws.nobody(t)
}

// TestAwaitTagsCollide: those who wait for different keys of one tag do not get in each other's way, also when keys
// get other tags meanwhile.
func TestAwaitTagsCollide(t *testing.T) {
	ws := newWaiters(t)
	s := ws.e.shardOf(2)
	x, y, seen := "", "", make(map[uint32]string)
	for i := 0; y == ""; i++ {
		key := fmt.Sprint(i)
		tag := s.tagApart(2, []byte(key))
		if x = seen[tag]; x != "" {
			y = key
		}
		seen[tag] = key
	}
	seed := s.seed.Load()
	reseed := func(seed uint64) {
		s.awaits.retag(seed)
		s.seed.Store(seed)
	}
	for _, c := range []struct {
		name          string
		before, after uint64
	}{{"always", seed, seed}, {"first", seed, seed + 1}, {"later", seed + 1, seed}, {"never", seed + 1, seed + 2}} {
		t.Run(c.name, func(t *testing.T) {
			reseed(c.before)
			first, second := ws.await(2, x, x), ws.await(2, y, y)
			reseed(c.after)
			ws.set(t, 2, y)
			ws.want(t, y)
			third := ws.await(2, y, y)
			if !ws.e.Leave(first) || ws.e.Leave(second) {
				t.Error("who waits does not, or who was served does")
			}
			ws.await(2, x, x)
			ws.set(t, 2, x)
			ws.want(t, x)
			if !ws.e.Leave(third) {
				t.Error("the third one does not wait")
			}
			ws.nobody(t)
		})
	}
}

// isAlone reports whether w has no queue.
func (s *shard) isAlone(w *Waiter) bool {
	return w.extra == nil && s.awaits.alone[s.tagApart(w.section, w.first.key())] == w
}

// dueKeys counts the keys that are due in a shard.
func (ws *waiters) dueKeys(p uint16) (n int) {
	for _, d := range ws.e.shardOf(p).awaits.due {
		for a := d.first; a != nil; a = a.next {
			n++
		}
	}
	return n
}

// TestAwaitDueSteps: however many keys are due, only some are looked at under one lock, also if nobody
// wants what they hold. A fault that there was is that only those who were served were counted.
func TestAwaitDueSteps(t *testing.T) {
	ws := newWaiters(t)
	const clients, each, due = 40, 250, 10_000
	held := func(p uint16) *Hold {
		txn := ws.e.Lock(p, 1)
		defer txn.Unlock()
		return txn.Hold()
	}
	h := held(2)
	var all []*Waiter
	for i := range clients {
		var keys []string
		for j := range each {
			keys = append(keys, fmt.Sprintf("%d %d", i, j))
		}
		all = append(all, ws.await(2, "nobody", keys...))
		txn := h.Lock()
		for _, k := range keys {
			if err := txn.Set([]byte(k), []byte("v"), TypeString, 0); err != nil {
				t.Fatal(err)
			}
			txn.Delete([]byte(k))
		}
		txn.Unlock()
	}
	left := ws.dueKeys(2)
	if left != due {
		t.Fatalf("%d keys are due", left)
	}
	step := func() {
		t.Helper()
		before := left
		if left = ws.dueKeys(2); before-left > servingSteps {
			t.Fatalf("%d keys are looked at under one lock", before-left)
		}
	}
	h.End()
	step()
	for done := false; !done; step() {
		done = ws.holds[0].ServeOn()
	}
	ws.holds[0].End()
	for _, w := range all {
		ws.e.Leave(w)
	}
	if len(ws.holds) != 1 || left != 0 {
		t.Errorf("%d holds, %d keys are due", len(ws.holds), left)
	}
	ws.nobody(t)
}

// TestAwaitKeysSteps: those who wait for many keys are served in more slices.
func TestAwaitKeysSteps(t *testing.T) {
	ws := newWaiters(t)
	keys := []string{"k"}
	for i := range 255 {
		keys = append(keys, fmt.Sprint(i))
	}
	for range 4 {
		ws.await(2, "none", keys...)
	}
	ws.set(t, 2, "k")
	if len(ws.served) != 2 {
		t.Errorf("%d of 256 keys are served under one lock", len(ws.served))
	}
	for !ws.holds[0].ServeOn() {
	}
	ws.holds[0].End()
	ws.want(t, "none", "none", "none", "none")
	ws.nobody(t)
}

// TestAwaitTypes: a value costs those nothing who wait for another type, and they keep their places.
func TestAwaitTypes(t *testing.T) {
	ws := newWaiters(t)
	var others []*Waiter
	txn := ws.e.Lock(2, 1)
	for range 2 * servingSteps {
		w := waiterOf("other", false)
		awaitWish(txn, w, Wish{Type: TypeHash, Keys: [][]byte{[]byte("k")}})
		others = append(others, w)
	}
	txn.Unlock()
	ws.await(2, "k", "k")
	ws.set(t, 2, "k")
	ws.want(t, "k")
	if len(ws.holds) != 0 {
		t.Error("the others were looked at")
	}
	for _, w := range others {
		if !ws.e.Leave(w) {
			t.Fatal("a waiter for another type was served")
		}
	}
	ws.nobody(t)
}

// TestAwaitDropped: at a node that may not serve any more, slices and the end of a hold serve nobody. Those
// who wait get what they have missed when it may again.
func TestAwaitDropped(t *testing.T) {
	ws := newWaiters(t)
	const clients = 3 * servingSteps
	var all []*Waiter
	for range clients {
		all = append(all, ws.await(2, "none", "k", "l"))
	}
	ws.set(t, 2, "k")
	ws.fenced = true
	h := ws.holds[0]
	if !h.ServeOn() {
		t.Error("a slice leaves keys due that nobody serves")
	}
	txn := h.Lock()
	if err := txn.Set([]byte("l"), []byte("v"), TypeString, 0); err != nil {
		t.Fatal(err)
	}
	txn.Unlock()
	h.End()
	if n := len(ws.served); n != servingSteps {
		t.Errorf("%d are served", n)
	}
	ws.set(t, 2, "k") // it is due, dropped, and due again
	ws.fenced = false
	ws.e.Recheck(all[servingSteps], 1)
	h = ws.holds[len(ws.holds)-1]
	for !h.ServeOn() {
	}
	h.End()
	if n := len(ws.served); n != clients || ws.dueKeys(2) != 0 {
		t.Errorf("%d are served then, %d keys are due", n, ws.dueKeys(2))
	}
	ws.nobody(t)
}
