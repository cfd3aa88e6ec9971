package order

import (
	"time"
)

// Owner is the shell's side of a session.
type Owner interface {
	// Take hands the memory behind raw, a request of this session, over to the caller. nil means
	// that the caller must copy raw.
	Take(raw []byte) Body
	// Keep charges n more bytes of parked requests to the session, before they are there. n is
	// negative when they are gone. Keep reports false if there is no memory for them: then nothing
	// has changed.
	Keep(n int) bool
}

// Session is the part of a client's session that decides where its next request may go.
type Session struct {
	// Owner must be set before the first request.
	Owner Owner
	// Actor, unless it is 0, is told to nodes before each request (DUNLIN AS).
	Actor uint64

	remote int      // requests that nodes have or that are parked: each part counts, questions of Askers do not
	lane   Lane     // of all those
	route  uint64   // of the Machine when the first of them was sent
	drain  bool     // nothing new is sent before remote is 0
	parked []parked // requests to be sent again; not sorted
	listed bool     // in the Machine's parking
	closed bool
	strays []*Pipe // that had strays of this session when they were lost
	wait   waiting // of its blocking command, if it has one
}

// Outstanding returns the number of requests that nodes have or that are parked, plus that of the
// commands between Begin and End.
func (s *Session) Outstanding() int { return s.remote }

// Lane returns the lane of all outstanding requests.
func (s *Session) Lane() Lane { return s.lane }

// Enter reports whether the session may send a request in that lane now. Nothing may be outstanding
// when a session changes its lane, because two lanes do not keep the order of commands, nor when it
// sends its first request after the route has changed.
func (m *Machine) Enter(s *Session, l Lane) bool {
	if s.remote == 0 {
		s.lane, s.drain, s.route = l, false, m.route
		return true
	}
	if s.lane != l && m.broken.changesLanes() {
		s.lane = l
	}
	return s.lane == l && (s.route == m.route || m.broken.ignoresRoutes()) &&
		(!s.drain && len(s.parked) == 0 || m.broken.passesParked())
}

// Begin makes the session's later commands wait for one that concerns all nodes or all loops. That
// command counts as outstanding until End.
func (m *Machine) Begin(s *Session, l Lane) {
	s.remote++
	s.lane, s.drain, s.route = l, true, m.route
}

// End is the end of the command for which Begin was called.
func (s *Session) End() { s.remote-- }

// MayContinue reports whether a session that had to wait may try its next command.
func (m *Machine) MayContinue(s *Session) bool {
	return len(s.parked) == 0 && (s.remote == 0 || !s.drain && s.route == m.route)
}

// Close is the event that the client is gone. Its parked requests are dropped.
func (s *Session) Close() {
	s.closed = true
	for _, h := range s.parked {
		release(h.body)
	}
	s.parked = nil
}

// Submit sends a request, whose bytes are raw, to the owner of its partition, or parks it while it
// cannot be sent. Enter must have allowed it. Submit returns the pipe that the shell must write, or
// nil if the request is parked. If ok is false, the pipe is full and nothing has happened.
func (m *Machine) Submit(s *Session, r Request, raw []byte, now time.Duration) (p *Pipe, ok bool) {
	n := m.owner[r.Partition]
	if n == nil {
		r.since = m.tableAt
		m.park(s, &r, raw, now)
		return nil, true
	}
	p = n.Pipe(s.lane)
	if p.state != open || p.mustPark(len(raw)) ||
		!r.Keyless && (p.latch.refuses(r.Partition) || s.remote > 0 && p.overtakes(r.Partition) ||
			p.later.writes > 0 && m.overtakesDeferred(p, &r, raw)) ||
		len(s.strays) > 0 && m.mayOvertakeStrays(s, p, now) {
		r.since = m.outOfReach(p, now)
		m.park(s, &r, raw, now)
		return nil, true
	}
	if p.full(len(raw)) {
		return p, false
	}
	s.remote++
	m.send(p, &r, raw, s.take(raw))
	return p, true
}

// park parks a new request that cannot be sent yet.
func (m *Machine) park(s *Session, r *Request, raw []byte, now time.Duration) {
	s.remote++
	m.keep(r, raw, s.take(raw), now)
}

// take returns the memory of a request that is too long to be copied, and nil for one that must be
// copied.
func (s *Session) take(raw []byte) Body {
	if len(raw) <= HugeRequest {
		return nil
	}
	return s.Owner.Take(raw)
}

// SubmitTo is Submit for a request with keys in several partitions, all of which the node owns. A
// nil node means that they have no owner. The caller makes sure that the pipe is not full. SubmitTo
// copies raw unless there is a body, which it takes over.
func (m *Machine) SubmitTo(n *Node, r Request, raw []byte, body Body, now time.Duration) (p *Pipe) {
	s := r.Session
	s.remote++
	if n == nil {
		m.keep(&r, raw, body, now)
		return nil
	}
	p = n.Pipe(s.lane)
	fresh := r.since == 0 // what is sent again has nothing of its session on its way
	if p.state != open || p.latch.on || m.overtakesDeferred(p, &r, raw) || fresh && s.remote > 1 && p.acked < p.latch.aheadUntil ||
		m.mayOvertakeStrays(s, p, now) || p.mustPark(len(raw)) {
		r.since = max(r.since, m.outOfReach(p, now))
		m.keep(&r, raw, body, now)
		return nil
	}
	m.send(p, &r, raw, body)
	return p
}

// Park parks a request whose pipe is full, for a session that cannot wait for room any more. It
// copies raw.
func (m *Machine) Park(r Request, raw []byte, now time.Duration) {
	r.Session.remote++
	m.keep(&r, raw, nil, now)
}
