package proxy

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/session"
)

// visit is CLIENT LIST, KILL, UNBLOCK or PAUSE of a session, which concern the sessions of all loops. When
// it is its turn, a goroutine visits the loops in rounds. In each, the session's loop takes over what was
// gathered in the one before, and charges it to the session:
//
//	goroutine   Gather ─┐ round      ┌─ Gather ─┐ round
//	home                └─ take Visit┤          └─ take Visit ─ ··· ─ finish
//	other loops         └───── Visit ┘          └───── Visit
type visit struct {
	s     *client
	seq   uint64
	about *session.Everyone

	gathered []byte   // in the last round
	pieces   [][]byte // of the reply; on the session's loop
	size     int      // bytes of these
	charged  int      // bytes charged to the session
	problem  []byte   // not nil: the reply
	over     bool     // the client has gone, or there is a problem
}

// pieceCost is what a piece takes beside its bytes.
const pieceCost = 128

// everyone answers CLIENT LIST, KILL, UNBLOCK and PAUSE. No reply is due before this one.
func (s *client) everyone(action session.Action, args [][]byte) {
	p := s.w.proxy
	v := &visit{s: s, seq: s.tail, about: session.NewEveryone(action, s.state, args, len(p.workers))}
	if action == session.ActionPause {
		for _, w := range p.workers {
			w.loop.Post(w.pause.Obey)
		}
	}
	s.issue()
	s.w.order.Begin(&s.Session, s.laneFor(0, false))                 // it may never have had one
	if s.visit = v; !v.keep(v.about.Bytes()) && !v.about.IsPause() { // which is in effect
		v.fail(errNoList)
		v.finish()
		return
	}
	p.server.Visits().Enter(v.about, func() { p.visiting.Go(v.run) })
}

// keep charges memory to the session.
func (v *visit) keep(bytes int) bool {
	if !v.s.Keep(bytes) {
		return false
	}
	v.charged += bytes
	return true
}

// run carries the command out.
func (v *visit) run() {
	home := v.s.w
	p := home.proxy
	defer p.server.Visits().Leave(v.about)
	for more := !v.over; more; {
		err := p.cfg.Group.Each(func(l *netloop.Loop) {
			w := p.workers[l.Index()]
			if w == home {
				v.take()
			}
			v.about.Turn(l.Index(), &w.pause)
		})
		if err != nil {
			home.loop.Post(func() { v.fail(errLoops); v.finish() })
			return
		}
		if v.over {
			break
		}
		v.gathered, more = v.about.Gather()
	}
	home.loop.Post(v.finish)
}

// take takes over what was gathered.
func (v *visit) take() {
	n := len(v.gathered)
	switch {
	case v.s.isClosed():
		v.over = true
	case v.over || n == 0:
	case !v.keep(n + pieceCost):
		v.fail(errNoList)
	default:
		v.pieces = append(v.pieces, bytes.Clone(v.gathered))
		v.size += n
	}
}

// fail makes an error the reply.
func (v *visit) fail(problem []byte) {
	v.problem, v.over, v.pieces = problem, true, nil
}

// finish answers the command.
func (v *visit) finish() {
	s := v.s
	s.visit = nil
	if s.isClosed() {
		return
	}
	v.take()
	s.End()
	reply, suicide := v.problem, false
	if reply == nil { // otherwise loops may still be visited
		reply, suicide = v.about.Reply()
	}
	if suicide {
		s.atLeast(closing)
	}
	if len(v.pieces) > 0 && !s.isMuted(v.seq) {
		v.pass(reply)
		return
	}
	s.Keep(-v.charged)
	s.reply(v.seq, reply)
}

// pass sends a reply whose pieces stay where they are.
func (v *visit) pass(beginning []byte) {
	s := v.s
	s.conn.SetOut(append(s.conn.Out(), beginning...))
	for _, piece := range v.pieces {
		cost := len(piece) + pieceCost
		v.charged -= cost
		s.conn.Insert(len(s.conn.Out()), piece, sentPiece{s, cost})
	}
	s.Keep(-v.charged)
	s.replied(v.seq)
	s.replySize = max(s.replySize-s.replySize/8, min(v.size, fetchPiece))
	s.passed()
}

// sentPiece is a piece in the output of a client, which is charged so much for it.
type sentPiece struct {
	s    *client
	cost int
}

// Release is called when the piece has been sent or dropped.
func (p sentPiece) Release() { p.s.Keep(-p.cost) }
