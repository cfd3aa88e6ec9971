package order

import (
	"slices"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/tokenlist"
	"github.com/dunlin-cache/dunlin/ring"
)

// A blocking command that finds nothing waits at its node. It is deferred, for as long as its client
// wants, and differs from other deferred requests: it keeps nobody from its partition, it does not count
// towards member.MaxLater, and a pipe can have very many. Its session sends nothing else meanwhile.
//
// A claim (DUNLIN CLAIM) waits in the same way, for a session whose blocking command names keys of several
// partitions. It is the question of a Claimant: it comes back when its partition moves or its pipe breaks, and
// a session can have several.
//
// When its partition moves, the node refuses it, and it goes to the next owner with the time that is left, and with its
// age: there it stands in front of those that came later, of this proxy or another.
// When its pipe breaks, a pop is sent again: an element that it has popped since is lost with the
// pipe, as with a connection to Redis. What moves an element fails then, because it may have done so.
//
// While no node can take a blocking command, it waits parked: until its time is up, by the deadline of the session, but
// for leastParked, and not for Config.Patience. Whoever cancels it then ends it at once.

// waiting is the wait of a session's blocking command.
type waiting struct {
	pipe     *Pipe         // at whose node it waits; nil: at none
	token    uint64        // there
	seq      uint64        // of the command
	on       bool          // there is one, or there was
	begun    time.Duration // when the command came
	deadline time.Duration // 0: none
	brief    bool          // the command says itself how shortly it waits at a node
	canceled bool          // nobody wants to wait any more
	why      Outcome       // of a canceled command that no node has
	told     bool          // the node knows that it is canceled
}

// of reports whether a request is the blocking command, or a part of that.
func (w *waiting) of(r *Request) bool { return w.on && r.Seq == w.seq && !r.asks }

// waitsItself reports whether a request is a blocking command of its session, whose wait goes on while it is parked.
func (m *Machine) waitsItself(r *Request) bool {
	return r.Session.wait.of(r) && !m.broken.forgetsDeadlines()
}

// Block notes that the session is about to submit its command seq, a blocking one that waits for up to limit, 0 for
// ever. The session must send nothing else before that is answered.
func (s *Session) Block(seq uint64, limit, now time.Duration) {
	s.wait = waiting{seq: seq, on: true, begun: now, why: WaitOver}
	if limit > 0 {
		s.wait.deadline = now + limit
	}
}

// BlockBriefly is Block for a command that waits at its node for a moment only. It waits for up to limit to be sent.
func (s *Session) BlockBriefly(seq uint64, limit, now time.Duration) {
	s.Block(seq, limit, now)
	s.wait.brief = true
}

// Waits reports whether the session's blocking command waits at a node.
func (s *Session) Waits() bool { return s.wait.pipe != nil }

// WaitsParked reports whether the session's blocking command waits to be sent.
func (s *Session) WaitsParked() bool {
	return slices.ContainsFunc(s.parked, func(h parked) bool { return s.wait.of(&h.Request) })
}

// CancelWait ends the wait of the session's blocking command: at once with WaitOver if that is parked, otherwise as
// soon as a node can be told. The completion comes all the same then: an error, or the reply if the node has served
// the command.
func (m *Machine) CancelWait(s *Session) {
	s.wait.canceled = true
	s.parked = slices.DeleteFunc(s.parked, func(h parked) bool {
		if !m.waitsItself(&h.Request) {
			return false
		}
		m.abandon(&h, s.wait.why)
		return true
	})
	if p := s.wait.pipe; p != nil && p.state == open && !s.wait.told {
		if d, ok := p.later.waits.Get(s.wait.token); !ok || d.Session != s {
			return // it waited on a connection before this one, and comes back
		}
		s.wait.told = true
		m.Tell(p, member.AppendCancel(nil, s.wait.token))
	}
}

// Claimant is an Asker whose question may wait at its node.
type Claimant interface {
	Asker
	// Waits is the event that the question waits. CancelClaim ends the wait. ids are those that it means from now on,
	// valid during the call, see member.Settle.
	Waits(p *Pipe, token uint64, ids []byte)
}

// CancelClaim has the node of a pipe end the wait of a claim, unless that has come back since. The completion
// comes all the same.
func (m *Machine) CancelClaim(p *Pipe, token uint64, of Claimant) {
	if d, ok := p.later.waits.Get(token); ok && d.Part == Part(of) && p.state == open {
		m.Tell(p, member.AppendCancel(nil, token))
	}
}

// isBlocking reports whether a request may wait for a key.
func isBlocking(args [][]byte) bool {
	if len(args) == 0 {
		return false
	}
	cmd := command.Row(args)
	if cmd == nil {
		return false
	}
	at, _ := cmd.Limit(args)
	return at > 0 || cmd.ID == command.DunlinClaim
}

// settle returns the bytes of a blocking command that means certain IDs from now on. ok is false if it does not
// name that many.
func settle(args [][]byte, ids []byte) (raw []byte, ok bool) {
	args = slices.Clone(args)
	r := command.ReadsOf(args)
	if r.First == 0 || !member.Settle(r.IDs(args), ids) {
		return nil, false
	}
	return resp.AppendRequest(nil, args...), true
}

// await notes that a blocking command waits at the node of p. Its bytes are charged to its session. If
// there is no memory for them, the wait ends at once.
func (m *Machine) await(p *Pipe, d *deferred, ids []byte) {
	s := d.Session
	p.later.waits.Add(d)
	if of, ok := d.Part.(Claimant); ok {
		if d.charged = !s.closed && s.Owner.Keep(len(d.raw)); d.charged {
			of.Waits(p, d.token, ids)
		} else {
			m.CancelClaim(p, d.token, of)
		}
		return
	}
	if d.charged = !s.closed && s.Owner.Keep(len(d.raw)); !d.charged {
		s.wait.canceled, s.wait.why = true, NoMemory
	}
	s.wait.pipe, s.wait.token, s.wait.told = p, d.token, false
	if s.wait.canceled {
		m.CancelWait(s)
	}
}

// waitList has the blocking commands that wait on a pipe.
type waitList = tokenlist.List[*deferred]

// Token implements tokenlist.Tokened.
func (d *deferred) Token() uint64 { return d.token }

// takeWait removes the blocking command with the token.
func (l *deferrals) takeWait(token uint64) (d deferred, ok bool) {
	at, ok := l.waits.Remove(token)
	if !ok {
		return d, false
	}
	at.endWait()
	return *at, true
}

// endWait notes that a blocking command does not wait at its node any more.
func (d *deferred) endWait() {
	if !d.asks {
		d.Session.wait.pipe = nil
	}
	if d.charged {
		d.Session.Owner.Keep(-len(d.raw))
		d.charged = false
	}
}

// brokenWaits are the blocking commands that waited on a connection of a pipe that broke.
type brokenWaits struct {
	pipe  *Pipe
	waits waitList
	next  uint64 // token of the first one about which nothing is decided
}

// returnedAtOnce is about how many blocking commands come back in one turn.
const returnedAtOnce = 256

// returnSome decides about the next of the blocking commands that waited on pipes that broke, and the others follow in
// turns: a pipe may have had 100,000. Until then their sessions take them for waiting.
func (m *Machine) returnSome(now time.Duration) {
	for range returnedAtOnce {
		if len(m.returning) == 0 {
			m.returning = nil
			return
		}
		of := &m.returning[0]
		d, ok := of.waits.From(of.next)
		if !ok {
			m.returning = m.returning[1:]
			continue
		}
		of.next = d.token + 1
		m.returnWait(of.pipe, d, now)
	}
	m.post()
}

// returnWait decides about a blocking command that waited on a pipe that broke.
func (m *Machine) returnWait(p *Pipe, d *deferred, now time.Duration) {
	if d.endWait(); d.asks {
		m.undone(&d.Request, nil, nil, now)
	} else if args := words(d.raw); moves(args) {
		m.returned(&d.Request, d.raw, d.body, p, true, now)
	} else {
		m.strayed(d.Session, p)
		m.undone(&d.Request, d.raw, nil, now)
	}
}

// moves reports whether a blocking command stores what it pops.
func moves(args [][]byte) bool { return command.Row(args).Flags&command.DenyOOM != 0 }

// timed returns the bytes of a parked request as they are to be sent now: a blocking command has the time that is left
// until its deadline.
func (m *Machine) timed(h *parked, now time.Duration) []byte {
	deadline := h.Session.wait.deadline
	if h.body != nil || deadline == 0 || h.Session.wait.brief || !m.waitsItself(&h.Request) {
		return h.raw
	}
	args := words(h.raw)
	at, unit := command.Row(args).Limit(args)
	if at == 0 {
		return h.raw // it looks at keys that a claim has found ready
	}
	args = slices.Clone(args)
	if left := deadline - now; unit == time.Millisecond {
		args[at] = strconv.AppendInt(nil, max(1, int64((left+unit-1)/unit)), 10)
	} else {
		args[at] = strconv.AppendFloat(nil, max(leastWait, left.Seconds()), 'f', 6, 64)
	}
	return resp.AppendRequest(nil, args...)
}

// leastWait is how many seconds a command waits at least that is sent again: 0 would be for ever.
const leastWait = 0.001

// ages reports whether a parked request says for how long its command has waited, when it is sent: it is a blocking
// command, and finds its place among those who wait for its key by that, whoever of them comes first.
func (m *Machine) ages(h *parked) bool {
	w := &h.Session.wait
	return h.body == nil && !w.brief && w.of(&h.Request) && m.Level() >= ring.WaitedLevel && !m.broken.forgetsAges()
}
