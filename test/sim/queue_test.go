package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/ownership"
)

// Each place has lists, and each list a queue of those that wait for its elements. Who names several lists of a place
// stands in several queues. This file models what node/blocked.go and node/claim.go do with the queues of node/engine
// (await.go, await_turn.go). Whoever can be served is served in the event that brings it about.

// What goes over a pipe to the node for a command that may wait.
type (
	popping struct { // BLPOP, XREADGROUP
		cmd    *command
		from   []spot        // of one place
		limit  time.Duration // 0: none
		once   bool          // it does not wait
		waited time.Duration
		sent   time.Duration // when
	}
	claiming struct { // DUNLIN CLAIM
		cmd    *command
		from   []spot // of one place
		behind []int  // of journals: an ID for each
		waited time.Duration
		sent   time.Duration // when
	}
	passing struct { // DUNLIN PASS
		at   spot
		turn uint64
	}
	canceling struct{ token uint64 } // DUNLIN CANCEL
)

// What comes back, beside what comes for other commands and, for a claim, what package member
// encodes.
type (
	popped struct {
		at       spot
		elements []int
	}
	nothing  struct{} // the time of the command was up
	canceled struct{} // nobody waits for it any more
)

// queue is that of a list.
type queue struct {
	waiters []*waiter // the first is served first
	turn    uint64    // that a claim has; 0: none
	told    []*waiter // claims that had a turn, with others behind them
}

// waiter is a pop or a claim that waits.
type waiter struct {
	cmd    *command
	from   []spot // of one place
	pipe   *nodePipe
	token  uint64
	claims bool
	since  time.Duration // by what the node was told
	truly  time.Duration // by the way that its message took
	told   time.Duration // when a claim was told that it is ready

	behind  []int   // of journals: the ID behind which it waits in each
	settled settled // and which of them were $
}

// list returns the elements of a list. The caller must not change it.
func (n *node) list(at spot) []int { return n.w.lists[n.data[at.place()].values[at.key()]] }

// first returns the first of some lists that has elements.
func (n *node) first(from []spot) (at spot, ok bool) {
	i := slices.IndexFunc(from, func(at spot) bool { return len(n.list(at)) > 0 })
	if i < 0 {
		return 0, false
	}
	return from[i], true
}

// pop executes a BLPOP or an XREADGROUP, or has it wait.
func (p *nodePipe) pop(m popping, late bool) {
	n, k := p.n, m.from[0].place()
	for _, at := range m.from {
		q := &n.queues[at]
		q.told = slices.DeleteFunc(q.told, func(wt *waiter) bool { return wt.cmd == m.cmd })
	}
	at, has := n.first(m.from)
	switch {
	case !p.takes(k, late):
		p.c.send(1, p.refusal(k))
	case has:
		p.c.send(1, n.w.pop(n, p.c, m.cmd, at, late))
	case m.once:
		p.c.send(1, nothing{})
	default:
		p.waitFor(&m, waiter{})
	}
}

// waitFor has a command wait.
func (p *nodePipe) waitFor(m *popping, as waiter) {
	n := p.n
	as.since, as.truly = n.w.now-m.waited, m.cmd.blocked+n.w.now-m.sent
	wt := p.wait(m.cmd, m.from, as)
	if m.limit > 0 {
		n.w.after(n.p, m.limit, func() {
			n.iterate(false)
			n.leave(wt, nothing{})
		})
	}
}

// claim answers a claim, or has it wait.
func (p *nodePipe) claim(m claiming, late bool) {
	n, now, k := p.n, p.n.w.now, m.from[0].place()
	ready := slices.IndexFunc(m.from, func(at spot) bool { return len(n.list(at)) > 0 && n.queues[at].turn == 0 })
	switch {
	case !p.takes(k, late):
		p.c.send(1, p.refusal(k))
	case ready >= 0:
		p.c.send(1, member.AppendReady(nil, member.Ready{Key: ready}))
	default:
		p.wait(m.cmd, m.from, waiter{claims: true, since: now - m.waited, truly: m.cmd.claimed + now - m.sent})
	}
}

// wait has a command wait behind those that have waited longer.
func (p *nodePipe) wait(c *command, from []spot, as waiter) *waiter {
	p.token++
	as.cmd, as.from, as.pipe, as.token = c, from, p, p.token
	p.c.send(1, later{p.token, as.settled})
	for _, at := range from {
		q := &p.n.queues[at]
		i := len(q.waiters)
		for i > 0 && q.waiters[i-1].since > as.since {
			i--
		}
		q.waiters = slices.Insert(q.waiters, i, &as)
	}
	return &as
}

// remove takes a waiter out of its queues, and reports whether it was there. A queue in which
// nobody waits is forgotten.
func (n *node) remove(wt *waiter) (was bool) {
	for _, at := range wt.from {
		q := &n.queues[at]
		i := slices.Index(q.waiters, wt)
		if i < 0 {
			continue
		}
		was = true
		if q.waiters = slices.Delete(q.waiters, i, i+1); len(q.waiters) == 0 {
			*q = queue{}
		}
	}
	return was
}

// leave ends a wait with a reply, unless the command was served.
func (n *node) leave(wt *waiter, reply any) {
	if n.remove(wt) {
		wt.pipe.c.send(1, pushed{wt.token, reply})
	}
}

// cancel ends the wait with a token, if nobody has served it.
func (p *nodePipe) cancel(token uint64) {
	for at := range p.n.queues {
		for _, wt := range p.n.queues[at].waiters {
			if wt.pipe != p || wt.token != token {
				continue
			}
			var reply any = canceled{}
			if wt.claims {
				reply = resp.AppendError(nil, member.Canceled)
			}
			p.n.leave(wt, reply)
			return
		}
	}
}

// forget takes what waits on a pipe that has ended out of the queues.
func (p *nodePipe) forget() {
	p.endListening()
	for at := range p.n.queues {
		for _, wt := range slices.Clone(p.n.queues[at].waiters) {
			if wt.pipe == p {
				p.n.remove(wt)
			}
		}
	}
}

// turnAway refuses those that wait for a place which is not served any more.
func (n *node) turnAway(k int) {
	for list := range listsPer {
		for _, wt := range slices.Clone(n.queues[spotOf(k, list)].waiters) {
			n.leave(wt, waitFor{n.looped.Epoch()})
			wt.pipe.gate.Refused(n.w.tracked[k])
		}
	}
}

// servePlace serves those that wait for the lists of a place.
func (n *node) servePlace(k int, late bool) {
	for list := range listsPer {
		n.serve(spotOf(k, list), late)
	}
}

// serve serves those that wait for a list, in their order, as long as there is something. late: it belongs to a command
// that had passed the fence when the process was stopped. Who is served takes from the first of its lists that has
// something, and where no claim has its turn, as in Redis: not from the one for which it is woken.
func (n *node) serve(at spot, late bool) {
	q, k := &n.queues[at], at.place()
	serves := func() bool {
		return n.standing(n.looped, k) == ownership.Serving && !n.fenced && n.holds[k] == nil
	}
	if at.isJournal() {
		if serves() {
			n.serveReaders(at, late)
		}
		return
	}
	for len(q.waiters) > 0 && q.turn == 0 && len(n.list(at)) > 0 && serves() {
		wt := q.waiters[0]
		n.w.checkFirst(n, at, wt)
		n.w.checkTold(n, at, wt)
		n.remove(wt)
		if wt.claims {
			n.giveTurn(at, wt)
			continue
		}
		from, _ := n.first(slices.DeleteFunc(slices.Clone(wt.from), func(at spot) bool {
			return n.queues[at].turn != 0 && !n.w.ignoreTurns
		}))
		n.w.checkTold(n, from, wt)
		wt.pipe.c.send(1, pushed{wt.token, n.w.pop(n, wt.pipe.c, wt.cmd, from, late)})
	}
}

// giveTurn tells a claim, which is in no queue any more, that it is ready.
func (n *node) giveTurn(at spot, wt *waiter) {
	q, turn := &n.queues[at], uint64(0)
	if len(q.waiters) > 0 {
		wt.told = n.w.now
		q.told = append(q.told, wt)
		if !n.w.noTurns {
			n.turns++
			turn = n.turns
			q.turn = turn
			n.w.after(n.p, member.ClaimTurn, func() {
				n.iterate(false)
				n.endTurn(at, turn)
			})
		}
	}
	wt.pipe.c.send(1, pushed{wt.token, member.AppendReady(nil, member.Ready{Key: slices.Index(wt.from, at), Turn: turn})})
}

// endTurn ends the turn of a claim, if it is not over.
func (n *node) endTurn(at spot, turn uint64) {
	if q := &n.queues[at]; q.turn == turn {
		q.turn = 0
		n.serve(at, false)
	}
}
