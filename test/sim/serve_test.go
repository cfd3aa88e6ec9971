package sim

import (
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/proxy/order"
)

// A node's part of a pipe: ownership.Gate and ownership.Generations themselves.

type commandKind uint8

const (
	get commandKind = iota
	set
	incr
	both // a transaction that sets the pair of keys
	push
	pop
	add
	read
	move
	publish
	flushAll
	scan
)

func (k commandKind) String() string {
	return [...]string{"GET", "SET", "INCR", "MSET", "RPUSH", "BLPOP", "XADD", "XREAD", "LMOVE", "PUBLISH", "FLUSHALL", "SCAN"}[k]
}

func (k commandKind) everywhere() bool { return k >= flushAll }

// repeatable reports whether the command may be executed twice.
func (k commandKind) repeatable() bool {
	return k != incr && k != push && k != add && k != move && k != publish
}

// pipeKey is what generations belong to.
type pipeKey struct {
	proxy string
	lane  order.Lane
}

type pipeGreeting struct {
	key        pipeKey
	to         string
	generation uint64
}

// What goes over a pipe to the node.
type (
	request  struct{ cmd *command }
	question struct { // DUNLIN EACH
		cmd    *command
		wanted placeSet
	}
	retrying struct{ epoch uint64 } // DUNLIN RETRY
	pinging  struct{}               // PING
)

// What comes back, one for each.
type (
	done struct {
		value int
		gen   int // of the partition's history, for the checks
	}
	covered struct {
		places placeSet
		values [places][keysPer]int
		gens   [places]int
	}
	moved struct {
		partition uint16
		addr      string
	}
	waitFor struct{ epoch uint64 }
	later   struct { // the reply comes with a push
		token   uint64
		settled settled
	}
	pushed struct {
		token uint64
		reply any
	}
)

// nodePipe is one generation of a pipe, at the node.
type nodePipe struct {
	n          *node
	c          *conn
	key        pipeKey
	superseded bool
	ended      bool
	token      uint64 // of the newest command that is answered later
	gate       ownership.Gate
}

// nodeEnd is a connection that has not said yet what it is.
type nodeEnd struct {
	at   *proc
	c    *conn
	pipe *nodePipe
}

func (e *nodeEnd) closed() {
	if n := e.at.node; n != nil && e.pipe != nil {
		e.pipe.ended = true
		e.pipe.forget()
		n.pipes.Ended(n.w.now, e.pipe.key, e.pipe)
	}
}

func (e *nodeEnd) received(m any) {
	n := e.at.node
	if n == nil {
		e.c.close(1)
		return
	}
	_, isRequest := m.(request)
	_, isPop := m.(popping)
	_, isRead := m.(reading)
	isCommand := isRequest || isPop || isRead
	late := n.iterate(isCommand)
	if o, ok := m.(pipeGreeting); ok {
		e.open(n, o)
		return
	}
	p := e.pipe
	if p == nil || p.superseded {
		return
	}
	switch m := m.(type) {
	case request:
		if c := m.cmd; n.w.holds && c.holds() && p.takes(c.place, late) {
			p.transact(c, late)
		} else if n.w.later && c.slow() && p.gate.Verdict(n.looped, n.w.tracked[c.place], n.fenced && !late) == ownership.Serve {
			p.postpone(c, late)
		} else {
			e.c.send(1, p.execute(c, late))
		}
	case popping:
		p.pop(m, late)
	case gathering:
		p.gather(m.cmd)
	case reading:
		p.read(m, late)
	case claiming:
		if m.behind != nil {
			p.claimEntries(m, late)
		} else {
			p.claim(m, late)
		}
	case passing:
		n.endTurn(m.at, m.turn)
		e.c.send(1, done{})
	case canceling:
		p.cancel(m.token)
		e.c.send(1, done{})
	case question:
		e.c.send(1, p.each(m))
	case listening:
		p.hear(&m)
	case retrying:
		p.gate.Retry(m.epoch, n.looped)
		e.c.send(1, done{})
	case pinging:
		e.c.send(1, done{})
	}
}

// open claims a generation. It closes the older ones before it acknowledges.
func (e *nodeEnd) open(n *node, o pipeGreeting) {
	p := &nodePipe{n: n, c: e.c, key: o.key, gate: ownership.Gate{Broken: n.w.ownership}}
	older, fresh := n.pipes.Claim(n.w.now, o.key, o.generation, p)
	if !fresh {
		e.c.close(1)
		return
	}
	e.pipe = p
	p.gate.Open(n.looped)
	if len(older) == 0 {
		e.c.send(1, done{})
		return
	}
	n.w.after(n.p, n.w.between(0, time.Millisecond), func() {
		for _, p := range older {
			p.superseded = true
			p.forget()
			p.c.close(1)
			n.pipes.Ended(n.w.now, p.key, p)
		}
		e.c.send(1, done{})
	})
}

// execute answers a command on a key. late: the command had passed the fence when the process was
// stopped.
func (p *nodePipe) execute(c *command, late bool) any {
	n, k := p.n, c.place
	if !p.takes(k, late) {
		return p.refusal(k)
	}
	value, gen := n.w.execute(n, c, k, late)
	n.servePlace(k, late)
	return done{value, gen}
}

// refusal refuses a command on a place.
func (p *nodePipe) refusal(k int) any {
	n, v, at := p.n, p.n.looped, p.n.w.tracked[k]
	verdict := p.gate.Verdict(v, at, n.fenced)
	p.gate.Refused(at)
	if verdict == ownership.Moved {
		return moved{at, v.Table.OwnerOf(at).Addr}
	}
	return waitFor{v.Epoch()}
}

// takes reports whether a command on a place is executed now.
func (p *nodePipe) takes(k int, late bool) bool {
	n := p.n
	return p.gate.Verdict(n.looped, n.w.tracked[k], n.fenced && !late) == ownership.Serve && n.holds[k] == nil
}

// slow reports whether a node that answers some commands later does so with this one.
func (c *command) slow() bool { return c.id%9 == 0 || c.large && c.id%3 == 0 }

// postpone answers a command later. A read has its moment now. A write is executed later, unless the
// connection has ended, and others on its partition are refused meanwhile.
func (p *nodePipe) postpone(c *command, late bool) {
	n, at := p.n, p.n.w.tracked[c.place]
	p.token++
	token := p.token
	p.c.send(1, later{token: token})
	var reply any
	if c.kind == get {
		reply = p.execute(c, late)
	} else {
		p.gate.Begun(at)
	}
	n.w.after(n.p, n.w.between(0, 100*time.Millisecond), func() {
		late := n.iterate(true)
		if p.superseded || p.ended {
			return
		}
		if reply == nil {
			refused := p.gate.Resumed(at)
			reply = p.execute(c, late)
			p.gate.Refused(refused...)
		}
		p.c.send(1, pushed{token, reply})
	})
}

// each answers a command over all keys, for the wanted partitions that are served here.
func (p *nodePipe) each(q question) any {
	n, v := p.n, p.n.looped
	if v.Table == nil || n.fenced || p.gate.Outdated(v) {
		return waitFor{v.Epoch()}
	}
	var c covered
	for k := range places {
		if !q.wanted.has(k) || !n.serves(v, k) || n.holds[k] != nil {
			continue
		}
		c.places |= 1 << k
		if q.cmd.kind == flushAll {
			n.w.execute(n, q.cmd, k, false)
		} else {
			_, c.gens[k] = n.w.execute(n, q.cmd, k, false)
			c.values[k] = n.data[k].values
		}
	}
	return c
}
