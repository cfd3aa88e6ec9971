package replica

import (
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// streamingPeer is a or c.
type streamingPeer struct {
	name  string
	table *ring.Table
	feeds bool // b
	down  bool
	queue []message
	heard time.Duration // by b
	vain  bool          // b refuses what it is fed, and the peer will hear of it
	seal  uint64        // of what the peer hands over to b, its heir; 0: nothing
}

// message is a mark, or everything up to a number of writes.
type message struct {
	mark   Mark
	writes int
	whole  bool // a snapshot
	since  uint64
	sent   time.Duration
}

// wants reports whether a table has b fed.
func wants(t *ring.Table) bool { return t.Follower[place] == 1 || t.Owner[place] == 1 }

// adopt has a peer obey the newest table.
func (s *copySchedule) adopt(i int) {
	p := s.peers[i]
	ours := int(s.table.Owner[place]) == i
	if s.idle && ours && s.server == i && !s.calm && s.rng.IntN(8) > 0 {
		return // what stays as it is may miss a table or two
	}
	p.table = s.table
	lives := s.table.Since[place] == s.since
	switch {
	case s.server == i && ours && lives:
		s.feed(p, 0)
	case s.server == i:
		if s.server, s.seal = nobody, 0; lives {
			s.seals++
			s.seal = s.seals
			if p.feeds {
				s.send(p, message{mark: Mark{MarkHanded, s.seal}})
				if s.table.Owner[place] == 1 {
					p.seal = s.seal
				}
			}
			p.feeds = false
		}
		s.stop(p)
	}
}

// takeOver has a peer serve what the table gives it.
func (s *copySchedule) takeOver(i int) {
	p := s.peers[i]
	if s.server != nobody || int(p.table.Owner[place]) != i || p.table != s.table {
		return
	}
	s.begin()
	s.server = i
	for _, o := range s.peers {
		o.seal = 0 // whoever acknowledges the table has ended its hand-over
	}
	s.feed(p, s.seal)
}

// begin has the data begin anew, if the table says so.
func (s *copySchedule) begin() {
	if s.table.Since[place] != s.since {
		s.since, s.writes, s.seal = s.table.Since[place], nil, 0
	}
}

// feed begins to feed b, or ends that.
func (s *copySchedule) feed(p *streamingPeer, seal uint64) {
	switch {
	case !wants(p.table):
		s.stop(p)
	case !p.feeds && seal != 0:
		p.feeds = true
		s.send(p, message{mark: Mark{MarkContinue, seal}})
	case !p.feeds:
		p.feeds = true
		s.snapshot(p)
	}
}

// stop ends the feeding of b, whose copy is void then. What was not sent is sent first.
func (s *copySchedule) stop(p *streamingPeer) {
	if !p.feeds {
		return
	}
	p.feeds = false
	if !s.broken.StopInSilence {
		s.send(p, message{mark: Mark{MarkBegin, s.since}})
	}
}

func (s *copySchedule) snapshot(p *streamingPeer) {
	s.send(p, message{mark: Mark{MarkBegin, s.since}})
	s.send(p, message{writes: len(s.writes), whole: true})
	s.send(p, message{mark: Mark{MarkSynced, 0}})
}

func (s *copySchedule) send(p *streamingPeer, m message) {
	m.since, m.sent = s.since, s.now
	p.queue = append(p.queue, m)
}

// deliver brings b some of what a peer has sent.
func (s *copySchedule) deliver(i int) {
	p := s.peers[i]
	if p.down {
		return
	}
	for range s.rng.IntN(len(p.queue) + 1) {
		m := p.queue[0]
		p.queue, p.heard = p.queue[1:], m.sent
		s.apply(p, m)
	}
	if len(p.queue) == 0 {
		p.heard = s.now
	}
	if p.vain {
		p.vain = false
		switch {
		case s.server == i && p.feeds:
			p.feeds = false
			s.feed(p, 0)
		case p.seal != 0: // what was sealed has not changed
			s.snapshot(p)
			s.send(p, message{mark: Mark{MarkHanded, p.seal}})
		}
	}
}
