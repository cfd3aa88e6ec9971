package order

import (
	"time"
)

// Owner is who a session belongs to.
type Owner interface {
	// Take makes the memory behind raw, which is a request of the owner's, the caller's. nil: raw
	// must be copied.
	Take(raw []byte) Body
}

// Session is the part of a client's session that decides where its next request may go.
type Session struct {
	// Owner is whose session this is. It must be set before the first request.
	Owner Owner

	remote int    // requests that nodes have or that are held: parts count each, questions of Askers do not
	lane   Lane   // of all those
	route  uint64 // of the Machine when the first of them was sent
	drain  bool   // nothing new is sent before remote is 0
	held   []held // came back undone, to be sent again; not sorted
	listed bool   // in the Machine's holding
	closed bool
	strays []*Pipe // that had strays of this session when they were lost
}

// Outstanding is the number of requests that nodes have or that are held, and of what Begin has
// begun.
func (s *Session) Outstanding() int { return s.remote }

// Lane is the lane of all that is outstanding.
func (s *Session) Lane() Lane { return s.lane }

// Enter reports whether a request may be sent on that lane now. Changing it must wait until nothing
// is outstanding, since two lanes do not keep the order of commands; and so must the first request
// after the route has changed.
func (m *Machine) Enter(s *Session, l Lane) bool {
	if s.remote == 0 {
		s.lane, s.drain, s.route = l, false, m.route
		return true
	}
	if s.lane != l && m.broken.changesLanes() {
		s.lane = l
	}
	return s.lane == l && (s.route == m.route || m.broken.ignoresRoutes()) &&
		(!s.drain && len(s.held) == 0 || m.broken.passesHeld())
}

// Begin has everything else of the session wait for a command that concerns all nodes or all loops.
// It counts as outstanding until End.
func (m *Machine) Begin(s *Session, l Lane) {
	s.remote++
	s.lane, s.drain, s.route = l, true, m.route
}

// End ends what Begin has begun.
func (s *Session) End() { s.remote-- }

// MayContinue reports whether a session that had to wait may try its next command.
func (m *Machine) MayContinue(s *Session) bool {
	return len(s.held) == 0 && (s.remote == 0 || !s.drain && s.route == m.route)
}

// Close says that the client is gone: what is held is forgotten.
func (s *Session) Close() {
	s.closed = true
	for _, h := range s.held {
		release(h.body)
	}
	s.held = nil
}

// Submit sends a request, whose bytes are raw, to the owner of its partition, or holds it while it
// cannot be sent. Enter must have allowed it. The pipe that is returned has something to be
// written; nil: the request is held. not ok: the pipe that is returned is full, and nothing has
// happened.
func (m *Machine) Submit(s *Session, r Request, raw []byte, now time.Duration) (p *Pipe, ok bool) {
	n := m.owner[r.Partition]
	if n == nil {
		r.since = m.tableAt
		m.hold(s, &r, raw, now)
		return nil, true
	}
	p = n.Pipe(s.lane)
	if p.state != open || p.latch.refuses(r.Partition) || s.remote > 0 && p.overtakes(r.Partition) || m.mayOvertakeStrays(s, p, now) {
		r.since = m.outOfReach(p, now)
		m.hold(s, &r, raw, now)
		return nil, true
	}
	if p.full(len(raw)) {
		return p, false
	}
	s.remote++
	m.send(p, &r, raw, s.take(raw))
	return p, true
}

// hold takes a request that could not be sent.
func (m *Machine) hold(s *Session, r *Request, raw []byte, now time.Duration) {
	s.remote++
	m.keep(r, raw, s.take(raw), now)
}

// take is the memory of a request that is too long to be copied; nil if it is to be copied.
func (s *Session) take(raw []byte) Body {
	if len(raw) <= HugeRequest {
		return nil
	}
	return s.Owner.Take(raw)
}

// SubmitTo is Submit for a request with keys in several partitions, which that node owns; nil: they
// have no owner. It never waits: the caller has seen to it that the pipe is not full. raw is copied
// unless there is a body.
func (m *Machine) SubmitTo(n *Node, r Request, raw []byte, body Body, now time.Duration) (p *Pipe) {
	s := r.Session
	s.remote++
	if n == nil {
		m.keep(&r, raw, body, now)
		return nil
	}
	p = n.Pipe(s.lane)
	fresh := r.since == 0 // what is sent again has nothing of its session on its way
	if p.state != open || p.latch.on || fresh && s.remote > 1 && p.acked < p.latch.aheadUntil || m.mayOvertakeStrays(s, p, now) {
		r.since = max(r.since, m.outOfReach(p, now))
		m.keep(&r, raw, body, now)
		return nil
	}
	m.send(p, &r, raw, body)
	return p
}

// Hold holds a request although it might be sent: its pipe is full, and the session can no longer
// wait. raw is copied.
func (m *Machine) Hold(r Request, raw []byte, now time.Duration) {
	r.Session.remote++
	m.keep(&r, raw, nil, now)
}
