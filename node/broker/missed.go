package broker

import (
	"slices"

	"github.com/dunlin-cache/dunlin/internal/pubsub"
)

// A channel may move on before all receivers have followed. What those have not got, its next owner keeps for them: the
// node in the middle takes it out of its backlog, and hands it over behind the stand-ins.
//
//	old node    m1        receiver: m1 … ends there, and follows to the newest owner that it has heard of
//	middle         m2     Missed ─▶ DUNLIN MISSED ═▶ new node: Miss
//	new node          m3  Follow: m2 m3
//
// Who was live in the middle has got it, and who was live at the new node before gets it there at
// once, ahead of what is published there. But a receiver that was cut off from the new node, and has
// been live elsewhere meanwhile, is live there by a connection that the node alone takes for open. So
// until the receiver says something over that connection, the new node doubts that it gets the
// message: if it comes over another connection, or the channel moves on, it is told of a gap.

// Missed is a message that some receivers have not got.
type Missed struct {
	*Message // until done is called
	By       []Origin
}

// missedMemory is what a Missed takes beside its message and originSize for each receiver, in bytes.
const missedMemory = 64

// Missed takes from the backlogs what was published on the channels for which keep holds, which
// this node has lost, and returns what receivers have not got that are expected to follow, in the
// order of publishing. began is the epoch since which the node had a channel. What it has no memory
// for counts as lost. It is called ahead of Told. rest is called when no lock is held, and Missed
// ends if that returns false. whole is false if something is not in the list that should be. The caller calls done when
// it has used the list.
func (b *Broker) Missed(
	keep func(channel string) bool, began func(channel string) uint64, rest func() (goOn bool),
) (list []Missed, whole bool, done func()) {
	taken := taken{whole: true}
	for i := range b.stripes {
		for from, more := uint64(0), true; more; {
			from, more = b.takeMissed(&b.stripes[i], from, &taken, keep, began)
			if !rest() {
				taken.whole = false
				return taken.list, false, b.doneWith(&taken)
			}
		}
	}
	return taken.list, taken.whole, b.doneWith(&taken)
}

// doneWith is what Missed returns as done.
func (b *Broker) doneWith(taken *taken) func() {
	return func() {
		for _, m := range taken.list {
			m.Release()
		}
		b.room.give(taken.size)
	}
}

// taken is what Missed has taken.
type taken struct {
	list  []Missed
	size  int64 // of the list
	whole bool
}

// takeMissed is Missed for some messages of a stripe, from a number on. It returns the number of the
// message that comes next, if there is one.
func (b *Broker) takeMissed(
	s *stripe, from uint64, to *taken, keep func(string) bool, began func(string) uint64,
) (next uint64, more bool) {
	c := movedChannel{kind: pubsub.Kinds} // none
	return b.sift(s, from, func(k *kept) (taken bool, steps int) {
		if k.message.Kind != c.kind || string(k.message.Channel) != c.name {
			c = s.movedChannel(k.message, keep, began)
			steps = c.interests
		}
		if !c.moves {
			return false, steps
		}
		by, size := c.missed(k)
		switch size += missedMemory; {
		case len(by) == 0:
		case b.room.take(size):
			to.size += size
			k.message.uses.Add(1)
			to.list = append(to.list, Missed{k.message, by})
		default:
			to.whole = false
			b.lost.Add(1)
		}
		return true, steps
	})
}

// movedChannel is a channel of which a backlog has messages.
type movedChannel struct {
	kind      pubsub.Kind
	name      string   // not the message's bytes, which may be used again once that is taken out
	moves     bool     // to the next owner
	began     uint64   // the epoch since which this node had it
	follow    []Origin // who is expected to follow
	interests int      // that were looked at for that
}

func (s *stripe) movedChannel(m *Message, keep func(string) bool, began func(string) uint64) movedChannel {
	c := movedChannel{kind: m.Kind, name: string(m.Channel)}
	if c.moves = keep(c.name); !c.moves {
		return c
	}
	c.began = began(c.name)
	interests := s.topics[m.Kind][c.name]
	c.interests = len(interests)
	for _, in := range interests {
		of := in.receiver.Origin
		if in.ahead && !in.isMark() && of != (Origin{}) && !in.receiver.closed.Load() && !slices.Contains(c.follow, of) {
			c.follow = append(c.follow, of)
		}
	}
	return c
}

// missed returns who has not got a message of the channel, and how much memory that takes of its own.
func (c *movedChannel) missed(k *kept) (by []Origin, size int64) {
	switch {
	case k.only == nil && k.epoch != c.began:
		return nil, 0
	case k.only == nil && len(k.early) == 0:
		return c.follow, 0
	}
	for _, of := range c.follow {
		got := k.only != nil && !slices.Contains(k.only, of) ||
			slices.ContainsFunc(k.early, func(rc *Receiver) bool { return rc.Origin == of })
		if !got {
			by = append(by, of)
		}
	}
	return by, originSize * int64(len(by))
}

// Miss keeps a message of the owner before for the receivers that have not got it, until they
// follow here. Those that are live get it at once. epoch is the one since which this node has the
// channel. It returns false if there is no room.
func (b *Broker) Miss(kind pubsub.Kind, channel, payload []byte, by []Origin, epoch uint64) (ok bool) {
	m := b.newMessage(kind, channel, payload)
	if m == nil {
		b.lost.Add(1)
		return false
	}
	defer m.Release()
	_, s := b.stripeOf(channel)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	k := kept{message: m, number: s.number, epoch: epoch, only: make([]Origin, 0, len(by))}
	for _, of := range by {
		i := slices.IndexFunc(s.topics[kind][string(channel)], func(in interest) bool {
			return in.receiver.Origin == of && !in.ahead && !in.receiver.closed.Load()
		})
		if i >= 0 {
			in := &s.topics[kind][string(channel)][i]
			in.receiver.push(m)
			in.doubtful = in.since < epoch
		} else {
			k.only = append(k.only, of)
		}
	}
	if len(k.only) == 0 {
		return true
	}
	if b.keeping.Add(k.size()) > maxBacklog {
		b.keeping.Add(-k.size())
		s.overrun = max(s.overrun, epoch)
		b.lost.Add(1)
		return false
	}
	m.uses.Add(1)
	s.backlog = append(s.backlog, k)
	return true
}

// Lose counts messages that could not be handed over.
func (b *Broker) Lose(n int) { b.lost.Add(uint64(n)) }

// Overrun returns the newest epoch since which this node has had a channel for whose messages the backlog had no room.
func (b *Broker) Overrun() (epoch uint64) {
	for i := range b.stripes {
		s := &b.stripes[i]
		s.mu.Lock()
		epoch = max(epoch, s.overrun)
		s.mu.Unlock()
	}
	return epoch
}

// Gap counts a lost message for each receiver that has been live on a channel since before the
// epoch from which this node has it: the channel has been elsewhere, and the owner there has not
// handed over what was published, or has not told of the receiver, which it had forgotten. began
// returns that epoch, or 0 for other channels, and torn whether what was published is missing. rest
// is as for Told.
func (b *Broker) Gap(began func(channel string) uint64, torn func(channel string) bool, rest func() (goOn bool)) {
	for _, kind := range []pubsub.Kind{pubsub.Channel, pubsub.Shard} {
		for i := range b.stripes {
			s := &b.stripes[i]
			goOn := s.each(kind, func(name string) (cost int) {
				if began := began(name); began > 0 && !isEverywhere(kind, name) {
					b.lost.Add(s.gap(kind, name, began, torn(name)))
				}
				return 1 + len(name)/nameStep
			}, rest)
			if !goOn {
				return
			}
		}
	}
}

// gap is Gap for one channel, and returns for how many receivers there is one. The stripe's lock is
// held.
func (s *stripe) gap(kind pubsub.Kind, name string, began uint64, torn bool) (n uint64) {
	list := s.topics[kind][name]
	for _, in := range list {
		of := in.receiver.Origin
		if !in.ahead && of != (Origin{}) && in.since < began && (torn || !isTold(list, of)) {
			in.receiver.lose()
			n++
		}
	}
	return n
}
