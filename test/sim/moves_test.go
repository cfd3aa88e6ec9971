package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
)

// LMOVE between lists of two places, with --cross-slot relaxed: what node/gather_element.go and gather_reserve.go do.
// The owner of the second list has the owners hold both places, stores the element in the second list, and takes it
// from the first one as soon as a follower has it, too.

const (
	gatherPatience = 5 * time.Second
	movePatience   = time.Second
	lookPatience   = time.Second
	changePatience = 3 * time.Second
	loanPause      = 20 * time.Millisecond
)

// What goes between two nodes, and what comes back.
type (
	gathering struct{ cmd *command } // DUNLIN GATHER LMOVE, from a proxy
	reserving struct {               // DUNLIN RESERVE LINDEX, or LLEN
		of *elementMove
		at spot
	}
	within struct { // DUNLIN WITHIN: RPUSH or LPOP
		of   *elementMove
		puts bool
	}
	looked   struct{ first int } // 0: the list is empty
	executed struct{}            // the answer to within
	lapsed   struct{}            // the place is not reserved any more: nothing was executed
	tryAgain struct{}            // the place is not served, or held
)

// elementMove is one LMOVE.
type elementMove struct {
	n        *node // that executes it
	pipe     *nodePipe
	cmd      *command
	token    uint64
	deadline time.Duration
	from, to spot
	element  int
	stored   bool // and not taken, for all that is known
	halves   [2]*command
	attempt  *attempt

	// what nobody in the cluster knows
	source *reservation // of the first list, the newest
	put    bool         // the element was stored
	taken  bool         // and it was taken
	parts  []*proc      // who takes part
}

// gather begins an LMOVE.
func (p *nodePipe) gather(c *command) {
	n, k := p.n, c.wanted[1].place()
	if p.gate.Verdict(n.looped, n.w.tracked[k], n.fenced) != ownership.Serve {
		p.c.send(1, p.refusal(k))
		return
	}
	p.token++
	p.c.send(1, later{token: p.token})
	m := &elementMove{
		n: n, pipe: p, cmd: c, token: p.token, deadline: n.w.now + gatherPatience, from: c.wanted[0], to: c.wanted[1],
		parts: []*proc{n.p},
	}
	for i, at := range []spot{m.to, m.from} {
		m.halves[i] = &command{id: c.id, kind: []commandKind{push, pop}[i], place: at.place(), key: at.key(), client: c.client}
	}
	m.begin()
}

// attempt is one try to reserve both places.
type attempt struct {
	m      *elementMove
	conns  map[string]*reserver // by address
	places map[int]*reserver
	ended  bool
	limit  int // counts settings of the time limit
}

// reserver is a connection over which places are reserved.
type reserver struct {
	a      *attempt
	c      *conn
	broken bool
	queue  []any
	asked  func(answer any) // nil: nothing was asked
}

// begin begins an attempt, unless the client is gone and nothing was stored.
func (m *elementMove) begin() {
	if m.attempt = nil; !m.stored && (m.pipe.superseded || m.pipe.ended) {
		return
	}
	a := &attempt{m: m, conns: make(map[string]*reserver), places: make(map[int]*reserver)}
	m.attempt = a
	a.within(lookPatience)
	switch {
	case m.stored:
		a.takeAgain()
	case m.n.w.tracked[m.from.place()] < m.n.w.tracked[m.to.place()]:
		a.look(m.from, m.to)
	default:
		a.look(m.to, m.from)
	}
}

// look reserves both places, in the order of their partitions, and then moves the element.
func (a *attempt) look(first, second spot) {
	m, at := a.m, [2]spot{first, second}
	var head [2]int
	a.reserve(first, func(element int) {
		if head[0] = element; first == m.from && element == 0 {
			m.answer(nothing{})
			return
		}
		a.reserve(second, func(element int) {
			head[1] = element
			m.element = head[slices.Index(at[:], m.from)]
			a.within(changePatience)
			switch {
			case m.element == 0:
				m.answer(nothing{})
			case m.n.w.takeFirst:
				a.take()
			default:
				a.store()
			}
		})
	})
}

// takeAgain takes the element, which is stored, if it still lies in front of the first list.
func (a *attempt) takeAgain() {
	a.reserve(a.m.from, func(element int) {
		if element != a.m.element {
			a.m.answer(failed{})
			return
		}
		a.within(changePatience)
		a.take()
	})
}

// within sets the time limit of an attempt.
func (a *attempt) within(d time.Duration) {
	a.limit++
	limit := a.limit
	a.m.n.w.after(a.m.n.p, d, func() {
		if a.limit == limit && !a.ended {
			for _, addr := range slices.Sorted(maps.Keys(a.conns)) {
				a.conns[addr].lost()
			}
		}
	})
}

// reserve reserves a place, and looks at the first element of a list there.
func (a *attempt) reserve(at spot, then func(first int)) {
	n, k := a.m.n, at.place()
	if a.ended {
		return
	}
	if n.view.Table == nil {
		a.anew()
		return
	}
	r := a.connect(n.view.Table.OwnerOf(n.w.tracked[k]).Addr)
	r.ask(reserving{a.m, at}, func(answer any) {
		switch answer := answer.(type) {
		case looked:
			a.places[k] = r
			then(answer.first)
		case tryAgain:
			n.w.after(n.p, loanPause, func() { a.reserve(at, then) })
		default:
			a.anew()
		}
	})
}

// store has the element stored, and then taken.
func (a *attempt) store() {
	m := a.m
	a.places[m.to.place()].ask(within{m, true}, func(answer any) {
		switch answer.(type) {
		case executed:
			m.stored = true
			if m.n.w.takeFirst {
				m.answer(done{})
			} else {
				a.take()
			}
		case lapsed:
			a.anew()
		default:
			m.answer(failed{}) // perhaps it is at both
		}
	})
}

// take has the element taken from the first list.
func (a *attempt) take() {
	m := a.m
	r := a.places[m.from.place()]
	if r.broken {
		a.anew()
		return
	}
	r.ask(within{m, false}, func(answer any) {
		switch answer.(type) {
		case executed:
			if m.n.w.takeFirst {
				a.store()
			} else {
				m.answer(done{})
			}
		case lapsed:
			a.anew()
		default:
			m.answer(failed{})
		}
	})
}

// anew begins anew: nothing is reserved any more.
func (a *attempt) anew() {
	if a.ended {
		return
	}
	a.end()
	m, patience := a.m, time.Duration(0)
	if m.stored {
		patience = movePatience
	}
	if m.n.w.now > m.deadline+patience {
		m.answer(failed{})
		return
	}
	m.n.w.after(m.n.p, loanPause, m.begin)
}

// end ends what is reserved.
func (a *attempt) end() {
	a.ended = true
	for _, addr := range slices.Sorted(maps.Keys(a.conns)) {
		r := a.conns[addr]
		r.asked = nil
		if r.c != nil && !r.broken {
			r.c.close(0)
		}
		r.broken = true
	}
}

// answer ends the command.
func (m *elementMove) answer(reply any) {
	if a := m.attempt; a != nil {
		a.end()
	}
	if !m.pipe.superseded && !m.pipe.ended {
		m.pipe.c.send(1, pushed{m.token, reply})
	}
}

// connect is the attempt's connection to a node.
func (a *attempt) connect(addr string) *reserver {
	if r := a.conns[addr]; r != nil {
		return r
	}
	r := &reserver{a: a}
	a.conns[addr] = r
	a.m.n.w.dial(a.m.n.p, addr, r, func(at *proc, c *conn) endpoint {
		if at.node != nil {
			a.m.parts = append(a.m.parts, at)
		}
		return &reservedEnd{at: at, c: c}
	}, func(c *conn) {
		switch {
		case c == nil:
			r.lost()
		case r.broken:
			c.close(0)
		default:
			r.c = c
			for _, m := range r.queue {
				c.send(0, m)
			}
			r.queue = nil
		}
	})
	return r
}

// ask sends a request, and calls then with the answer; nil: there is none.
func (r *reserver) ask(m any, then func(answer any)) {
	if r.asked = then; r.broken {
		r.lost()
		return
	}
	if r.c == nil {
		r.queue = append(r.queue, m)
	} else {
		r.c.send(0, m)
	}
}

func (r *reserver) received(answer any) {
	if then := r.asked; then != nil && !r.broken {
		r.asked = nil
		then(answer)
	}
}

func (r *reserver) closed() { r.lost() }

// lost is the end of the connection: there is no answer.
func (r *reserver) lost() {
	then := r.asked
	r.asked = nil
	if r.c != nil && !r.broken {
		r.c.close(0)
	}
	if r.broken = true; then != nil {
		then(nil)
	}
}

// mover is a client that moves elements, one at a time.
type mover struct{ *client }

func newMover(x *proxy) mover {
	m := mover{newClient(x, nil, nil)}
	m.s = newSession(x, m)
	return m
}

// next sends the next command.
func (m mover) next() {
	w := m.w
	if m.stopped {
		return
	}
	from := w.rng.IntN(places)
	to := (from + 1 + w.rng.IntN(places-1)) % places
	m.send(&command{
		client: m.client, kind: move, place: to, wanted: []spot{spotOf(from, w.rng.IntN(stream)), spotOf(to, w.rng.IntN(stream))},
	})
}

// answered takes the reply, and sends the next command.
func (m mover) answered(cmd *command, reply any) {
	m.client.answered(cmd, reply)
	m.w.after(nil, m.w.between(0, 100*time.Millisecond), m.next)
}
