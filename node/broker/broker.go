package broker

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/glob"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
)

const (
	stripes = 64
	// MaxPatterns is how many different patterns there can be: each message is compared with all.
	MaxPatterns = 4096
	// MaxCost is how many comparisons of bytes a message may cost with all patterns. With the costliest
	// patterns that were found, that took 0.4 ms (BenchmarkCostlyPatterns, AMD EPYC beside other work).
	// Patterns are refused that would make messages on names of usualName bytes cost more.
	MaxCost   = 768 << 10
	usualName = 256
	// patternCost is how many comparisons take as long as to look at a pattern.
	patternCost = 64
)

// Broker is that of one node. Its methods can be called from any goroutine.
type Broker struct {
	seed     maphash.Seed
	room     room
	stripes  [stripes]stripe
	patterns patterns
	standIns standIns

	notified  atomic.Int64  // channels of keyspace notifications with subscribers
	published atomic.Uint64 // calls of Publish
	lost      atomic.Uint64 // messages that found the queue of a receiver full
	keeping   atomic.Int64  // bytes of the backlogs
}

// stripe has the channels and shard channels whose names hash to it.
type stripe struct {
	mu      sync.Mutex
	topics  [pubsub.Kinds]map[string][]interest
	number  uint64 // of the last message: published, or handed over to be kept
	backlog []kept // in the order of publishing
	overrun uint64 // the newest epoch of what the backlog had no room for
}

// interest is how many of a receiver's subscribers a topic has.
type interest struct {
	receiver *Receiver
	count    int
	ahead    bool // nothing is queued yet
	// since is the epoch since which this node had the channel when that began. 0: that does not
	// matter. Of a stand-in it is that of the table that gives the channel to this node.
	since uint64
	// doubtful says that a message of the owner before was queued for a receiver that was live here earlier, and has
	// said nothing since: its connection may be half open, see missed.go.
	doubtful bool
}

// isMark reports whether this is a stand-in whose receiver has come: it counts no more, and only
// says that the owner before has told of the receiver.
func (in *interest) isMark() bool { return in.count == 0 }

// Mode says what a receiver that listens is to get.
type Mode uint8

const (
	Live   Mode = iota // what is published from now on
	Ahead              // nothing yet, but its subscribers count: the channel is about to move here
	Follow             // also what the backlog has, because the channel has moved here
)

// patterns are those of all receivers.
type patterns struct {
	mu   sync.RWMutex
	list []*pattern
	size atomic.Int64   // of list
	at   map[string]int // in list, by text
	// A message costs so many comparisons, and more for each byte of its channel's name.
	fixed, perByte int
}

// pattern has interests that are replaced, and never changed.
type pattern struct {
	text      string
	glob      *glob.Pattern
	interests []interest
}

// New returns a broker. charge takes memory for messages, and reports whether there is so much; refund
// returns it.
func New(charge func(n int64) bool, refund func(n int64)) *Broker {
	b := &Broker{seed: maphash.MakeSeed(), room: room{charge: charge, refund: refund}}
	b.patterns.at = make(map[string]int)
	return b
}

func (b *Broker) stripeOf(name []byte) (int, *stripe) {
	i := int(maphash.Bytes(b.seed, name) % stripes)
	return i, &b.stripes[i]
}

// Listen says that a receiver has so many subscribers of a topic. It returns false if there are too many
// different patterns, or messages would cost too much with them.
func (b *Broker) Listen(rc *Receiver, kind pubsub.Kind, name []byte, count int) (ok bool) {
	if kind == pubsub.Pattern {
		if !b.patterns.listen(rc, name, count) {
			return false
		}
		rc.note(kind, name, count)
		return true
	}
	_, s := b.stripeOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if count == 0 {
		b.endLocked(s, rc, kind, name)
	}
	b.count(kind, name, s.listen(kind, name, interest{receiver: rc, count: count}))
	rc.note(kind, name, count)
	return true
}

// ListenAs is Listen for a channel or shard channel that is moving from one node to another. epoch is the
// one since which this node has had the channel. It returns false if the backlog has not kept all that was
// published since.
func (b *Broker) ListenAs(mode Mode, rc *Receiver, kind pubsub.Kind, name []byte, count int, epoch uint64) (whole bool) {
	_, s := b.stripeOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	whole = true
	if mode == Follow {
		whole = s.replay(rc, kind, name, epoch)
	}
	b.count(kind, name, s.listen(kind, name, interest{receiver: rc, count: count, ahead: mode == Ahead, since: epoch}))
	rc.note(kind, name, count)
	return whole
}

// count notes that there is one topic more or fewer, if it is a channel of keyspace notifications.
func (b *Broker) count(kind pubsub.Kind, name []byte, by int64) {
	if by != 0 && isEverywhere(kind, string(name)) {
		b.notified.Add(by)
	}
}

// WantsEvents reports whether anybody may listen to keyspace notifications.
func (b *Broker) WantsEvents() bool { return b.notified.Load() > 0 || b.patterns.size.Load() > 0 }

// note keeps what the receiver listens to, for Leave.
func (rc *Receiver) note(kind pubsub.Kind, name []byte, count int) {
	switch {
	case count == 0:
		delete(rc.topics[kind], string(name))
	case rc.topics[kind] == nil:
		rc.topics[kind] = map[string]int{string(name): count}
	default:
		rc.topics[kind][string(name)] = count
	}
}

// listen returns by how many the topics become more.
func (s *stripe) listen(kind pubsub.Kind, name []byte, in interest) (by int64) {
	old := s.topics[kind][string(name)]
	before := len(old)
	list := withInterest(replaceStandIn(old, in.receiver), in)
	switch {
	case len(list) > 0 && s.topics[kind] == nil:
		s.topics[kind] = map[string][]interest{string(name): list}
		return 1
	case len(list) > 0:
		s.topics[kind][string(name)] = list
		return int64(1 - min(before, 1))
	case before > 0:
		delete(s.topics[kind], string(name))
		return -1
	}
	return 0
}

// withInterest returns the list with a receiver's interest, in the memory of the list.
func withInterest(list []interest, in interest) []interest {
	i := slices.IndexFunc(list, func(other interest) bool { return other.receiver == in.receiver })
	switch {
	case i < 0 && in.count > 0:
		return append(list, in)
	case i >= 0 && in.count > 0:
		if !list[i].ahead {
			in.since = list[i].since
		}
		list[i] = in
	case i >= 0:
		return slices.Delete(list, i, i+1)
	}
	return list
}

func (p *patterns) listen(rc *Receiver, name []byte, count int) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, known := p.at[string(name)]
	if !known {
		return count == 0 || p.add(rc, name, count)
	}
	of := p.list[i]
	of.interests = withInterest(slices.Clone(of.interests), interest{receiver: rc, count: count})
	if len(of.interests) > 0 {
		return true
	}
	last := len(p.list) - 1
	p.list[i] = p.list[last]
	p.at[p.list[i].text] = i
	p.charge(of.glob, -1)
	p.list[last] = nil
	p.list = p.list[:last]
	p.size.Add(-1)
	delete(p.at, of.text)
	return true
}

func (p *patterns) add(rc *Receiver, name []byte, count int) (ok bool) {
	compiled, err := glob.Compile(name)
	if err != nil || len(p.list) == MaxPatterns {
		return false
	}
	p.charge(compiled, 1)
	if p.cost(usualName) > MaxCost {
		p.charge(compiled, -1)
		return false
	}
	of := &pattern{text: string(name), glob: compiled, interests: []interest{{receiver: rc, count: count}}}
	p.at[of.text] = len(p.list)
	p.list = append(p.list, of)
	p.size.Add(1)
	return true
}

// charge adds what matching a pattern costs, or takes it back.
func (p *patterns) charge(g *glob.Pattern, by int) {
	fixed := g.Comparisons(0)
	p.fixed += by * (fixed + patternCost)
	p.perByte += by * (g.Comparisons(1) - fixed)
}

// cost returns what a message costs at most on a channel whose name has so many bytes.
func (p *patterns) cost(name int) int { return p.fixed + p.perByte*name }

// Cost returns how many comparisons of bytes it costs at most to publish on a channel.
func (b *Broker) Cost(kind pubsub.Kind, channel []byte) int {
	if kind != pubsub.Channel {
		return 0
	}
	b.patterns.mu.RLock()
	defer b.patterns.mu.RUnlock()
	return b.patterns.cost(len(channel))
}

// Leave ends what the receiver listens to, and its queue. Listen must not be called any more. It takes a
// while for many topics.
func (b *Broker) Leave(rc *Receiver) {
	rc.Close()
	for kind, names := range rc.topics {
		for name := range names {
			b.Listen(rc, pubsub.Kind(kind), []byte(name), 0)
		}
	}
}

// Publish queues a message for all who listen to its channel, and returns how many subscribers these
// have. It returns false if there is no memory for the message. Memory is taken before the stripe's lock:
// the caller may have the lock of a shard, and making room takes those of others. keep is the epoch since
// which this node has had the channel, if that is not long; then the backlog keeps the message. 0: it does
// not.
func (b *Broker) Publish(kind pubsub.Kind, channel, payload []byte, keep uint64) (subscribers int, ok bool) {
	b.published.Add(1)
	at, s := b.stripeOf(channel)
	var scratch [8][]interest
	matching := scratch[:0]
	if kind == pubsub.Channel {
		matching = b.patterns.matching(matching, channel)
	}
	if len(matching) == 0 && keep == 0 && !s.has(kind, channel) {
		return 0, true
	}
	m := b.newMessage(kind, channel, payload)
	if m == nil {
		return 0, false
	}
	defer m.Release()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	subscribers = m.queueFor(s.topics[kind][string(channel)], at, s.number)
	if keep > 0 {
		b.keep(s, at, m, matching, keep)
	}
	for _, interests := range matching {
		subscribers += m.queueFor(interests, at, s.number)
	}
	return subscribers, true
}

// has reports whether anybody listens to a channel by its name.
func (s *stripe) has(kind pubsub.Kind, channel []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.topics[kind][string(channel)]) > 0
}

// matching appends who listens to each pattern that matches a channel.
func (p *patterns) matching(dst [][]interest, channel []byte) [][]interest {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, of := range p.list {
		if of.glob.Match(channel) {
			dst = append(dst, of.interests)
		}
	}
	return dst
}

// queueFor queues the message for the receivers that do not have it, and returns how many subscribers
// they have. number is the message's in its stripe, whose lock is held.
func (m *Message) queueFor(list []interest, stripe int, number uint64) (subscribers int) {
	for i := range list {
		rc := list[i].receiver
		if rc.closed.Load() {
			continue
		}
		subscribers += list[i].count
		if !list[i].ahead && rc.marks[stripe] != number {
			rc.marks[stripe] = number
			rc.push(m)
		}
	}
	return subscribers
}
