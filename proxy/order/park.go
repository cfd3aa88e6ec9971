package order

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

// parked is a request that came back undone, or that no open pipe could take.
type parked struct {
	Request
	raw  []byte // its bytes, owned
	body Body   // not nil: has the memory of raw
}

// parkedRoom is about what a parked request takes beside its bytes.
const parkedRoom = 192

// parkedBytes returns what a parked request takes that is not charged elsewhere.
func parkedBytes(raw []byte, body Body) int {
	if body != nil {
		return parkedRoom
	}
	return parkedRoom + len(raw)
}

// let drops what is left of a parked request, except for a body.
func (h *parked) let() { h.Session.Owner.Keep(-parkedBytes(h.raw, h.body)) }

// returned decides about a request whose pipe p broke. begun says that some of it was written. A
// request that may have been executed and must not be executed twice, or was replaced since, fails;
// any other is parked. raw is valid during the call. returned takes over the body.
func (m *Machine) returned(r *Request, raw []byte, body Body, p *Pipe, begun bool, now time.Duration) {
	if begun {
		args := words(raw)
		if !onlyReads(args) { // a read that fails has only failed: there is no outcome to know
			m.strayed(r.Session, p)
			if r.replaced || !m.repeatable(args) {
				release(body)
				m.fail(r, Unknown)
				return
			}
			r.begun = true
		}
	}
	m.undone(r, raw, body, now)
}

// undone parks a request to be sent again, to whoever owns its partition then. See keep about raw
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

// keep parks a request until it can be sent again. The session sends nothing new meanwhile. keep
// copies raw, unless there is a body, which it takes over. The request fails if the session gets no
// memory for it.
func (m *Machine) keep(r *Request, raw []byte, body Body, now time.Duration) {
	s := r.Session
	if s.closed {
		release(body)
		return
	}
	waits := m.waitsItself(r)
	if waits && s.wait.canceled {
		release(body)
		m.fail(r, s.wait.why)
		return
	}
	if !s.Owner.Keep(parkedBytes(raw, body)) {
		release(body)
		m.notParked(r)
		return
	}
	if body == nil {
		raw = bytes.Clone(raw)
	}
	m.Counts.Parked++
	if r.since == 0 {
		r.since = now
	}
	m.note(s)
	s.parked = append(s.parked, parked{*r, raw, body})
	m.arm()
	if waits {
		m.act(Action{Kind: WaitParked, Session: s})
	}
}

// notParked fails a request for which there is no memory.
func (m *Machine) notParked(r *Request) {
	if r.begun {
		m.fail(r, Unknown)
		return
	}
	m.Counts.NotParked++
	m.fail(r, NoMemory)
}

// retry sends the parked requests of the session again, in the order of its commands and their
// chunks, once all its other requests have come back.
func (m *Machine) retry(s *Session, now time.Duration) {
	m.giveUp(s, now)
	if s.closed || s.remote > len(s.parked) && !m.broken.resendsEarly() {
		return
	}
	slices.SortFunc(s.parked, func(a, b parked) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Chunk, b.Chunk), cmp.Compare(a.ID, b.ID))
	})
	sent := 0
	for sent < len(s.parked) && m.resend(&s.parked[sent], now) {
		s.parked[sent].let()
		sent++
	}
	s.parked = slices.Delete(s.parked, 0, sent)
	if sent > 0 {
		m.act(Action{Kind: Proceed, Session: s})
	}
}

// leastParked is for how long a blocking command is tried to be sent at least. However short its limit is, a node looks
// whether there is an element, unless none can.
const leastParked = 200 * time.Millisecond

// giveUp ends the requests that were parked for longer than the patience, and a blocking command whose time is up.
func (m *Machine) giveUp(s *Session, now time.Duration) {
	s.parked = slices.DeleteFunc(s.parked, func(h parked) bool {
		switch w := &s.wait; {
		case m.waitsItself(&h.Request):
			if w.deadline == 0 || now < max(w.deadline, w.begun+leastParked) {
				return false
			}
			m.abandon(&h, WaitOver)
		case now-h.since <= m.patience:
			return false
		default:
			if !h.begun {
				m.Counts.ParkedTooLong++
			}
			m.abandon(&h, TooLate)
		}
		return true
	})
}

// abandon ends a parked request that will not be sent any more.
func (m *Machine) abandon(h *parked, why Outcome) {
	h.let()
	release(h.body)
	if h.begun {
		why = Unknown
	}
	m.fail(&h.Request, why)
}

// resend reports whether a parked request was sent.
func (m *Machine) resend(h *parked, now time.Duration) bool {
	m.placeAgain(h)
	to := m.owner[h.Partition]
	if part, ok := h.Part.(Scattered); ok {
		owners, one := m.owners(part.Partitions(h.raw, HugeRequest))
		if !one {
			return m.resendApart(h, part, owners, now)
		}
		to = owners[0]
	}
	p := m.ready(h, to, now)
	if p == nil {
		return false
	}
	raw := m.timed(h, now)
	if h.aged = m.ages(h); h.aged {
		m.aged = append(member.AppendWaited(m.aged[:0], now-h.Session.wait.begun), raw...)
		raw = m.aged
	}
	m.send(p, &h.Request, raw, h.body)
	m.act(Action{Kind: Write, Pipe: p})
	return true
}

// placeAgain has a parked request lie where the placement says now, as all others that are sent do: otherwise it could
// change places with one on the same key.
func (m *Machine) placeAgain(h *parked) {
	d := h.Database
	_, scattered := h.Part.(Scattered)
	if d == 0 || scattered || h.Keyless || m.placement.Pins(d) == (h.Partition == ring.PinnedPartition(d)) {
		return
	}
	if key := keyOf(h.raw); key != nil {
		h.Partition = m.placement.PartitionOf(d, key)
	}
}

// keyOf returns the first key of a request; nil if it has none. So it is for an EXEC: if that names
// another slot than that of its keys, its node says so.
func keyOf(raw []byte) []byte {
	args := words(raw)
	if len(args) == 0 {
		return nil
	}
	cmd := command.Row(args)
	switch {
	case cmd == nil || cmd.OnChannel():
	case cmd.ID == command.DunlinWatch:
		return args[2]
	case cmd.FirstKey(args) > 0:
		return args[cmd.FirstKey(args)]
	}
	return nil
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

// resendApart replaces a parked request by one for each owner. It reports whether it did. It sends
// nothing unless the pipes to all owners are ready, so that the session's order is kept.
func (m *Machine) resendApart(h *parked, part Scattered, owners []*Node, now time.Duration) bool {
	s := h.Session
	for _, n := range owners {
		if m.ready(h, n, now) == nil {
			return false
		}
	}
	for _, piece := range part.Divide(h.ID, h.raw, m.Owner) {
		r := h.Request
		r.ID = piece.ID
		if p := m.SubmitTo(piece.Node, r, piece.Raw, nil, now); p != nil {
			m.act(Action{Kind: Write, Pipe: p})
		}
	}
	release(h.body)
	s.remote--
	return true
}

// ready returns the pipe to the node if a parked request can be sent on it now, or nil.
func (m *Machine) ready(h *parked, n *Node, now time.Duration) *Pipe {
	if n == nil {
		return nil
	}
	s, size := h.Session, len(h.raw)
	p := n.Pipe(s.lane)
	if p.state != open {
		m.open(p, now)
		return nil
	}
	if p.mustPark(size) || m.mayOvertakeStrays(s, p, now) || m.overtakesDeferred(p, &h.Request, h.raw) || p.full(size) ||
		!m.unlatch(p, now) || p.full(size) { // unlatch may have sent something
		return nil
	}
	return p
}

// note enters a session into the list of those that park requests.
func (m *Machine) note(s *Session) {
	if !s.listed {
		s.listed = true
		m.parking = append(m.parking, s)
	}
}

// arm schedules the next retry of all parked requests.
func (m *Machine) arm() {
	if !m.armed {
		m.armed = true
		m.act(Action{Kind: Arm, After: m.pause()})
	}
}

// pause is how long it is until the next retry. It grows from one to the next, and with the sessions that are to be
// looked at then: blocking commands may be parked for hours.
func (m *Machine) pause() time.Duration {
	return m.retryPause + time.Duration(len(m.parking)/sessionsPerMilli)*time.Millisecond
}

// sessionsPerMilli is for how many sessions with parked requests the pause is a millisecond longer: trying them again
// takes about a tenth of that.
const sessionsPerMilli = 1000

// RetryTimer is the event that the time of the last Arm has passed.
func (m *Machine) RetryTimer(now time.Duration) {
	m.armed = false
	m.retryPause = min(2*m.retryPause, RetryEvery)
	m.retryParked(now)
}

// retrySoon makes the pauses between retries small again.
func (m *Machine) retrySoon() {
	m.retryPause = retryFirst
	if m.armed {
		m.act(Action{Kind: Arm, After: m.pause()})
	}
}

// retryParked retries the parked requests of all sessions, in turns. It is called when the timer has run down,
// when a pipe has opened and when a table was installed.
func (m *Machine) retryParked(now time.Duration) {
	m.untried = len(m.parking)
	if !m.posted {
		m.retrySome(now)
	}
}

// triedAtOnce is how many sessions with parked requests are tried again in one turn. Sending the requests of so many
// takes a loop 0.3 ms, and there may be hundreds of thousands, each with a blocking command.
const triedAtOnce = 256

// RetryTurn is the event that the iteration behind a Post has come.
func (m *Machine) RetryTurn(now time.Duration) {
	m.posted = false
	m.returnSome(now)
	m.retrySome(now)
}

// post has the shell call RetryTurn.
func (m *Machine) post() {
	if !m.posted {
		m.posted = true
		m.act(Action{Kind: Post})
	}
}

// retrySome retries the parked requests of the next sessions.
func (m *Machine) retrySome(now time.Duration) {
	turn := m.parking[:min(m.untried, triedAtOnce)]
	m.parking, m.untried = m.parking[len(turn):], m.untried-len(turn)
	for i, s := range turn {
		turn[i], s.listed = nil, false
		m.retry(s, now)
		if len(s.parked) > 0 {
			m.note(s)
		}
	}
	switch {
	case m.untried > 0:
		m.post()
	case len(m.parking) > 0:
		m.arm()
	default:
		m.parking, m.retryPause = nil, retryFirst
	}
}
