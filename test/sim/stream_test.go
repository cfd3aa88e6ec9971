package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/ring"
)

// The sender of a stream is package replica's own. This file models what node/stream does around it
// with the engine, a goroutine and a socket. Each receiver gets the changes of its partitions as
// one log, in batches that the sender keeps until they are acknowledged.

// effect is a value that a key has come to hold, or a mark.
type effect struct {
	place  int
	key    int
	value  int
	clear  bool
	change *change // whose effect it is; at MarkSynced: the last before it
	live   bool    // not of a snapshot
	mark   replica.Mark
	unit   []effect // not nil: these go together
}

type batch struct {
	seq     uint64
	effects []effect
}

const (
	maxLog       = 80
	batchEffects = 6
	batchWindow  = 3
	// heartbeat is how often a stream says something: less often than a node's, to save events.
	heartbeat = 400 * time.Millisecond
)

type sender struct {
	n          *node
	name, addr string
	machine    *replica.Sender

	// what the engine has
	log   []effect
	feeds placeSet // of which changes are logged
	lost  placeSet // of which they are not any more, because the log was full
	spilt bool     // the log was full: all that was in it is lost

	unacked []batch
	waiting []func() // for everything to be handed over

	c       *conn
	dialing bool
	ready   bool
	pumping bool
	heard   time.Duration // when the receiver last said something
	cut     time.Duration // since when there is no connection
}

func newSender(n *node, to ring.Member) *sender {
	n.w.seal++
	s := &sender{n: n, name: to.Name(), addr: to.Addr, cut: n.w.now, machine: replica.NewSender(n.w.seal, 1, &n.w.replica)}
	s.connect()
	s.beat()
	return s
}

// act does what the machine wants done.
func (s *sender) act() {
	for _, a := range s.machine.Actions() {
		k := s.n.w.place(a.Partition)
		switch a.Do {
		case replica.SendFeed:
			s.feeds |= 1 << k
			s.append(effect{place: k, mark: a.Mark})
		case replica.SendUnfeed:
			s.logMark(k, a.Mark)
			s.stop(1 << k)
		case replica.SendMark:
			s.markBehind(k, a.Mark)
		case replica.SendReopen:
			s.stop(everyPlace)
			s.log, s.feeds, s.lost, s.spilt = nil, 0, 0, false
		case replica.SendRouse:
			s.pump()
		case replica.SendRelieved:
			s.n.w.after(s.n.p, 0, s.relieve)
		case replica.SendPassed, replica.SendOwed: // nobody waits for copies here, or looks without a lock
		}
	}
}

func (s *sender) logMark(k int, m replica.Mark) {
	if s.feeds.has(k) && m.Kind != replica.NoMark {
		s.append(effect{place: k, mark: m, change: s.n.data[k].last})
	}
}

// fed logs a change.
func (s *sender) fed(k int, e effect) {
	if !s.feeds.has(k) {
		return
	}
	e.place, e.live = k, true
	if u := s.n.units[k]; u != nil {
		u.gather(s, e)
	} else {
		s.append(e)
	}
}

// append logs. What a log cannot take empties it.
func (s *sender) append(e effect) {
	s.log = append(s.log, e)
	s.pump()
	if len(s.log) > maxLog {
		s.overflow()
	}
}

func (s *sender) overflow() {
	s.n.w.tracef("%s: its log for %s overflows", s.n.p.name, s.name)
	s.lost |= s.feeds
	s.stop(everyPlace)
	s.log, s.spilt = nil, true
	s.pump()
}

// pump has a round happen soon.
func (s *sender) pump() {
	if s.pumping || s.machine.IsClosed() || !s.ready {
		return
	}
	s.pumping = true
	pause := s.n.w.between(50*time.Microsecond, 500*time.Microsecond)
	if s.machine.Fills() && len(s.log) == 0 {
		pause += s.n.w.between(0, s.n.w.pace)
	}
	s.n.w.after(s.n.p, pause, func() {
		s.pumping = false
		if s.machine.IsClosed() || !s.ready {
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
		if s.machine.Fills() && len(s.log) < maxLog/2 {
			s.pump()
		}
	})
}

// round makes batches of what is logged, and has a piece of a snapshot logged.
func (s *sender) round() {
	collection := s.machine.Collect()
	for len(s.log) > 0 && len(s.unacked) < batchWindow {
		take := min(len(s.log), batchEffects)
		s.transmit(slices.Clone(s.log[:take]))
		s.log = s.log[take:]
	}
	if len(s.log) == 0 {
		s.machine.Emptied(0, collection)
	}
	var lost []uint16
	for k, p := range s.n.w.tracked {
		if s.lost.has(k) {
			lost = append(lost, p)
		}
	}
	spilt := s.spilt
	s.lost, s.spilt = 0, false
	s.machine.Collected(spilt, lost)
	s.act()
	s.fill()
}

func (s *sender) transmit(effects []effect) {
	b := batch{s.machine.Batch(), effects}
	s.unacked = append(s.unacked, b)
	s.c.send(0, b)
}

// fill logs the next piece of a snapshot: one key.
func (s *sender) fill() {
	if len(s.log) >= maxLog/2 {
		return
	}
	next, wait, ok := s.machine.Next(s.n.w.now)
	s.act()
	if !ok {
		if wait < replica.Heartbeat {
			s.n.w.after(s.n.p, wait, s.pump)
		}
		return
	}
	k, key := s.n.w.place(next.Partition), int(next.Cursor)
	if key < s.n.w.keys() && s.feeds.has(k) {
		s.append(effect{place: k, key: key, value: s.n.data[k].values[key]})
	}
	s.machine.Filled(next.Cursor+1, key >= s.n.w.keys())
	s.act()
}

// flushHanded calls done when everything that is to be handed over has arrived, or the stream ends.
func (s *sender) flushHanded(done func()) {
	s.waiting = append(s.waiting, done)
	s.relieve()
}

func (s *sender) relieve() {
	if s.machine.Owed() > 0 && !s.machine.IsClosed() {
		return
	}
	for _, done := range s.waiting {
		s.n.w.after(s.n.p, 0, done)
	}
	s.waiting = nil
}

func (s *sender) void() {
	s.n.w.seal++
	s.unacked = nil
	s.machine.Void(s.n.w.seal)
	s.act()
}

func (s *sender) close() {
	s.machine.Close()
	s.relieve()
	if s.c != nil {
		s.c.close(0)
	}
}

// beat sends an empty batch when there is nothing else, and gives a silent receiver up.
func (s *sender) beat() {
	if s.machine.IsClosed() {
		return
	}
	now := s.n.w.now
	switch {
	case s.c == nil:
		if now-s.cut > replica.AwayLimit {
			s.void()
			s.cut = now
		}
		s.connect()
	case now-s.heard > replica.StreamPatience:
		s.c.close(0)
		s.closedConn()
	case s.ready && len(s.unacked) == 0:
		s.transmit(nil)
		s.pump()
	}
	s.n.w.after(s.n.p, heartbeat, s.beat)
}

func (s *sender) connect() {
	if s.dialing || s.machine.IsClosed() {
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
		if s.machine.IsClosed() {
			c.close(0)
			return
		}
		s.c, end.c, s.heard = c, c, s.n.w.now
		s.greet()
	})
}

func (s *sender) greet() { s.c.send(0, opening{s.n.p.name, s.name, s.machine.Generation()}) }

func (s *sender) closedConn() { s.c, s.ready, s.cut = nil, false, s.n.w.now }

// opened goes on where the receiver is, or begins anew.
func (s *sender) opened(last uint64) {
	if !s.machine.Opened(last) {
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

// acknowledge forgets the batches up to seq.
func (s *sender) acknowledge(seq uint64) {
	s.unacked = slices.DeleteFunc(s.unacked, func(b batch) bool { return b.seq <= seq })
}

// opening names a stream; the answer is the last batch that was applied.
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
	refused []uint16
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
	if s.c != e.c || s.machine.IsClosed() {
		return
	}
	s.heard = s.n.w.now
	switch m := m.(type) {
	case openedAt:
		if m.generation == s.machine.Generation() {
			s.opened(m.last)
		}
	case applied:
		s.acknowledge(m.seq)
		s.machine.Acknowledged(m.seq, m.refused, s.n.w.now)
		s.act()
		s.pump()
	}
}
