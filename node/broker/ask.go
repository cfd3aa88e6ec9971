package broker

import (
	"slices"

	"github.com/dunlin-cache/dunlin/internal/glob"
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

// Topics returns how many channels or shard channels have subscribers.
func (b *Broker) Topics(kind pubsub.Kind) (n int) {
	for i := range b.stripes {
		s := &b.stripes[i]
		s.mu.Lock()
		n += len(s.topics[kind])
		s.mu.Unlock()
	}
	return n
}

// Names returns the channels or shard channels that have subscribers, match the pattern unless that is
// nil, and for which keep holds. It returns false when they have more than limit bytes.
func (b *Broker) Names(kind pubsub.Kind, pattern *glob.Pattern, keep func(name string) bool, limit int) (names []string, ok bool) {
	for i := range b.stripes {
		s := &b.stripes[i]
		s.mu.Lock()
		for name := range s.topics[kind] {
			if (pattern == nil || pattern.Match([]byte(name))) && keep(name) {
				names = append(names, name)
				limit -= len(name) + nameMemory
			}
		}
		s.mu.Unlock()
		if limit < 0 {
			return nil, false
		}
	}
	slices.Sort(names)
	return names, true
}

// nameMemory is what a name takes in a list and in a reply beside its bytes, at most.
const nameMemory = 32

// Published returns how many messages were published, whether or not anybody listened.
func (b *Broker) Published() uint64 { return b.published.Load() }

// Lost returns how many messages found the queue of a receiver full. One that several receivers have lost
// counts for each.
func (b *Broker) Lost() uint64 { return b.lost.Load() }
