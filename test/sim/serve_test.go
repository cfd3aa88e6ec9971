package sim

import (
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
)

// A node's part of a pipe, after node/pipes.go, ownership.go and internalcmd.go.

type commandKind uint8

const (
	get commandKind = iota
	set
	incr
	flushAll
	scan
)

func (k commandKind) String() string { return [...]string{"GET", "SET", "INCR", "FLUSHALL", "SCAN"}[k] }

func (k commandKind) everywhere() bool { return k >= flushAll }

// repeatable tells whether the command may be executed twice.
func (k commandKind) repeatable() bool { return k != incr }

// pipeKey is what generations belong to.
type pipeKey struct{ proxy string }

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
	moved   struct{ addr string }
	waitFor struct{ epoch uint64 }
)

// nodePipe is one generation of a pipe, at the node.
type nodePipe struct {
	n          *node
	c          *conn
	key        pipeKey
	generation uint64
	superseded bool
	latched    placeSet
	era        uint64
}

// nodeEnd is a connection that has not said yet what it is.
type nodeEnd struct {
	at   *proc
	c    *conn
	pipe *nodePipe
}

func (e *nodeEnd) closed() {}

func (e *nodeEnd) received(m any) {
	n := e.at.node
	if n == nil {
		e.c.close(1)
		return
	}
	_, isCommand := m.(request)
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
		e.c.send(1, p.execute(m.cmd, late))
	case question:
		e.c.send(1, p.each(m))
	case retrying:
		p.latched = 0
		p.era = max(p.era, min(m.epoch, n.looped.Epoch()))
		e.c.send(1, done{})
	}
}

// open claims a generation, and has older ones executed no more before it says so.
func (e *nodeEnd) open(n *node, o pipeGreeting) {
	older := n.pipes[o.key]
	if older != nil && older.generation >= o.generation && !n.w.ignoreGenerations {
		e.c.close(1)
		return
	}
	e.pipe = &nodePipe{n: n, c: e.c, key: o.key, generation: o.generation, era: n.looped.Epoch()}
	n.pipes[o.key] = e.pipe
	if older == nil || n.w.ignoreGenerations {
		e.c.send(1, done{})
		return
	}
	n.w.after(n.p, n.w.between(0, time.Millisecond), func() {
		older.superseded = true
		older.c.close(1)
		e.c.send(1, done{})
	})
}

func (p *nodePipe) predates(k int) bool {
	return p.n.looped.Began[p.n.w.tracked[k]] > p.era && !p.n.w.ignoreEras
}

func (p *nodePipe) serves(k int) bool {
	n := p.n
	return n.serves(n.looped, k) && !n.fenced && !p.latched.has(k) && !p.predates(k)
}

// execute answers a command on a key.
func (p *nodePipe) execute(c *command, late bool) any {
	n, v, k := p.n, p.n.looped, c.place
	fenced := n.fenced
	if late { // it was past all this
		n.fenced = false
	}
	ok := p.serves(k)
	n.fenced = fenced
	if ok {
		value, gen := n.w.execute(n, c, k, late)
		return done{value, gen}
	}
	latched := p.latched.has(k)
	if !n.w.neverLatch {
		p.latched |= 1 << k
	}
	if v.Table == nil || n.fenced || n.standing(v, k) != ownership.Foreign || latched {
		return waitFor{v.Epoch()}
	}
	return moved{v.Table.OwnerOf(n.w.tracked[k]).Addr}
}

// each answers a command over all keys, for the wanted partitions that are served here.
func (p *nodePipe) each(q question) any {
	n, v := p.n, p.n.looped
	if v.Table == nil || n.fenced || v.Newest > p.era && !n.w.ignoreEras {
		return waitFor{v.Epoch()}
	}
	var c covered
	for k := range places {
		if !q.wanted.has(k) || !n.serves(v, k) {
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
