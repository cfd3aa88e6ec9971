package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/ownership"
)

// Each place has a list, and a queue of those that wait for its elements. This file models what
// node/blocked.go and node/claim.go do with the queues of node/engine (await.go, await_turn.go).
// Whoever can be served is served in the event that brings it about.

// What goes over a pipe to the node for a command that may wait.
type (
	popping struct { // BLPOP
		cmd   *command
		place int
		limit time.Duration // 0: none
	}
	claiming struct { // DUNLIN CLAIM
		cmd    *command
		place  int
		waited time.Duration
		sent   time.Duration // when
	}
	passing struct { // DUNLIN PASS
		place int
		turn  uint64
	}
	canceling struct{ token uint64 } // DUNLIN CANCEL
)

// What comes back, beside what comes for other commands and, for a claim, what package member
// encodes.
type (
	popped struct {
		place   int
		element int
	}
	nothing  struct{} // the time of the command was up
	canceled struct{} // nobody waits for it any more
)

// queue is that of a place.
type queue struct {
	waiters []*waiter // the first is served first
	turn    uint64    // that a claim has; 0: none
	told    []*waiter // claims that had a turn, with others behind them
}

// waiter is a pop or a claim that waits.
type waiter struct {
	cmd    *command
	pipe   *nodePipe
	token  uint64
	claims bool
	since  time.Duration // by what the node was told
	truly  time.Duration // by the way that its message took
	told   time.Duration // when a claim was told that it is ready
}

// list returns the elements of a place. The caller must not change it.
func (n *node) list(k int) []int { return n.w.lists[n.data[k].values[elements]] }

// pop executes a BLPOP, or has it wait.
func (p *nodePipe) pop(m popping, late bool) {
	n, q := p.n, &p.n.queues[m.place]
	q.told = slices.DeleteFunc(q.told, func(wt *waiter) bool { return wt.cmd == m.cmd })
	switch {
	case !p.takes(m.place, late):
		p.c.send(1, p.refusal(m.place))
	case len(n.list(m.place)) > 0:
		p.c.send(1, n.w.pop(n, p.c, m.cmd, m.place, late))
	default:
		wt := p.wait(m.cmd, m.place, waiter{since: n.w.now, truly: n.w.now})
		if m.limit > 0 {
			n.w.after(n.p, m.limit, func() {
				n.iterate(false)
				n.leave(m.place, wt, nothing{})
			})
		}
	}
}

// claim answers a claim, or has it wait.
func (p *nodePipe) claim(m claiming, late bool) {
	n, now := p.n, p.n.w.now
	switch {
	case !p.takes(m.place, late):
		p.c.send(1, p.refusal(m.place))
	case len(n.list(m.place)) > 0 && n.queues[m.place].turn == 0:
		p.c.send(1, member.AppendReady(nil, member.Ready{}))
	default:
		p.wait(m.cmd, m.place, waiter{claims: true, since: now - m.waited, truly: m.cmd.claimed + now - m.sent})
	}
}

// wait has a command wait behind those that have waited longer.
func (p *nodePipe) wait(c *command, k int, as waiter) *waiter {
	p.token++
	as.cmd, as.pipe, as.token = c, p, p.token
	p.c.send(1, later{p.token})
	q := &p.n.queues[k]
	at := len(q.waiters)
	for at > 0 && q.waiters[at-1].since > as.since {
		at--
	}
	q.waiters = slices.Insert(q.waiters, at, &as)
	return &as
}

// remove takes a waiter out of the queue, and reports whether it was there. A queue in which
// nobody waits is forgotten.
func (q *queue) remove(wt *waiter) bool {
	i := slices.Index(q.waiters, wt)
	if i < 0 {
		return false
	}
	if q.waiters = slices.Delete(q.waiters, i, i+1); len(q.waiters) == 0 {
		*q = queue{}
	}
	return true
}

// leave ends a wait with a reply, unless the command was served.
func (n *node) leave(k int, wt *waiter, reply any) {
	if n.queues[k].remove(wt) {
		wt.pipe.c.send(1, pushed{wt.token, reply})
	}
}

// cancel ends the wait with a token, if nobody has served it.
func (p *nodePipe) cancel(token uint64) {
	for k := range p.n.queues {
		for _, wt := range p.n.queues[k].waiters {
			if wt.pipe != p || wt.token != token {
				continue
			}
			var reply any = canceled{}
			if wt.claims {
				reply = resp.AppendError(nil, member.Canceled)
			}
			p.n.leave(k, wt, reply)
			return
		}
	}
}

// forget takes what waits on a pipe that has ended out of the queues.
func (p *nodePipe) forget() {
	for k := range p.n.queues {
		q := &p.n.queues[k]
		for _, wt := range slices.Clone(q.waiters) {
			if wt.pipe == p {
				q.remove(wt)
			}
		}
	}
}

// turnAway refuses those that wait for a place which is not served any more.
func (n *node) turnAway(k int) {
	for _, wt := range slices.Clone(n.queues[k].waiters) {
		n.leave(k, wt, waitFor{n.looped.Epoch()})
		wt.pipe.gate.Refused(n.w.tracked[k])
	}
}

// serve serves those that wait for a place, in their order, as long as there is something.
func (n *node) serve(k int) {
	q := &n.queues[k]
	for len(q.waiters) > 0 && q.turn == 0 && len(n.list(k)) > 0 &&
		n.standing(n.looped, k) == ownership.Serving && !n.fenced && n.holds[k] == nil {
		wt := q.waiters[0]
		n.w.checkFirst(n, k, wt)
		q.remove(wt)
		if wt.claims {
			n.giveTurn(k, wt)
		} else {
			wt.pipe.c.send(1, pushed{wt.token, n.w.pop(n, wt.pipe.c, wt.cmd, k, false)})
		}
	}
}

// giveTurn tells a claim, which is in the queue no more, that it is ready.
func (n *node) giveTurn(k int, wt *waiter) {
	q, turn := &n.queues[k], uint64(0)
	if len(q.waiters) > 0 {
		wt.told = n.w.now
		q.told = append(q.told, wt)
		if !n.w.noTurns {
			n.turns++
			turn = n.turns
			q.turn = turn
			n.w.after(n.p, member.ClaimTurn, func() {
				n.iterate(false)
				n.endTurn(k, turn)
			})
		}
	}
	wt.pipe.c.send(1, pushed{wt.token, member.AppendReady(nil, member.Ready{Turn: turn})})
}

// endTurn ends the turn of a claim, if it is not over.
func (n *node) endTurn(k int, turn uint64) {
	if q := &n.queues[k]; q.turn == turn {
		q.turn = 0
		n.serve(k)
	}
}
