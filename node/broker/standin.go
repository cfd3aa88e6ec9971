package broker

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
)

// A node that hands a channel over tells the next owner who listens to it. Until these receivers say so
// themselves, stand-ins count for them there, and PUBLISH counts everybody from its first message on:
//
//	old node   Told ─▶ DUNLIN TOPICS ═▶ new node   Expect: a stand-in counts
//	receiver   ── LISTEN ═════════════▶ new node   the stand-in is replaced
//
// A receiver that does not come is forgotten with the backlogs. Stand-ins of a channel that has
// gone elsewhere, though it was to come here, are dropped when it does come here.
//
// An owner tells the next one of all receivers that get what is published there, or for which it
// keeps that. So a receiver of which it has not told has missed something: it stood still, or heard of no
// table, until a node in the middle had forgotten it. It is told of a gap when it follows:
//
//	old node    m1        receiver: m1 … stands still
//	middle         m2     its stand-in is forgotten, and the channel moves on
//	new node          m3  Follow: Gapped, m3
//
// That must show when the receiver has come, too. So its stand-in stays as a mark, which does not count.

const (
	// maxExpected is how many bytes the topics of all stand-ins take.
	maxExpected = 4 << 20
	// toldMemory is what a topic of a stand-in takes beside twice its name, in bytes.
	toldMemory = 256
	// nameStep bytes of a name take as long as another topic.
	nameStep = 512
)

// Origin names a receiver at every node: a loop of one process of a proxy. The zero Origin is that of a
// node's own loops, whose subscribers do not move.
type Origin struct {
	Boot int64
	Loop int
}

// Told is what a receiver has said.
type Told struct {
	Origin Origin
	Kind   pubsub.Kind // not Pattern
	Name   string
	Count  int
}

// standIns count for receivers that are expected, by origin.
type standIns struct {
	mu    sync.Mutex // before those of stripes
	by    map[Origin]*Receiver
	bytes atomic.Int64 // changed under mu
}

// Told returns what receivers with an origin have said of the channels and shard channels for which keep
// holds, as far as there is memory for it, and drops the stand-ins there; whole is false if there was not enough. keep
// is called under a lock, as that of Each is: each time that this is released, rest is called, and Told ends if that
// returns false. The caller calls done when it has used the list.
func (b *Broker) Told(keep func(name string) bool, rest func() (goOn bool)) (list []Told, whole bool, done func()) {
	to := listed{whole: true}
	for i := range b.stripes {
		s := &b.stripes[i]
		for _, kind := range []pubsub.Kind{pubsub.Channel, pubsub.Shard} {
			goOn := s.each(kind, func(name string) (cost int) {
				if keep(name) && !isEverywhere(kind, name) {
					b.takeTold(&to, s, kind, name)
				}
				return 1 + len(name)/nameStep
			}, rest)
			to.whole = to.whole && goOn
		}
	}
	return to.list, to.whole, func() { b.room.give(to.size) }
}

// listed is what Told has listed.
type listed struct {
	list  []Told
	size  int64 // of the list
	whole bool
}

// takeTold is Told for one topic. The stripe's lock is held.
func (b *Broker) takeTold(to *listed, s *stripe, kind pubsub.Kind, name string) {
	need := int64(toldMemory + 2*len(name))
	list := s.topics[kind][name]
	for _, in := range list {
		switch of := in.receiver.Origin; {
		case of == (Origin{}) || in.isMark() || in.doubtful || in.receiver.closed.Load():
		case in.ahead && !isTold(list, of): // it has not followed for so long that the backlog is forgotten
		case to.size+need <= maxExpected && b.room.take(need):
			to.size += need
			to.list = append(to.list, Told{of, kind, name, in.count})
		default:
			to.whole = false
		}
	}
	s.dropStandIns(kind, name, func(interest) bool { return true })
}

// dropStandIns drops the stand-ins of a topic for which drop holds. The stripe's lock is held.
func (s *stripe) dropStandIns(kind pubsub.Kind, name string, drop func(in interest) bool) {
	left := slices.DeleteFunc(s.topics[kind][name], func(in interest) bool { return in.receiver.standsIn && drop(in) })
	if len(left) == 0 {
		delete(s.topics[kind], name)
	} else {
		s.topics[kind][name] = left
	}
}

// isEverywhere reports whether a channel's subscribers are told to all nodes, so that nobody hands them over.
func isEverywhere(kind pubsub.Kind, name string) bool {
	return kind == pubsub.Channel && keyevent.IsChannel([]byte(name))
}

// Expect has a stand-in count until the receiver says itself what it listens to. epoch is that of
// the table that gives the channel to this node. It returns false if there is no memory.
func (b *Broker) Expect(t Told, epoch uint64) (ok bool) {
	if isEverywhere(t.Kind, t.Name) {
		return true
	}
	size := int64(toldMemory + 2*len(t.Name))
	b.standIns.mu.Lock()
	defer b.standIns.mu.Unlock()
	if b.standIns.bytes.Load()+size > maxExpected || !b.room.take(size) {
		return false
	}
	b.standIns.bytes.Add(size)
	rc := b.standIns.by[t.Origin]
	if rc == nil {
		if b.standIns.by == nil {
			b.standIns.by = make(map[Origin]*Receiver)
		}
		rc = &Receiver{Origin: t.Origin, standsIn: true}
		b.standIns.by[t.Origin] = rc
	}
	_, s := b.stripeOf([]byte(t.Name))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expect(rc, t, epoch)
	rc.note(t.Kind, []byte(t.Name), t.Count)
	return true
}

// expect notes what the receiver has said to the owner before. If it has said Ahead here, that may be older.
// If it is live here, it has come already. The stripe's lock is held.
func (s *stripe) expect(standIn *Receiver, t Told, epoch uint64) {
	list := s.topics[t.Kind][t.Name]
	i := slices.IndexFunc(list, func(in interest) bool {
		return in.receiver.Origin == t.Origin && !in.receiver.standsIn && !in.receiver.closed.Load()
	})
	switch {
	case i < 0:
		s.listen(t.Kind, []byte(t.Name), interest{receiver: standIn, count: t.Count, ahead: true, since: epoch})
		return
	case list[i].ahead:
		list[i].count = t.Count
	}
	s.dropStandIns(t.Kind, t.Name, func(in interest) bool { return in.receiver.Origin == t.Origin })
	s.topics[t.Kind][t.Name] = append(s.topics[t.Kind][t.Name], interest{receiver: standIn, ahead: true, since: epoch})
}

// replaceStandIn has the stand-in for a receiver count no more, in the memory of the list. A stand-in
// replaces one that is being forgotten. Receivers that are closed say nothing.
func replaceStandIn(list []interest, rc *Receiver) []interest {
	if rc.Origin == (Origin{}) || rc.closed.Load() {
		return list
	}
	isReplaced := func(in interest) bool {
		return in.receiver.standsIn && in.receiver != rc && in.receiver.Origin == rc.Origin
	}
	if rc.standsIn {
		return slices.DeleteFunc(list, isReplaced)
	}
	for i := range list {
		if isReplaced(list[i]) {
			list[i].count = 0
		}
	}
	return list
}

// IsTold reports whether the owner before has told that a receiver listens to a channel, and that is not
// forgotten yet.
func (b *Broker) IsTold(of Origin, kind pubsub.Kind, name []byte) bool {
	_, s := b.stripeOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	return isTold(s.topics[kind][string(name)], of)
}

func isTold(list []interest, of Origin) (told bool) {
	for i := range list {
		switch rc := list[i].receiver; {
		case rc.Origin != of:
		case rc.closed.Load() && list[i].doubtful:
			return false
		case rc.standsIn && !rc.closed.Load():
			told = true
		}
	}
	return told
}

// Discard drops the stand-ins of the channels for which of holds, and the messages that are kept of
// these, if they were handed over for tables up to an epoch, or published under these: the channels
// have been elsewhere since.
func (b *Broker) Discard(of func(channel string) bool, epoch uint64) {
	for i := range b.stripes {
		for from, more := uint64(0), true; more; {
			from, more = b.sift(&b.stripes[i], from, func(k *kept) (taken bool, steps int) {
				name := k.message.Channel
				return k.epoch <= epoch && of(string(name)), len(name) / nameStep
			})
		}
	}
	b.discardStandIns(of, epoch)
}

func (b *Broker) discardStandIns(of func(channel string) bool, epoch uint64) {
	b.standIns.mu.Lock()
	defer b.standIns.mu.Unlock()
	left := eachSteps
	for origin, rc := range b.standIns.by { // which may become more while it is not locked
		for kind, names := range rc.topics {
			for name := range names {
				if of(name) {
					b.discardStandIn(pubsub.Kind(kind), name, rc, epoch)
				}
				if left -= 1 + len(name)/nameStep; left > 0 {
					continue
				}
				left = eachSteps
				b.standIns.mu.Unlock()
				b.standIns.mu.Lock()
				if b.standIns.by[origin] != rc {
					return // all are being forgotten
				}
			}
		}
	}
}

func (b *Broker) discardStandIn(kind pubsub.Kind, name string, rc *Receiver, epoch uint64) {
	_, s := b.stripeOf([]byte(name))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropStandIns(kind, name, func(in interest) bool { return in.receiver == rc && in.since <= epoch })
}

// forgetStandIns drops all stand-ins. Loops wait for the lock, so it is not held for that.
func (b *Broker) forgetStandIns() {
	forgotten, size := b.takeStandIns()
	for _, rc := range forgotten {
		b.Leave(rc)
	}
	b.room.give(size)
}

// takeStandIns returns all stand-ins, which are known to topics still, and what they take. Those that are
// expected from now on are others.
func (b *Broker) takeStandIns() (by map[Origin]*Receiver, size int64) {
	b.standIns.mu.Lock()
	defer b.standIns.mu.Unlock()
	by, b.standIns.by = b.standIns.by, nil
	return by, b.standIns.bytes.Swap(0)
}

// expects reports whether there are stand-ins.
func (b *Broker) expects() bool { return b.standIns.bytes.Load() > 0 }
