package pubsub

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/glob"
)

// MaxTopics is how many topics one connection can subscribe to: its end costs its loop a step for each.
const MaxTopics = 4096

// The texts of refusals. Redis has no such limits.
const (
	ErrTooMany = "ERR too many subscriptions: a connection can have 4096"
	ErrLong    = "ERR the patterns are too long: those of one command can have 262144 bytes"
	ErrName    = "ERR the name of a channel or a pattern is too long: 4096 bytes are allowed"
	ErrMessage = "ERR the message is too long: 1048576 bytes are allowed, with the channel's name"
)

// topicCost is what a subscription takes in the Go heap beside its name, in bytes, at most: the entry of
// the subscriber's map, the subscription, and its share of the topic here and at the broker. The name
// is there four times.
const topicCost = 384

func cost(name []byte) int { return topicCost + 4*len(name) }

// Cost returns what subscriptions to the names take at most.
func Cost(names [][]byte) (bytes int) {
	for _, name := range names {
		bytes += cost(name)
	}
	return bytes
}

// maxPatternBytes is how many bytes the patterns of one command can have, which are compiled in one turn.
const maxPatternBytes = 256 << 10

// Sink is the connection behind a Subscriber.
type Sink interface {
	// Push sends a frame of RESP3, in the connection's protocol version. The frame is valid during the
	// call.
	Push(frame []byte)
}

// Subscriber is one connection, and what it has asked for. The zero value has asked for nothing.
type Subscriber struct {
	sink   Sink // nil: it has gone
	topics [Kinds]map[string]*subscription
	wanted [Kinds]int
	bytes  int
	slow   time.Duration // since when it has been slow; 0: it is not
}

// subscription is one topic of one subscriber.
type subscription struct {
	sub    *Subscriber
	at     int  // in the topic's members; -1: not shown
	wanted bool // its client has it
}

// NewSubscriber returns a subscriber that wants nothing.
func NewSubscriber(sink Sink) *Subscriber { return &Subscriber{sink: sink} }

// Mute ends what the sink is shown: its connection has gone, or has given up its topics, which are then
// unwanted and hidden in turns.
func (s *Subscriber) Mute() { s.sink = nil }

// IsMuted reports whether Mute was called.
func (s *Subscriber) IsMuted() bool { return s.sink == nil }

// Refuse returns why the names cannot be wanted beside those that are, "" if they can.
func (s *Subscriber) Refuse(kind Kind, names [][]byte) string {
	if s.wanted[Channel]+s.wanted[Pattern]+s.wanted[Shard]+len(names) > MaxTopics {
		return ErrTooMany
	}
	bytes := 0
	for _, name := range names {
		if len(name) > MaxName {
			return ErrName
		}
		if kind == Pattern {
			if bytes += len(name); bytes > maxPatternBytes {
				return ErrLong
			}
			if _, err := glob.Compile(name); err != nil {
				return err.Error()
			}
		}
	}
	return ""
}

// RefuseEnd returns why the names cannot be unwanted, "" if they can.
func RefuseEnd(names [][]byte) string {
	switch {
	case len(names) > MaxTopics:
		return ErrTooMany
	case slices.ContainsFunc(names, func(name []byte) bool { return len(name) > MaxName }):
		return ErrName
	}
	return ""
}

// Want adds a topic, and reports whether it is new. It copies name.
func (s *Subscriber) Want(kind Kind, name []byte) (added bool) {
	t := s.topics[kind][string(name)]
	if t == nil {
		if s.topics[kind] == nil {
			s.topics[kind] = make(map[string]*subscription)
		}
		t = &subscription{sub: s, at: -1}
		s.topics[kind][string(name)] = t
		s.bytes += cost(name)
	}
	if t.wanted {
		return false
	}
	t.wanted = true
	s.wanted[kind]++
	return true
}

// Unwant removes a topic, and reports whether it was there. It is shown until Board.Hide.
func (s *Subscriber) Unwant(kind Kind, name []byte) (removed bool) {
	t := s.topics[kind][string(name)]
	if t == nil || !t.wanted {
		return false
	}
	t.wanted = false
	s.wanted[kind]--
	s.forget(kind, string(name), t)
	return true
}

// forget drops a subscription that is neither wanted nor shown.
func (s *Subscriber) forget(kind Kind, name string, t *subscription) {
	if !t.wanted && t.at < 0 {
		delete(s.topics[kind], name)
		s.bytes -= cost([]byte(name))
	}
}

// Wants reports whether the client has a topic.
func (s *Subscriber) Wants(kind Kind, name []byte) bool {
	t := s.topics[kind][string(name)]
	return t != nil && t.wanted
}

// Count returns how many topics count with those of a kind in the answers to subscriptions.
func (s *Subscriber) Count(kind Kind) int {
	if kind == Shard {
		return s.wanted[Shard]
	}
	return s.wanted[Channel] + s.wanted[Pattern]
}

// Wanted returns how many topics of each kind the client has.
func (s *Subscriber) Wanted() [Kinds]int { return s.wanted }

// Bytes returns what the subscriptions take in the Go heap.
func (s *Subscriber) Bytes() int { return s.bytes }

// Names yields the topics of a kind that the client has.
func (s *Subscriber) Names(kind Kind) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, t := range maps.All(s.topics[kind]) {
			if t.wanted && !yield(name) {
				return
			}
		}
	}
}

// All yields the topics of a kind that the client has, or is still shown.
func (s *Subscriber) All(kind Kind) iter.Seq[string] { return maps.Keys(s.topics[kind]) }

// Limits are what a subscriber may leave unread, as in Redis's client-output-buffer-limit: Hard bytes at any
// time, Soft bytes for SoftTime. 0 bytes are no limit.
type Limits struct {
	Hard, Soft int
	SoftTime   time.Duration
}

// IsSlow reports whether a subscriber that has left so many bytes unread must be closed. now is on a
// monotonic clock.
func (s *Subscriber) IsSlow(limits *Limits, unread int, now time.Duration) bool {
	switch {
	case limits.Hard > 0 && unread > limits.Hard:
		return true
	case limits.Soft == 0 || unread <= limits.Soft:
		s.slow = 0
		return false
	case s.slow == 0:
		s.slow = now
	}
	return now-s.slow >= limits.SoftTime
}
