package node

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// A client of a node hears what is published in the whole cluster. While the node is alone, its broker has all
// channels. Otherwise the node's relay listens at the brokers of all nodes, as a proxy does for its sessions, and
// shows the client what comes:
//
//	SUBSCRIBE c ─▶ Relay.Change ═ DUNLIN LISTEN ═▶ owner of c        PUBLISH c, at any node ─▶ owner of c
//	   answered ◀── done ◀══════════════════════════ noted              the client ◀── relay ◀══════┘
//
// A subscription is answered when its brokers know of it. What comes before waits for the answer.

// Relay listens at all nodes for clients of this one. Its methods are called on the loop that they name, but for a
// Relay's own start and end. See proxy.Relay.
type Relay interface {
	// Change has a subscriber be shown a topic that it wants, or ends that if it does not want it any more. It
	// calls done later, on the loop, when the brokers know, or when one of them has refused it: then the subscriber
	// does not want it. It does not if the subscriber is muted by then.
	Change(loop int, s *pubsub.Subscriber, kind pubsub.Kind, name []byte, more bool, done func(refused bool))
	// Leave ends a subscription without an answer.
	Leave(loop int, s *pubsub.Subscriber, kind pubsub.Kind, name []byte)
	// Counts returns the topics for which messages may be missing, and the messages that had no room on their way.
	Counts(loop int) (gaps, lost uint64)
}

// SetRelay gives the node its relay, before its first table.
func (n *Node) SetRelay(r Relay) { n.relays.Store(&r) }

// relay returns the node's relay, nil if there is none.
func (n *Node) relay() Relay {
	if r := n.relays.Load(); r != nil {
		return *r
	}
	return nil
}

// relays reports whether a relay can listen for clients of this node.
func (r *request) relays() bool { return r.node.relay() != nil && r.Level() >= ring.PubSubLevel }

// subscriber is what a client has once it has subscribed to something.
type subscriber struct {
	*pubsub.Subscriber
	relayed bool   // the relay shows it channels and patterns; otherwise this node's broker does
	due     int    // answers behind which messages must come
	held    []byte // messages that wait for these
	naming  int    // bytes of the names of a command that waits for brokers, or is carried out in turns
	asks    bool   // a command waits for brokers
}

func newSubscriber(cn *conn) *subscriber { return &subscriber{Subscriber: pubsub.NewSubscriber(cn)} }

// isRelayed reports whether the relay shows the subscriber topics of a kind.
func (s *subscriber) isRelayed(kind pubsub.Kind) bool { return s.relayed && kind != pubsub.Shard }

// wantsAll reports whether the client subscribes to channels or patterns of the whole cluster.
func (s *subscriber) wantsAll() bool { return s.Count(pubsub.Channel) > 0 }

// misses reports whether other nodes may publish what the client has subscribed to and is not shown.
func (s *subscriber) misses() bool { return s.wantsAll() && !s.relayed }

// relayTurn is a turn of a topicChange that the relay carries out.
type relayTurn struct {
	change  *topicChange
	answers []relayAnswer
	left    int // changes that the brokers do not know of, and one while the turn begins
}

// relayAnswer is the answer to one name.
type relayAnswer struct {
	name    []byte // nil: there was no topic to end
	count   int    // of the client's topics behind the change, with those that a broker refuses later
	refused bool
}

// relayTopics has the relay change some topics, and the client wait until the brokers know.
func (r *request) relayTopics(c *topicChange) {
	cn := r.conn
	t := &relayTurn{change: c, left: 1}
	names := c.next()
	if c.all {
		names = cn.topics.some(c.kind)
	}
	if c.all && len(names) == 0 && !c.begun {
		t.answers = []relayAnswer{{count: cn.topics.Count(c.kind)}}
	}
	c.begun = true
	cn.pause()
	cn.topics.due++
	cn.topics.asks = true
	for _, name := range names {
		cn.relayTopic(t, name)
	}
	cn.State.SetTopics(cn.topics.Wanted())
	cn.worker.turns.take(func() { cn.relayedOne(t) })
}

// keepNames copies the names of a topicChange, which is answered when its brokers know of it, or in turns. Without
// memory for them, it answers that.
func (r *request) keepNames(c *topicChange) (ok bool) {
	cn, s := r.conn, r.conn.topics
	for _, name := range c.names {
		s.naming += len(name) + nameMemory
	}
	need := cn.otherBytes()
	if c.more {
		need += pubsub.Cost(c.names)
	}
	if !cn.Socket.TrySetOther(need) {
		s.naming = 0
		r.Fail(exec.ErrOOM)
		return false
	}
	c.names = exec.CloneArgs(c.names)
	return true
}

// nameMemory is what a copied name takes beside its bytes: with its answer, in bytes.
const nameMemory = 64

// some returns as many topics of a kind as are changed in one turn.
func (s *subscriber) some(kind pubsub.Kind) (names [][]byte) {
	for name := range s.Names(kind) {
		if names = append(names, []byte(name)); len(names) == namesAtOnce {
			break
		}
	}
	return names
}

// relayTopic changes one topic.
func (cn *conn) relayTopic(t *relayTurn, name []byte) {
	c, at := t.change, len(t.answers)
	change := cn.topics.Unwant
	if c.more {
		change = cn.topics.Want
	}
	changes := change(c.kind, name)
	t.answers = append(t.answers, relayAnswer{name: name, count: cn.topics.Count(c.kind)})
	if !changes {
		return
	}
	t.left++
	cn.node.relay().Change(cn.worker.loop.Index(), cn.topics.Subscriber, c.kind, name, c.more, func(refused bool) {
		if t.answers[at].refused = refused; refused { // by one broker, perhaps: others have sent messages
			cn.topics.held = pubsub.DropMessages(cn.topics.held, c.kind, name)
		}
		cn.relayedOne(t)
	})
}

// relayedOne counts a change that is carried out, and answers behind the last one of its turn.
func (cn *conn) relayedOne(t *relayTurn) {
	if t.left--; t.left > 0 || cn.closed {
		return
	}
	cn.topics.asks = false
	cn.resume(func(r *request) {
		r.Cmd, r.announces = t.change.cmd, true
		cn.State.SetTopics(cn.topics.Wanted()) // without those that were refused
		if cn.topics.due--; !r.answerRelayed(t) || !r.appendHeld() {
			return
		}
		if c := t.change; len(c.names) > 0 || c.all && cn.topics.Wanted()[c.kind] > 0 {
			r.relayTopics(c)
			return
		}
		cn.forgetNames()
	})
}

// forgetNames returns the memory of what keepNames has copied.
func (cn *conn) forgetNames() {
	if cn.topics.naming > 0 {
		cn.topics.naming = 0
		cn.Socket.TrySetOther(cn.otherBytes())
	}
}

// answerRelayed answers a turn. It reports false if there is no memory for that.
func (r *request) answerRelayed(t *relayTurn) (ok bool) {
	kind := t.change.kind
	answer := pubsub.AppendUnsubscribed
	if t.change.more {
		answer = pubsub.AppendSubscribed
	}
	refused := 0
	for _, a := range t.answers {
		if !r.Room(pubsub.AnswerSize(a.name)) {
			return false
		}
		if a.refused {
			refused++
		}
		if a.refused || t.change.more && !r.conn.topics.Wants(kind, a.name) { // or its name comes twice
			r.Fail(errTooManyPatterns)
		} else {
			r.Out = answer(r.Out, r.Version(), kind, a.name, a.count-refused)
		}
	}
	return true
}

// appendHeld appends the messages that have waited for an answer.
func (r *request) appendHeld() (ok bool) {
	s := r.conn.topics
	if s.due > 0 || len(s.held) == 0 {
		return true
	}
	if !r.Room(len(s.held) + exec.LineRoom) {
		return false
	}
	r.Out = append(r.Out, s.held...)
	s.held = nil
	return true
}

// answersFirst has messages wait for the reply to the present command, which another node executes, until the caller
// has called the function that it returns: who publishes on its own channel gets the reply first.
func (r *request) answersFirst() (replied func()) {
	cn, s := r.conn, r.conn.topics
	if s == nil || r.transaction != nil { // which is answered as a whole
		return func() {}
	}
	s.due++
	return func() {
		cn.worker.loop.Post(func() { // when the reply is in the output
			if s.due--; cn.topics == s {
				cn.pushHeld()
			}
		})
	}
}

// pushHeld sends the messages that have waited for an answer.
func (cn *conn) pushHeld() {
	held := cn.topics.held
	if cn.topics.due > 0 || len(held) == 0 || cn.closed || cn.Closing {
		return
	}
	cn.topics.held = nil
	if out, ok := cn.Socket.Grow(cn.Socket.Out(), len(held)); ok {
		cn.Socket.SetOut(append(out, held...))
		cn.Socket.SetOther(cn.otherBytes())
	}
}

// relaysPublish reports whether a client's message goes to another node that has the channel, instead of the client:
// in a Redis Cluster PUBLISH is executed at any node. Shard channels are their nodes' own.
func (r *request) relaysPublish() bool {
	cn := r.conn
	return r.Cmd.ID == command.Publish && cn.pipe == nil && !cn.peer && r.view.Table != nil && !r.fenced &&
		r.Level() >= ring.PinnedLevel
}
