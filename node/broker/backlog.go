package broker

import (
	"bytes"
	"time"

	"github.com/dunlin-cache/dunlin/internal/pubsub"
)

// When a channel moves to another node, those who listen to it hear of that a moment later. They end what
// they have at the node before, which sends them all that it has queued, and then follow to the new one:
//
//	old node   m1 m2 │                 receiver: m1 m2, LISTEN 0 answered, then LISTEN at the new node
//	new node         │ m3 m4 ··· Follow ··· m3 m4 from the backlog, m5 …
//
// So nothing is lost, comes twice, or overtakes what was published before.

const (
	// BacklogTime is how long a backlog is kept, from when this node has got the channel.
	BacklogTime = 10 * time.Second
	// maxBacklog is how many bytes all backlogs take.
	maxBacklog = 4 << 20
)

// kept is a message of a backlog.
type kept struct {
	message *Message
	epoch   uint64 // since which this node has had the channel
}

// keep adds a message to the backlog, if there is room. The stripe's lock is held.
func (b *Broker) keep(s *stripe, m *Message, epoch uint64) {
	if b.keeping.Add(m.size) > maxBacklog {
		b.keeping.Add(-m.size)
		s.overrun = max(s.overrun, epoch)
		return
	}
	m.uses.Add(1)
	s.backlog = append(s.backlog, kept{m, epoch})
}

// replay queues what the backlog has of a channel, and reports whether that is all. The stripe's lock is
// held.
func (s *stripe) replay(rc *Receiver, kind pubsub.Kind, name []byte, epoch uint64) (whole bool) {
	for _, k := range s.backlog {
		if k.epoch == epoch && k.message.Kind == kind && bytes.Equal(k.message.Channel, name) {
			rc.push(k.message)
		}
	}
	return s.overrun < epoch
}

// Keeps reports whether there are backlogs or stand-ins.
func (b *Broker) Keeps() bool { return b.keeping.Load() > 0 || b.expects() }

// Forget drops the backlogs and stand-ins: no channel has come to this node for BacklogTime. It takes a while
// for many.
func (b *Broker) Forget() {
	b.forgetStandIns()
	for i := range b.stripes {
		b.forget(&b.stripes[i])
	}
}

func (b *Broker) forget(s *stripe) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.backlog {
		b.keeping.Add(-k.message.size)
		k.message.Release()
	}
	s.backlog = nil
}
