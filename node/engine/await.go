package engine

import (
	"bytes"
	"slices"
	"time"
)

// A key can be awaited: by commands that found nothing under it. They stand in a queue, and whoever
// gives the key what they want serves them, in order and before the lock is released (await_serve.go):
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
// A waiter can have a Position: then it waits until the value's end lies behind that. A queue knows the least of
// them, so a change that adds nothing costs no more than a comparison, however many wait.
//
// Those that name a Group stand in a queue of their own, and want the value as it is: they are also served when it
// is removed or replaced, since their commands must say so. If the first of a group finds nothing, there is
// nothing for those behind it.
//
// A claim is told to pop instead, see await_turn.go.
//
// A shard in which nobody waits knows it by shard.noting and shard.ending, which each change and
// each Unlock look at anyway.
//
// Very many can wait, so what is kept of each is small: keys are parts of a text that is kept anyway, and what few
// have is apart (extra, details, dueKey, awaits.turns). Most wait for a key for which nobody else waits, and have no
// queue before that changes (awaits.alone).

// Position is a place in a value that grows at its end. The zero Position is in front of everything.
type Position struct{ Hi, Lo uint64 }

// End is behind everything.
var End = Position{^uint64(0), ^uint64(0)}

func (p Position) less(than Position) bool {
	return p.Hi < than.Hi || p.Hi == than.Hi && p.Lo < than.Lo
}

func leastOf(a, b Position) Position {
	if b.less(a) {
		return b
	}
	return a
}

// Wish is what a waiter waits for: a value of a type under one of the keys.
type Wish struct {
	Type      Type
	Keys      [][]byte // one may be named twice
	Positions []Position
	Group     []byte        // nil: none; otherwise there are Positions
	Since     time.Duration // when it began to wait, by a clock that all who call Await share
}

// Waiter waits for one of some keys of a section. The shard's lock protects it. It is a part of
// what the Servers know of its command.
type Waiter struct {
	first   place // at the first key; it stands first, see place.waiter
	since   time.Duration
	text    *byte  // see Text: the keys are parts of it
	extra   *extra // nil: it has one key, and no position
	length  uint32 // of the text
	section uint16
	typ     Type
	Claims  bool // it is a claim; Servers.Serve may make it one
}

// extra is what few waiters have.
type extra struct {
	queue     *awaited // of the first key
	further   []further
	positions []Position // by keys; nil: none
	retried   bool       // it is in retries of its first key
}

// further is a waiter's place at a key behind the first one.
type further struct {
	place // it stands first, see place.waiter
	of    *Waiter
	queue *awaited
}

// place is where a waiter stands in the queue of one key.
type place struct {
	prev, next *place // next is nil at the last one; prev of the first one is the last one, and nil if it stands nowhere
	at         uint32 // with length: the part of the text that is the key
	length     uint16
	index      uint8 // of the key
	marked     bool  // see milestone
}

// Part is a part of a text.
type Part struct {
	At  uint32
	Len uint16
}

// awaited is a queue: a key that somebody waits for, a type, and perhaps a group.
type awaited struct {
	first   *place   // whose waiter knows the key
	chain   *awaited // the next one whose key has the tag
	details *details // nil: nobody has a position
	tag     uint32   // told apart
	section uint16
	typ     Type
	places  uint8 // how many have come, until there are marks
}

// details are what few queues have.
type details struct {
	shared  bool // what one waiter gets, others get too: they have positions and no group
	grouped bool
	group   string
	least   Position    // no position in the queue is less
	goesOn  *place      // not nil: only some of the queue were looked at, those in front of it
	passed  Position    // the least position of those that were looked at and stay
	lost    bool        // of a group: the value was removed or replaced since its waiters were served
	retries []*Waiter   // are to be served out of turn
	beside  siblings    // if it is grouped
	marks   []milestone // if it is long
}

// siblings are the neighbors of a group's queue among those of its section.
type siblings struct{ prev, next *awaited }

// awaits are the keys of a shard that somebody waits for.
type awaits struct {
	alone  map[uint32]*Waiter  // by tag, told apart: they have no extra, and the tag is no other's
	keys   map[uint32]*awaited // by tag, told apart
	groups map[uint16]*awaited // the first queue of a group, by section
	due    []*dueKeys          // no two of one partition, and none empty
	dueOf  map[*awaited]*dueKey
	turns  map[*awaited]uint64 // that claims have
	turn   uint64              // the last one that a claim got
}

// Await has w, which does not wait yet, wait. It keeps the text, of which the keys of the wish are
// parts, and copies the rest of the wish. w stands in front of those that began to wait later.
func (t Txn) Await(w *Waiter, wish Wish, text string, keys []Part) {
	s := t.s
	s.noting = true
	w.section, w.typ, w.since, w.extra = t.section, wish.Type, wish.Since, nil
	w.keep(text)
	if len(keys) == 1 && wish.Positions == nil {
		w.first = placeAt(keys[0], 0)
		s.awaits.add(w, s.tagApart(t.section, w.first.key()))
		return
	}
	w.extra = &extra{further: make([]further, len(keys)-1), positions: slices.Clone(wish.Positions)}
	for i := range w.extra.further {
		w.extra.further[i].of = w
	}
	group := string(wish.Group) // once for all queues
	for i, part := range keys {
		at := w.place(i)
		*at = placeAt(part, i)
		a := s.awaits.at(t.section, s.tagApart(t.section, at.key()), at.key(), &wish, group)
		if a.insert(at); i == 0 {
			w.extra.queue = a
		} else {
			w.extra.further[i-1].queue = a
		}
	}
}

// placeAt is a place at the key that is a part of the text, of that index.
func placeAt(p Part, index int) place { return place{at: p.At, length: p.Len, index: uint8(index)} }

// waits reports whether w waits.
func (w *Waiter) waits() bool { return w.first.prev != nil }

// Keys is how many keys w waits for, also when it waits no more. It may name one twice.
func (w *Waiter) Keys() int {
	if w.extra == nil {
		return 1
	}
	return 1 + len(w.extra.further)
}

// place returns the place at one of the keys.
func (w *Waiter) place(i int) *place {
	if i == 0 {
		return &w.first
	}
	return &w.extra.further[i-1].place
}

// Section returns that of its keys, also when w waits no more.
func (w *Waiter) Section() uint16 { return w.section }

// Partition returns that of its keys.
func (w *Waiter) Partition() uint16 { return PartitionOf(w.section) }

// position returns how far the waiter has seen into the value.
func (at *place) position() (p Position) {
	if e := at.waiter().extra; e != nil && e.positions != nil {
		p = e.positions[at.index]
	}
	return p
}

// Saw notes how far into the values of its keys a waiter has seen that goes on waiting, by the keys in its wish.
func (t Txn) Saw(w *Waiter, positions []Position) {
	copy(w.extra.positions, positions)
	for i := range w.Keys() {
		t.s.queueOf(w, i).note(w.place(i).position())
	}
}

// note sees to it that least holds for a position.
func (a *awaited) note(p Position) {
	if d := a.details; d != nil {
		d.least, d.passed = leastOf(d.least, p), leastOf(d.passed, p)
	}
}

// detailed returns the details of a queue, new ones if it has none.
func (a *awaited) detailed() *details {
	if a.details == nil {
		a.details = new(details)
	}
	return a.details
}

// grouped reports whether the queue is that of a group.
func (a *awaited) grouped() bool { return a.details != nil && a.details.grouped }

// link puts a place into the queue, behind another one or at the front.
func (a *awaited) link(at, behind *place) {
	if behind == nil {
		at.prev, at.next = at, a.first
		if a.first != nil {
			at.prev, a.first.prev = a.first.prev, at
		}
		a.first = at
	} else {
		at.prev, at.next = behind, behind.next
		if behind.next = at; at.next != nil {
			at.next.prev = at
		} else {
			a.first.prev = at
		}
	}
}

// remove takes a place out of the queue.
func (a *awaited) remove(at *place) {
	if d := a.details; d != nil && d.goesOn == at {
		d.goesOn = at.next
	}
	if at.marked {
		a.details.unmark(at)
	}
	if at == a.first {
		a.first = at.next
	} else {
		at.prev.next = at.next
	}
	if at.next != nil {
		at.next.prev = at.prev
	} else if a.first != nil {
		a.first.prev = at.prev
	}
	at.prev, at.next = nil, nil
}

// add has a waiter without extra stand in the queue of its key, whose tag, told apart, is given.
func (as *awaits) add(w *Waiter, tag uint32) {
	if as.alone[tag] != nil || as.keys[tag] != nil {
		as.at(w.section, tag, w.first.key(), &Wish{Type: w.typ}, "").insert(&w.first)
		return
	}
	if as.alone == nil {
		as.alone = make(map[uint32]*Waiter)
	}
	as.alone[tag], w.first.prev = w, &w.first
}

// queues returns the first one of the queues with a tag, nil if nobody waits. Who stands alone gets one.
func (as *awaits) queues(tag uint32) *awaited {
	if w := as.alone[tag]; w != nil {
		delete(as.alone, tag)
		as.enchain(&awaited{first: &w.first, tag: tag, section: w.section, typ: w.typ, places: 1})
	}
	return as.keys[tag]
}

// queueOf returns the queue in which w stands at one of its keys.
func (s *shard) queueOf(w *Waiter, i int) *awaited {
	switch e := w.extra; {
	case e == nil:
		key := w.first.key()
		tag := s.tagApart(w.section, key)
		return findQueue(s.awaits.queues(tag), w.section, w.typ, nil, key)
	case i == 0:
		return e.queue
	default:
		return e.further[i-1].queue
	}
}

// at returns the queue of a key for a wish, a new one if nobody waits in it. group is the text of the
// wish's, which all queues of a waiter share.
func (as *awaits) at(section uint16, tag uint32, key []byte, wish *Wish, group string) *awaited {
	if a := findQueue(as.queues(tag), section, wish.Type, wish.Group, key); a != nil {
		return a
	}
	a := &awaited{tag: tag, section: section, typ: wish.Type}
	if wish.Positions != nil {
		a.details = &details{
			shared: wish.Group == nil, grouped: wish.Group != nil, group: group, least: End, passed: End,
		}
	}
	as.enchain(a)
	if a.grouped() {
		as.link(a)
	}
	return a
}

// enchain notes a queue by the tag of its key, behind those that were there before.
func (as *awaits) enchain(a *awaited) {
	if as.keys == nil {
		as.keys = make(map[uint32]*awaited)
	}
	last := as.keys[a.tag]
	if last == nil {
		as.keys[a.tag] = a
		return
	}
	for last.chain != nil {
		last = last.chain
	}
	last.chain = a
}

// link notes the queue of a group among its section's.
func (as *awaits) link(a *awaited) {
	if as.groups == nil {
		as.groups = make(map[uint16]*awaited)
	}
	b := &a.details.beside
	if b.next = as.groups[a.section]; b.next != nil {
		b.next.details.beside.prev = a
	}
	as.groups[a.section] = a
}

// findQueue returns the queue of a key for a type and a group among those with the tag of the key, nil if nobody waits
// in it. first is the first of them.
func findQueue(first *awaited, section uint16, typ Type, group, key []byte) *awaited {
	for a := first; a != nil; a = a.chain {
		if a.section == section && a.typ == typ && bytes.Equal(a.first.key(), key) && a.isOf(group) {
			return a
		}
	}
	return nil
}

// isOf reports whether the queue is that of a group; nil: of none.
func (a *awaited) isOf(group []byte) bool {
	return a.grouped() == (group != nil) && (group == nil || a.details.group == string(group))
}

// Leave ends the wait of w and reports whether it still waited. If not, it was served: its result is
// on its way.
func (e *Engine) Leave(w *Waiter) bool {
	s := e.shardOf(w.section)
	s.mu.Lock()
	defer s.mu.Unlock()
	waited := w.waits()
	if waited {
		s.leave(w)
	}
	return waited
}

// Recheck serves those that wait for the keys of w, if these have what they want: it may have come
// when nobody was served.
func (e *Engine) Recheck(w *Waiter, nowMilli int64) {
	t := e.Lock(w.section, nowMilli)
	defer t.Unlock()
	if !w.waits() {
		return
	}
	for i := range w.Keys() {
		if w.extra != nil && w.extra.queue.grouped() {
			a := t.s.queueOf(w, i)
			a.details.lost = true
			t.s.noteDue(a)
		} else if _, there := t.s.endAt(t, w.place(i).key(), w.typ); there {
			t.s.noteDue(t.s.queueOf(w, i))
		}
	}
}

// Retry serves w, which is in a group, whoever stands in front of it: it wants something that time brings.
func (e *Engine) Retry(w *Waiter, nowMilli int64) {
	t := e.Lock(w.section, nowMilli)
	defer t.Unlock()
	if !w.waits() || w.extra.retried {
		return
	}
	a := w.extra.queue
	w.extra.retried, a.details.retries = true, append(a.details.retries, w)
	t.s.noteDue(a)
}

// leave takes w, which waits, out of all queues.
func (s *shard) leave(w *Waiter) {
	defer s.noteDuties()
	if w.extra == nil {
		if tag := s.tagApart(w.section, w.first.key()); s.awaits.alone[tag] == w {
			delete(s.awaits.alone, tag)
			w.first.prev = nil
			return
		}
	} else if w.extra.retried {
		d := w.extra.queue.details
		d.retries = slices.DeleteFunc(d.retries, func(other *Waiter) bool { return other == w })
	}
	for i := range w.Keys() {
		a := s.queueOf(w, i)
		if a.remove(w.place(i)); a.first == nil {
			s.awaits.forget(a)
		}
	}
}

// none reports whether nobody waits.
func (as *awaits) none() bool { return len(as.alone)+len(as.keys) == 0 }

// forget removes a queue in which nobody waits any more.
func (as *awaits) forget(a *awaited) {
	if first := as.keys[a.tag]; first != a {
		for first.chain != a {
			first = first.chain
		}
		first.chain = a.chain
	} else if a.chain != nil {
		as.keys[a.tag] = a.chain
	} else {
		delete(as.keys, a.tag)
	}
	if a.grouped() {
		as.unlink(a)
	}
	delete(as.turns, a)
	as.settle(a)
}

// unlink removes the queue of a group from its section's.
func (as *awaits) unlink(a *awaited) {
	b := &a.details.beside
	if b.next != nil {
		b.next.details.beside.prev = b.prev
	}
	switch {
	case b.prev != nil:
		b.prev.details.beside.next = b.next
	case b.next != nil:
		as.groups[a.section] = b.next
	default:
		delete(as.groups, a.section)
	}
	*b = siblings{}
}

// retag gives the keys their tags by another seed.
func (as *awaits) retag(seed uint64) {
	alone, keys := as.alone, as.keys
	as.alone, as.keys = make(map[uint32]*Waiter, len(alone)), make(map[uint32]*awaited, len(keys))
	for _, a := range keys {
		for next := a; next != nil; {
			a, next = next, next.chain
			a.tag = apart(a.section, tagOf(seed, a.first.key()))
			a.chain = nil
			as.enchain(a)
		}
	}
	for _, w := range alone {
		as.add(w, apart(w.section, tagOf(seed, w.first.key())))
	}
}
