package node

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

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

// Messages that a client sends in a pipeline travel together: those that follow each other in its input, in order, to
// each owner those of its channels. If one of them is refused, its owner refuses those behind it until the next
// challenge, and all of these are sent again. So messages of one channel never change places.

// publication is what publishes such messages: an exec.Work.
type publication struct {
	node     *Node
	messages []message
	bytes    int // of their channels and texts
	heap     exec.Heap
	charged  int64
	replied  func() // not nil: called at the end, behind the replies if there are some
}

// message is one of a publication.
type message struct {
	channel []byte
	request []byte // for the channel's owner

	over        bool // it was published, or will not be
	subscribers int64
	err         error
}

const (
	// togetherMost is how many messages are published together at most, and togetherBytes how long they are.
	togetherMost, togetherBytes = 256, 64 << 10
	// messageMemory is what a message takes beside its bytes.
	messageMemory = 128
)

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
	if !mayPublish(r, r.Args[1], r.Args[2]) {
		return nil, false
	}
	if r.Level() < ring.PinnedLevel {
		r.Fail(errNotLocalChannel)
		return nil, false
	}
	p = &publication{node: n, heap: r.Heap}
	if p.add(r); p.messages[0].err != nil {
		r.Fail(exec.ErrOOM)
		return nil, false
	}
	return p, true
}

// add adds the message of PUBLISH. If there is no memory for it, that will be its answer.
func (p *publication) add(r *exec.Request) {
	channel, text := r.Args[1], r.Args[2]
	size := int64(2*len(channel)+len(text)+exec.LineRoom) + messageMemory
	if !p.heap.Charge(size) {
		p.messages = append(p.messages, message{over: true, err: textError(exec.ErrOOM)})
		return
	}
	p.charged += size
	p.bytes += len(channel) + len(text)
	p.messages = append(p.messages, message{
		channel: bytes.Clone(channel), request: member.AppendPublish(nil, r.Cmd.Name, channel, text),
	})
}

// publishElsewhere has another node publish the message of PUBLISH, with those that follow it in the client's input.
func (r *request) publishElsewhere() {
	if r.together != nil {
		r.together.add(&r.Request)
		r.deferred = true
		return
	}
	p, ok := r.node.newPublication(&r.Request)
	if !ok {
		return
	}
	if r.mayGather() {
		r.together, r.deferred = p, true // OnData sends it
		return
	}
	p.replied = r.answersFirst()
	r.workLater(p, waits, unkeyed)
}

// mayGather reports whether other messages may follow the present one in the input. Who is a subscriber hears its own
// message behind the answer to that, and ahead of the next one.
func (r *request) mayGather() bool {
	cn := r.conn
	small := r.reading && r.raw == nil && r.Upload == nil
	return small && r.transaction == nil && cn.topics == nil && !cn.State.Apart
}

// joins reports whether the next request of the input is a message that is published with those before it: it will be
// given to them, and get no answer of its own.
func (r *request) joins(s *step) bool {
	p := r.together
	if s.plan == nil || s.cmd.ID != command.Publish || r.serves(ring.Partition(s.slot)) {
		return false
	}
	name, size := len(s.args[1]), len(s.args[1])+len(s.args[2])
	return len(p.messages) < togetherMost && p.bytes+size <= togetherBytes && name <= pubsub.MaxName
}

// endTogether sends the messages that were gathered from the input.
func (r *request) endTogether() {
	if p := r.together; p != nil {
		r.together = nil
		r.workLater(p, waits, unkeyed)
	}
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

// Run has the owners of the channels publish the messages, in a goroutine.
func (p *publication) Run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, publishPatience)
	defer cancel()
	for !p.send(ctx) {
		if err := p.node.gathers.rest(ctx); err != nil {
			p.giveUp(err)
			return
		}
	}
}

// send sends the messages that are not over to the owners of their channels, by the present table. It reports whether
// all are over then.
func (p *publication) send(ctx context.Context) (over bool) {
	t := p.node.view.Load().Table
	if t == nil {
		return false
	}
	owners := make(map[string][]*message)
	for i := range p.messages {
		if m := &p.messages[i]; !m.over {
			addr := t.OwnerOf(ring.PartitionOf(m.channel)).Addr
			owners[addr] = append(owners[addr], m)
		}
	}
	var all sync.WaitGroup
	for addr, messages := range owners {
		all.Go(func() { p.sendTo(ctx, addr, messages) })
	}
	all.Wait()
	return !slices.ContainsFunc(p.messages, func(m message) bool { return !m.over })
}

// sendTo sends messages to the owner of their channels. Those that it refuses for now are not over.
func (p *publication) sendTo(ctx context.Context, addr string, messages []*message) {
	requests := make([][]byte, len(messages))
	for i, m := range messages {
		requests[i] = m.request
	}
	sent, answers := false, 0
	err := p.node.lenders.ask(ctx, addr, func(peer *member.Peer) (err error) {
		sent, err = peer.Publish(requests, func(subscribers int64, refusal *member.Refusal) {
			m := messages[answers]
			answers++
			switch {
			case refusal == nil:
				m.over, m.subscribers = true, subscribers
			case !mayAskAgain(refusal):
				m.over, m.err = true, answered(refusal)
			}
		})
		return err
	})
	if err != nil && sent {
		for _, m := range messages[answers:] {
			m.over, m.err = true, errMaybePublished
		}
	}
}

// giveUp ends the messages that are not over.
func (p *publication) giveUp(why error) {
	for i := range p.messages {
		if m := &p.messages[i]; !m.over {
			m.over, m.err = true, why
		}
	}
}

// Reply answers PUBLISH, as often as there are messages.
func (p *publication) Reply(r *exec.Request) {
	if !r.Room(len(p.messages) * exec.LineRoom) {
		return
	}
	for i := range p.messages {
		var text textError
		switch m := &p.messages[i]; {
		case m.err == nil:
			r.ReplyInt(m.subscribers)
		case errors.As(m.err, &text):
			r.Fail(string(text))
		default:
			r.Fail(errNotPublished)
		}
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

// publishFor: DUNLIN PUBLISH command channel message. Behind one that is refused, those of the connection are refused
// until DUNLIN CHALLENGE.
func publishFor(r *request) {
	r.Args = r.Args[2:]
	c := command.Row(r.Args)
	if c == nil || !isPublish(c) || r.conn.pipe != nil {
		r.Fail(errBadPublish)
		return
	}
	switch r.Cmd = c; {
	case r.conn.outOfTurn:
		r.Fail(errTakingOver)
	case r.admitAsked(ring.Slot(r.Args[1])):
		publish(r)
	default:
		r.conn.outOfTurn = true
	}
}
