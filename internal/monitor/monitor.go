// Package monitor carries the lines of MONITOR from the loops that execute commands to the loops of
// the connections that watch.
//
//	loop 1   Feed.Show ──▶ lines ─┐ posted, many at a time    ┌─▶ watcher
//	loop 2   Feed.Show ──▶ lines ─┴──▶ loop with a watcher ───┴─▶ watcher
//
// While nobody watches, Feed.On is false and nothing else happens. The loop of a watcher closes it
// if it does not read, like any client. maxTransit bounds the bytes on their way between loops.
// Beyond it lines are dropped and the watchers of that loop are closed, because they would show a
// history with holes.
package monitor

import (
	"slices"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// maxTransit is how many bytes of lines may be on their way to a loop.
const maxTransit = 16 << 20

// Hub has the feeds of all loops.
type Hub struct {
	feeds []*Feed // by loop
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
	watchers []watcher
	transit  atomic.Int64 // bytes that other loops have posted and this one has not taken
	lost     atomic.Bool  // lines for this loop were dropped
}

// watcher is a connection that is shown what others do.
type watcher struct {
	conn  *netloop.Conn
	muted func() bool // while it returns true, lines are dropped
}

// New returns a Hub with a feed for each loop of a group.
func New(loops []*netloop.Loop) *Hub {
	h := &Hub{}
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
	f.watchers = append(f.watchers, watcher{c, muted})
	f.tell(1)
}

// Remove removes a watcher; it returns false if c is none.
func (f *Feed) Remove(c *netloop.Conn) bool {
	i := slices.IndexFunc(f.watchers, func(w watcher) bool { return w.conn == c })
	if i < 0 {
		return false
	}
	f.watchers = slices.Delete(f.watchers, i, i+1)
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
	if len(f.lines) == 0 {
		f.loop.Post(f.flush) // together with all lines that are added until then
	}
	f.lines = line(f.lines)
}

func (f *Feed) flush() {
	lines := f.lines
	f.lines = nil
	for home, watchers := range f.audience {
		if watchers > 0 {
			f.hub.feeds[home].send(lines, f)
		}
	}
}

// send shows lines to the watchers of f. It is called on f's loop.
func (f *Feed) send(lines []byte, from *Feed) {
	if f == from {
		f.deliver(lines)
		return
	}
	n := int64(len(lines))
	if f.transit.Add(n) > maxTransit {
		f.transit.Add(-n)
		if !f.lost.Swap(true) {
			f.loop.Post(f.closeAll)
		}
		return
	}
	f.loop.Post(func() {
		f.transit.Add(-n)
		f.deliver(lines)
	})
}

func (f *Feed) deliver(lines []byte) {
	for _, w := range f.watchers {
		if w.muted() {
			continue
		}
		if out, ok := w.conn.Grow(w.conn.Out(), len(lines)); ok {
			w.conn.SetOut(append(out, lines...))
		}
	}
}

func (f *Feed) closeAll() {
	f.lost.Store(false)
	for _, w := range f.watchers {
		w.conn.Close(netloop.ErrSlowReader)
	}
}
