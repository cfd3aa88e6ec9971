package broker

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/pubsub"
)

// When a channel moves to another node, those who listen to it hear of that a moment later. They end what
// they have at the node before, which sends them all that it has queued, and then follow to the new one:
//
//	old node   m1 m2 │                 receiver: m1 m2, LISTEN 0 answered, then LISTEN at the new node
//	new node         │ m3 m4 ··· Follow ··· m3 m4 from the backlog, m5 …
//
// So nothing is lost, comes twice, or overtakes what was published before. A receiver whose patterns match the
// channel gets its messages by these alone, wherever they are published. While it is expected to follow, they wait
// for that; what it got before anything said that it follows is not replayed to it.

const (
	// BacklogTime is how long a backlog is kept, from when this node has got the channel.
	BacklogTime = 10 * time.Second
	// maxBacklog is how many bytes all backlogs take.
	maxBacklog = 4 << 20
)

// kept is a message of a backlog.
type kept struct {
	message *Message
	number  uint64      // in its stripe's backlog they ascend
	epoch   uint64      // since which this node has had the channel
	early   []*Receiver // those that have got it, and may follow all the same: see hasGot

	// only are the receivers that have not got a message of the owner before. It is shown to nobody else. Who has got it
	// is replaced by the zero Origin.
	only []Origin
}

const (
	// receiverSize is what one of early takes, in bytes.
	receiverSize = 8
	// originSize is what one of only takes.
	originSize = 16
)

func (k *kept) size() int64 {
	return k.message.size + receiverSize*int64(len(k.early)) + originSize*int64(len(k.only))
}

// hasGot reports whether a receiver has got the message ahead of the time when it follows: by a
// pattern, or before it ended here, maybe over an earlier connection.
func (k *kept) hasGot(rc *Receiver) bool {
	return slices.ContainsFunc(k.early, func(other *Receiver) bool {
		return other == rc || other.Origin == rc.Origin && rc.Origin != (Origin{})
	})
}

func (k *kept) isOf(kind pubsub.Kind, name []byte) bool {
	return k.message.Kind == kind && bytes.Equal(k.message.Channel, name)
}

// keep adds a message to the backlog, if there is room. The message is queued for the channel's receivers already.
// keep queues it for those of the patterns that match, but not for those that are expected to follow. at is the
// number of the stripe, whose lock is held.
func (b *Broker) keep(s *stripe, at int, m *Message, matching [][]interest, epoch uint64) {
	if b.keeping.Add(m.size) > maxBacklog {
		b.keeping.Add(-m.size)
		s.overrun = max(s.overrun, epoch)
		return
	}
	k := kept{message: m, number: s.number, epoch: epoch}
	channel := s.topics[m.Kind][string(m.Channel)]
	for _, interests := range matching {
		for _, in := range interests {
			rc := in.receiver
			if rc.marks[at] == s.number || rc.closed.Load() {
				continue
			}
			if rc.marks[at] = s.number; !isExpected(channel, rc) {
				rc.push(m)
				k.early = append(k.early, rc)
			}
		}
	}
	b.keeping.Add(k.size() - m.size)
	m.uses.Add(1)
	s.backlog = append(s.backlog, k)
}

// isExpected reports whether a receiver is to follow a channel here, as it says or a stand-in for it.
func isExpected(channel []interest, rc *Receiver) bool {
	return slices.ContainsFunc(channel, func(in interest) bool {
		return in.ahead && !in.isMark() && (in.receiver == rc || in.receiver.standsIn && in.receiver.Origin == rc.Origin)
	})
}

// replay queues what the backlog has of a channel and the receiver does not, and reports whether that is all.
// The stripe's lock is held.
func (s *stripe) replay(rc *Receiver, kind pubsub.Kind, name []byte, epoch uint64) (whole bool) {
	for _, k := range s.backlog {
		switch {
		case !k.isOf(kind, name):
		case k.only != nil:
			if i := slices.Index(k.only, rc.Origin); i >= 0 && rc.Origin != (Origin{}) {
				k.only[i] = Origin{}
				rc.push(k.message)
			}
		case k.epoch == epoch && !k.hasGot(rc):
			rc.push(k.message)
		}
	}
	return s.overrun < epoch
}

// endLocked is told that a receiver ends what it has of a channel. It may follow here again: the
// channel may have moved away and come back meanwhile. What a connection had that is closed may not
// have arrived: its proxy may have been elsewhere, and knows of no gap here. If that is so of a message of the owner
// before, the receiver's mark goes: whoever is not told of is told of a gap. The stripe's lock is held.
func (b *Broker) endLocked(s *stripe, rc *Receiver, kind pubsub.Kind, name []byte) {
	channel := s.topics[kind][string(name)]
	switch i := slices.IndexFunc(channel, func(in interest) bool { return in.receiver == rc }); {
	case rc.closed.Load() && i >= 0 && channel[i].doubtful:
		s.dropStandIns(kind, string(name), func(in interest) bool { return in.receiver.Origin == rc.Origin })
	case rc.closed.Load():
	case isExpected(channel, rc):
		s.replayNewest(rc, kind, name)
	case i >= 0 && rc.Origin != (Origin{}):
		for i := range s.backlog {
			if k := &s.backlog[i]; k.isOf(kind, name) && k.only == nil && !k.hasGot(rc) {
				k.early = append(k.early, rc)
				b.keeping.Add(receiverSize)
			}
		}
	}
}

// replayNewest is replay for a receiver that does not follow after all. Its patterns may match the channel.
func (s *stripe) replayNewest(rc *Receiver, kind pubsub.Kind, name []byte) {
	for _, k := range slices.Backward(s.backlog) {
		if k.isOf(kind, name) {
			s.replay(rc, kind, name, k.epoch)
			return
		}
	}
}

// siftedAtOnce is how many messages of a backlog are looked at under one lock, if each costs
// nothing beside that.
const siftedAtOnce = 256

// sift takes messages out of a stripe's backlog, from a number on: those for which take holds,
// which also says what a message has cost beside a step. It returns the number of the message that
// comes next, if there is one. That stays right while others sift the same backlog: an index would not, when
// they take out messages ahead of it. take is called under the stripe's lock.
func (b *Broker) sift(s *stripe, from uint64, take func(k *kept) (taken bool, steps int)) (next uint64, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stay, _ := slices.BinarySearchFunc(s.backlog, from, func(k kept, from uint64) int { return cmp.Compare(k.number, from) })
	at := stay
	for left := siftedAtOnce; left > 0 && at < len(s.backlog); at++ {
		k := s.backlog[at]
		taken, steps := take(&k)
		left -= 1 + steps
		if !taken {
			s.backlog[stay] = k
			stay++
			continue
		}
		b.keeping.Add(-k.size())
		k.message.Release()
	}
	s.backlog = slices.Delete(s.backlog, stay, at)
	if stay == len(s.backlog) {
		return 0, false
	}
	return s.backlog[stay].number, true
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
		b.keeping.Add(-k.size())
		k.message.Release()
	}
	s.backlog = nil
}
