// Package crew runs the work that takes too long for a loop: a few pieces at a time, so that the
// loops keep their processors, and in turns between connections, so that none of them waits for
// all the work of another.
//
//	conn A  ▒▒▒▒▒▒  Queue ┐
//	conn B  ▒       Queue ┼─> A1 B1 A2 C1 A3 ... ─> as many goroutines as the crew has places
//	conn C  ▒       Queue ┘
//
// Only work that computes belongs here: what waits for others would keep a place from those who
// could use it. A place may rest behind a piece of work, so that the crew as a whole gives way to
// loops that need the processors.
package crew

import (
	"sync"
	"time"
)

// Crew has the places and the queues. Its methods may be called from any goroutine.
type Crew struct {
	spawn func(f func())
	rest  func(worked time.Duration)

	mu    sync.Mutex
	free  int      // places
	turns []*Queue // those with waiting work; the first is next
}

// Queue is what waits of one connection. The zero Queue is empty.
type Queue struct{ waiting []Work } // the Crew's mutex protects it

// Work is a piece of work. It returns for how long it has computed without resting.
type Work func() (worked time.Duration)

// New returns a Crew with so many places. spawn starts a goroutine; rest, behind each piece of work,
// returns when its place may take the next one.
func New(places int, spawn func(f func()), rest func(worked time.Duration)) *Crew {
	return &Crew{spawn: spawn, rest: rest, free: places}
}

// Go runs f in a goroutine, when it is the queue's turn. The caller bounds the length of the queue.
func (c *Crew) Go(q *Queue, f Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.free > 0 {
		c.free--
		c.spawn(func() { c.work(f) })
		return
	}
	if len(q.waiting) == 0 {
		c.turns = append(c.turns, q)
	}
	q.waiting = append(q.waiting, f)
}

// work keeps a place as long as there is something to do.
func (c *Crew) work(f Work) {
	for f != nil {
		c.rest(f())
		f = c.next()
	}
}

// next removes what is to be done next. It returns nil, and frees the place, if there is nothing.
func (c *Crew) next() (f Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.turns) == 0 {
		c.free++
		return nil
	}
	q := c.turns[0]
	c.turns[0] = nil
	c.turns = c.turns[1:]
	f = q.waiting[0]
	q.waiting[0] = nil
	if q.waiting = q.waiting[1:]; len(q.waiting) > 0 {
		c.turns = append(c.turns, q)
	}
	return f
}

// Withdraw removes and returns the work that waits in the queue.
func (c *Crew) Withdraw(q *Queue) (waiting []Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting, q.waiting = q.waiting, nil
	for i := range c.turns {
		if len(waiting) > 0 && c.turns[i] == q {
			c.turns = append(c.turns[:i:i], c.turns[i+1:]...)
			break
		}
	}
	return waiting
}
