package ownership

import (
	"slices"
	"time"
)

// Generations knows the newest generation of every pipe, and which connections may still execute
// commands of older ones.
//
// When a proxy gives a connection up, it fails or re-sends what was in flight, while the old
// connection may still hold unread commands. They must not be executed later: a SET given up at
// 12:00:00 would overwrite one acknowledged at 12:00:01. So the node acknowledges a generation only
// when all older ones of the pipe have ended:
//
//	old connection  ··SET a 1··│ unread, thrown away
//	new connection  PIPE gen 8 ──▶ Claim ──▶ close gen 7 ──▶ Ended ──▶ +OK ──▶ SET a 2
//
// K identifies a pipe, C is one of its connections. The zero value knows none. It has no lock.
type Generations[K, C comparable] struct {
	Broken Broken // for the simulation

	pipes  map[K]*generations[C]
	pruned time.Duration
}

// generations are those of one pipe.
type generations[C any] struct {
	newest uint64
	live   []C           // those that have not ended
	ended  time.Duration // when the last one did; of no meaning while there is one
}

// GenerationMemory is how long the generation of a pipe without a connection is remembered: far
// longer than a connection of an older generation can be on its way.
const GenerationMemory = 10 * time.Minute

// Claim is the event that a connection introduces itself as a generation of a pipe. fresh reports
// whether that is newer than all before; if not, the connection must be refused. older has the
// connections of the pipe that have not ended: the caller closes them, and acknowledges the new one
// when all of them have ended. The result is the caller's.
func (g *Generations[K, C]) Claim(now time.Duration, pipe K, generation uint64, c C) (older []C, fresh bool) {
	g.prune(now)
	if g.pipes == nil {
		g.pipes = make(map[K]*generations[C])
	}
	p := g.pipes[pipe]
	switch {
	case g.Broken.IgnoreGenerations:
		return nil, true
	case p == nil:
		p = new(generations[C])
		g.pipes[pipe] = p
	case generation <= p.newest:
		return nil, false
	}
	older = slices.Clone(p.live)
	p.newest, p.live = generation, append(p.live, c)
	return older, true
}

// Ended is the event that a connection is closed, and nothing that came over it is executed any
// more.
func (g *Generations[K, C]) Ended(now time.Duration, pipe K, c C) {
	p := g.pipes[pipe]
	if p == nil {
		return
	}
	p.live = slices.DeleteFunc(p.live, func(other C) bool { return other == c })
	p.ended = now
}

// prune forgets the pipes of proxies that are long gone.
func (g *Generations[K, C]) prune(now time.Duration) {
	if now-g.pruned < GenerationMemory {
		return
	}
	g.pruned = now
	for key, p := range g.pipes {
		if len(p.live) == 0 && now-p.ended > GenerationMemory {
			delete(g.pipes, key)
		}
	}
}
