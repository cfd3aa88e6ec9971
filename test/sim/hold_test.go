package sim

import (
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// Transactions that take long: what node/transaction_run.go and node/hold.go do. The command of one
// is executed when its hold ends, whatever table has come meanwhile. One that sets a pair of keys
// sets the first when the hold begins.

const (
	holdPatience  = 5 * time.Second
	hinderedPause = 10 * time.Millisecond
)

// hold is a transaction that holds a place.
type hold struct {
	fences   int // of the node when it began
	hindered time.Duration
	lost     bool // the machine knows
}

// holds reports whether a transaction has the command.
func (c *command) holds() bool {
	return (c.kind == set || c.kind == incr) && c.id%7 == 0 || c.kind == both && c.id%2 == 0
}

// holdTime is how long a transaction takes.
func (w *world) holdTime() time.Duration {
	if w.chance(0.2) {
		return w.between(0, 3*time.Second)
	}
	return w.between(0, 100*time.Millisecond)
}

// transact executes a command in a transaction that holds its place, and answers it later.
func (p *nodePipe) transact(c *command, late bool) {
	n, at := p.n, p.n.w.tracked[c.place]
	p.token++
	token := p.token
	p.c.send(1, later{token: token})
	p.gate.Begun(at)
	h := &hold{fences: n.fences}
	n.holds[c.place] = h
	n.w.tracef("%s holds %d", n.p.name, c.place)
	n.beginUnit(c.place)
	half := c.kind == both
	if half {
		n.w.executeHalf(n, c, c.place, late, 0)
	}
	var turn func()
	turn = func() {
		n.iterate(false)
		lost := n.standing(n.looped, c.place) != ownership.Serving
		switch hindered := lost || n.fenced; {
		case !hindered:
			h.hindered = 0
		case h.hindered == 0:
			h.hindered = n.w.now
		}
		overdue := h.hindered != 0 && n.w.now-h.hindered > holdPatience
		if n.fenced && !overdue {
			n.w.after(n.p, hinderedPause, turn)
			return
		}
		var reply any = waitFor{n.looped.Epoch()} // not executed
		switch giveUp := overdue || lost && h.fences != n.fences; {
		case giveUp && half:
			n.w.halves[[2]int{c.place, c.value}] = true
			reply = failed{}
		case giveUp:
		case half: // though nobody may wait for it any more
			value, gen := n.w.executeHalf(n, c, c.place, false, 1)
			reply = done{value, gen}
		case !p.superseded && !p.ended:
			value, gen := n.w.execute(n, c, c.place, false)
			reply = done{value, gen}
		}
		n.endHold(c.place)
		if p.superseded || p.ended {
			return
		}
		refused := p.gate.Resumed(at)
		if _, again := reply.(waitFor); again {
			refused = append(refused, at)
		}
		p.gate.Refused(refused...)
		p.c.send(1, pushed{token, reply})
	}
	n.w.after(n.p, n.w.holdTime(), turn)
}

// endHold ends the hold on a place.
func (n *node) endHold(k int) {
	h := n.holds[k]
	n.holds[k] = nil
	n.endUnit(k)
	n.w.tracef("%s holds %d no longer", n.p.name, k)
	n.servePlace(k, false)
	if h.lost {
		n.step(func(m *ownership.Machine, now time.Duration) { m.Released(now, n.w.tracked[k]) }, nil)
	}
}

// holdsOn reports whether a transaction goes on at a place, for all that this node knows.
func (n *node) holdsOn(k int) bool {
	h := n.holds[k]
	return h != nil && !n.p.dead && !n.p.stopped && !n.fenced && h.fences == n.fences && n.gap <= stallLimit
}

// lostHolds returns what is held and not served. The machine is told when each of these holds has
// ended.
func (n *node) lostHolds() (set ring.PartitionSet) {
	for k, h := range n.holds {
		if h != nil && n.standing(n.view, k) != ownership.Serving {
			h.lost = true
			set.Add(n.w.tracked[k])
		}
	}
	return set
}

// awaitHolds calls f, if need be when nothing is held that is not served.
func (n *node) awaitHolds(wait bool, f func()) {
	if wait {
		for k, h := range n.holds {
			if h != nil && n.standing(n.view, k) != ownership.Serving {
				n.w.after(n.p, hinderedPause, func() { n.awaitHolds(wait, f) })
				return
			}
		}
	}
	f()
}
