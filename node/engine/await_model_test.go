package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// queueModel is an engine whose keys are queues of numbered elements, and beside it who waits for them. A value says
// how many elements were pushed to its key and popped from it.
type queueModel struct {
	*waiters
	t       *testing.T
	rng     *rand.Rand
	waiting []*queued
	turns   map[string]turnOf // by key
	pushed  map[string]int
	popped  map[string]int
	nextID  int
}

// queued is somebody who waits.
type queued struct {
	w     *Waiter
	name  string
	keys  []string
	since int64
	id    int
	other bool // for a type that nobody stores
}

// turnOf is the turn of a claim.
type turnOf struct {
	number uint64
	of     *queued
}

const queuesIn = 2 // the partition of the keys

func newQueueModel(t *testing.T, seed uint64) *queueModel {
	m := &queueModel{
		waiters: newWaiters(t), t: t, rng: rand.New(rand.NewPCG(seed, 7)), turns: make(map[string]turnOf),
		pushed: make(map[string]int), popped: make(map[string]int),
	}
	m.e.servers.Serve = m.serve
	m.e.servers.Tell = m.tell
	return m
}

// left is how many elements a key has.
func (m *queueModel) left(key string) int { return m.pushed[key] - m.popped[key] }

// store writes what a key has.
func (m *queueModel) store(t Txn, key string) {
	if m.left(key) == 0 {
		t.Delete([]byte(key))
	} else if err := t.Set([]byte(key), fmt.Appendf(nil, "%d of %d", m.popped[key], m.pushed[key]), TypeString, 0); err != nil {
		m.t.Fatal(err)
	}
}

// waitsFor reports whether somebody waits for a key.
func (q *queued) waitsFor(key string) bool { return !q.other && slices.Contains(q.keys, key) }

// serve pops from the first key of a waiter that has an element.
func (m *queueModel) serve(t Txn, w *Waiter) (deliver func(), ended bool, steps int) {
	q := ownerOf(w).(*queued)
	m.wantFirst(q)
	for _, key := range q.keys {
		if m.left(key) == 0 {
			continue
		}
		m.popped[key]++
		m.store(t, key)
		m.forget(q)
		return nil, true, 0
	}
	m.t.Errorf("%s is served, and there is nothing for it", q.name)
	return nil, true, 0
}

// tell gives a claim its turn.
func (m *queueModel) tell(w *Waiter, turn Turn) (deliver func()) {
	q := ownerOf(w).(*queued)
	key := q.keys[turn.Key]
	m.wantFirst(q)
	m.forget(q)
	others := slices.ContainsFunc(m.waiting, func(o *queued) bool { return o.waitsFor(key) })
	if m.left(key) == 0 || m.turns[key].of != nil || others != (turn.Number != 0) {
		m.t.Errorf("%s gets turn %d at %s, which has %d elements; others wait: %v", q.name, turn.Number, key, m.left(key), others)
	}
	if turn.Number != 0 {
		m.turns[key] = turnOf{turn.Number, q}
	}
	return func() {}
}

// wantFirst checks that q came first to one of its keys that has an element and is nobody's turn. As in Redis, it is
// served by the first of all its keys that have one then.
func (m *queueModel) wantFirst(q *queued) {
	for _, key := range q.keys {
		if m.left(key) > 0 && m.turns[key].of == nil && !slices.ContainsFunc(m.waiting, func(o *queued) bool {
			return o != q && o.waitsFor(key) && (o.since < q.since || o.since == q.since && o.id < q.id)
		}) {
			return
		}
	}
	m.t.Errorf("%s is served before others", q.name)
}

func (m *queueModel) forget(q *queued) {
	m.waiting = slices.DeleteFunc(m.waiting, func(o *queued) bool { return o == q })
	for key := range m.turns { // a turn goes with the last of those that it keeps waiting
		if !slices.ContainsFunc(m.waiting, func(o *queued) bool { return o.waitsFor(key) }) {
			delete(m.turns, key)
		}
	}
}

// wait has somebody begin to wait, unless there is something for it.
func (m *queueModel) wait() {
	m.nextID++
	q := &queued{id: m.nextID, name: fmt.Sprintf("waiter %d", m.nextID), other: m.rng.IntN(8) == 0}
	for range 1 + m.rng.IntN(3) {
		q.keys = append(q.keys, m.key())
	}
	claims := m.rng.IntN(3) == 0
	for _, key := range q.keys {
		if m.left(key) > 0 && !(claims && m.turns[key].of != nil) && !q.other {
			return
		}
	}
	since := -time.Duration(m.rng.IntN(3)) * time.Second
	q.since = since.Milliseconds()
	q.w = waiterOf(q, claims)
	wish := Wish{Type: TypeString, Since: since}
	if q.other {
		wish.Type = TypeHash
	}
	for _, key := range q.keys {
		wish.Keys = append(wish.Keys, []byte(key))
	}
	t := m.e.Lock(queuesIn, 0)
	m.waiting = append(m.waiting, q)
	awaitWish(t, q.w, wish)
	t.Unlock()
}

func (m *queueModel) key() string { return string(rune('a' + m.rng.IntN(5))) }

// push has a transaction push to some keys.
func (m *queueModel) push() {
	t := m.e.Lock(queuesIn, 0)
	defer t.Unlock()
	for range 1 + m.rng.IntN(2) {
		key := m.key()
		m.pushed[key] += 1 + m.rng.IntN(3)
		m.store(t, key)
	}
}

// pop has somebody pop who has not waited.
func (m *queueModel) pop(key string) {
	t := m.e.Lock(queuesIn, 0)
	defer t.Unlock()
	if m.left(key) > 0 {
		m.popped[key]++
		m.store(t, key)
	}
}

// pass ends a turn, or one that is over.
func (m *queueModel) pass(key string) {
	turn := m.turns[key].number
	if turn != 0 && m.rng.IntN(4) == 0 {
		turn--
	} else {
		delete(m.turns, key)
	}
	m.e.EndTurn(queuesIn, TypeString, nil, []byte(key), turn, 0)
}

func (m *queueModel) leave() {
	if len(m.waiting) == 0 {
		return
	}
	q := m.waiting[m.rng.IntN(len(m.waiting))]
	if !m.e.Leave(q.w) {
		m.t.Errorf("%s has been served, and nobody knows", q.name)
	}
	m.forget(q)
}

// check looks at all queues when nothing is due.
func (m *queueModel) check() {
	m.t.Helper()
	for len(m.holds) > 0 {
		h := m.holds[0]
		for m.holds = m.holds[1:]; !h.ServeOn(); {
		}
		h.End()
	}
	for _, q := range m.waiting {
		for _, key := range q.keys {
			if !q.other && m.left(key) > 0 && m.turns[key].of == nil {
				m.t.Errorf("%s waits for %s, which has %d elements", q.name, key, m.left(key))
			}
		}
	}
	s := m.e.shardOf(queuesIn)
	places := len(s.awaits.alone)
	for tag, w := range s.awaits.alone {
		if !s.isAlone(w) || s.awaits.keys[tag] != nil || w.first.prev != &w.first || w.first.next != nil {
			m.t.Error("somebody who is not alone has no queue")
		}
	}
	for _, a := range s.awaits.keys {
		for ; a != nil; a = a.chain {
			last := (*place)(nil)
			for at := a.first; at != nil; last, at = at, at.next {
				places++
				if s.queueOf(at.waiter(), int(at.index)) != a || at != a.first && at.prev != last || !strings.Contains("abcde", string(at.key())) {
					m.t.Error("a queue is broken")
				}
			}
			if a.first == nil || a.first.prev != last {
				m.t.Error("the first of a queue does not know the last")
			}
		}
	}
	want := 0
	for _, q := range m.waiting {
		want += len(q.keys)
	}
	if places != want {
		m.t.Errorf("there are %d places in the queues, want %d", places, want)
	}
}

// TestQueuesInRandomSchedules: whatever comes in whichever order, each element goes to one of those who wait, first
// come, first served, nobody waits beside an element unless a claim has its turn, and no turn is given in vain.
func TestQueuesInRandomSchedules(t *testing.T) {
	oneGoroutine(t)
	for seed := range uint64(200) {
		m := newQueueModel(t, seed)
		for range 300 {
			switch n := m.rng.IntN(100); {
			case n < 40:
				m.wait()
			case n < 65:
				m.push()
			case n < 75:
				m.pop(m.key())
			case n < 90:
				m.pass(m.key())
			case n < 99:
				m.leave()
			default:
				m.e.Reset(seed + uint64(n))
				clear(m.pushed)
				clear(m.popped)
			}
			if m.check(); t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		for len(m.waiting) > 0 {
			m.leave()
		}
		m.nobody(t)
	}
}
