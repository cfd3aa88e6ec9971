package engine

import (
	"slices"
	"time"
)

// A key can be awaited: by commands that found nothing under it. They stand in a queue, and whoever
// gives the key a value of their type serves them, in order and before the lock is released:
//
//	BLPOP q ─> Await ─┐
//	                  ├─ awaited key: waiter, waiter …
//	BLPOP q ─> Await ─┘       ▲ due            └─> Servers.Serve pops for one after the other
//	RPUSH q ─> changed ───────┘ ─> Unlock
//
// So nobody sees an element between the push and the pop of a waiter. In a partition that is held,
// waiters are served when the hold ends. What takes more than servingSteps is done in slices, and the
// partition is held meanwhile. What serves a waiter may make other keys due. Nobody is served in a copy, or
// where Servers.Serves says no: what is due there is dropped, and Recheck finds it again.
//
// Those that wait for values of different types under one key stand in different queues, so a value
// costs nothing to those that do not want it.
//
// A claim is a waiter that is told to pop instead of being served, since its command names keys of other
// nodes too. It has its turn then: it is in no queue any more, and nobody behind it is served until the turn is
// ended, whatever is pushed meanwhile: otherwise those behind it would take what it was told of, again and
// again. Commands that have not waited may take it.
//
// A shard in which nobody waits knows it by shard.noting and shard.ending, which each change and
// each Unlock look at anyway.

// servingSteps are done under one lock: a due key that is looked at is one, and so is a waiter whose
// command is executed, and keysPerStep of the keys that it names.
const servingSteps, keysPerStep = 64, 8

// Waiter waits for one of some keys of a partition. The shard's lock protects it.
type Waiter struct {
	Owner     any    // of the Servers
	Turn      uint64 // of a claim that was served, at the key Ready; 0: nobody else waits there
	Ready     uint16 // of a claim that was served: which of its keys has a value
	Claims    bool   // it is a claim
	partition uint16
	since     int64   // in unix milliseconds, minus how long it has waited elsewhere
	places    []place // nil: it does not wait
	single    [1]place
}

// place is where a waiter stands in the queue of one key.
type place struct {
	waiter     *Waiter
	key        *awaited
	prev, next *place
}

// awaited is a key that somebody waits for, and a type.
type awaited struct {
	key         string
	tag         uint32
	partition   uint16
	typ         Type
	first, last *place
	turn        uint64   // that a claim has; 0: none
	due         *dueKeys // where it is due; nil: it has not changed since its waiters were served
	prev, next  *awaited // of these
}

// awaits are the keys of a shard that somebody waits for.
type awaits struct {
	keys map[uint32][]*awaited // by tag
	due  []*dueKeys            // no two of one partition, and none empty
	turn uint64                // the last one that a claim got
}

// dueKeys are the due keys of a partition, in the order in which they changed.
type dueKeys struct {
	partition   uint16
	first, last *awaited
	dropped     bool // they are not due any more
}

// Servers serve those that wait.
type Servers struct {
	// Serves reports whether those that wait for keys of a partition may be served now.
	Serves func(partition uint16) bool
	// Serve executes the command of a waiter in a partition that t has locked, and reports whether its
	// wait has ended; otherwise the waiter keeps its place. deliver, unless it is nil, is called when the
	// shard is unlocked.
	Serve func(t Txn, w *Waiter) (deliver func(), ended bool)
	// ServeOn calls Hold.ServeOn until it is done, in slices, and then ends the hold. It does not wait.
	ServeOn func(h *Hold)
}

// Await has w, which does not wait yet, wait for a value of a type under one of the keys, which are
// copied. Keys may be named twice. w has waited elsewhere for so long, and stands in front of those that came
// after that, as far as that is quickly found.
func (t Txn) Await(w *Waiter, typ Type, keys [][]byte, waited time.Duration) {
	s := t.s
	w.since = s.now - waited.Milliseconds()
	if s.awaits.keys == nil {
		s.awaits.keys = make(map[uint32][]*awaited)
	}
	s.noting = true
	w.partition, w.places = t.number, w.single[:1]
	if len(keys) > 1 {
		w.places = make([]place, len(keys))
	}
	for i, key := range keys {
		a := s.awaits.at(t.number, typ, tagOf(s.seed.Load(), key), key)
		at := &w.places[i]
		*at = place{waiter: w, key: a}
		at.insert(a.behind(w.since))
	}
}

// seekingSteps are how many waiters a place in the queue is looked for among, from either end.
const seekingSteps = 64

// behind returns behind whom somebody stands who waits since then, nil if at the front.
func (a *awaited) behind(since int64) *place {
	at := a.last
	for range seekingSteps {
		if at == nil || at.waiter.since <= since {
			return at
		}
		at = at.prev
	}
	var before *place
	at = a.first
	for range seekingSteps {
		if at.waiter.since > since {
			break
		}
		before, at = at, at.next
	}
	return before
}

// insert puts a place into the queue of its key, behind another one or at the front.
func (at *place) insert(behind *place) {
	a := at.key
	if at.prev = behind; behind == nil {
		at.next, a.first = a.first, at
	} else {
		at.next, behind.next = behind.next, at
	}
	if at.next == nil {
		a.last = at
	} else {
		at.next.prev = at
	}
}

// at returns the queue of a key and a type, a new one if nobody waits for it.
func (as *awaits) at(partition uint16, typ Type, tag uint32, key []byte) *awaited {
	if a := as.find(partition, typ, tag, key); a != nil {
		return a
	}
	a := &awaited{key: string(key), tag: tag, partition: partition, typ: typ}
	as.keys[tag] = append(as.keys[tag], a)
	return a
}

// HasTurn reports whether a claim has its turn at a key.
func (t Txn) HasTurn(typ Type, key []byte) bool {
	a := t.s.awaits.find(t.number, typ, tagOf(t.s.seed.Load(), key), key)
	return a != nil && a.turn != 0
}

// EndTurn ends the turn of a claim at a key, and serves those behind it, if it is not over.
func (e *Engine) EndTurn(partition uint16, typ Type, key []byte, turn uint64, nowMilli int64) {
	t := e.Lock(partition, nowMilli)
	defer t.Unlock()
	if a := t.s.awaits.find(partition, typ, tagOf(t.s.seed.Load(), key), key); a != nil && a.turn == turn {
		a.turn = 0
		t.s.noteDue(a)
	}
}

// find returns the queue of a key and a type, nil if nobody waits for it.
func (as *awaits) find(partition uint16, typ Type, tag uint32, key []byte) *awaited {
	for _, a := range as.keys[tag] {
		if a.partition == partition && a.typ == typ && a.key == string(key) {
			return a
		}
	}
	return nil
}

// Leave ends the wait of w and reports whether it still waited. If not, it was served: its result is
// on its way.
func (e *Engine) Leave(w *Waiter) bool {
	s := e.shardOf(w.partition)
	s.mu.Lock()
	defer s.mu.Unlock()
	waited := w.places != nil
	s.leave(w)
	return waited
}

// Recheck serves those that wait for the keys of w, if these have values of its type: they may have come
// when nobody was served.
func (e *Engine) Recheck(w *Waiter, nowMilli int64) {
	t := e.Lock(w.partition, nowMilli)
	defer t.Unlock()
	for i := range w.places {
		a := w.places[i].key
		if item, found := t.Peek([]byte(a.key)); found && item.Type() == a.typ {
			t.s.noteDue(a)
		}
	}
}

// leave takes w out of all queues.
func (s *shard) leave(w *Waiter) {
	for i := range w.places {
		at := &w.places[i]
		a := at.key
		if at.prev == nil {
			a.first = at.next
		} else {
			at.prev.next = at.next
		}
		if at.next == nil {
			a.last = at.prev
		} else {
			at.next.prev = at.prev
		}
		if *at = (place{}); a.first == nil {
			s.awaits.forget(a)
		}
	}
	w.places = nil
	s.noteDuties()
}

// forget removes a key for which nobody waits any more.
func (as *awaits) forget(a *awaited) {
	rest := slices.DeleteFunc(as.keys[a.tag], func(b *awaited) bool { return a == b })
	if as.keys[a.tag] = rest; len(rest) == 0 {
		delete(as.keys, a.tag)
	}
	as.settle(a)
}

// noteAwaited notes that a key with the tag has changed.
func (s *shard) noteAwaited(tag uint32) {
	for _, a := range s.awaits.keys[tag] {
		s.noteDue(a)
	}
}

// noteDue notes that a is due, behind what is due in its partition.
func (s *shard) noteDue(a *awaited) {
	s.ending = true
	switch {
	case a.due == nil:
	case a.due.dropped:
		s.awaits.settle(a)
	default:
		return
	}
	d := s.awaits.dueIn(a.partition)
	if d == nil {
		d = &dueKeys{partition: a.partition}
		s.awaits.due = append(s.awaits.due, d)
	}
	a.due, a.prev = d, d.last
	if d.last == nil {
		d.first = a
	} else {
		d.last.next = a
	}
	d.last = a
}

// settle notes that a is not due any more, if it was.
func (as *awaits) settle(a *awaited) {
	d := a.due
	if d == nil {
		return
	}
	if a.prev == nil {
		d.first = a.next
	} else {
		a.prev.next = a.next
	}
	if a.next == nil {
		d.last = a.prev
	} else {
		a.next.prev = a.prev
	}
	a.due, a.prev, a.next = nil, nil, nil
	if d.first == nil {
		as.due = slices.DeleteFunc(as.due, func(b *dueKeys) bool { return b == d })
	}
}

// dueIn returns what is due in a partition, nil if nothing is. Few partitions have something.
func (as *awaits) dueIn(partition uint16) *dueKeys {
	for _, d := range as.due {
		if d.partition == partition {
			return d
		}
	}
	return nil
}

// retag gives the keys their tags by another seed.
func (as *awaits) retag(seed uint64) {
	old := as.keys
	as.keys = make(map[uint32][]*awaited, len(old))
	for _, all := range old {
		for _, a := range all {
			a.tag = tagOf(seed, []byte(a.key))
			as.keys[a.tag] = append(as.keys[a.tag], a)
		}
	}
}

// serveDue serves those that wait for keys that have changed, and returns what is to be called
// when the shard is unlocked.
func (s *shard) serveDue() (deliver []func()) {
	left := servingSteps
	for i := 0; i < len(s.awaits.due); {
		p := s.awaits.due[i].partition
		if s.holder(p) != nil { // the end of the hold serves it
			i++
		} else if !s.serveIn(p, &left, &deliver) {
			h := s.txn(p).Hold()
			deliver = append(deliver, func() { s.e.servers.ServeOn(h) })
		}
	}
	return deliver
}

// ServeOn serves the next of those that wait for keys of the partition that h holds, and reports
// whether nobody is left to be served. The caller then ends the hold.
func (h *Hold) ServeOn() (done bool) {
	t := h.Lock()
	left, deliver := servingSteps, []func(){}
	done = h.s.serveIn(h.partition, &left, &deliver)
	t.Unlock()
	for _, f := range deliver {
		f()
	}
	return done
}

// dropDue notes that nothing in a partition is due any more.
func (as *awaits) dropDue(partition uint16) {
	as.due = slices.DeleteFunc(as.due, func(d *dueKeys) bool {
		drop := d.partition == partition
		d.dropped = d.dropped || drop
		return drop
	})
}

// serveIn serves those that wait for due keys of a partition, in left steps, and reports whether none is
// due any more.
func (s *shard) serveIn(partition uint16, left *int, deliver *[]func()) (done bool) {
	if s.copies.has(partition) || !s.e.servers.Serves(partition) {
		s.awaits.dropDue(partition)
	}
	for {
		d := s.awaits.dueIn(partition)
		if d == nil || *left <= 0 {
			return d == nil
		}
		s.serve(d.first, left, deliver)
	}
}

// serve serves those that wait for one key, as long as it has a value of their type. It is due again if
// too few steps were left.
func (s *shard) serve(a *awaited, left *int, deliver *[]func()) {
	*left--
	s.awaits.settle(a)
	t := s.txn(a.partition)
	for at := a.first; at != nil; {
		if item, found := t.Peek([]byte(a.key)); !found || item.Type() != a.typ {
			return
		}
		if *left < 0 {
			s.noteDue(a)
			return
		}
		if a.turn != 0 {
			return
		}
		w := at.waiter
		*left -= 1 + len(w.places)/keysPerStep
		for at != nil && at.waiter == w { // it has perhaps named the key twice
			at = at.next
		}
		if w.Claims {
			s.giveTurn(t, w)
		}
		f, ended := s.e.servers.Serve(t, w)
		if f != nil {
			*deliver = append(*deliver, f)
		}
		if ended {
			s.leave(w)
		}
	}
}

// giveTurn takes a claim out of all queues: it has its turn at the first of its keys that has a value, and where
// nobody else has one. Those who wait for that key wait on; with nobody behind it, a claim needs no turn.
func (s *shard) giveTurn(t Txn, w *Waiter) {
	for i := range w.places {
		a := w.places[i].key
		if item, found := t.Peek([]byte(a.key)); found && item.Type() == a.typ && a.turn == 0 {
			w.Ready, w.Turn = uint16(i), 0
			if s.leave(w); a.first != nil {
				s.awaits.turn++
				w.Turn, a.turn = s.awaits.turn, s.awaits.turn
			}
			return
		}
	}
}

// txn is the right to work on a partition of the shard, which is locked.
func (s *shard) txn(p uint16) Txn {
	return Txn{s: s, p: s.partition(p), number: p, within: true}
}

// Now returns the time that decides what is expired, in unix milliseconds.
func (t Txn) Now() int64 { return t.s.now }
