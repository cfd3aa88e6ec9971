package node

import (
	"errors"

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
	// leaveTopics is how many subscriptions of those who have gone a loop ends in one turn.
	leaveTopics = 256
	// inboxLimit is how many bytes of messages wait for a loop.
	inboxLimit = 32 << 20
	// takeBytes is how many bytes of messages a loop takes from its inbox at once.
	takeBytes = 256 << 10
)

// errSlowSubscriber closes a subscriber that does not read its messages.
var errSlowSubscriber = errors.New("subscriber does not read its messages")

// publish: PUBLISH channel message, SPUBLISH channel message
func publish(r *request) {
	kind := pubsub.Channel
	if r.Cmd.ID == command.SPublish {
		kind = pubsub.Shard
	}
	channel, payload := r.Args[1], r.Args[2]
	switch {
	case len(channel) > pubsub.MaxName:
		r.Fail(pubsub.ErrName)
		return
	case len(channel)+len(payload) > pubsub.MaxMessage:
		r.Fail(pubsub.ErrMessage)
		return
	}
	cost := r.node.broker.Cost(kind, channel)
	if cost > broker.MaxCost {
		r.Fail(errCostlyChannel)
		return
	}
	r.compared += cost
	r.longEnough = r.longEnough || r.compared > broker.MaxCost/2
	keep := r.node.following.since(r.view, ring.PartitionOf(channel), r.worker.loop.Now())
	subscribers, ok := r.node.broker.Publish(kind, channel, payload, keep)
	if !ok {
		r.Fail(exec.ErrOOM)
		return
	}
	r.ReplyInt(int64(subscribers))
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
	case kind != pubsub.Shard && more && r.view.Table != nil && len(r.view.Table.Nodes) > 1:
		r.Fail(errSubscribeHere)
		return
	}
	if cn.topics == nil {
		cn.topics = pubsub.NewSubscriber(cn)
	}
	r.Between(func() { r.worker.showTurn() }) // what was published before the client asked
	r.announces = true
	if more {
		r.subscribe(kind, names)
	} else {
		r.unsubscribe(kind, names)
	}
	cn.State.SetTopics(cn.topics.Wanted())
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

// subscribe adds topics. What it answers is in the protocol a message for each.
func (r *request) subscribe(kind pubsub.Kind, names [][]byte) {
	cn := r.conn
	if refusal := cn.topics.Refuse(kind, names); refusal != "" {
		r.Fail(refusal)
		return
	}
	if !cn.Socket.TrySetOther(cn.otherBytes() + pubsub.Cost(names)) {
		r.Fail(exec.ErrOOM)
		return
	}
	for _, name := range names {
		if cn.topics.Want(kind, name) {
			size := r.worker.board.Show(cn.topics, kind, name)
			if !r.node.broker.Listen(r.worker.inbox, kind, name, size) {
				r.worker.hide(cn.topics, kind, name)
				cn.topics.Unwant(kind, name)
				r.Fail(errTooManyPatterns)
				return
			}
		}
		if !r.Room(pubsub.AnswerSize(name)) {
			return
		}
		r.Out = pubsub.AppendSubscribed(r.Out, r.Version(), kind, name, cn.topics.Count(kind))
	}
}

// unsubscribe removes topics, all of the kind if there are no names.
func (r *request) unsubscribe(kind pubsub.Kind, names [][]byte) {
	cn := r.conn
	if len(names) == 0 {
		names = nil // not in the memory of the arguments
		for name := range cn.topics.Names(kind) {
			names = append(names, []byte(name))
		}
	}
	for _, name := range names {
		if cn.topics.Unwant(kind, name) {
			r.worker.hide(cn.topics, kind, name)
		}
		if !r.Room(pubsub.AnswerSize(name)) {
			return
		}
		r.Out = pubsub.AppendUnsubscribed(r.Out, r.Version(), kind, name, cn.topics.Count(kind))
	}
	if len(names) == 0 {
		r.Out = pubsub.AppendUnsubscribed(r.Out, r.Version(), kind, nil, cn.topics.Count(kind))
	}
}

// hide has a subscriber not be shown a topic any more.
func (w *worker) hide(s *pubsub.Subscriber, kind pubsub.Kind, name []byte) {
	w.node.broker.Listen(w.inbox, kind, name, w.board.Hide(s, kind, name))
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
			for name := range s.Names(kind) {
				if turn--; turn < 0 {
					w.loop.Post(w.leaveTurn)
					return
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
	out, ok := cn.Socket.Grow(cn.Socket.Out(), len(frame))
	if !ok {
		return // no memory for it: the connection is closed
	}
	cn.Socket.SetOut(pubsub.AppendFrame(out, cn.State.Version, frame))
	cn.worker.Count.Pushed++
	if cn.topics.IsSlow(cn.Socket.Queued(), cn.worker.loop.Now()) {
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
			w.shown.Release()
			w.shown = nil
		}
	}
	return true
}

// nextMessage begins to show the next message. It reports false if there is none.
func (w *worker) nextMessage() bool {
	if len(w.messages) == 0 {
		clear(w.taken)
		w.taken, _ = w.inbox.Take(w.taken[:0], takeBytes)
		if w.messages = w.taken; len(w.messages) == 0 {
			return false
		}
	}
	w.shown = w.messages[0]
	w.messages = w.messages[1:]
	w.board.Begin(w.shown.Message)
	return true
}

// endShards ends the subscriptions to shard channels of partitions that this node has lost. Clients
// are told so, as by Redis Cluster.
func (w *worker) endShards(v *ownership.View) {
	for cn := range w.conns {
		if cn.topics == nil || cn.topics.Wanted()[pubsub.Shard] == 0 {
			continue
		}
		for name := range cn.topics.Names(pubsub.Shard) {
			if v.Standing[ring.PartitionOf([]byte(name))] == ownership.Foreign {
				cn.topics.Unwant(pubsub.Shard, []byte(name))
				w.hide(cn.topics, pubsub.Shard, []byte(name))
				cn.Push(pubsub.AppendUnsubscribed(nil, resp.RESP3, pubsub.Shard, []byte(name), cn.topics.Count(pubsub.Shard)))
			}
		}
		cn.State.SetTopics(cn.topics.Wanted())
	}
}

// subscription executes the present command if it subscribes or unsubscribes.
func (r *request) subscription() bool {
	kind, more, ok := session.SubscriptionOf(r.Cmd.ID)
	if ok {
		r.subscriptions(kind, more)
	}
	return ok
}
