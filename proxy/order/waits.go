package order

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A blocking command that finds nothing waits at its node. It is deferred, for as long as its client
// wants, and differs from other deferred requests: it keeps nobody from its partition, it does not count
// towards member.MaxLater, and a pipe can have very many. Its session sends nothing else meanwhile.
//
// A claim (DUNLIN CLAIM) waits in the same way, for a session whose blocking command names keys of several
// partitions. It is the question of a Claimant: it comes back when its partition moves or its pipe breaks, and
// a session can have several.
//
// When its partition moves, the node refuses it, and it goes to the next owner with the time that is left.
// When its pipe breaks, a pop is sent again: an element that it has popped since is lost with the
// pipe, as with a connection to Redis. What moves an element fails then, because it may have done so.

// waiting is where a session's blocking command waits.
type waiting struct {
	pipe     *Pipe // nil: at no node
	token    uint64
	begun    time.Duration // since when the time of the command runs as its bytes have it
	canceled bool          // nobody wants to wait any more
	told     bool          // the node knows that
}

// Block notes that the session has just submitted a blocking command. It must send nothing else before
// that is answered.
func (s *Session) Block(now time.Duration) { s.wait = waiting{begun: now} }

// Waits reports whether the session's blocking command waits at a node.
func (s *Session) Waits() bool { return s.wait.pipe != nil }

// CancelWait has the node end the wait of the session's blocking command, as soon as the command waits.
// The completion comes all the same: an error, or the reply if the node has served the command.
func (m *Machine) CancelWait(s *Session) {
	s.wait.canceled = true
	if p := s.wait.pipe; p != nil && p.state == open && !s.wait.told {
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
	if d := p.later.waits[token]; d != nil && d.Part == Part(of) && p.state == open {
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
	if p.later.waits == nil {
		p.later.waits = make(map[uint64]*deferred)
	}
	s := d.Session
	p.later.waits[d.token] = d
	d.since = 0 // it has found a node: if it comes back, patience begins anew
	if of, ok := d.Part.(Claimant); ok {
		if d.charged = !s.closed && s.Owner.Keep(len(d.raw)); d.charged {
			of.Waits(p, d.token, ids)
		} else {
			m.CancelClaim(p, d.token, of)
		}
		return
	}
	if d.charged = !s.closed && s.Owner.Keep(len(d.raw)); !d.charged {
		s.wait.canceled = true
	}
	s.wait.pipe, s.wait.token, s.wait.told = p, d.token, false
	if s.wait.canceled {
		m.CancelWait(s)
	}
}

// takeWait removes the blocking command with the token.
func (l *deferrals) takeWait(token uint64) (d deferred, ok bool) {
	at := l.waits[token]
	if at == nil {
		return d, false
	}
	delete(l.waits, token)
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

// returnWaits decides about the blocking commands that waited on a pipe that broke.
func (m *Machine) returnWaits(p *Pipe, waits map[uint64]*deferred, since, now time.Duration) {
	for _, token := range slices.Sorted(maps.Keys(waits)) {
		d := waits[token]
		if d.endWait(); d.since == 0 {
			d.since = since
		}
		if d.asks {
			m.undone(&d.Request, nil, nil, now)
		} else if args := words(d.raw); moves(args) {
			m.returned(&d.Request, d.raw, d.body, p, true, now)
		} else {
			m.strayed(d.Session, p)
			m.undone(&d.Request, d.timeLeft(now), nil, now)
		}
	}
}

// moves reports whether a blocking command stores what it pops.
func moves(args [][]byte) bool { return command.Row(args).Flags&command.DenyOOM != 0 }

// timeLeft returns the bytes of a blocking command with the time that is left of its limit.
func (d *deferred) timeLeft(now time.Duration) []byte {
	w := &d.Session.wait
	waited := now - w.begun
	w.begun = now
	args := words(d.raw)
	at, unit := command.Row(args).Limit(args)
	limit, err := strconv.ParseFloat(string(args[at]), 64)
	if err != nil || limit == 0 {
		return d.raw
	}
	args = slices.Clone(args)
	if left := limit - waited.Seconds()/unit.Seconds(); unit == time.Millisecond {
		args[at] = strconv.AppendInt(nil, max(1, int64(left)), 10)
	} else {
		args[at] = strconv.AppendFloat(nil, max(leastWait, left), 'f', 6, 64)
	}
	return resp.AppendRequest(nil, args...)
}

// leastWait is how many seconds a command waits that is sent again when its time is up: 0 would be for
// ever.
const leastWait = 0.001
