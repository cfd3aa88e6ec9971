package engine

// A claim is a waiter that is told to pop instead of being served, since its command names keys of
// other nodes too, or takes long. It has its turn then: it is in no queue any more, and nobody
// behind it is served until the turn is ended, whatever is pushed meanwhile: otherwise those behind
// it would take what it was told of, again and again. Commands that have not waited may take it.
// Where nobody takes anything away, because the waiters have positions and no group, a claim needs
// no turn.

// Turn is that of a claim at one of its keys.
type Turn struct {
	Key    int    // which has what it wants
	Number uint64 // 0: nobody else waits there
}

// HasTurn reports whether a claim has its turn at a key, in a group unless that is nil.
func (t Txn) HasTurn(typ Type, group, key []byte) bool {
	a := findQueue(t.s.awaits.keys[t.s.tagApart(t.section, key)], t.section, typ, group, key)
	return a != nil && t.s.awaits.turns[a] != 0
}

// EndTurn ends the turn of a claim at a key, and serves those behind it, if it is not over.
func (e *Engine) EndTurn(section uint16, typ Type, group, key []byte, turn uint64, nowMilli int64) {
	t := e.Lock(section, nowMilli)
	defer t.Unlock()
	a := findQueue(t.s.awaits.keys[t.s.tagApart(section, key)], section, typ, group, key)
	if a != nil && t.s.awaits.turns[a] == turn {
		delete(t.s.awaits.turns, a)
		t.s.noteDue(a)
	}
}

// giveTurn takes a claim out of all queues: it has its turn at the first of its keys that has what it wants, and
// where nobody else has one. Those who wait for that key wait on; with nobody behind it, a claim needs no turn.
func (s *shard) giveTurn(t Txn, w *Waiter) (turn Turn) {
	for i := range w.Keys() { // who is retried knows better, and none may be found
		a := s.queueOf(w, i)
		end, there := s.endOf(t, a)
		lost := a.grouped() && (!there || a.details.lost)
		if s.awaits.turns[a] == 0 && (there && w.place(i).position().less(end) || lost) {
			turn.Key = i
			break
		}
	}
	a := s.queueOf(w, turn.Key)
	if s.leave(w); a.first != nil && (a.details == nil || !a.details.shared) {
		s.awaits.turn++
		turn.Number = s.awaits.turn
		if s.awaits.turns == nil {
			s.awaits.turns = make(map[*awaited]uint64)
		}
		s.awaits.turns[a] = turn.Number
	}
	return turn
}
