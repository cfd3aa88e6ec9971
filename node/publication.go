package node

import (
	"bytes"
	"context"
	"errors"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// A transaction and a script are executed where their keys lie, and may publish on a channel that another node has. So
// may a client of a node, as in a Redis Cluster. The node that has the channel publishes for them. Transactions and
// scripts hold their partition until it has answered, so that what they publish stays in order, and whoever gets a
// message sees what was changed before it:
//
//	loop       EVAL: hold ─┐ token ················································ completion: reply
//	runner                 └ SET ── PUBLISH ─ DUNLIN PUBLISH to the channel's owner ─ 2 ── Lua ─┘

// publication is such a message: an exec.Work.
type publication struct {
	node    *Node
	channel []byte
	request []byte // for the channel's owner
	heap    exec.Heap
	charged int64
	replied func() // not nil: called at the end, behind the reply if there is one

	subscribers int64
	err         error
}

// publishPatience is how long a message waits for an owner of its channel: no longer than what waits for its partition.
const publishPatience = holdPatience * 4 / 5

const (
	errNotPublished   = "ERR the message was not published: the node that has the channel has not answered in time"
	errMaybePublished = textError("ERR the connection to the node that has the channel broke after the message was sent, " +
		"outcome unknown")
)

// isBroker reports whether this node publishes on a channel what is executed in a partition. While that is held, this
// node is the broker of the channels that lie there.
func (n *Node) isBroker(view *ownership.View, channel []byte, keyed bool, partition uint16) bool {
	p := ring.PartitionOf(channel)
	return keyed && p == partition || view.Standing[p] == ownership.Serving
}

// newPublication returns what publishes the message of PUBLISH or SPUBLISH elsewhere. If there is none, it has answered
// why.
func (n *Node) newPublication(r *exec.Request) (p *publication, ok bool) {
	channel, message := r.Args[1], r.Args[2]
	if !mayPublish(r, channel, message) {
		return nil, false
	}
	if r.Level() < ring.PinnedLevel {
		r.Fail(errNotLocalChannel)
		return nil, false
	}
	size := int64(2*len(channel) + len(message) + exec.LineRoom)
	if !r.Heap.Charge(size) {
		r.Fail(exec.ErrOOM)
		return nil, false
	}
	return &publication{
		node: n, channel: bytes.Clone(channel), request: member.AppendPublish(nil, r.Cmd.Name, channel, message),
		heap: r.Heap, charged: size,
	}, true
}

// mayPublish reports whether a message is short enough. If not, it answers that.
func mayPublish(r *exec.Request, channel, message []byte) bool {
	switch {
	case len(channel) > pubsub.MaxName:
		r.Fail(pubsub.ErrName)
	case len(channel)+len(message) > pubsub.MaxMessage:
		r.Fail(pubsub.ErrMessage)
	default:
		return true
	}
	return false
}

// Run has the owner of the channel publish the message, in a goroutine.
func (p *publication) Run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, publishPatience)
	defer cancel()
	p.err = p.node.askOwner(ctx, 0, p.channel, func(addr string) error {
		return p.node.lenders.ask(ctx, addr, func(peer *member.Peer) (err error) {
			sent := false
			p.subscribers, sent, err = peer.Publish(p.request)
			if sent && err != nil && !isRefusal(err) {
				return errMaybePublished
			}
			return err
		})
	})
}

// Reply answers PUBLISH.
func (p *publication) Reply(r *exec.Request) {
	var text textError
	switch {
	case p.err == nil:
		r.ReplyInt(p.subscribers)
	case errors.As(p.err, &text):
		r.Fail(string(text))
	default:
		r.Fail(errNotPublished)
	}
}

// End gives the memory back. It is called even if there is no Reply, because no more jobs can begin.
func (p *publication) End() {
	p.heap.Refund(p.charged)
	p.charged = 0
	if p.replied != nil {
		p.replied()
		p.replied = nil
	}
}

// publishFor: DUNLIN PUBLISH command channel message
func publishFor(r *request) {
	r.Args = r.Args[2:]
	c := command.Row(r.Args)
	if c == nil || !isPublish(c) || r.conn.pipe != nil {
		r.Fail(errBadPublish)
		return
	}
	if r.Cmd = c; r.relaysPublish() || r.admitAsked(ring.Slot(r.Args[1])) {
		publish(r)
	}
}
