package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// How a stream travels, after node/stream_talk.go, stream_flush.go and stream_window.go.

type batch struct {
	seq     uint64
	effects []effect
}

const (
	batchEffects   = 6
	batchWindow    = 3
	deniedPeriod   = 50 * time.Millisecond
	maxHandTries   = 40
	maxPlaceTries  = 20
	heartbeat      = 400 * time.Millisecond
	streamPatience = 2 * time.Second
	awayLimit      = 10 * time.Second
)

// line is what a sender knows of its connection.
type line struct {
	seq, acked uint64
	judged     uint64 // the last batch of which, and of all before, the refusals were heard
	unacked    []batch

	c       *conn
	dialing bool
	ready   bool
	pumping bool
	heard   time.Duration // when the receiver last said something
	cut     time.Duration // since when there is no connection
}

func newSender(n *node, to ring.Member) *sender {
	n.w.seal++
	s := &sender{n: n, name: to.Name(), addr: to.Addr, generation: n.w.seal}
	s.cut = n.w.now
	s.connect()
	s.beat()
	return s
}

func (s *sender) close() {
	s.closed = true
	s.relieve()
	if s.c != nil {
		s.c.close(0)
	}
}

// word hands a partition over when all that was logged before it, and it itself, is acknowledged.
type word struct {
	f   *fedPlace
	seq uint64 // the batch with the last of that; 0: not yet made
}

// flushHanded calls done when all that is to be handed over has come, or the stream ends.
func (s *sender) flushHanded(done func()) {
	s.waiting = append(s.waiting, done)
	s.relieve()
}

func (s *sender) relieve() {
	if s.owed > 0 && !s.closed {
		return
	}
	for _, done := range s.waiting {
		s.n.w.after(s.n.p, 0, done)
	}
	s.waiting = nil
}

// passWords ends the words that have come.
func (s *sender) passWords() {
	for len(s.words) > 0 && s.words[0].seq != 0 && s.words[0].seq <= s.judged {
		if f := s.words[0].f; s.of[f.place] == f {
			s.remove(f.place)
		}
		s.words = s.words[1:]
	}
}

// breakWords begins anew with what was handed over and may not have come.
func (s *sender) breakWords() {
	for _, w := range s.words {
		switch {
		case s.of[w.f.place] != w.f:
		case s.n.w.handOnce:
			s.remove(w.f.place)
		default:
			s.again(w.f, w.f.anew())
		}
	}
	s.words = nil
}

// pump has a round happen soon.
func (s *sender) pump() {
	if s.pumping || s.closed || !s.ready {
		return
	}
	s.pumping = true
	pause := s.n.w.between(50*time.Microsecond, 500*time.Microsecond)
	if s.fills() && len(s.log) == 0 {
		pause += s.n.w.between(0, s.n.w.pace)
	}
	s.n.w.after(s.n.p, pause, func() {
		s.pumping = false
		if s.closed || !s.ready {
			return
		}
		overflow := 0.002
		if s.n.w.overflows {
			overflow = 0.02
		}
		if len(s.log) > 0 && !s.n.w.peace && s.n.w.chance(overflow) {
			s.overflow()
		}
		s.round()
		if s.fills() && len(s.log) < maxLog/2 {
			s.pump()
		}
	})
}

// fills tells whether there are snapshots to be taken.
func (s *sender) fills() bool { return s.filling != nil || len(s.queue) > 0 }

// round makes batches of what is logged, and has a piece of a snapshot logged.
func (s *sender) round() {
	for len(s.log) > 0 && len(s.unacked) < batchWindow {
		take := min(len(s.log), batchEffects)
		s.transmit(slices.Clone(s.log[:take]))
		s.log = s.log[take:]
	}
	empty := len(s.log) == 0
	s.recover()
	for _, w := range s.words {
		if empty && w.seq == 0 {
			w.seq = s.seq
		}
	}
	s.passWords()
	s.fill()
}

func (s *sender) transmit(effects []effect) {
	s.seq++
	b := batch{s.seq, effects}
	s.unacked = append(s.unacked, b)
	s.c.send(0, b)
}

// beat sends an empty batch when there is nothing else, and does not wait for a silent receiver for ever.
func (s *sender) beat() {
	if s.closed {
		return
	}
	now := s.n.w.now
	switch {
	case s.c == nil:
		if now-s.cut > awayLimit {
			s.void()
			s.cut = now
		}
		s.connect()
	case now-s.heard > streamPatience:
		s.c.close(0)
		s.closedConn()
	case s.ready && len(s.unacked) == 0:
		s.transmit(nil)
		s.pump()
	}
	s.n.w.after(s.n.p, heartbeat, s.beat)
}

func (s *sender) connect() {
	if s.dialing || s.closed {
		return
	}
	s.dialing = true
	end := &senderEnd{s: s}
	s.n.w.dial(s.n.p, s.addr, end, func(at *proc, c *conn) endpoint {
		return &receiverEnd{at: at, c: c}
	}, func(c *conn) {
		s.dialing = false
		if c == nil {
			return // the next beat tries again
		}
		if s.closed {
			c.close(0)
			return
		}
		s.c, end.c, s.heard = c, c, s.n.w.now
		s.greet()
	})
}

func (s *sender) greet() { s.c.send(0, opening{s.n.p.name, s.name, s.generation}) }

func (s *sender) closedConn() { s.c, s.ready, s.cut = nil, false, s.n.w.now }

// opened goes on where the receiver is, or begins anew.
func (s *sender) opened(last uint64) {
	if last < s.acked || last > s.seq {
		s.void()
		s.greet()
		return
	}
	s.acknowledge(last)
	s.ready = true
	for _, b := range s.unacked {
		s.c.send(0, b)
	}
	s.pump()
}

func (s *sender) acknowledge(seq uint64) {
	s.unacked = slices.DeleteFunc(s.unacked, func(b batch) bool { return b.seq <= seq })
	s.acked = max(s.acked, min(seq, s.seq))
}

// acknowledged notes that all up to seq has come, and what of it is refused was heard.
func (s *sender) acknowledged(seq uint64) {
	s.acknowledge(seq)
	s.judged = s.acked
	s.passWords()
}

// opening names a stream; the answer is the last sequence number that was applied.
type opening struct {
	from, to   string
	generation uint64
}

type openedAt struct {
	generation uint64
	last       uint64
}

type applied struct {
	seq     uint64
	refused placeSet
}

// senderEnd is the sender's end of one connection.
type senderEnd struct {
	s *sender
	c *conn
}

func (e *senderEnd) closed() {
	if e.s.c == e.c {
		e.s.closedConn()
	}
}

func (e *senderEnd) received(m any) {
	s := e.s
	if s.c != e.c || s.closed {
		return
	}
	s.heard = s.n.w.now
	switch m := m.(type) {
	case openedAt:
		if m.generation == s.generation {
			s.opened(m.last)
		}
	case applied:
		s.setRefused(m.seq, m.refused)
		s.acknowledged(m.seq)
		s.pump()
	}
}
