package pubsub

import "github.com/dunlin-cache/dunlin/internal/glob"

// Board knows who on one loop is shown what.
type Board struct {
	topics   [Kinds]map[string]*topic
	patterns []*topic // nil: a hole, which a pattern has left
	holes    int      // in patterns
	now      showing
	scratch  []byte // the frame of a pattern
}

// topic is what some subscribers of the loop are shown.
type topic struct {
	kind    Kind
	name    string
	pattern *glob.Pattern
	members []*subscription // nil: a hole, which a subscriber has left
	holes   int
	place   int  // of a pattern, in the Board's
	busy    bool // a message is shown to them now
}

// showing is a message while it is shown.
type showing struct {
	message Message
	active  bool
	more    []Message // of its channel, which each member is shown behind it
	bytes   int       // of their frames
	pattern int       // the next one to be looked at
	until   int       // where the patterns end that there were when it began
	topic   *topic    // whose members are shown it now; nil: none
	frame   []byte    // that they are shown
	at, end int       // in its members
}

// Size returns how many subscribers of the loop a topic has.
func (b *Board) Size(kind Kind, name []byte) int {
	if t := b.topics[kind][string(name)]; t != nil {
		return len(t.members) - t.holes
	}
	return 0
}

// Show has the subscriber be shown the messages of a topic from now on. It returns how many are.
func (b *Board) Show(s *Subscriber, kind Kind, name []byte) (size int) {
	u := s.topics[kind][string(name)]
	if u == nil || u.at >= 0 {
		return b.Size(kind, name)
	}
	t := b.topics[kind][string(name)]
	if t == nil {
		t = b.newTopic(kind, string(name))
	}
	u.at = len(t.members)
	t.members = append(t.members, u)
	return len(t.members) - t.holes
}

func (b *Board) newTopic(kind Kind, name string) *topic {
	t := &topic{kind: kind, name: name}
	if b.topics[kind] == nil {
		b.topics[kind] = make(map[string]*topic)
	}
	b.topics[kind][name] = t
	if kind == Pattern {
		t.pattern, _ = glob.Compile([]byte(name)) // Refuse has tried it
		t.place = len(b.patterns)
		b.patterns = append(b.patterns, t)
	}
	return t
}

// Hide ends Show. It returns how many subscribers the topic still has.
func (b *Board) Hide(s *Subscriber, kind Kind, name []byte) (size int) {
	u, t := s.topics[kind][string(name)], b.topics[kind][string(name)]
	if u == nil || u.at < 0 {
		return b.Size(kind, name)
	}
	t.members[u.at] = nil
	t.holes++
	u.at = -1
	s.forget(kind, t.name, u)
	switch left := len(t.members) - t.holes; {
	case left == 0:
		b.drop(t)
		return 0
	default:
		t.compact()
		return left
	}
}

func (b *Board) drop(t *topic) {
	delete(b.topics[t.kind], t.name)
	if t.kind == Pattern {
		b.patterns[t.place] = nil
		b.holes++
		b.compact()
	}
}

// compact closes the holes when they are most of the patterns, unless a message goes through them.
func (b *Board) compact() {
	if b.Busy() || b.holes <= len(b.patterns)/2 {
		return
	}
	kept := b.patterns[:0]
	for _, t := range b.patterns {
		if t != nil {
			t.place = len(kept)
			kept = append(kept, t)
		}
	}
	clear(b.patterns[len(kept):])
	b.patterns, b.holes = kept, 0
}

// compact closes the holes when they are most of the list, unless a message goes through it.
func (t *topic) compact() {
	if t.busy || t.holes <= len(t.members)/2 {
		return
	}
	kept := t.members[:0]
	for _, u := range t.members {
		if u != nil {
			u.at = len(kept)
			kept = append(kept, u)
		}
	}
	clear(t.members[len(kept):])
	t.members, t.holes = kept, 0
}

// Own copies the message that is being shown, which may change from now on.
func (b *Board) Own() {
	n := &b.now
	if !n.active {
		return
	}
	exact := n.topic != nil && n.topic.kind != Pattern
	n.message = n.message.Clone()
	if exact {
		n.frame = n.message.Frame
	}
}

// With many members, a write to each for each message would take most of the time. So messages of a channel that
// follow one another are shown together: each member gets all of them at once.
const (
	maxJoined   = 63
	joinedBytes = 64 << 10 // of frames, beside the first message's
)

// Joins reports whether a message can be shown together with the one that has begun: it is of the same channel,
// nobody has been shown anything yet, nobody has become a member since, and no pattern may get the first message
// before this one.
func (b *Board) Joins(m Message) bool {
	n := &b.now
	return n.topic != nil && n.at == 0 && n.end == len(n.topic.members) &&
		n.topic.kind == m.Kind && n.pattern == n.until &&
		len(n.more) < maxJoined && n.bytes+len(m.Frame) <= joinedBytes && string(m.Channel) == n.topic.name
}

// Join shows a message that Joins together with the one that has begun. It must not change until Go has finished.
func (b *Board) Join(m Message) {
	b.now.more = append(b.now.more, m)
	b.now.bytes += len(m.Frame)
}

// Members returns how many are to be shown the message for its channel.
func (b *Board) Members() int { return b.now.end - b.now.at }

// Busy reports whether a message is being shown.
func (b *Board) Busy() bool { return b.now.active }

// Begin begins to show a message, which must not change until Go has finished.
func (b *Board) Begin(m Message) {
	n := &b.now
	*n = showing{message: m, active: true, more: n.more[:0]}
	if m.Kind == Channel {
		n.until = len(b.patterns)
	}
	if t := b.topics[m.Kind][string(m.Channel)]; t != nil {
		n.start(t, m.Frame)
	}
}

func (n *showing) start(t *topic, frame []byte) {
	t.busy = true
	n.topic, n.frame, n.at, n.end = t, frame, 0, len(t.members)
}

// stepBytes of a frame take about as long to copy as it takes to reach a subscriber.
const stepBytes = 4 << 10

// Go shows the message to more subscribers, for so many steps. It returns how many steps are left, which
// is more than 0 only if the message was shown to all.
func (b *Board) Go(steps int) (left int) {
	n := &b.now
	for steps > 0 {
		switch {
		case n.topic != nil && n.at < n.end:
			if u := n.topic.members[n.at]; u != nil && u.sub.sink != nil {
				u.sub.sink.Push(n.frame)
				steps -= len(n.frame) / stepBytes
				for i := range n.more {
					if u.sub.sink != nil { // the message before may have closed it
						u.sub.sink.Push(n.more[i].Frame)
					}
				}
				steps -= len(n.more) + n.bytes/stepBytes
			}
			n.at++
			steps--
		case n.topic != nil:
			n.topic.busy = false
			n.topic.compact()
			n.topic = nil
		case n.pattern < n.until:
			t := b.patterns[n.pattern]
			if n.pattern++; t == nil {
				steps--
				continue
			}
			steps -= t.pattern.Cost(n.message.Channel)
			if t.pattern.Match(n.message.Channel) {
				b.scratch = appendPatternMessage(b.scratch[:0], t.name, &n.message)
				n.start(t, b.scratch)
			}
		default:
			clear(n.more)
			*n = showing{more: n.more[:0]}
			b.compact()
			if cap(b.scratch) > keepScratch {
				b.scratch = nil
			}
			return steps
		}
	}
	return 0
}

// keepScratch is the largest buffer for frames of patterns that a Board keeps, in bytes.
const keepScratch = 64 << 10
