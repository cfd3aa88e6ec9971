package proxy

import (
	"bytes"
	"errors"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// A session's subscriptions. Each name of a SUBSCRIBE is a turn of its own, because it has an answer of its
// own. Messages go into the output between replies. They wait while an answer to a subscription is due, and
// while a large reply is in the output in part.

// showSteps is how many steps a worker shows messages in one turn.
const showSteps = 1024

// errSlowSubscriber closes a session that does not read its messages.
var errSlowSubscriber = errors.New("subscriber does not read its messages")

var pingRequest = resp.AppendRequest(nil, []byte("PING"))

// subscriber is what a session keeps once it has subscribed to something.
type subscriber struct {
	*pubsub.Subscriber
	due  uint64 // the turn behind the last one of a subscription
	held []byte // messages that wait
}

// isDue reports whether the answer to a subscription is due.
func (s *client) isDue() bool { return s.topics != nil && s.head < s.topics.due }

// subscribe starts SUBSCRIBE, UNSUBSCRIBE and their like.
func (s *client) subscribe(cmd *command.Command, args [][]byte) bool {
	kind, more, _ := session.SubscriptionOf(cmd.ID)
	names := args[1:]
	if r := s.reach(ring.PubSubLevel, errPubSubLevel); r != reached {
		return r == below
	}
	if s.topics == nil {
		s.topics = &subscriber{Subscriber: pubsub.NewSubscriber(s)}
	}
	if more {
		if refusal := s.topics.Refuse(kind, names); refusal != "" {
			s.answer(wire(refusal))
			return true
		}
		if !s.conn.TrySetOther(s.otherBytes() + pubsub.Cost(names)) {
			s.answer(errNotParked)
			return true
		}
	} else if refusal := pubsub.RefuseEnd(names); refusal != "" {
		s.answer(wire(refusal))
		return true
	}
	s.w.stats.Commands[cmd.ID]++
	c := &changing{s: s, kind: kind, more: more, names: names, all: len(names) == 0}
	if !c.change() && c.keepNames() {
		s.long = c
		c.goOn()
	}
	return true
}

// namesAtOnce is how many topics a command subscribes to, or unsubscribes from, in one turn.
const namesAtOnce = 256

// changing is a command that subscribes or unsubscribes, in turns if there are many topics.
type changing struct {
	s      *client
	kind   pubsub.Kind
	more   bool
	names  [][]byte // that are left
	all    bool     // UNSUBSCRIBE of whatever there is
	begun  bool     // all: there was some
	size   int      // of names, charged to the session
	queued bool     // it waits for its turn
}

// change changes some topics. It reports whether these were the last.
func (c *changing) change() (done bool) {
	s := c.s
	if c.all {
		done = s.unsubscribeAll(c.kind, c.begun)
		c.begun = true
	} else {
		now := c.names[:min(len(c.names), namesAtOnce)]
		c.names = c.names[len(now):]
		for _, name := range now {
			s.changeTopic(c.kind, name, c.more)
		}
		done = len(c.names) == 0
	}
	s.topics.due = s.tail
	s.state.SetTopics(s.topics.Wanted())
	s.chargeOther()
	return done
}

// unsubscribeAll ends some subscriptions of a kind, and reports whether none is left. If there was none, it
// answers that, unless begun.
func (s *client) unsubscribeAll(kind pubsub.Kind, begun bool) (done bool) {
	left := namesAtOnce
	for name := range s.topics.Names(kind) {
		s.changeTopic(kind, []byte(name), false)
		if left--; left == 0 {
			return s.topics.Wanted()[kind] == 0
		}
	}
	if left == namesAtOnce && !begun {
		s.changeTopic(kind, nil, false)
	}
	return true
}

// keepNames copies the names that are left. Without memory for them the session ends, and it returns false.
func (c *changing) keepNames() (ok bool) {
	for _, name := range c.names {
		c.size += len(name) + sliceSize
	}
	if !c.s.Keep(c.size) {
		c.s.conn.Close(netloop.ErrNoMemory)
		return false
	}
	c.names = slices.Clone(c.names)
	for i, name := range c.names {
		c.names[i] = bytes.Clone(name)
	}
	return true
}

// sliceSize is what a copied name takes beside its bytes.
const sliceSize = 24

func (c *changing) goOn() {
	if !c.queued && c.s.long == c {
		c.queued = true
		c.s.w.turns.take(c.s.w.loop, c)
	}
}

func (c *changing) turn() {
	switch c.queued = false; {
	case c.s.long != c: // the client has gone
	case c.change():
		c.end()
		c.s.progress()
	default:
		c.goOn()
	}
}

func (c *changing) take([]byte) order.Body { panic("BUG: a subscription is not forwarded") }

func (c *changing) client() *client { return c.s }

func (c *changing) end() {
	c.s.long = nil
	c.s.Keep(-c.size)
	c.size = 0
}

// changeTopic subscribes to a topic or ends that. name is nil if there is none to end.
func (s *client) changeTopic(kind pubsub.Kind, name []byte, more bool) {
	changes := false
	if more {
		changes = s.topics.Want(kind, name)
	} else if name != nil {
		changes = s.topics.Unwant(kind, name)
	}
	c := change{s: s, seq: s.tail, more: more, count: s.topics.Count(kind)}
	s.muting = false // CLIENT REPLY suppresses replies, not pushes
	s.issue()
	if changes && more {
		s.w.listening.board.Show(s.topics.Subscriber, kind, name) // before anybody counts it
	}
	if changes {
		s.w.listening.change(kind, string(name), more, c)
		return
	}
	s.reply(c.seq, s.appendAnswer(s.w.scratch[:0], kind, name, c))
}

func (s *client) appendAnswer(dst []byte, kind pubsub.Kind, name []byte, c change) []byte {
	answer := pubsub.AppendUnsubscribed
	if c.more {
		answer = pubsub.AppendSubscribed
	}
	return answer(dst, s.state.Version, kind, name, c.count)
}

// subscribed answers a change that the topic's brokers know of.
func (s *client) subscribed(t *topic, c change) {
	if t.kind == pubsub.Prefix {
		s.followed(c.seq)
		return
	}
	name := []byte(t.name)
	if !c.more && !s.topics.Wants(t.kind, name) { // nor again
		s.w.listening.board.Hide(s.topics.Subscriber, t.kind, name)
	}
	s.reply(c.seq, s.appendAnswer(nil, t.kind, name, c))
}

// notSubscribed answers a change that a broker has refused.
func (s *client) notSubscribed(t *topic, c change) {
	if t.kind == pubsub.Prefix {
		s.notFollowed(c.seq)
		return
	}
	name := []byte(t.name)
	if c.more && s.topics.Unwant(t.kind, name) {
		s.state.SetTopics(s.topics.Wanted())
		s.w.listening.change(t.kind, t.name, false, change{})
		s.w.listening.board.Hide(s.topics.Subscriber, t.kind, name)
		before := len(s.topics.held)
		s.topics.held = pubsub.DropMessages(s.topics.held, t.kind, name) // of nodes that have taken it
		s.gather(len(s.topics.held) - before)
	}
	s.reply(c.seq, errTooManyTopics)
}

// leaveTopics ends all subscriptions, without answers.
func (s *client) leaveTopics() {
	if s.topics == nil {
		return
	}
	s.topics.Mute()
	s.gather(-len(s.topics.held))
	l := s.w.listening
	l.leaving = append(l.leaving, s.topics.Subscriber)
	s.topics = nil
	if len(l.leaving) == 1 {
		l.leave()
	}
}

// leave ends subscriptions of those who have gone, for a turn.
func (l *listening) leave() {
	for left := namesAtOnce; len(l.leaving) > 0; l.leaving = l.leaving[1:] {
		s := l.leaving[0]
		for kind := range pubsub.Kinds {
			for name := range s.All(kind) {
				if left--; left < 0 {
					l.w.loop.Post(l.leave)
					return
				}
				l.leaveOne(s, kind, name)
			}
		}
		l.leaving[0] = nil
	}
	l.leaving = nil
}

// leaveOne ends a subscription without an answer.
func (l *listening) leaveOne(s *pubsub.Subscriber, kind pubsub.Kind, name string) {
	if s.Unwant(kind, []byte(name)) {
		l.change(kind, name, false, change{})
	}
	l.board.Hide(s, kind, []byte(name))
}

// Push sends a message, or keeps it until the reply that is due is in the output.
func (s *client) Push(frame []byte) {
	if s.isClosed() || s.topics == nil {
		return
	}
	s.w.stats.Pushed++
	if s.isDue() || s.isCutting() {
		if s.gather(len(frame)) {
			s.topics.held = pubsub.AppendFrame(s.topics.held, s.state.Version, frame)
		}
	} else if out, ok := s.conn.Grow(s.conn.Out(), len(frame)); ok {
		s.conn.SetOut(pubsub.AppendFrame(out, s.state.Version, frame))
	}
	if s.topics.IsSlow(s.w.proxy.subscribers.Load(), s.conn.Queued()+len(s.topics.held), s.w.loop.Now()) {
		s.w.stats.SlowSubscribers++
		s.conn.Close(errSlowSubscriber)
	}
}

// isCutting reports whether a large reply is in the output in part: what comes next must be more of it.
func (s *client) isCutting() bool {
	if s.passing {
		return true
	}
	for _, f := range s.fetches {
		if f.seq == s.head && f.part == nil && f.asked > 0 {
			return true
		}
	}
	return false
}

// pushHeld sends the messages that have waited for replies.
func (s *client) pushHeld() {
	held := s.topics.held
	if len(held) == 0 || s.isDue() || s.isCutting() || s.isClosed() {
		return
	}
	s.topics.held = nil
	if out, ok := s.conn.Grow(s.conn.Out(), len(held)); ok {
		s.conn.SetOut(append(out, held...))
		s.gather(-len(held))
	}
}

// heard takes what a node has pushed. It reports false if that makes no sense.
func (l *listening) heard(n *order.Node, push []byte) (ok bool) {
	if lost, ok := member.ParseLost(push); ok {
		l.w.stats.LostMessages += lost
		return true
	}
	m, ok := pubsub.ParseMessage(push)
	if !ok {
		g, ok := member.ParseGone(push)
		switch {
		case ok && g.Flushed:
			l.w.flushed(n)
		case ok:
			l.w.gone(g)
		}
		return ok
	}
	l.w.stats.Heard++
	if l.board.Busy() {
		l.board.Join(m.Clone())
		return true
	}
	if l.board.Begin(m); l.board.Members() > showSteps || l.showTurn() {
		l.board.Own()
		l.w.loop.Post(l.showOn)
	}
	return true
}

// showTurn shows the message for a turn, and reports whether that was not enough.
func (l *listening) showTurn() (more bool) {
	l.board.Go(showSteps)
	return l.board.Busy()
}

// showOn goes on with a message. Behind it, those that wait on the pipes follow.
func (l *listening) showOn() {
	if l.showTurn() {
		l.w.loop.Post(l.showOn)
		return
	}
	for _, c := range l.paused {
		c.Resume()
		c.Wake()
	}
	clear(l.paused)
	l.paused = l.paused[:0]
}

// waits reports whether what a pipe brings must wait, and has it offered again then. Messages that join the one
// that is being shown need not.
func (l *listening) waits(p *pipe, c *netloop.Conn, brought []byte) bool {
	if p.Lane.Kind != listenLane.Kind || !l.board.Busy() {
		return false
	}
	if m, ok := pubsub.ParseMessage(brought); ok && l.board.Joins(m) {
		return false
	}
	c.Pause()
	l.paused = append(l.paused, c)
	return true
}

// keepHeard asks the brokers for a sign of life: a connection that is cut without a word would lose all that
// is published.
func (l *listening) keepHeard() {
	if l.subscriptions == 0 {
		return
	}
	for _, n := range l.w.order.Nodes() {
		if p := n.Pipe(listenLane); p.IsOpen() && p.Inflight() == 0 {
			l.w.order.Tell(p, pingRequest)
		}
	}
	l.w.act()
}
