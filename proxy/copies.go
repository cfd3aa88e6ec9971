package proxy

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/proxy/wide"
)

// WAIT asks all nodes how many copies have what was written before, round by round, until there are enough or its
// time is up. All clients of a loop that wait ask together, so that however many they are, a pipe has one of
// their questions at a time:
//
//	clients   WAIT 1 0 ─┐
//	          WAIT 2 50 ┴─▶ copyWaits ── round 7: EACH WAIT ─▶ every node
//	                ◀── enough ── least of their counts ◀────────┘
//
// A round counts for those who came before it. What they have written is executed by then, because a client that
// begins to wait has nothing else outstanding.

// copyWaits are the clients of a worker that wait for copies. They are the Part of their questions, and a session of
// their own.
type copyWaits struct {
	order.Session
	w       *worker
	copies  wide.Copies
	waiting map[*copyWait]struct{}
	round   uint64         // the present one, or the last
	asking  bool           // a round is on its way
	pause   *netloop.Timer // not nil: until the next one begins
	version resp.Version   // of the client that came last: nodes are asked over pipes that there are
}

// copyWait is a client that waits.
type copyWait struct {
	of       *client
	replicas int64
	best     int64          // the most copies of the rounds that counted
	first    uint64         // the first of these
	limit    *netloop.Timer // nil: none
}

// wokenAtOnce is how many clients that have waited for copies are answered in one iteration.
const wokenAtOnce = 64

// awaitCopies executes WAIT. It reports false if the command must wait.
func (s *client) awaitCopies(cmd *command.Command, args [][]byte) bool {
	if s.Outstanding() > 0 {
		return false
	}
	replicas, limit, refusal := session.ParseWait(args)
	if refusal != "" {
		s.answer(resp.AppendError(nil, refusal))
		return true
	}
	c := &s.w.copyWaits
	w := &copyWait{of: s, replicas: replicas, first: c.round + 1}
	if limit > 0 {
		w.limit = s.w.loop.After(limit, func() { s.Wake(nil) })
	}
	s.w.stats.Commands[cmd.ID]++ // it lasts as long as the client asked, so its time is no latency
	s.issue()
	c.add(w)
	s.wait(&session.Waiting{
		Reply: func() []byte { return resp.AppendInt(nil, w.best) },
		Stop:  func() { c.remove(w) },
	})
	return true
}

func (c *copyWaits) add(w *copyWait) {
	if c.waiting == nil {
		c.waiting, c.copies, c.Owner = make(map[*copyWait]struct{}), wide.NewCopies(), c
	}
	c.waiting[w] = struct{}{}
	c.version = w.of.state.Version
	if c.asking {
		return
	}
	if c.pause != nil {
		c.pause.Stop()
	}
	c.copies.Rounds.Restart() // the pauses are short again
	c.ask()
}

func (c *copyWaits) remove(w *copyWait) {
	delete(c.waiting, w)
	if w.limit != nil {
		w.limit.Stop()
	}
}

// ask begins a round, if anybody waits.
func (c *copyWaits) ask() {
	c.pause = nil
	if len(c.waiting) == 0 {
		return
	}
	c.asking = true
	c.round++
	m := c.w.order
	m.Enter(&c.Session, order.Lane{Kind: member.Large, Version: c.version})
	over := c.copies.Ask(m, order.Request{Session: &c.Session, Part: c}, c.w.loop.Now())
	c.w.act()
	if over {
		c.roundOver()
	}
}

// Done implements order.Part.
func (c *copyWaits) Done(id int32, reply []byte) {
	c.copies.Add(c.w.order, id, reply)
	c.Undone()
}

// Undone implements order.Asker. The next round asks again.
func (c *copyWaits) Undone() {
	if c.copies.Rounds.Answered() {
		c.roundOver()
	}
}

// roundOver answers those for whom there are enough copies, and pauses before the next round.
func (c *copyWaits) roundOver() {
	var enough []*copyWait
	pause := c.copies.Rounds.Pause(c.w.loop.Now())
	copies, ok := c.copies.Count()
	for w := range c.waiting {
		switch {
		case w.first > c.round: // it came during the round
			pause = 0
		case ok:
			if w.best = max(w.best, copies); w.best >= w.replicas {
				enough = append(enough, w)
			}
		}
	}
	c.asking = false
	c.pause = c.w.loop.After(pause, c.ask)
	c.wake(enough)
}

// wake answers clients, a few in each iteration.
func (c *copyWaits) wake(enough []*copyWait) {
	for i, w := range enough {
		if i == wokenAtOnce {
			c.w.loop.Post(func() { c.wake(enough[i:]) })
			return
		}
		if _, waits := c.waiting[w]; waits {
			w.of.Wake(nil)
		}
	}
}

// Take implements order.Owner. Questions are copied.
func (c *copyWaits) Take([]byte) order.Body { return nil }

// Keep implements order.Owner. Questions are never parked.
func (c *copyWaits) Keep(int) bool { return true }
