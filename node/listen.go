package node

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/node/broker"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// A proxy's loop listens to this node's broker over a pipe of its own kind:
//
//	PUBLISH ─▶ broker ─▶ queue of the pipe ─ posted ─▶ its output ═══▶ proxy

const (
	// pipeQueue is how many bytes of messages wait for a proxy that does not read. Further ones are lost.
	pipeQueue = 8 << 20
	// pipeUnsent is up to how many unsent bytes of a pipe's output messages are added to it.
	pipeUnsent = 256 << 10
	// topicMemory is what a topic takes that a proxy listens to, beside twice its name, in bytes.
	topicMemory = 256
	// maxPipeTopics is how many topics one loop of a proxy can listen to.
	maxPipeTopics = 1 << 20
)

// listener is what a pipe listens to. It belongs to the pipe's loop.
type listener struct {
	cn       *conn
	receiver *broker.Receiver
	topics   int
	bytes    int // that they take
	told     uint64
	taken    []*broker.Message
	delayed  bool // a timer calls deliver

	// ends has the topics without subscribers of which messages may wait in the queue: among the first so many
	// that were queued. They count in topics and bytes.
	ends map[pipeTopic]uint64
}

type pipeTopic struct {
	kind pubsub.Kind
	name string
}

// listen: DUNLIN LISTEN kind mode name count
func listen(r *request) {
	cn := r.conn
	l, ok := member.ParseListen(r.Args[2:], uint8(pubsub.Prefix)+1)
	if p := cn.pipe; !ok || p == nil || p.key.kind != member.Listening || len(l.Name) > pubsub.MaxName {
		r.Fail(errBadListen)
		return
	}
	if pubsub.Kind(l.Kind) == pubsub.Prefix {
		r.Out = member.AppendHeard(r.Out, cn.pipe.followFor(cn, &l))
		return
	}
	if cn.pipe.listener == nil {
		of := &listener{cn: cn}
		of.receiver = broker.NewReceiver(pipeQueue, func() { cn.worker.loop.Post(of.deliver) })
		of.receiver.Origin = broker.Origin{Boot: cn.pipe.key.boot, Loop: cn.pipe.key.loop}
		cn.pipe.listener = of
	}
	answer := r.heard(cn.pipe.listener, &l)
	if l.Count == 0 {
		r.Between(cn.pipe.listener.deliver)
		answer = cn.pipe.listener.ended(&l)
	}
	r.Out = member.AppendHeard(r.Out, answer)
}

// heard carries out a LISTEN.
func (r *request) heard(of *listener, l *member.Listen) member.Heard {
	b, kind, mode := r.node.broker, pubsub.Kind(l.Kind), broker.Mode(l.Mode)
	had := of.receiver.Count(kind, l.Name) > 0
	_, ends := of.ends[pipeTopic{kind, string(l.Name)}]
	if l.Count > 0 && !had && !ends {
		size := topicMemory + 2*len(l.Name)
		if of.topics == maxPipeTopics || !r.conn.Socket.TrySetOther(r.conn.otherBytes()+size) {
			return member.TooMany
		}
	}
	answer := member.Noted
	switch {
	case l.Count == 0 || kind == pubsub.Pattern || kind == pubsub.Channel && keyevent.IsChannel(l.Name):
		if !b.Listen(of.receiver, kind, l.Name, l.Count) {
			return member.TooMany
		}
		if mode == broker.Follow && r.node.hasServed.Load() {
			answer = member.Gapped
		}
	case !r.brokers(ring.PartitionOf(l.Name), mode) && !(had && mode == broker.Live && r.mayBroker(ring.PartitionOf(l.Name))):
		return member.NotOwner
	default:
		answer = r.listenAs(of.receiver, mode, l)
	}
	switch topic := (pipeTopic{kind, string(l.Name)}); {
	case l.Count > 0:
		delete(of.ends, topic)
		of.count(l, had || ends)
	case had:
		if of.ends == nil {
			of.ends = make(map[pipeTopic]uint64)
		}
		of.ends[topic] = of.receiver.Queued()
	}
	return answer
}

// listenAs carries out a LISTEN to a channel. Who follows while the owner before may still be
// handing over is noted, and asks again. For who follows later than backlogs are kept there may be
// a gap, and for those of whom the owner before has not told.
func (r *request) listenAs(rc *broker.Receiver, mode broker.Mode, l *member.Listen) member.Heard {
	p := ring.PartitionOf(l.Name)
	late := mode == broker.Follow && r.node.following.Since(r.view, p, r.worker.loop.Now()) == 0
	torn := mode == broker.Follow && (r.Level() >= ring.HandedLevel && !r.node.following.IsWhole(r.view, p) ||
		!r.node.broker.IsTold(rc.Origin, pubsub.Kind(l.Kind), l.Name))
	waits := torn && r.view.Standing[p] == ownership.Gained
	if waits {
		mode = broker.Ahead
	}
	switch whole := r.node.broker.ListenAs(mode, rc, pubsub.Kind(l.Kind), l.Name, l.Count, r.view.Began[p]); {
	case waits:
		return member.NotOwner
	case torn, late, !whole:
		return member.Gapped
	}
	return member.Noted
}

// ended answers a LISTEN of no subscribers: behind Noted nothing more of the topic may come.
func (of *listener) ended(l *member.Listen) member.Heard {
	topic := pipeTopic{pubsub.Kind(l.Kind), string(l.Name)}
	until, ends := of.ends[topic]
	switch {
	case !ends:
		return member.Noted
	case of.receiver.Taken() < until:
		return member.NotOwner
	}
	delete(of.ends, topic)
	of.count(l, true)
	return member.Noted
}

// count notes what the topic takes.
func (of *listener) count(l *member.Listen, had bool) {
	size := topicMemory + 2*len(l.Name)
	switch has := l.Count > 0; {
	case has && !had:
		of.topics++
		of.bytes += size
	case had && !has:
		of.topics--
		of.bytes -= size
	}
}

// brokers reports whether this node is the broker of a partition's channels for who listens anew.
// If it is about to be, it only takes counts ahead: who hears of the table first, or takes this
// node for a former process at its address, asks again. While the owner before may still publish,
// who is live here alone would miss that.
func (r *request) brokers(p uint16, mode broker.Mode) bool {
	switch v := r.view; v.Standing[p] {
	case ownership.Serving:
		return true
	case ownership.Gained:
		return mode != broker.Live
	default:
		return mode == broker.Ahead && v.Table != nil && v.MoveTo[p] != ring.NoNode && int(v.MoveTo[p]) == v.Self
	}
}

// mayBroker is brokers for who is live here. Who ended that before the next owner is told of it would be
// told of a gap there.
func (r *request) mayBroker(p uint16) bool {
	return r.view.Standing[p] == ownership.Gained || r.mayPublish(p) || r.node.untold[p].Load()
}

// mayPublish reports whether messages may still be published in a partition that this node has lost: by loops
// that execute under an older view, or by a transaction that holds it.
func (r *request) mayPublish(p uint16) bool {
	return r.view.Table != r.node.passed.Load() || r.view.Held.Has(p)
}

// deliver sends what was published. While the proxy does not read, the rest waits in the queue.
func (of *listener) deliver() {
	cn := of.cn
	if cn.closed || cn.Closing {
		return
	}
	for more := true; more && cn.Socket.Queued() < pipeUnsent; {
		of.taken, more = of.receiver.Take(of.taken[:0], pipeUnsent)
		if !of.send() {
			return
		}
		if !more {
			return
		}
	}
	if !of.delayed {
		of.delayed = true
		cn.worker.loop.After(pushPause, func() {
			of.delayed = false
			of.deliver()
		})
	}
}

// send appends the messages that were taken to the output. It reports false if there is no memory: then the
// pipe is closed.
func (of *listener) send() (ok bool) {
	cn, size := of.cn, exec.LineRoom
	for _, m := range of.taken {
		size += len(m.Frame)
	}
	out, ok := cn.Socket.Grow(cn.Socket.Out(), size)
	if ok && of.receiver.Lost() > of.told {
		out = member.AppendLost(out, of.receiver.Lost()-of.told)
		of.told = of.receiver.Lost()
	}
	for i, m := range of.taken {
		if ok {
			out = append(out, m.Frame...)
		}
		m.Release()
		of.taken[i] = nil
	}
	if ok {
		cn.Socket.SetOut(out)
		cn.worker.Count.Pushed += uint64(len(of.taken))
	}
	return ok
}

// end gives up what the pipe listens to, which takes a while for many topics.
func (of *listener) end() {
	n := of.cn.node
	of.receiver.Close()
	n.goJob(func() { n.broker.Leave(of.receiver) })
}
