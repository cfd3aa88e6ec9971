package engine

import "slices"

// servingSteps are done under one lock: a due key that is looked at is one, and so is a waiter whose
// command is executed, and keysPerStep of the keys that it names. Of waiters that are passed over because they have
// seen all that there is, skippedPerStep are one.
const servingSteps, keysPerStep, skippedPerStep = 64, 8, 16

// budget counts what is done under one lock, in skippedPerStep-ths of a step.
type budget int

func (b *budget) spend(steps int) { *b -= budget(steps * skippedPerStep) }

func (b *budget) skip() { *b-- }

// isSpent reports whether nothing is left; a step that has begun may have taken more.
func (b *budget) isSpent() bool { return *b < 0 }

func newBudget() budget { return servingSteps * skippedPerStep }

// Servers serve those that wait.
type Servers struct {
	// Serves reports whether those that wait for keys of a partition may be served now.
	Serves func(partition uint16) bool
	// End returns where a value ends: those whose position lies in front of it are served.
	End func(t Txn, item Item) Position
	// Serve executes the command of a waiter in its section, which t has locked, and reports whether its
	// wait has ended; otherwise the waiter keeps its place. deliver, unless it is nil, is called when the
	// shard is unlocked. A command that took longer than one step says how many more it took. One that takes too
	// long for this lock has done nothing, and Serve has made its waiter a claim.
	Serve func(t Txn, w *Waiter) (deliver func(), ended bool, steps int)
	// Finds reports whether a claim of a group would find something new, and notes how far it has seen (Txn.Saw). A
	// value that has grown says little: those in front may have taken what it grew by.
	Finds func(t Txn, w *Waiter) bool
	// Tell returns what tells a claim of its turn when the shard is unlocked. Its wait has ended.
	Tell func(w *Waiter, turn Turn) (deliver func())
	// ServeOn calls Hold.ServeOn until it is done, in slices, and then ends the hold. It does not wait.
	ServeOn func(h *Hold)
}

// noteAwaited notes that a key with the tag, told apart, has changed.
func (s *shard) noteAwaited(tag uint32) {
	for a := s.awaits.queues(tag); a != nil; a = a.chain {
		if a.details != nil {
			a.details.goesOn = nil // from the front
		}
		s.noteDue(a)
	}
}

// noteLost notes that the value of the record in the cell, with the tag, is removed or replaced.
func (s *shard) noteLost(tag uint32, ref handle) {
	if len(s.awaits.groups) != 0 {
		s.loseOf(tag, ref)
	}
}

func (s *shard) loseOf(tag uint32, ref handle) { s.lose(s.tagApartOf(tag, ref)) }

// lose is noteLost of a key with the tag, told apart.
func (s *shard) lose(tag uint32) {
	for a := s.awaits.keys[tag]; a != nil; a = a.chain {
		if a.grouped() {
			a.details.lost = true
		}
	}
}

// noteAllLost notes that all values of a section are removed.
func (s *shard) noteAllLost(section uint16) {
	for a := s.awaits.groups[section]; a != nil; a = a.details.beside.next {
		a.details.lost = true
		s.noteDue(a)
	}
}

// Signal has those served that wait for a key in groups, as if its value were another one.
func (t Txn) Signal(key []byte) {
	tag := t.s.tagApart(t.section, key)
	t.s.lose(tag)
	t.s.noteAwaited(tag)
}

// noteDue notes that a is due, behind what is due in its partition.
func (s *shard) noteDue(a *awaited) {
	s.ending = true
	switch due := s.awaits.dueOf[a]; {
	case due == nil:
	case due.of.dropped:
		s.awaits.settle(a)
	default:
		return
	}
	p := PartitionOf(a.section)
	d := s.awaits.dueIn(p)
	if d == nil {
		d = &dueKeys{partition: p}
		s.awaits.due = append(s.awaits.due, d)
	}
	due := &dueKey{key: a, of: d, prev: d.last}
	if d.last == nil {
		d.first = due
	} else {
		d.last.next = due
	}
	d.last = due
	if s.awaits.dueOf == nil {
		s.awaits.dueOf = make(map[*awaited]*dueKey)
	}
	s.awaits.dueOf[a] = due
}

// dueKeys are the due keys of a partition, in the order in which they changed.
type dueKeys struct {
	partition   uint16
	first, last *dueKey
	dropped     bool // they are not due any more
}

// dueKey is one of them.
type dueKey struct {
	key        *awaited
	of         *dueKeys
	prev, next *dueKey
}

// settle notes that a is not due any more, if it was.
func (as *awaits) settle(a *awaited) {
	due := as.dueOf[a]
	if due == nil {
		return
	}
	d := due.of
	if due.prev == nil {
		d.first = due.next
	} else {
		due.prev.next = due.next
	}
	if due.next == nil {
		d.last = due.prev
	} else {
		due.next.prev = due.prev
	}
	if delete(as.dueOf, a); d.first == nil {
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

// dropDue notes that nothing in a partition is due any more.
func (as *awaits) dropDue(partition uint16) {
	as.due = slices.DeleteFunc(as.due, func(d *dueKeys) bool {
		drop := d.partition == partition
		d.dropped = d.dropped || drop
		return drop
	})
}

// serveDue serves those that wait for keys that have changed, and returns what is to be called
// when the shard is unlocked.
func (s *shard) serveDue() (deliver []func()) {
	left := newBudget()
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

// unlockServing unlocks the shard for those who have no Txn, and serves those that wait for what they have removed.
func (s *shard) unlockServing() {
	if len(s.awaits.due) > 0 {
		Txn{s: s}.Unlock()
		return
	}
	s.mu.Unlock()
}

// ServeOn serves the next of those that wait for keys of the partition that h holds, and reports
// whether nobody is left to be served. The caller then ends the hold.
func (h *Hold) ServeOn() (done bool) {
	t := h.Lock()
	left, deliver := newBudget(), []func(){}
	done = h.s.serveIn(h.partition, &left, &deliver)
	t.Unlock()
	for _, f := range deliver {
		f()
	}
	return done
}

// serveIn serves those that wait for due keys of a partition, within a budget, and reports whether none is
// due any more.
func (s *shard) serveIn(partition uint16, left *budget, deliver *[]func()) (done bool) {
	if s.copies.has(partition) || !s.e.servers.Serves(partition) {
		s.awaits.dropDue(partition)
	}
	for {
		d := s.awaits.dueIn(partition)
		if d == nil || *left <= 0 {
			return d == nil
		}
		s.serve(d.first.key, left, deliver)
	}
}

// serve serves those that wait in one queue, as long as its key has what they want. It is due again if too
// little of the budget was left.
func (s *shard) serve(a *awaited, left *budget, deliver *[]func()) {
	left.spend(1)
	s.awaits.settle(a)
	done := false
	if a.grouped() {
		done = s.serveGroup(a, left, deliver) && s.serveRetries(a, left, deliver)
	} else {
		done = s.serveAll(a, left, deliver)
	}
	if !done {
		s.noteDue(a)
	}
}

// serveAll serves a queue without a group. It reports false if it has to go on later.
func (s *shard) serveAll(a *awaited, left *budget, deliver *[]func()) (done bool) {
	t, d := s.txn(a.section), a.details
	var at *place
	end, there := s.endOf(t, a)
	if d != nil {
		at, d.goesOn = d.goesOn, nil
		if at == nil && !d.least.less(end) {
			return true
		}
	}
	if at == nil {
		if at = a.first; d != nil {
			d.passed = End
		}
	}
	for ; at != nil && there && s.awaits.turns[a] == 0; end, there = s.endOf(t, a) {
		for at != nil && !left.isSpent() && !at.position().less(end) {
			a.stays(at.position())
			left.skip()
			at = at.next
		}
		if at == nil {
			break
		}
		if left.isSpent() {
			a.detailed().goesOn = at
			return false
		}
		w, position := at.waiter(), at.position()
		for at != nil && at.waiter() == w { // it has perhaps named the key twice
			position = leastOf(position, at.position())
			at = at.next
		}
		if !s.serveOne(t, w, left, deliver) {
			a.stays(position)
		}
	}
	if at == nil && d != nil {
		d.least = d.passed
	}
	return true
}

// stays notes the position of somebody who was looked at and stays.
func (a *awaited) stays(p Position) {
	if d := a.details; d != nil {
		d.passed = leastOf(d.passed, p)
	}
}

// serveGroup serves the queue of a group, up to the first who finds nothing. It reports false if it has to go on
// later.
func (s *shard) serveGroup(a *awaited, left *budget, deliver *[]func()) (done bool) {
	t, d := s.txn(a.section), a.details
	for a.first != nil && s.awaits.turns[a] == 0 {
		end, there := s.endOf(t, a)
		if there && !d.lost && !a.first.position().less(end) {
			return true
		}
		if left.isSpent() {
			return false
		}
		w := a.first.waiter()
		if w.Claims && there && !d.lost && !s.e.servers.Finds(t, w) {
			left.spend(1 + w.Keys()/keysPerStep)
			return true
		}
		if !s.serveOne(t, w, left, deliver) {
			d.lost = false
			return true
		}
	}
	return true
}

// serveRetries serves those who are to be served out of turn. It reports false if it has to go on later.
func (s *shard) serveRetries(a *awaited, left *budget, deliver *[]func()) (done bool) {
	d := a.details
	for n := len(d.retries); n > 0 && s.awaits.turns[a] == 0; n = len(d.retries) {
		if left.isSpent() {
			return false
		}
		w := d.retries[n-1]
		w.extra.retried, d.retries = false, d.retries[:n-1]
		s.serveOne(s.txn(a.section), w, left, deliver)
	}
	return true
}

// endOf returns where the value ends that a queue waits for. there is false if its key has none of the type, or
// nobody waits any more.
func (s *shard) endOf(t Txn, a *awaited) (end Position, there bool) {
	if a.first == nil {
		return end, false
	}
	return s.endAt(t, a.first.key(), a.typ)
}

// endAt returns where the value of a key ends. there is false if the key has none of the type.
func (s *shard) endAt(t Txn, key []byte, typ Type) (end Position, there bool) {
	item, found := t.Peek(key)
	if !found || item.Type() != typ {
		return end, false
	}
	return s.e.servers.End(t, item), true
}

// serveOne executes the command of a waiter, or tells a claim that it has its turn. It reports whether the wait has
// ended.
func (s *shard) serveOne(t Txn, w *Waiter, left *budget, deliver *[]func()) (ended bool) {
	left.spend(1 + w.Keys()/keysPerStep)
	if !w.Claims {
		f, over, steps := s.e.servers.Serve(t, w)
		left.spend(steps)
		if f != nil {
			*deliver = append(*deliver, f)
		}
		ended = over
	}
	if w.Claims {
		*deliver = append(*deliver, s.e.servers.Tell(w, s.giveTurn(t, w)))
		return true
	}
	if ended {
		s.leave(w)
	}
	return ended
}

// txn is the right to work on a section of the shard, which is locked.
func (s *shard) txn(section uint16) Txn {
	return Txn{s: s, p: s.partition(section), section: section, within: true}
}

// Now returns the time that decides what is expired, in unix milliseconds.
func (t Txn) Now() int64 { return t.s.now }
