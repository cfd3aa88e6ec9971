package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/proxy/wide"
	"github.com/dunlin-cache/dunlin/ring"
)

const (
	silentTicks = 5
	holdLimit   = 5 * time.Second
)

// session is one client at the proxy: an order.Session, and replies in the order of the commands.
type session struct {
	order.Session
	x      *proxy
	input  []*command // not taken yet
	open   []*command // taken and not answered, in their order
	early  map[*command]any
	client interface{ answered(*command, any) }

	waits  *command      // a blocking one: no other is taken before its reply
	ids    [][]byte      // of an XREAD; order.Claims put others in the place of $
	claims *order.Claims // of that; nil: it has none
	timer  int           // counts settings of their timer: older ones are void
	parts  int           // requests of the blocking one that are not answered: several if it reads
	got    any           // what was answered so far: something, if any of them has, or that one has failed
	gone   bool          // the client is
}

func newSession(x *proxy, client interface{ answered(*command, any) }) *session {
	s := &session{x: x, early: make(map[*command]any), client: client}
	s.Owner = s
	return s
}

var common = order.Lane{Kind: member.Common, Version: resp.RESP2}

// Take has all requests be copied.
func (s *session) Take([]byte) order.Body { return nil }

// Keep grants all memory.
func (s *session) Keep(int) bool { return true }

// take goes on with the input.
func (s *session) take() {
	for len(s.input) > 0 && s.waits == nil && s.dispatch(s.input[0]) {
		s.input = s.input[1:]
	}
}

// dispatch starts a command. False: it must wait.
func (s *session) dispatch(c *command) bool {
	m, now := s.x.machine, s.x.w.now
	lane := common
	if c.kind == pop || c.kind == read {
		return s.block(c)
	}
	if c.large || c.kind.everywhere() {
		lane.Kind = member.Large
	}
	if c.kind.everywhere() {
		if s.Outstanding() > 0 {
			return false
		}
		m.Begin(&s.Session, lane)
		s.begin(c)
		all := &census{s: s, cmd: c, rounds: wide.Rounds{Deadline: now + holdLimit, Broken: &s.x.w.wide}}
		all.round()
		return true
	}
	if c.kind == move && s.Outstanding() > 0 || !m.Enter(&s.Session, lane) {
		return false
	}
	s.begin(c)
	r := order.Request{Session: &s.Session, Seq: uint64(c.id), Origin: originOf(c, s.x.w.tracked[c.place])}
	key := fmt.Appendf(nil, "%d,%d", c.place, c.key)
	raw := resp.AppendRequest(nil, []byte(c.kind.String()), key, strconv.AppendInt(nil, int64(c.id), 10))
	if c.kind == move {
		from, to := s.x.w.keyOf(c.wanted[0], c.id), s.x.w.keyOf(c.wanted[1], c.id)
		raw = member.AppendGather(nil, [][]byte{[]byte(move.String()), from, to, []byte("LEFT"), []byte("RIGHT")})
	}
	p, ok := m.Submit(&s.Session, r, raw, now)
	if !ok {
		panic("BUG: a pipe is full")
	}
	if p != nil {
		s.x.write(p)
	}
	s.x.act()
	return true
}

// originOf is that of a request of a command.
func originOf(c *command, partition uint16) order.Origin {
	return order.Origin{Partition: partition, Database: databaseOf(c.id)}
}

// begin notes that a command was taken.
func (s *session) begin(c *command) {
	s.open = append(s.open, c)
	s.x.commands[c.id] = c
}

// failed is the reply that says that nobody knows, or that it took too long.
type failed struct{}

// deliver gives the client its replies in the order of its commands.
func (s *session) deliver(c *command, reply any) {
	if c == s.waits {
		var goesOn bool
		if reply, goesOn = s.waited(reply); goesOn {
			return
		}
	}
	s.early[c] = reply
	for len(s.open) > 0 {
		first := s.open[0]
		reply, ready := s.early[first]
		if !ready {
			break
		}
		delete(s.early, first)
		s.open = s.open[1:]
		s.client.answered(first, reply)
	}
	s.take()
}

// census is a command over all keys: wide.Rounds, as package proxy has them asked.
type census struct {
	s      *session
	cmd    *command
	rounds wide.Rounds
	all    covered
}

func (c *census) round() {
	x, now := c.s.x, c.s.x.w.now
	if c.rounds.Expired(now) {
		c.finish(failed{})
		return
	}
	words := [][]byte{[]byte(c.cmd.kind.String()), strconv.AppendInt(nil, int64(c.cmd.id), 10)}
	r := order.Request{Session: &c.s.Session, Part: c, Seq: uint64(c.cmd.id), Origin: originOf(c.cmd, 0)}
	over := c.rounds.Ask(x.machine, r, words, now)
	x.act()
	if over {
		c.roundOver()
	}
}

// answer takes what a node has covered. Partitions that have no keys here are covered by whoever
// was asked about them.
func (c *census) answer(id int32, m *covered) {
	set := ring.AllPartitions()
	for k, p := range c.s.x.w.tracked {
		if m.places.has(k) {
			c.all.values[k], c.all.gens[k] = m.values[k], m.gens[k]
		} else {
			set.Remove(p)
		}
	}
	share := c.rounds.Share(id)
	set = set.Intersect(&share)
	if set != share {
		c.s.x.p.agent.refreshSoon()
	}
	c.rounds.Cover(c.s.x.machine, id, &set)
	c.Undone()
}

// Undone counts a question that was answered, or will not be.
func (c *census) Undone() {
	if c.rounds.Answered() {
		c.roundOver()
	}
}

// Done is for answers as nodes encode them, which those of the simulation do not.
func (c *census) Done(int32, []byte) { panic("BUG: a question is never failed") }

func (c *census) roundOver() {
	if c.rounds.Covered() {
		c.all.places = everyPlace
		c.finish(c.all)
		return
	}
	x := c.s.x
	x.w.after(x.p, c.rounds.Pause(x.w.now), c.round)
}

func (c *census) finish(reply any) {
	c.s.End()
	c.s.deliver(c.cmd, reply)
}
