package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// One worker of a proxy, after package proxy: route, pipe, hold, latch, census.

const (
	silenceTick  = 50 * time.Millisecond
	silentTicks  = 5
	openTicks    = 10
	holdLimit    = 5 * time.Second
	retryEvery   = 10 * time.Millisecond
	maxHops      = 4
	maxRetryWait = 100 * time.Millisecond
)

type proxy struct {
	w *world
	p *proc

	table      *ring.Table
	owner      [places]*peer
	route      int // counts the changes of owner
	peers      []*peer
	leaving    []*peer
	generation uint64
	sessions   []*session
	retryArmed bool
}

type peer struct {
	x      *proxy
	member ring.Member
	gone   bool
	pipe   *pipe
}

type pipeState uint8

const (
	pipeClosed pipeState = iota
	pipeDialing
	pipeOpening
	pipeOpen
)

type pipe struct {
	peer       *peer
	state      pipeState
	c          *conn
	attempt    int
	generation uint64
	backoff    time.Duration
	retryAt    time.Duration
	failing    time.Duration // since when it cannot be opened; 0: it can
	inflight   []*sent
	silent     int
	latch      latch
	count      int // of requests sent
	answered   int
}

// latch mirrors what the node refuses.
type latch struct {
	on     bool
	places placeSet
	epoch  uint64
	until  int // so many must be answered before RETRY
	rounds int
	spoken time.Duration
}

// sent is what a pipe has taken and not answered: a command, a part of a census, or the pipe's own.
type sent struct {
	s      *session
	cmd    *command
	census *census
	share  placeSet
	hops   int
	begun  bool
	since  time.Duration
}

// pipeEnd is the proxy's end of one connection.
type pipeEnd struct {
	p *pipe
	c *conn
}

func newProxy(p *proc) *proxy {
	x := &proxy{w: p.w, p: p}
	p.w.after(p, silenceTick, x.tick)
	return x
}

func (x *proxy) install(t *ring.Table) {
	if x.table != nil && !x.w.newer(t, x.table) {
		return
	}
	x.table = t
	old := x.peers
	x.peers = nil
	for _, m := range t.Nodes {
		i := slices.IndexFunc(old, func(n *peer) bool { return n.member.Name() == m.Name() })
		var n *peer
		if i >= 0 {
			n = old[i]
			old = slices.Delete(old, i, i+1)
		} else {
			n = &peer{x: x, member: m}
			n.pipe = &pipe{peer: n}
		}
		x.peers = append(x.peers, n)
	}
	for k, p := range x.w.tracked {
		x.owner[k] = x.peers[t.Owner[p]]
	}
	x.route++
	x.leaving = append(x.leaving, old...)
	x.retryHeld()
}

// setAlive closes the pipes to nodes that were declared dead.
func (x *proxy) setAlive(members []ring.Member) {
	lives := func(n *peer) bool {
		return slices.ContainsFunc(members, func(m ring.Member) bool { return m.Name() == n.member.Name() })
	}
	for _, n := range x.leaving {
		if !lives(n) {
			n.drop()
		}
	}
	for _, n := range x.peers {
		switch {
		case !lives(n) && !n.gone:
			n.drop()
		case lives(n) && n.gone:
			n.gone = false
		}
	}
}

func (n *peer) drop() {
	n.gone = true
	n.pipe.fail()
}

func (x *proxy) tick() {
	for _, n := range x.peers {
		n.pipe.tick()
	}
	x.leaving = slices.DeleteFunc(x.leaving, func(n *peer) bool {
		n.pipe.tick()
		if len(n.pipe.inflight) > 0 {
			return false
		}
		n.drop()
		return true
	})
	x.w.after(x.p, silenceTick, x.tick)
}

func (p *pipe) tick() {
	if len(p.inflight) == 0 && (p.state == pipeOpen || p.state == pipeClosed) {
		p.silent = 0
		return
	}
	p.silent++
	limit := silentTicks
	if p.state != pipeOpen {
		limit = openTicks
	}
	if p.silent > limit {
		p.fail()
	}
}

func (p *pipe) open() {
	x := p.peer.x
	if p.state != pipeClosed || x.w.now < p.retryAt || p.peer.gone {
		return
	}
	if p.failing == 0 {
		p.failing = x.w.now
	}
	p.state, p.silent = pipeDialing, 0
	p.attempt++
	attempt := p.attempt
	end := &pipeEnd{p: p}
	x.w.dial(x.p, p.peer.member.Addr, end, func(at *proc, c *conn) endpoint { return &nodeEnd{at: at, c: c} }, func(c *conn) {
		switch {
		case p.attempt != attempt || p.state != pipeDialing:
			if c != nil {
				c.close(0)
			}
		case c == nil:
			p.fail()
		default:
			p.c, end.c = c, c
			p.state = pipeOpening
			x.generation++
			p.generation = x.generation
			c.send(0, pipeGreeting{pipeKey{x.p.name}, p.peer.member.Name(), p.generation})
		}
	})
}

func (p *pipe) fail() {
	if p.state == pipeClosed {
		return
	}
	x := p.peer.x
	p.state = pipeClosed
	p.attempt++
	if p.c != nil {
		p.c.close(0)
		p.c = nil
	}
	p.latch = latch{}
	p.backoff = min(max(2*p.backoff, 10*time.Millisecond), 500*time.Millisecond)
	p.retryAt = x.w.now + p.backoff
	queue := p.inflight
	p.inflight = nil
	p.count, p.answered = 0, 0
	for _, r := range queue {
		if r.cmd == nil {
			continue
		}
		if !r.cmd.kind.repeatable() && !x.w.repeatAll {
			r.s.deliver(r.cmd, failed{})
			continue
		}
		r.begun = true
		r.undone()
	}
}

func (r *sent) undone() {
	if r.census != nil {
		r.census.answered(r.share, nil)
		return
	}
	r.s.hold(r)
}

func (p *pipe) send(r *sent, m any) {
	p.count++
	p.inflight = append(p.inflight, r)
	p.c.send(0, m)
}

func (e *pipeEnd) closed() {
	if e.p.c == e.c {
		e.p.fail()
	}
}

func (e *pipeEnd) received(m any) {
	p := e.p
	if p.c != e.c {
		return
	}
	p.silent = 0
	if p.state == pipeOpening {
		p.state = pipeOpen
		p.backoff, p.retryAt, p.failing = 0, 0, 0
		p.peer.x.retryHeld()
		return
	}
	r := p.inflight[0]
	p.inflight = p.inflight[1:]
	p.answered++
	if r.cmd == nil {
		return
	}
	x := p.peer.x
	switch m := m.(type) {
	case moved:
		p.latch.add(r, p.count, 0)
		x.p.agent.refreshSoon()
		x.follow(r, m.addr)
		r.undone()
	case waitFor:
		p.latch.add(r, p.count, m.epoch)
		r.undone()
	case covered:
		r.census.answered(r.share, &m)
	default:
		r.s.deliver(r.cmd, m)
	}
}

func (l *latch) add(r *sent, until int, epoch uint64) {
	l.on, l.until, l.epoch = true, until, max(l.epoch, epoch)
	if r.census == nil {
		l.places |= 1 << r.cmd.place
	}
}

func (l *latch) refuses(k int) bool { return l.on && l.places.has(k) }

// unlatch says RETRY if that is needed. False: not yet.
func (p *pipe) unlatch() bool {
	l := &p.latch
	if !l.on {
		return true
	}
	now := p.peer.x.w.now
	if p.answered < l.until && !p.peer.x.w.retryEarly || l.spoken != 0 && now-l.spoken < min(retryEvery<<min(l.rounds, 8), maxRetryWait) {
		return false
	}
	if l.rounds++; now-l.spoken > time.Second {
		l.rounds = 0
	}
	l.on, l.places, l.spoken = false, 0, now
	p.send(&sent{}, retrying{l.epoch})
	return true
}

// follow routes a partition to the node that a redirection names.
func (x *proxy) follow(r *sent, addr string) {
	if r.census != nil {
		return
	}
	k := r.cmd.place
	i := slices.IndexFunc(x.peers, func(n *peer) bool { return n.member.Addr == addr && !n.gone })
	if i < 0 {
		return
	}
	to := x.peers[i]
	if r.hops >= maxHops {
		r.hops = 0
		to = x.peers[x.table.Owner[x.w.tracked[k]]]
	} else {
		r.hops++
	}
	if x.owner[k] != to {
		x.owner[k] = to
		x.route++
	}
	x.w.after(x.p, 0, func() { r.s.retry() })
}

// retryHeld tries everything that is held.
func (x *proxy) retryHeld() {
	for _, s := range x.sessions {
		s.retry()
	}
	x.armRetry()
}

func (x *proxy) armRetry() {
	holds := slices.ContainsFunc(x.sessions, func(s *session) bool { return len(s.held) > 0 })
	if holds && !x.retryArmed {
		x.retryArmed = true
		x.w.after(x.p, retryEvery, func() {
			x.retryArmed = false
			x.retryHeld()
		})
	}
}
