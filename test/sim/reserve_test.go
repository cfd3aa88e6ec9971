package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
)

// What the owners do with places that they hold for an LMOVE that another node executes, and what becomes of the
// element: what node/reserve.go does.

const (
	reserveLapse = 2 * time.Second
	copyPatience = 500 * time.Millisecond
)

// reservedEnd is a connection at the node that holds places for it.
type reservedEnd struct {
	at   *proc
	c    *conn
	all  []*reservation
	over bool
}

// reservation is a place that is held.
type reservation struct {
	at       *node
	of       *elementMove
	k        int
	hold     *hold
	finished bool
}

func (e *reservedEnd) closed() { e.endAll() }

// endAll ends what is reserved.
func (e *reservedEnd) endAll() {
	e.over = true
	for _, r := range e.all {
		e.end(r)
	}
}

// end ends the hold of a place. From then on others see what was changed there.
func (e *reservedEnd) end(r *reservation) {
	if r.finished {
		return
	}
	r.finished = true
	n, m := e.at.node, r.of
	if r == m.source && m.put && !m.taken {
		n.w.staysAtBoth(m)
	}
	if n.holds[r.k] == r.hold {
		n.endHold(r.k)
	}
}

// of returns the reservation of a place, nil if there is none.
func (e *reservedEnd) of(k int) *reservation {
	for _, r := range e.all {
		if r.k == k && !r.finished {
			return r
		}
	}
	return nil
}

// isGood reports whether nobody else can have the place.
func (n *node) isGood(r *reservation) bool {
	lost := n.standing(n.view, r.k) != ownership.Serving
	return !n.fenced && !(lost && r.hold.fences != n.fences)
}

func (e *reservedEnd) received(msg any) {
	n := e.at.node
	if n == nil || e.over {
		e.c.close(1)
		return
	}
	n.iterate(false)
	switch msg := msg.(type) {
	case reserving:
		e.reserve(n, msg)
	case within:
		e.execute(n, msg)
	}
}

// execute stores or takes the element, if the place is reserved still, and ends the reservation.
func (e *reservedEnd) execute(n *node, msg within) {
	at := msg.of.from
	if msg.puts {
		at = msg.of.to
	}
	switch r := e.of(at.place()); {
	case r == nil:
		e.c.send(1, lapsed{})
	case !n.isGood(r):
		e.end(r)
		e.c.send(1, lapsed{})
	case msg.puts:
		stored := n.w.storeMoved(n, msg.of)
		e.end(r)
		n.awaitCopy(r.k, stored, n.w.now+copyPatience, func() { e.c.send(1, executed{}) })
	default:
		n.w.takeMoved(n, msg.of)
		e.end(r)
		e.c.send(1, executed{})
	}
}

// reserve holds a place, and looks at the first element of a list there.
func (e *reservedEnd) reserve(n *node, msg reserving) {
	k := msg.at.place()
	r := e.of(k)
	if r == nil {
		if n.fenced || n.standing(n.looped, k) != ownership.Serving || n.holds[k] != nil {
			e.c.send(1, tryAgain{})
			return
		}
		r = &reservation{at: n, of: msg.of, k: k, hold: &hold{fences: n.fences}}
		if !n.w.moveUnheld {
			n.holds[k] = r.hold
			n.beginUnit(k)
		}
		if len(e.all) == 0 {
			n.w.after(n.p, reserveLapse, func() {
				n.iterate(false)
				e.endAll()
				e.over = false
			})
		}
		e.all = append(e.all, r)
	}
	first := 0
	if list := n.list(msg.at); len(list) > 0 {
		first = list[0]
	}
	if msg.at == msg.of.from {
		msg.of.source = r
	}
	e.c.send(1, looked{first})
}

// awaitCopy calls f when those that are fed a place have a change, or at a time.
func (n *node) awaitCopy(k int, stored *change, until time.Duration, f func()) {
	missing := slices.ContainsFunc(n.senders, func(s *sender) bool {
		if !s.feeds.has(k) {
			return false
		}
		to := n.w.byAddr[s.addr]
		return to == nil || to.node == nil || !to.node.data[k].last.descends(stored)
	})
	if missing && n.w.now < until {
		n.w.after(n.p, 2*time.Millisecond, func() { n.awaitCopy(k, stored, until, f) })
		return
	}
	f()
}

// storeMoved stores an element that is moved.
func (w *world) storeMoved(n *node, m *elementMove) *change {
	at, c := m.to, m.halves[0]
	genuine := w.checkServer(n, c, at.place(), false)
	values := n.data[at.place()].values
	values[at.key()] = w.listOf(append(slices.Clone(n.list(at)), m.element))
	w.change(n, c, at.place(), genuine, values, effect{key: at.key()})
	m.put = true
	switch e := w.elements[m.element]; {
	case e == nil:
	case !genuine:
		delete(w.elements, m.element)
	case m.source == nil || m.source.finished:
		if !m.taken {
			w.staysAtBoth(m)
		}
	default:
		e.also = m
	}
	return n.data[at.place()].last
}

// takeMoved takes an element that was stored elsewhere.
func (w *world) takeMoved(n *node, m *elementMove) {
	at, c := m.from, m.halves[1]
	genuine := w.checkServer(n, c, at.place(), false)
	list := n.list(at)
	if len(list) == 0 || list[0] != m.element {
		w.violate("%s takes %d from %d, where %v lie", n.p.name, m.element, at, list)
		return
	}
	values := n.data[at.place()].values
	values[at.key()] = w.listOf(slices.Clone(list[1:]))
	w.change(n, c, at.place(), genuine, values, effect{key: at.key()})
	m.taken = true
	switch e := w.elements[m.element]; {
	case e == nil:
	case !genuine:
		delete(w.elements, m.element)
	case e.also == m:
		if e.also = nil; e.by == nil && e.spot == m.from {
			e.spot = m.to
		}
	}
}

// endMoves is called when a node begins to serve a place. What another node has held there, and has not taken, stays.
func (w *world) endMoves(n *node, k int) {
	for _, id := range slices.Sorted(maps.Keys(w.elements)) {
		if m := w.elements[id].also; m != nil && m.from.place() == k && m.source.at != n {
			w.staysAtBoth(m)
		}
	}
}

// staysAtBoth notes that an element stays in both lists: a process has died or stood still, or a connection has broken.
func (w *world) staysAtBoth(m *elementMove) {
	if w.elements[m.element] == nil {
		return
	}
	excuse := w.apart() || w.lastReset >= m.deadline-gatherPatience || slices.ContainsFunc(m.parts, w.wasHurt)
	if !excuse {
		w.violate("%d is in the lists of %d and %d, though nobody has died", m.element, m.from, m.to)
	}
	delete(w.elements, m.element)
}
