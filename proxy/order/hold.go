package order

import (
	"bytes"
	"cmp"
	"slices"
	"time"
)

// held is a request that came back undone, or that no open pipe could take.
type held struct {
	Request
	raw  []byte // its bytes, owned
	body Body   // not nil: has the memory of raw
}

// heldRoom is about what a held request takes beside its bytes.
const heldRoom = 192

// heldBytes returns what a held request takes that is not charged elsewhere.
func heldBytes(raw []byte, body Body) int {
	if body != nil {
		return heldRoom
	}
	return heldRoom + len(raw)
}

// let drops what is left of a held request, except for a body.
func (h *held) let() { h.Session.Owner.Keep(-heldBytes(h.raw, h.body)) }

// returned decides about a request whose pipe p broke. begun says that some of it was written. A
// request that may have been executed and must not be executed twice fails; any other is held. raw
// is valid during the call. returned takes over the body.
func (m *Machine) returned(r *Request, raw []byte, body Body, p *Pipe, begun bool, now time.Duration) {
	if begun {
		args := words(raw)
		if !onlyReads(args) { // a read that fails has only failed: there is no outcome to know
			m.strayed(r.Session, p)
			if !m.repeatable(args) {
				release(body)
				m.fail(r, Unknown)
				return
			}
			r.begun = true
		}
	}
	m.undone(r, raw, body, now)
}

// undone holds a request to be sent again, to whoever owns its partition then. See keep about raw
// and body.
func (m *Machine) undone(r *Request, raw []byte, body Body, now time.Duration) {
	if r.asks {
		m.act(Action{Kind: Undone, Request: *r})
		return
	}
	m.keep(r, raw, body, now)
	r.Session.drain = true
}

// fail ends a request with an error.
func (m *Machine) fail(r *Request, why Outcome) {
	if !r.asks {
		r.Session.remote--
	}
	m.act(Action{Kind: Fail, Outcome: why, Request: *r})
}

// keep holds a request until it can be sent again. The session sends nothing new meanwhile. keep
// copies raw, unless there is a body, which it takes over. The request fails if the session gets no
// memory for it.
func (m *Machine) keep(r *Request, raw []byte, body Body, now time.Duration) {
	s := r.Session
	if s.closed {
		release(body)
		return
	}
	if !s.Owner.Keep(heldBytes(raw, body)) {
		release(body)
		m.notHeld(r)
		return
	}
	if body == nil {
		raw = bytes.Clone(raw)
	}
	m.Counts.Held++
	if r.since == 0 {
		r.since = now
	}
	m.note(s)
	s.held = append(s.held, held{*r, raw, body})
	m.arm()
}

// notHeld fails a request for which there is no memory.
func (m *Machine) notHeld(r *Request) {
	if r.begun {
		m.fail(r, Unknown)
		return
	}
	m.Counts.NotHeld++
	m.fail(r, NoMemory)
}

// retry sends the held requests of the session again, in the order of its commands, once all its
// other requests have come back.
func (m *Machine) retry(s *Session, now time.Duration) {
	m.giveUp(s, now)
	if s.closed || s.remote > len(s.held) && !m.broken.resendsEarly() {
		return
	}
	slices.SortFunc(s.held, func(a, b held) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID))
	})
	sent := 0
	for sent < len(s.held) && m.resend(&s.held[sent], now) {
		s.held[sent].let()
		sent++
	}
	s.held = slices.Delete(s.held, 0, sent)
	if sent > 0 {
		m.act(Action{Kind: Proceed, Session: s})
	}
}

// giveUp fails the requests that were held for longer than the patience.
func (m *Machine) giveUp(s *Session, now time.Duration) {
	s.held = slices.DeleteFunc(s.held, func(h held) bool {
		if now-h.since <= m.patience {
			return false
		}
		h.let()
		release(h.body)
		if h.begun {
			m.fail(&h.Request, Unknown)
		} else {
			m.Counts.HeldTooLong++
			m.fail(&h.Request, TooLate)
		}
		return true
	})
}

// resend reports whether a held request was sent.
func (m *Machine) resend(h *held, now time.Duration) bool {
	to := m.owner[h.Partition]
	if part, ok := h.Part.(Scattered); ok {
		owners, one := m.owners(part.Partitions(h.raw))
		if !one {
			return m.resendApart(h, part, owners, now)
		}
		to = owners[0]
	}
	p := m.ready(h, to, now)
	if p == nil {
		return false
	}
	m.send(p, &h.Request, h.raw, h.body)
	m.act(Action{Kind: Write, Pipe: p})
	return true
}

// owners lists the owners of partitions, in their order. one reports whether they are all the same.
func (m *Machine) owners(partitions []uint16) (owners []*Node, one bool) {
	one = true
	for _, p := range partitions {
		owners = append(owners, m.owner[p])
		one = one && m.owner[p] == owners[0]
	}
	return owners, one
}

// resendApart replaces a held request by one for each owner. It reports whether it did. It sends
// nothing unless the pipes to all owners are ready, so that the session's order is kept.
func (m *Machine) resendApart(h *held, part Scattered, owners []*Node, now time.Duration) bool {
	s := h.Session
	for _, n := range owners {
		if m.ready(h, n, now) == nil {
			return false
		}
	}
	for _, piece := range part.Divide(h.ID, h.raw, m.Owner) {
		r := h.Request
		r.ID = piece.ID
		var body Body
		if len(piece.Raw) > HugeRequest {
			body = Collected{}
		}
		if p := m.SubmitTo(piece.Node, r, piece.Raw, body, now); p != nil {
			m.act(Action{Kind: Write, Pipe: p})
		}
	}
	release(h.body)
	s.remote--
	return true
}

// ready returns the pipe to the node if a held request can be sent on it now, or nil.
func (m *Machine) ready(h *held, n *Node, now time.Duration) *Pipe {
	if n == nil {
		return nil
	}
	s, size := h.Session, len(h.raw)
	p := n.Pipe(s.lane)
	if p.state != open {
		m.open(p, now)
		return nil
	}
	if p.mustHold(size) || m.mayOvertakeStrays(s, p, now) || m.overtakesDeferred(p, &h.Request, h.raw) || p.full(size) ||
		!m.unlatch(p, now) || p.full(size) { // unlatch may have sent something
		return nil
	}
	return p
}

// note enters a session into the list of those that hold requests.
func (m *Machine) note(s *Session) {
	if !s.listed {
		s.listed = true
		m.holding = append(m.holding, s)
	}
}

// arm schedules the next retry of all held requests. The pause grows from one to the next.
func (m *Machine) arm() {
	if !m.armed {
		m.armed = true
		m.act(Action{Kind: Arm, After: m.retryPause})
	}
}

// RetryTimer is the event that the time of the last Arm has passed.
func (m *Machine) RetryTimer(now time.Duration) {
	m.armed = false
	m.retryPause = min(2*m.retryPause, RetryEvery)
	m.retryHeld(now)
}

// retrySoon makes the pauses between retries small again.
func (m *Machine) retrySoon() {
	m.retryPause = retryFirst
	if m.armed {
		m.act(Action{Kind: Arm, After: m.retryPause})
	}
}

// retryHeld retries the held requests of all sessions. It is called when the timer has run down,
// when a pipe has opened and when a table was installed.
func (m *Machine) retryHeld(now time.Duration) {
	holding := m.holding
	m.holding = nil
	for _, s := range holding {
		s.listed = false
		m.retry(s, now)
		if len(s.held) > 0 {
			m.note(s)
		}
	}
	if len(m.holding) > 0 {
		m.arm()
	} else {
		m.retryPause = retryFirst
	}
}
