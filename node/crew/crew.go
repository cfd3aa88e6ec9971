// Package crew runs the work that takes too long for a loop: a few pieces at a time, so that the
// loops keep their processors, and in turns between sources, their connections, and what the work of
// one connection is about, so that none of them waits for all the work of another.
//
//	conn A of source 1  ▒▒▒▒▒▒  Queue ┐
//	conn B of source 1  ▒       Queue ┼─> A1 C1 B1 C2 A2 ... ─> as many goroutines as the crew has places
//	conn C of source 2  ▒▒      Queue ┘
//
// Whoever opens many connections has no more turns for that. A proxy's connection is a source of its own. It has
// the work of many clients, and does not say whose: that on one partition has its turns together, so that who asks
// for much on some keys holds up those on others little. Work that was done in vain, because what it read has
// changed, is first in its queue: others may wait for it already.
//
// Only work that computes belongs here: what waits for others would keep a place from those who
// could use it. A place may rest behind a piece of work, so that the crew as a whole gives way to
// loops that need the processors. It does not while any work has waited for long: others may wait for the
// partition that this is about.
package crew

import (
	"container/list"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Crew has the places and the queues. Its methods may be called from any goroutine.
type Crew struct {
	spawn func(f func())
	rest  func(worked time.Duration)

	mu      sync.Mutex
	free    int                    // places
	turns   list.List              // of the sources with waiting work; the first is next
	sources map[netip.Addr]*source // of turns, those with an address

	hurried atomic.Int32 // pieces of work that have waited for LongWait
}

// LongWait is for how long work waits until no place rests any more.
const LongWait = 500 * time.Millisecond

// Queue is what waits of one connection. The zero Queue is empty. The Crew's mutex protects it.
type Queue struct {
	lines []line        // the first is next
	of    *source       // while anything waits
	at    *list.Element // its place among the turns of that
}

// line is the waiting work of a Queue that is about one thing.
type line struct {
	about   uint16
	waiting []piece // at least one
}

// piece is work that waits.
type piece struct {
	do    Work
	hurry *time.Timer // counts it in hurried
}

// source has the queues with waiting work of all connections from an address, or that of one.
type source struct {
	from  netip.Addr
	turns list.List     // of the queues; the first is next
	at    *list.Element // its place among the turns of the crew
}

// Work is a piece of work. It returns for how long it has computed without resting.
type Work func() (worked time.Duration)

// New returns a Crew with so many places. spawn starts a goroutine; rest, behind each piece of work,
// returns when its place may take the next one.
func New(places int, spawn func(f func()), rest func(worked time.Duration)) *Crew {
	return &Crew{spawn: spawn, rest: rest, free: places, sources: make(map[netip.Addr]*source)}
}

// Go runs f in a goroutine, when it is the turn of what f is about in its queue, the queue's among those from the same
// address, and theirs among all. The zero address is that of this queue only. The caller bounds the length of the queue.
func (c *Crew) Go(q *Queue, from netip.Addr, about uint16, f Work) {
	c.enqueue(q, from, about, f, false)
}

// GoAnew is Go for work that was done in vain before, which is first in its queue. The caller bounds how often.
func (c *Crew) GoAnew(q *Queue, from netip.Addr, about uint16, f Work) {
	c.enqueue(q, from, about, f, true)
}

func (c *Crew) enqueue(q *Queue, from netip.Addr, about uint16, f Work, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.free > 0 {
		c.free--
		c.spawn(func() { c.work(f) })
		return
	}
	if q.of == nil {
		c.enter(q, from)
	}
	p := piece{f, time.AfterFunc(LongWait, func() { c.hurried.Add(1) })}
	if first {
		q.addFirst(about, p)
	} else {
		q.add(about, p)
	}
}

// begin ends the wait of a piece of work.
func (c *Crew) begin(p piece) Work {
	if !p.hurry.Stop() {
		c.hurried.Add(-1)
	}
	return p.do
}

// line returns the index of what waits that is about this, or the length of lines.
func (q *Queue) line(about uint16) int {
	i := slices.IndexFunc(q.lines, func(l line) bool { return l.about == about })
	if i < 0 {
		return len(q.lines)
	}
	return i
}

// add has the work wait behind all that is about the same.
func (q *Queue) add(about uint16, p piece) {
	i := q.line(about)
	if i == len(q.lines) {
		q.lines = append(q.lines, line{about: about})
	}
	q.lines[i].waiting = append(q.lines[i].waiting, p)
}

// addFirst has the work be next.
func (q *Queue) addFirst(about uint16, p piece) {
	l := line{about, []piece{p}}
	if i := q.line(about); i < len(q.lines) {
		l.waiting = append(l.waiting, q.lines[i].waiting...)
		q.lines = slices.Delete(q.lines, i, i+1)
	}
	q.lines = slices.Insert(q.lines, 0, l)
}

// take removes what is next.
func (q *Queue) take() (p piece) {
	l := q.lines[0]
	q.lines[0] = line{}
	q.lines = q.lines[1:]
	p = l.waiting[0]
	l.waiting[0] = piece{}
	if l.waiting = l.waiting[1:]; len(l.waiting) > 0 {
		q.lines = append(q.lines, l)
	}
	return p
}

// enter gives the queue its turns.
func (c *Crew) enter(q *Queue, from netip.Addr) {
	if q.of = c.sources[from]; q.of == nil {
		q.of = &source{from: from}
		q.of.at = c.turns.PushBack(q.of)
		if from.IsValid() {
			c.sources[from] = q.of
		}
	}
	q.at = q.of.turns.PushBack(q)
}

// leave ends the turns of the queue, which is empty.
func (c *Crew) leave(q *Queue) {
	of := q.of
	of.turns.Remove(q.at)
	if of.turns.Len() == 0 {
		c.turns.Remove(of.at)
		delete(c.sources, of.from)
	}
	q.of, q.at = nil, nil
}

// work keeps a place as long as there is something to do.
func (c *Crew) work(f Work) {
	for f != nil {
		if worked := f(); c.hurried.Load() == 0 {
			c.rest(worked)
		}
		f = c.next()
	}
}

// next removes what is to be done next. It returns nil, and frees the place, if there is nothing.
func (c *Crew) next() (f Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turns.Len() == 0 {
		c.free++
		return nil
	}
	of := c.turns.Front().Value.(*source)
	c.turns.MoveToBack(of.at)
	q := of.turns.Front().Value.(*Queue)
	of.turns.MoveToBack(q.at)
	if f = c.begin(q.take()); len(q.lines) == 0 {
		c.leave(q)
	}
	return f
}

// Withdraw removes and returns the work that waits in the queue. It takes no longer if others have more that waits.
func (c *Crew) Withdraw(q *Queue) (waiting []Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.of == nil {
		return nil
	}
	for _, l := range q.lines {
		for _, p := range l.waiting {
			waiting = append(waiting, c.begin(p))
		}
	}
	q.lines = nil
	c.leave(q)
	return waiting
}
