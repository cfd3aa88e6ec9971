package sim

import (
	"cmp"
	"slices"
	"time"
)

// session is one client at the proxy.
type session struct {
	x      *proxy
	input  []*command // not taken yet
	open   []*command // taken and not answered, in their order
	early  map[*command]any
	held   []*sent
	remote int // outstanding at nodes, or held
	route  int
	drain  bool
	census *census
	client *client
}

// take goes on with the input.
func (s *session) take() {
	for len(s.input) > 0 && s.census == nil && s.dispatch(s.input[0]) {
		s.input = s.input[1:]
	}
}

// dispatch starts a command. False: it must wait.
func (s *session) dispatch(c *command) bool {
	x := s.x
	if c.kind.everywhere() {
		if s.remote > 0 {
			return false
		}
		s.drain, s.route = true, x.route
		s.open = append(s.open, c)
		s.remote++
		s.census = &census{s: s, cmd: c, want: everyPlace, deadline: x.w.now + holdLimit, pause: retryEvery}
		s.census.round()
		return true
	}
	if s.remote == 0 {
		s.drain, s.route = false, x.route
	} else if s.route != x.route || s.drain || len(s.held) > 0 {
		return false
	}
	r := &sent{s: s, cmd: c}
	s.open = append(s.open, c)
	s.remote++
	owner := x.owner[c.place]
	if owner == nil {
		s.hold(r)
		return true
	}
	p := owner.pipe
	if p.state != pipeOpen || p.latch.refuses(c.place) {
		p.open()
		r.since = p.failing
		s.hold(r)
		return true
	}
	p.send(r, request{c})
	return true
}

func (s *session) hold(r *sent) {
	if r.since == 0 {
		r.since = s.x.w.now
	}
	s.held = append(s.held, r)
	s.drain = true
	s.x.armRetry()
}

// retry sends what is held again, in order, once nothing is on its way any more.
func (s *session) retry() {
	x := s.x
	for _, r := range slices.Clone(s.held) {
		if x.w.now-r.since > holdLimit {
			s.held = slices.DeleteFunc(s.held, func(o *sent) bool { return o == r })
			s.deliver(r.cmd, failed{})
		}
	}
	if s.remote > len(s.held) && !x.w.resendEarly {
		return
	}
	slices.SortFunc(s.held, func(a, b *sent) int { return cmp.Compare(a.cmd.id, b.cmd.id) })
	for len(s.held) > 0 && s.resend(s.held[0]) {
		s.held = s.held[1:]
	}
	s.take()
}

func (s *session) resend(r *sent) bool {
	owner := s.x.owner[r.cmd.place]
	if owner == nil {
		return false
	}
	p := owner.pipe
	if p.state != pipeOpen {
		p.open()
		return false
	}
	if !p.unlatch() {
		return false
	}
	p.send(r, request{r.cmd})
	return true
}

// failed is the reply that says that nobody knows, or that it took too long.
type failed struct{}

// deliver gives the client its replies in the order of its commands.
func (s *session) deliver(c *command, reply any) {
	s.remote--
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
	if s.remote == len(s.held) {
		s.x.w.after(s.x.p, 0, s.retry)
	}
	s.take()
}

// census is a command over all keys.
type census struct {
	s        *session
	cmd      *command
	want     placeSet
	pending  int
	deadline time.Duration
	pause    time.Duration
	all      covered
}

// round asks every node about those of its partitions that are not covered yet.
func (c *census) round() {
	x := c.s.x
	c.pending = 1
	for _, n := range x.peers {
		var share placeSet
		for k := range places {
			if c.want.has(k) && x.owner[k] == n {
				share |= 1 << k
			}
		}
		if share == 0 {
			continue
		}
		p := n.pipe
		if p.state != pipeOpen {
			p.open()
			continue
		}
		if !p.unlatch() {
			continue
		}
		c.pending++
		p.send(&sent{s: c.s, cmd: c.cmd, census: c, share: share}, question{c.cmd, share})
	}
	c.answered(0, nil)
}

// answered takes an answer about a share; nil: there is none.
func (c *census) answered(share placeSet, m *covered) {
	if m != nil {
		c.want &^= m.places
		for k := range places {
			if m.places.has(k) {
				c.all.values[k], c.all.gens[k] = m.values[k], m.gens[k]
			}
		}
		for k, p := range c.s.x.w.tracked { // what was not covered is asked of the table's owner next
			if x := c.s.x; share.has(k) && !m.places.has(k) && x.table != nil {
				if to := x.peers[x.table.Owner[p]]; x.owner[k] != to {
					x.owner[k] = to
					x.route++
				}
			}
		}
		if m.places != share {
			c.s.x.p.agent.refreshSoon()
		}
	}
	if c.pending--; c.pending > 0 {
		return
	}
	s, x := c.s, c.s.x
	switch {
	case c.want == 0:
		s.census = nil
		c.all.places = everyPlace
		s.deliver(c.cmd, c.all)
	case x.w.now > c.deadline:
		s.census = nil
		s.deliver(c.cmd, failed{})
	default:
		x.w.after(x.p, c.pause, c.round)
		c.pause = min(2*c.pause, maxRetryWait)
	}
}
