package node

import (
	"errors"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/broker"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// Publishing and subscribing, for clients that are connected to this node:
//
//	PUBLISH ─▶ broker ─▶ inbox of each loop with subscribers ─ posted ─▶ board ─▶ their outputs
//
// A loop shows messages in turns, between the inputs of its connections, so that a push never comes into
// the middle of a reply.

const (
	// showSteps is how many steps a loop shows messages in one turn.
	showSteps = 1024
	// namesAtOnce is how many topics a command subscribes to, or unsubscribes from, in one turn.
	namesAtOnce = 256
	// leaveTopics is how many subscriptions a loop ends in one turn, of those who have gone or whose
	// channels have moved. lookTopics is how many it looks at for that.
	leaveTopics = 256
	lookTopics  = 4096
	// closeTopics is how many of leaveTopics a client counts for that is closed.
	closeTopics = 8
	// inboxLimit is how many bytes of messages wait for a loop.
	inboxLimit = 32 << 20
	// takeBytes is how many bytes of messages a loop takes from its inbox at once.
	takeBytes = 256 << 10
)

// errSlowSubscriber closes a subscriber that does not read its messages.
var errSlowSubscriber = errors.New("subscriber does not read its messages")

// publish: PUBLISH channel message, SPUBLISH channel message
func publish(r *request) {
	if r.publishesElsewhere() {
		r.publishElsewhere()
		return
	}
	cost, ok := r.node.publish(&r.Request, r.view, r.worker.loop.Now())
	if ok {
		r.compared += cost
		r.longEnough = r.longEnough || r.compared > broker.MaxCost/2
	}
}

// publishesElsewhere reports whether another node has the channel of a message that was admitted.
func (r *request) publishesElsewhere() bool {
	if x := r.transaction; x != nil {
		return !r.node.isBroker(r.view, r.Args[1], x.keyed, x.partition)
	}
	return r.relaysPublish() && !r.serves(ring.PartitionOf(r.Args[1]))
}

// publish executes PUBLISH or SPUBLISH. It returns what comparing the channel with patterns has cost; ok is false
// if nothing was published.
func (n *Node) publish(r *exec.Request, view *ownership.View, now time.Duration) (cost int, ok bool) {
	kind := pubsub.Channel
	if r.Cmd.ID == command.SPublish {
		kind = pubsub.Shard
	}
	channel, payload := r.Args[1], r.Args[2]
	if !mayPublish(r, channel, payload) {
		return 0, false
	}
	if cost = n.broker.Cost(kind, channel); cost > broker.MaxCost {
		r.Fail(errCostlyChannel)
		return 0, false
	}
	subscribers, ok := n.broker.Publish(kind, channel, payload, n.following.Since(view, ring.PartitionOf(channel), now))
	if !ok {
		r.Fail(exec.ErrOOM)
		return cost, false
	}
	r.ReplyInt(int64(subscribers))
	return cost, true
}

// subscriptions executes the commands that subscribe and unsubscribe.
func (r *request) subscriptions(kind pubsub.Kind, more bool) {
	cn, names := r.conn, r.Args[1:]
	r.worker.Count.Commands[r.Cmd.ID]++
	cn.State.LastCmd = r.Cmd.ID
	switch {
	case cn.pipe != nil || cn.peer:
		r.Fail(errSubscriberMember)
		return
	case len(names) > pubsub.MaxTopics:
		r.Fail(pubsub.ErrTooMany)
		return
	case kind == pubsub.Shard && len(names) > 0 && !r.admitChannels(names):
		return
	case kind != pubsub.Shard && more && hasOthers(r.view) && !r.relays():
		r.Fail(errSubscribeHere)
		return
	}
	if cn.topics == nil {
		cn.topics = newSubscriber(cn)
	}
	if kind != pubsub.Shard && !cn.topics.wantsAll() {
		cn.topics.relayed = hasOthers(r.view)
	}
	r.Between(func() { r.worker.showTurn() }) // what was published before the client asked
	if more {
		if refusal := cn.topics.Refuse(kind, names); refusal != "" {
			r.Fail(refusal)
			return
		}
		if !cn.Socket.TrySetOther(cn.otherBytes() + pubsub.Cost(names)) {
			r.Fail(exec.ErrOOM)
			return
		}
	} else if refusal := pubsub.RefuseEnd(names); refusal != "" {
		r.Fail(refusal)
		return
	}
	c := &topicChange{cmd: r.Cmd, kind: kind, more: more, names: names, all: len(names) == 0}
	switch {
	case cn.topics.isRelayed(kind):
		if r.keepNames(c) {
			r.relayTopics(c)
		}
	case len(names) > namesAtOnce && !r.keepNames(c):
	case r.changeTopics(c):
		cn.forgetNames()
	default:
		cn.takeTurns(c)
	}
}

// hasOthers reports whether other nodes have channels, too. Then the broker of this one alone cannot show its clients
// all that is published.
func hasOthers(v *ownership.View) bool { return v.Table != nil && len(v.Table.Nodes) > 1 }

// topicChange is a command that subscribes or unsubscribes, in turns of namesAtOnce topics.
type topicChange struct {
	cmd   *command.Command
	kind  pubsub.Kind
	more  bool
	names [][]byte // that are left
	all   bool     // UNSUBSCRIBE of whatever there is
	begun bool     // all: there was some
}

// next takes the names of a turn.
func (c *topicChange) next() (names [][]byte) {
	names = c.names[:min(len(c.names), namesAtOnce)]
	c.names = c.names[len(names):]
	return names
}

// takeTurns has the connection wait until the rest of a topicChange is carried out.
func (cn *conn) takeTurns(c *topicChange) {
	cn.pause()
	cn.worker.turns.take(func() {
		cn.resume(func(r *request) {
			r.Cmd = c.cmd
			if r.changeTopics(c) {
				cn.forgetNames()
			} else {
				cn.takeTurns(c)
			}
		})
	})
}

// changeTopics changes some topics. It reports whether that were the last.
func (r *request) changeTopics(c *topicChange) (done bool) {
	cn := r.conn
	r.announces = true
	defer func() { cn.State.SetTopics(cn.topics.Wanted()) }()
	if c.all {
		done = r.unsubscribeAll(c.kind, c.begun)
		c.begun = true
		return done
	}
	now := c.next()
	change := r.unsubscribe
	if c.more {
		change = r.subscribe
	}
	return !change(c.kind, now) || len(c.names) == 0
}

// admitChannels is admitKeys for shard channels.
func (r *request) admitChannels(names [][]byte) bool {
	slot := ring.Slot(names[0])
	for _, name := range names[1:] {
		if ring.Slot(name) != slot {
			r.Fail(errCrossSlot)
			return false
		}
	}
	return r.admitSlot(slot)
}

// subscribe adds topics. What it answers is in the protocol a message for each. It reports false if it has
// failed.
func (r *request) subscribe(kind pubsub.Kind, names [][]byte) (ok bool) {
	cn := r.conn
	for _, name := range names {
		if cn.topics.Want(kind, name) {
			size := r.worker.board.Show(cn.topics.Subscriber, kind, name)
			if !r.node.broker.Listen(r.worker.inbox, kind, name, size) {
				r.worker.hide(cn.topics, kind, name)
				cn.topics.Unwant(kind, name)
				r.Fail(errTooManyPatterns)
				return false
			}
		}
		if !r.Room(pubsub.AnswerSize(name)) {
			return false
		}
		r.Out = pubsub.AppendSubscribed(r.Out, r.Version(), kind, name, cn.topics.Count(kind))
	}
	return true
}

// unsubscribe removes topics. It reports false if there is no memory for its answers.
func (r *request) unsubscribe(kind pubsub.Kind, names [][]byte) (ok bool) {
	for _, name := range names {
		if !r.leaveTopic(kind, name) {
			return false
		}
	}
	return true
}

func (r *request) leaveTopic(kind pubsub.Kind, name []byte) (ok bool) {
	cn := r.conn
	if cn.topics.Unwant(kind, name) {
		r.worker.hide(cn.topics, kind, name)
	}
	if !r.Room(pubsub.AnswerSize(name)) {
		return false
	}
	r.Out = pubsub.AppendUnsubscribed(r.Out, r.Version(), kind, name, cn.topics.Count(kind))
	return true
}

// unsubscribeAll removes some topics of a kind, and reports whether none is left. If there was none, it
// answers that, unless begun.
func (r *request) unsubscribeAll(kind pubsub.Kind, begun bool) (done bool) {
	left := namesAtOnce
	for name := range r.conn.topics.Names(kind) {
		if !r.leaveTopic(kind, []byte(name)) {
			return true
		}
		if left--; left == 0 {
			return r.conn.topics.Wanted()[kind] == 0
		}
	}
	if left == namesAtOnce && !begun {
		r.leaveTopic(kind, nil)
	}
	return true
}

// hide has a subscriber not be shown a topic of this node's broker any more.
func (w *worker) hide(s *subscriber, kind pubsub.Kind, name []byte) {
	w.node.broker.Listen(w.inbox, kind, name, w.board.Hide(s.Subscriber, kind, name))
}

// dropTopics ends all subscriptions of a connection, without answers.
func (cn *conn) dropTopics() {
	if cn.topics == nil {
		return
	}
	w := cn.worker
	cn.topics.Mute()
	w.leaving = append(w.leaving, cn.topics)
	cn.topics = nil
	if len(w.leaving) == 1 {
		w.leaveTurn()
	}
}

// leaveTurn ends subscriptions of those who have gone, for a turn.
func (w *worker) leaveTurn() {
	turn := leaveTopics
	for ; len(w.leaving) > 0; w.leaving = w.leaving[1:] {
		s := w.leaving[0]
		for kind := range pubsub.Kinds {
			for name := range s.All(kind) {
				if turn--; turn < 0 {
					w.loop.Post(w.leaveTurn)
					return
				}
				if s.isRelayed(kind) {
					w.node.relay().Leave(w.loop.Index(), s.Subscriber, kind, []byte(name))
					continue
				}
				s.Unwant(kind, []byte(name))
				w.hide(s, kind, []byte(name))
			}
		}
		w.leaving[0] = nil
	}
	w.leaving = nil
}

// Push sends a message to the client, which has subscribed to it. One that does not read is closed.
func (cn *conn) Push(frame []byte) {
	if cn.closed || cn.Closing {
		return
	}
	if cn.topics.due > 0 {
		cn.topics.held = pubsub.AppendFrame(cn.topics.held, cn.State.Version, frame)
		cn.Socket.SetOther(cn.otherBytes())
	} else if out, ok := cn.Socket.Grow(cn.Socket.Out(), len(frame)); ok {
		cn.Socket.SetOut(pubsub.AppendFrame(out, cn.State.Version, frame))
	}
	if cn.closed { // there was no memory for it
		return
	}
	cn.worker.Count.Pushed++
	unread := cn.Socket.Queued() + len(cn.topics.held)
	if cn.topics.IsSlow(cn.node.subscribers.Load(), unread, cn.worker.loop.Now()) {
		cn.worker.Count.SlowSubscribers++
		cn.Closing = true
		cn.Socket.Close(errSlowSubscriber)
	}
}

// showMessages shows what was published, a turn at a time.
func (w *worker) showMessages() {
	if w.showTurn() {
		w.loop.Post(w.showMessages)
	}
}

// showTurn shows messages for one turn. It reports whether some are left.
func (w *worker) showTurn() (more bool) {
	for steps := showSteps; steps > 0; {
		if !w.board.Busy() && !w.nextMessage() {
			return false
		}
		if steps = w.board.Go(steps); !w.board.Busy() {
			for i, m := range w.shown {
				m.Release()
				w.shown[i] = nil
			}
			w.shown = w.shown[:0]
		}
	}
	return true
}

// nextMessage begins to show the next message, and those that join it. It reports false if there is none.
func (w *worker) nextMessage() bool {
	if len(w.messages) == 0 {
		clear(w.taken)
		w.taken, _ = w.inbox.Take(w.taken[:0], takeBytes)
		if w.messages = w.taken; len(w.messages) == 0 {
			return false
		}
	}
	w.board.Begin(w.messages[0].Message)
	joined := 1
	for joined < len(w.messages) && w.board.Joins(w.messages[joined].Message) {
		w.board.Join(w.messages[joined].Message)
		joined++
	}
	w.shown = append(w.shown, w.messages[:joined]...)
	w.messages = w.messages[joined:]
	return true
}

// endTopics ends what clients cannot have under a new view, in turns. Of shard channels of partitions that
// this node has lost they are told so, as by Redis Cluster. Those that have subscribed to other channels or to
// patterns while this node was alone are closed when it has others: they would miss, without a word, what is
// published there. When they connect again, the relay listens for them.
func (w *worker) endTopics() {
	idle, others := len(w.moved) == 0, hasOthers(w.node.view.Load())
	clear(w.moved)
	w.moved = w.moved[:0]
	for cn := range w.conns {
		if cn.topics != nil && (cn.topics.Wanted()[pubsub.Shard] > 0 || others && cn.topics.misses()) {
			w.moved = append(w.moved, cn)
		}
	}
	if idle {
		w.endTopicsTurn()
	}
}

// endTopicsTurn ends subscriptions of some clients, by the present view.
func (w *worker) endTopicsTurn() {
	v := w.node.view.Load()
	others := hasOthers(v)
	for looked, left := 0, leaveTopics; len(w.moved) > 0 && left > 0 && looked < lookTopics; w.moved = w.moved[1:] {
		cn := w.moved[0]
		if looked++; cn.topics == nil {
			continue
		}
		if others && cn.topics.misses() {
			if left < closeTopics {
				break
			}
			left -= closeTopics
			w.outed++
			cn.closeAnswered()
			continue
		}
		looked += cn.topics.Wanted()[pubsub.Shard]
		if left -= cn.endForeign(v, left); left == 0 {
			break // the client is looked at again
		}
	}
	if len(w.moved) > 0 {
		w.loop.Post(w.endTopicsTurn)
		return
	}
	if closed := w.outed; closed > 0 {
		w.outed = 0
		w.node.goJob(func() {
			w.node.log.Warn("closed subscribers of a node that was alone: others have joined", "clients", closed)
		})
	}
}

// closeAnswered closes the connection when its client has what has been shown to it, and the reply
// to what is being executed, unless that waits.
func (cn *conn) closeAnswered() {
	cn.Closing = true
	if !cn.Answering || cn.State.Blocked {
		cn.Socket.CloseAfterFlush()
	}
}

// endForeign ends up to most subscriptions of a client, and returns how many it has ended.
func (cn *conn) endForeign(v *ownership.View, most int) (ended int) {
	for name := range cn.topics.Names(pubsub.Shard) {
		if v.Standing[ring.PartitionOf([]byte(name))] != ownership.Foreign {
			continue
		}
		cn.topics.Unwant(pubsub.Shard, []byte(name))
		cn.worker.hide(cn.topics, pubsub.Shard, []byte(name))
		cn.Push(pubsub.AppendUnsubscribed(nil, resp.RESP3, pubsub.Shard, []byte(name), cn.topics.Count(pubsub.Shard)))
		if ended++; ended == most {
			break
		}
	}
	cn.State.SetTopics(cn.topics.Wanted())
	return ended
}

// subscription executes the present command if it subscribes or unsubscribes.
func (r *request) subscription() bool {
	kind, more, ok := session.SubscriptionOf(r.Cmd.ID)
	if ok {
		r.subscriptions(kind, more)
	}
	return ok
}
