package broker

import (
	"slices"

	"github.com/dunlin-cache/dunlin/internal/pubsub"
)

// Count returns how many subscribers a channel or shard channel has, without those of patterns.
func (b *Broker) Count(kind pubsub.Kind, name []byte) (subscribers int) {
	_, s := b.stripeOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.topics[kind][string(name)] {
		if !in.receiver.closed.Load() {
			subscribers += in.count
		}
	}
	return subscribers
}

// Patterns returns how many different patterns there are.
func (b *Broker) Patterns() int {
	b.patterns.mu.RLock()
	defer b.patterns.mu.RUnlock()
	return len(b.patterns.list)
}

// Topics returns how many channels or shard channels have subscribers, and those that only have marks.
func (b *Broker) Topics(kind pubsub.Kind) (n int) {
	for i := range b.stripes {
		s := &b.stripes[i]
		s.mu.Lock()
		n += len(s.topics[kind])
		s.mu.Unlock()
	}
	return n
}

// eachSteps is how many channels are visited under one lock, if each costs 1.
const eachSteps = 256

// hasSubscribers reports whether there are more than marks. The stripe's lock is held.
func (s *stripe) hasSubscribers(kind pubsub.Kind, name string) bool {
	return slices.ContainsFunc(s.topics[kind][name], func(in interest) bool { return !in.isMark() })
}

// Each calls visit for the channels or shard channels that have subscribers, in no order, and some of those
// that come or go meanwhile. visit returns what it has cost, with a visit of no work for 1. It is called under
// a lock, which is released every eachSteps: then rest is called, and Each ends if that returns false.
func (b *Broker) Each(kind pubsub.Kind, visit func(name string) (cost int), rest func() (goOn bool)) {
	for i := range b.stripes {
		s := &b.stripes[i]
		goOn := s.each(kind, func(name string) (cost int) {
			if !s.hasSubscribers(kind, name) {
				return 1
			}
			return visit(name)
		}, rest)
		if !goOn {
			return
		}
	}
}

func (s *stripe) each(kind pubsub.Kind, visit func(name string) (cost int), rest func() (goOn bool)) (goOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := eachSteps
	for name := range s.topics[kind] { // which may change while it is not locked
		if left -= visit(name); left > 0 {
			continue
		}
		left = eachSteps
		s.mu.Unlock()
		goOn = rest()
		s.mu.Lock()
		if !goOn {
			return false
		}
	}
	return true
}

// Published returns how many messages were published, whether or not anybody listened.
func (b *Broker) Published() uint64 { return b.published.Load() }

// Lost returns how many messages found the queue of a receiver full. One that several receivers have lost
// counts for each.
func (b *Broker) Lost() uint64 { return b.lost.Load() }
