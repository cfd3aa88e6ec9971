package proxy

import (
	"slices"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/tracking"
	"github.com/dunlin-cache/dunlin/proxy/order"
)

// gone takes what a pipe that tracks has pushed.
func (w *worker) gone(g member.Gone) {
	table := &w.tracking.table
	switch {
	case g.All:
		table.Flush()
	case g.ByPrefix:
		table.Changed(string(g.Key), g.Actor)
	default:
		table.Gone(g.Hash, g.Actor)
	}
	table.Tell()
}

// flushed takes a node's word that it has executed a FLUSHALL. Those that follow prefixes are told when all nodes have
// that own partitions: no other is asked to flush.
func (w *worker) flushed(n *order.Node) {
	here := &w.tracking
	if !slices.Contains(here.flushedBy, n) {
		here.flushedBy = append(here.flushedBy, n)
	}
	for _, other := range w.order.Nodes() {
		if !other.Owns().Empty() && !slices.Contains(here.flushedBy, other) {
			if here.patience == nil {
				here.patience = w.loop.After(flushPatience, w.tellFlushed)
			}
			return
		}
	}
	w.tellFlushed()
}

func (w *worker) tellFlushed() {
	here := &w.tracking
	if here.patience != nil {
		here.patience.Stop()
	}
	here.flushedBy, here.patience = nil, nil
	here.table.FlushFollowers()
	here.table.Tell()
}

// forgetAll has all sessions that track forget everything.
func (w *worker) forgetAll() {
	if table := &w.tracking.table; table.Clients() > 0 {
		table.Flush()
		table.TellLater()
	}
}

// Invalidate implements tracking.Sink.
func (s *client) Invalidate(key string) { s.invalidate(key, false) }

// Flush implements tracking.Sink.
func (s *client) Flush() { s.invalidate("", true) }

// invalidate tells the client now, or behind the replies that are outstanding to what it has read.
func (s *client) invalidate(key string, all bool) {
	t := s.tracker
	if t == nil || s.isClosed() {
		return
	}
	if s.mayTell(t.until) && len(t.behind.list) == 0 {
		s.tell(key, all)
		return
	}
	s.hold(&t.behind, later{until: t.until, key: key, all: all})
}

// hold has an invalidation wait. Of too many, and of all keys, one is left.
func (s *client) hold(h *heldBack, x later) {
	size, before := tracking.FrameSize(len(x.key)), h.bytes
	if x.all || h.bytes+size > tracking.MaxHeld {
		x.key, x.all, size = "", true, tracking.FrameSize(0)
		clear(h.list)
		h.list, h.bytes = h.list[:0], 0
	}
	h.list = append(h.list, x)
	h.bytes += size
	s.gather(h.bytes - before)
}

// mayTell reports whether all replies before a turn are in the output, and no other is in part. A command that waits to
// read something has read nothing yet.
func (s *client) mayTell(until uint64) bool {
	return (s.head >= until || s.awaitsKeys()) && !s.isDue() && !s.isCutting()
}

// awaitsKeys reports whether the only command that is outstanding waits for its keys.
func (s *client) awaitsKeys() bool {
	return s.blocking && s.state.Waiting != nil && s.head == s.waits && (s.Waits() || s.claims != nil && !s.claims.IsPopping())
}

// tellBehind tells what has waited for replies that are in the output now.
func (s *client) tellBehind() {
	t := s.tracker
	for t != nil && len(t.behind.list) > 0 && !s.isClosed() && s.mayTell(t.behind.list[0].until) {
		h := &t.behind
		x := h.list[0]
		h.list[0] = later{}
		if h.list = h.list[1:]; len(h.list) == 0 {
			h.list = nil
		}
		size := tracking.FrameSize(len(x.key))
		h.bytes -= size
		s.gather(-size)
		s.tell(x.key, x.all)
		t = s.tracker
	}
}

// tell sends an invalidation to the client, or to the session to which it is redirected.
func (s *client) tell(key string, all bool) {
	t := s.state.Tracking
	switch {
	case t == nil:
	case t.Redirect != 0:
		if to := s.w.proxy.server.Directory().Find(t.Redirect); to != nil {
			to.Redirected(key, all)
			return
		}
		t.Broken = true
		if s.state.Version == resp.RESP3 {
			s.show(tracking.AppendBroken(nil, t.Redirect))
		}
	case s.state.Version == resp.RESP3:
		s.show(tracking.AppendInvalidate(nil, resp.RESP3, key, all))
	}
}

func (s *client) show(frame []byte) {
	if out, ok := s.conn.Grow(s.conn.Out(), len(frame)); ok {
		s.conn.SetOut(append(out, frame...))
		s.w.stats.Invalidations++
	}
}

// Redirected implements tracking.Target: another session's invalidations come here.
func (s *client) Redirected(key string, all bool) {
	s.w.loop.Post(func() { s.takeRedirected(key, all) })
}

func (s *client) takeRedirected(key string, all bool) {
	if s.isClosed() || s.state.Version != resp.RESP3 && !s.state.Subscribes() {
		return
	}
	switch {
	case s.topics != nil: // among its messages
		s.Push(tracking.AppendInvalidate(nil, s.state.Version, key, all))
	case s.isCutting(): // not in the middle of a large reply
		if s.redirected == nil {
			s.redirected = new(heldBack)
		}
		s.hold(s.redirected, later{key: key, all: all})
	default:
		s.show(tracking.AppendInvalidate(nil, s.state.Version, key, all))
	}
}

// showRedirected shows what has waited for the end of a large reply.
func (s *client) showRedirected() {
	if s.isCutting() || s.isClosed() {
		return
	}
	h := s.redirected
	s.redirected = nil
	s.gather(-h.bytes)
	for _, x := range h.list {
		s.takeRedirected(x.key, x.all)
	}
}
