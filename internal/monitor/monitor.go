// Package monitor carries the lines of MONITOR from the loops that execute commands to the loops of
// the connections that watch.
//
//	loop 1   Feed.Show ──▶ lines ─┐ posted, many at a time    ┌─▶ watcher
//	loop 2   Feed.Show ──▶ lines ─┴──▶ loop with a watcher ───┴─▶ watcher
//
// While nobody watches, Feed.On is false and nothing else happens. A loop with watchers shows them the
// lines in turns of turnSteps, and serves others in between, however many watch. The loop of a watcher
// closes it if it does not read, like any client. The lines that a loop has not shown yet are charged to
// a budget, and maxTransit bounds them. Beyond either, lines are dropped and the watchers of that loop
// are closed, because they would show a history with holes.
package monitor

import (
	"slices"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/netloop"
)

const (
	// maxTransit is how many bytes of lines may be on their way to the watchers of a loop.
	maxTransit = 16 << 20
	// maxLines is how many bytes of lines a loop keeps until it sends them to the others: no more than one
	// line exceeds it.
	maxLines = 64 << 10
	// turnSteps is how many steps a loop shows lines before others have their turn: a watcher is watcherSteps,
	// for a write, and another one for each stepBytes that it is shown. closeSteps are one that is closed.
	turnSteps    = 256
	watcherSteps = 4
	stepBytes    = 2 << 10
	closeSteps   = 16
)

// Hub has the feeds of all loops.
type Hub struct {
	feeds  []*Feed        // by loop
	budget netloop.Budget // what lines are charged to; nil: nothing
}

// Feed belongs to one loop. Its methods are called on that loop.
type Feed struct {
	hub  *Hub
	loop *netloop.Loop
	on   bool
	// Changed is called on the loop when On may have changed; it may be nil.
	Changed func()

	audience []int // watchers by loop
	lines    []byte
	flushing bool // flush runs in the next iteration

	watchers []watcher
	waiting  []*block     // for the watchers; the first is shown to them now
	number   uint64       // of the first
	at       int          // the watcher that is shown it next
	posted   bool         // turn runs in the next iteration
	transit  atomic.Int64 // bytes that were sent here and are not shown to all
	lost     atomic.Bool  // lines for this loop were dropped
}

// watcher is a connection that is shown what others do.
type watcher struct {
	conn  *netloop.Conn
	muted func() bool // while it returns true, lines are dropped
	from  uint64      // the number of the first block that it is shown
}

// block is lines of a loop. Several loops may have it.
type block struct {
	hub   *Hub
	lines []byte       // nil: lines were dropped, and who has seen those before is closed
	loops atomic.Int32 // that have not shown it to all
}

// blockCost is what a block takes beside its lines, in bytes.
const blockCost = 128

// size is what the block is charged with.
func (b *block) size() int64 {
	if b.lines == nil {
		return 0
	}
	return int64(cap(b.lines)) + blockCost
}

// leave ends the use by a loop.
func (b *block) leave() {
	if b.loops.Add(-1) == 0 && b.hub.budget != nil {
		b.hub.budget.Refund(b.size())
	}
}

// New returns a Hub with a feed for each loop of a group. Lines are charged to the budget, unless that is
// nil.
func New(loops []*netloop.Loop, budget netloop.Budget) *Hub {
	h := &Hub{budget: budget}
	for _, l := range loops {
		f := &Feed{hub: h, loop: l, audience: make([]int, len(loops))}
		h.feeds = append(h.feeds, f)
	}
	return h
}

// Feed returns the feed of a loop.
func (h *Hub) Feed(l *netloop.Loop) *Feed { return h.feeds[l.Index()] }

// On reports whether anybody watches.
func (f *Feed) On() bool { return f.on }

// Add makes a connection of this loop a watcher until Remove, which must be called before the
// connection closes. The watcher sees what this loop executes from now on, and soon what other
// loops execute, but nothing while muted returns true. muted is called on this loop.
func (f *Feed) Add(c *netloop.Conn, muted func() bool) {
	f.watchers = append(f.watchers, watcher{c, muted, f.number + uint64(len(f.waiting))})
	f.tell(1)
}

// Remove removes a watcher; it returns false if c is none.
func (f *Feed) Remove(c *netloop.Conn) bool {
	i := slices.IndexFunc(f.watchers, func(w watcher) bool { return w.conn == c })
	if i < 0 {
		return false
	}
	f.watchers = slices.Delete(f.watchers, i, i+1)
	if i < f.at {
		f.at--
	}
	f.tell(-1)
	return true
}

// tell informs all loops that this one has more or fewer watchers.
func (f *Feed) tell(more int) {
	home := f.loop.Index()
	for _, other := range f.hub.feeds {
		change := func() {
			other.audience[home] += more
			other.on = slices.Max(other.audience) > 0
			if other.Changed != nil {
				other.Changed()
			}
		}
		if other == f {
			change()
			continue
		}
		other.loop.Post(change)
	}
}

// Show sends the line that line appends to all watchers. Call it only while On.
func (f *Feed) Show(line func(dst []byte) []byte) {
	if !f.flushing {
		f.flushing = true
		f.loop.Post(f.flush) // together with all lines that are added until then
	}
	if f.lines = line(f.lines); len(f.lines) >= maxLines {
		f.hand()
	}
}

func (f *Feed) flush() {
	f.flushing = false
	if len(f.lines) > 0 {
		f.hand()
	}
	f.goOn()
}

// hand sends the lines to all loops with watchers. It shows them nothing: a request may be executed now.
func (f *Feed) hand() {
	b := &block{hub: f.hub, lines: f.lines}
	f.lines = nil
	b.loops.Store(1) // this one, until all have it
	charged := b.hub.budget == nil || b.hub.budget.Charge(b.size())
	for home, watchers := range f.audience {
		switch {
		case watchers == 0:
		case charged:
			f.hub.feeds[home].send(b, f)
		default:
			f.hub.feeds[home].lose()
		}
	}
	if charged {
		b.leave()
	}
}

// send has the watchers of f be shown a block of another loop, or its own.
func (f *Feed) send(b *block, from *Feed) {
	if f.transit.Add(b.size()) > maxTransit {
		f.transit.Add(-b.size())
		f.lose()
		return
	}
	b.loops.Add(1)
	if f == from {
		f.waiting = append(f.waiting, b)
		return
	}
	f.loop.Post(func() {
		f.waiting = append(f.waiting, b)
		f.goOn()
	})
}

// lose has the watchers of f be closed, on their loop.
func (f *Feed) lose() {
	if !f.lost.Swap(true) {
		f.loop.Post(f.closeAll)
	}
}

// goOn shows what waits, unless the next turn comes anyway.
func (f *Feed) goOn() {
	if !f.posted {
		f.turn()
	}
}

// turn shows blocks to watchers, until that takes too long.
func (f *Feed) turn() {
	f.posted = false
	for steps := 0; len(f.waiting) > 0; {
		b := f.waiting[0]
		for ; f.at < len(f.watchers); f.at++ {
			if steps >= turnSteps {
				f.posted = true
				f.loop.Post(f.turn)
				return
			}
			steps += f.show(&f.watchers[f.at], b)
		}
		f.shown()
	}
	f.waiting = nil
}

// show shows a block to a watcher. It returns how many steps that takes.
func (f *Feed) show(w *watcher, b *block) (steps int) {
	switch {
	case w.from > f.number:
		return 1
	case b.lines == nil:
		w.conn.Close(netloop.ErrSlowReader)
		return closeSteps
	case w.muted():
		return 1
	}
	if out, ok := w.conn.Grow(w.conn.Out(), len(b.lines)); ok {
		w.conn.SetOut(append(out, b.lines...))
	}
	return watcherSteps + len(b.lines)/stepBytes
}

// shown drops the first block that waits.
func (f *Feed) shown() {
	b := f.waiting[0]
	f.waiting[0] = nil
	f.waiting, f.at = f.waiting[1:], 0
	f.number++
	f.transit.Add(-b.size())
	b.leave()
}

// closeAll closes all watchers there are, in turns, instead of showing them what waits.
func (f *Feed) closeAll() {
	f.lost.Store(false)
	for len(f.waiting) > 0 {
		f.shown()
	}
	b := &block{hub: f.hub}
	b.loops.Store(1)
	f.waiting = append(f.waiting, b)
	f.goOn()
}
