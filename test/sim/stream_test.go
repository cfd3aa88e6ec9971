package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// Streams, after REPLICATION: what an owner's partitions come to hold goes to each receiver as one log, in
// batches that are kept until they are acknowledged and sent again over the next connection.

type mark uint8

const (
	noMark mark = iota
	markBegin
	markSynced
	markContinue
	markHanded
)

// effect is a value that a key has come to hold, or a mark.
type effect struct {
	place  int
	key    int
	value  int
	clear  bool
	change *change // whose effect it is; at markSynced: the last before it
	live   bool    // not of a snapshot
	mark   mark
	arg    uint64
}

type batch struct {
	seq     uint64
	effects []effect
}

const (
	batchEffects  = 6
	batchWindow   = 3
	maxLog        = 80
	handTries     = 5
	maxUnanswered = 40 // batches
	heartbeat     = 400 * time.Millisecond
)

type syncJob struct {
	place int
	since uint64
	key   int    // the next of the snapshot; -1: not begun
	seal  uint64 // the partition is handed over behind the snapshot; 0: it is not
}

type sender struct {
	n          *node
	name, addr string
	generation uint64
	closed     bool

	log     []effect
	feeds   placeSet
	since   [places]uint64
	handing [places]uint64 // the seal, until the receiver has acknowledged it
	tries   [places]int    // of handing
	refused placeSet       // to be sent anew soon
	queue   []syncJob
	seq     uint64
	unacked []batch

	logged, acked int // effects, ever
	flushes       []flushing

	c       *conn
	dialing bool
	ready   bool
	pumping bool
}

type flushing struct {
	upTo int
	done func()
}

func newSender(n *node, to ring.Member) *sender {
	n.w.seal++
	s := &sender{n: n, name: to.Name(), addr: to.Addr, generation: n.w.seal}
	s.connect()
	s.beat()
	return s
}

func (s *sender) append(e effect) {
	s.log = append(s.log, e)
	s.logged++
	s.pump()
	if len(s.log) > maxLog {
		s.overflow()
	}
}

// overflow empties the log: what was fed is sent anew.
func (s *sender) overflow() {
	s.n.w.tracef("%s: its log for %s overflows", s.n.p.name, s.name)
	s.acknowledge(len(s.log))
	s.log = nil
	s.again()
}

// again sends everything anew.
func (s *sender) again() {
	for k := range places {
		switch seal := s.handing[k]; {
		case seal != 0 && !s.n.w.handOnce:
			s.sync(k, s.since[k])
			s.queue[len(s.queue)-1].seal = seal
		case s.feeds.has(k):
			s.sync(k, s.since[k])
		}
	}
}

func (s *sender) sync(k int, since uint64) {
	s.unqueue(k)
	s.feeds &^= 1 << k
	s.since[k] = since
	s.queue = append(s.queue, syncJob{place: k, since: since, key: -1})
	s.pump()
}

func (s *sender) resume(k int, seal uint64) {
	s.since[k] = s.n.since(s.n.view, k)
	s.feeds |= 1 << k
	s.append(effect{place: k, mark: markContinue, arg: seal})
}

func (s *sender) stop(k int) {
	s.unqueue(k)
	s.handing[k] = 0
	s.feeds &^= 1 << k
}

// hand ends the feed of a partition that was lost. If the receiver does not have all of it yet, it still gets it: nothing
// changes there any more.
func (s *sender) hand(k int, seal uint64) {
	i := slices.IndexFunc(s.queue, func(j syncJob) bool { return j.place == k })
	if s.n.w.handOnce {
		begun := s.feeds.has(k)
		s.stop(k)
		if begun {
			s.append(effect{place: k, mark: markHanded, arg: seal})
		}
		return
	}
	s.handing[k], s.tries[k] = seal, 0
	if i >= 0 {
		s.queue[i].seal = seal
		return
	}
	s.feeds &^= 1 << k
	s.append(effect{place: k, mark: markHanded, arg: seal})
}

func (s *sender) unqueue(k int) {
	s.queue = slices.DeleteFunc(s.queue, func(j syncJob) bool { return j.place == k })
}

// fed logs a change.
func (s *sender) fed(k int, e effect) {
	if s.feeds.has(k) {
		e.place, e.live = k, true
		s.append(e)
	}
}

// flush calls done when the receiver has all that was logged, and all that was handed.
func (s *sender) flush(done func()) {
	s.flushes = append(s.flushes, flushing{s.logged, done})
	s.acknowledge(0)
}

func (s *sender) acknowledge(effects int) {
	s.acked += effects
	for len(s.flushes) > 0 && s.flushes[0].upTo <= s.acked && s.handing == [places]uint64{} {
		f := s.flushes[0]
		s.flushes = s.flushes[1:]
		f.done()
	}
}

func (s *sender) close() {
	s.closed = true
	for _, f := range s.flushes {
		f.done()
	}
	s.flushes = nil
	if s.c != nil {
		s.c.close(0)
	}
}

// pump goes on with snapshots and sends what is logged.
func (s *sender) pump() {
	if s.pumping || s.closed {
		return
	}
	s.pumping = true
	pause := s.n.w.between(50*time.Microsecond, 500*time.Microsecond)
	if len(s.queue) > 0 && len(s.log) == 0 {
		pause += s.n.w.between(0, s.n.w.pace) // of snapshots
	}
	s.n.w.after(s.n.p, pause, func() {
		s.pumping = false
		if s.closed {
			return
		}
		s.snapshot()
		if len(s.log) > 0 && !s.n.w.peace && s.n.w.chance(0.002) {
			s.overflow()
		}
		for s.ready && len(s.log) > 0 && len(s.unacked) < batchWindow {
			take := min(len(s.log), batchEffects)
			s.transmit(slices.Clone(s.log[:take]))
			s.log = s.log[take:]
		}
		if len(s.queue) > 0 && len(s.log) < maxLog/2 {
			s.pump()
		}
	})
}

// snapshot logs the next piece of the partition in front of the queue.
func (s *sender) snapshot() {
	if len(s.queue) == 0 || len(s.log) >= maxLog/2 {
		return
	}
	j := s.queue[0]
	k := j.place
	switch {
	case j.key < 0:
		s.feeds |= 1 << k
		s.queue[0].key++
		s.append(effect{place: k, mark: markBegin, arg: j.since})
	case j.key < keysPer:
		s.queue[0].key++
		s.append(effect{place: k, key: j.key, value: s.n.data[k].values[j.key]})
	default:
		s.queue = s.queue[1:]
		s.append(effect{place: k, mark: markSynced, change: s.n.data[k].last})
		if j.seal != 0 {
			s.feeds &^= 1 << k
			s.append(effect{place: k, mark: markHanded, arg: j.seal})
		}
	}
}

func (s *sender) transmit(effects []effect) {
	s.seq++
	b := batch{s.seq, effects}
	s.unacked = append(s.unacked, b)
	s.c.send(0, b)
}

// beat sends an empty batch when there is nothing else.
func (s *sender) beat() {
	if s.closed {
		return
	}
	switch {
	case s.ready && len(s.unacked) == 0:
		s.transmit(nil)
	case s.c == nil:
		s.connect()
	case len(s.unacked) > maxUnanswered:
		s.c.close(0)
		s.closedConn()
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
		s.c, end.c = c, c
		c.send(0, opening{s.n.p.name, s.name, s.generation})
	})
}

func (s *sender) closedConn() { s.c, s.ready = nil, false }

// opened goes on where the receiver is.
func (s *sender) opened(last uint64) {
	s.ready = true
	for len(s.unacked) > 0 && s.unacked[0].seq <= last {
		s.answered(s.unacked[0].seq)
	}
	missing := len(s.unacked) > 0 && s.unacked[0].seq != last+1 || len(s.unacked) == 0 && s.seq != last
	if missing {
		s.begin()
		return
	}
	for _, b := range s.unacked {
		s.c.send(0, b)
	}
	s.pump()
}

// begin starts a new generation: everything is sent anew.
func (s *sender) begin() {
	s.n.w.seal++
	s.generation = s.n.w.seal
	s.seq = 0
	dropped := len(s.log)
	for _, b := range s.unacked {
		dropped += len(b.effects)
	}
	s.unacked, s.log = nil, nil
	s.ready = false
	s.c.send(0, opening{s.n.p.name, s.name, s.generation})
	s.acknowledge(dropped)
	s.again()
}

func (s *sender) answered(seq uint64) {
	for len(s.unacked) > 0 && s.unacked[0].seq <= seq {
		effects := s.unacked[0].effects
		s.unacked = s.unacked[1:]
		s.handedOver(effects)
		s.acknowledge(len(effects))
	}
}

// handedOver notes which partitions the receiver has wholly: those that were not refused, and are not on their way anew.
func (s *sender) handedOver(effects []effect) {
	for _, e := range effects {
		anew := func(o effect) bool { return o.place == e.place && o.mark == markBegin }
		pending := s.refused.has(e.place) || slices.ContainsFunc(s.log, anew) ||
			slices.ContainsFunc(s.queue, func(j syncJob) bool { return j.place == e.place }) ||
			slices.ContainsFunc(s.unacked, func(b batch) bool { return slices.ContainsFunc(b.effects, anew) })
		if e.mark == markHanded && s.handing[e.place] == e.arg && !pending {
			s.handing[e.place] = 0
		}
	}
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
	switch m := m.(type) {
	case openedAt:
		if m.generation == s.generation {
			s.opened(m.last)
		}
	case applied:
		s.refused |= m.refused
		s.answered(m.seq)
		for k := range places {
			if m.refused.has(k) {
				s.n.w.after(s.n.p, 30*time.Millisecond, func() { s.refusedOne(k) })
			}
		}
		s.pump()
	}
}

// refusedOne sends a partition anew that the receiver did not take.
func (s *sender) refusedOne(k int) {
	s.refused &^= 1 << k
	queued := slices.ContainsFunc(s.queue, func(j syncJob) bool { return j.place == k })
	switch seal := s.handing[k]; {
	case queued || s.closed:
	case seal != 0 && !s.n.w.handOnce:
		// The heir may just be installing its table. If it does not want the partition, it serves it already.
		if s.tries[k]++; s.tries[k] > handTries {
			s.stop(k)
			s.acknowledge(0)
			return
		}
		s.sync(k, s.since[k])
		s.queue[len(s.queue)-1].seal = seal
	case s.feeds.has(k):
		s.sync(k, s.since[k])
	}
}
