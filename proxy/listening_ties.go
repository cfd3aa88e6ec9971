package proxy

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/proxy/order"
)

// What brokers are told of topics, and what they answer. A broker knows nothing over a connection that it was told
// over an earlier one.

// tie is what a node knows of a topic.
type tie struct {
	l       *listening
	of      *topic
	node    *order.Node
	attempt uint64 // of the pipe when the node was last asked; 0: never. What was told over an older connection is void
	told    uint64 // the version that the node has acknowledged; 0: none
	live    bool   // and the node sends what is published
	asking  bool   // it was told more, and has not answered:
	asked   uint64 // this version
	mode    member.Mode
	count   int
	gone    bool // dropped

	leaving bool          // the table gives the topic to another node, and this one was asked whether it obeys:
	since   time.Duration // from then on
	left    bool          // it does
}

// end ends what the worker has at a node that is not the owner any more, once that does not publish.
func (l *listening) end(at *tie) {
	now := l.w.loop.Now()
	if at.live && !at.leaving && !at.asking {
		at.leaving, at.since = true, now
	}
	if count := at.of.count; at.leaving && !at.left && now-at.since < leavePatience && count > 0 {
		l.ask(at, member.Live, count)
		return
	}
	l.ask(at, member.Live, 0)
}

// tell tells a node how many subscribers a topic has, unless it knows.
func (l *listening) tell(t *topic, n *order.Node, mode member.Mode) {
	at := t.tieTo(n)
	if at != nil && mode != member.Ahead {
		at.leaving, at.left = false, false
	}
	switch {
	case at == nil && t.count == 0:
		return
	case at == nil:
		at = &tie{l: l, of: t, node: n}
		t.ties = append(t.ties, at)
	case at.told == t.version && (at.live || mode == member.Ahead), at.live && mode == member.Ahead:
		return
	}
	if at.live {
		mode = member.Live
	}
	l.ask(at, mode, t.count)
}

func (t *topic) tieTo(n *order.Node) *tie {
	for _, at := range t.ties {
		if at.node == n {
			return at
		}
	}
	return nil
}

// ask sends LISTEN, if nothing is on its way there. If the pipe takes nothing now, the topic is looked at
// again.
func (l *listening) ask(at *tie, mode member.Mode, count int) {
	if at.asking {
		return
	}
	t, w := at.of, l.w
	p := at.node.Pipe(listenLane)
	listen := member.Listen{Kind: uint8(t.kind), Mode: mode, Name: []byte(t.name), Count: count}
	raw := member.AppendListen(w.scratch[:0], listen)
	w.keepScratch(raw)
	if !w.order.Ask(p, order.Request{Session: &l.session, Part: at}, raw, w.loop.Now()) {
		l.block(t)
		return
	}
	at.asking, at.asked, at.mode, at.count, at.attempt = true, t.version, mode, count, p.Attempt()
}

// Done is the node's answer.
func (at *tie) Done(_ int32, reply []byte) {
	l, t := at.l, at.of
	heard, ok := member.ParseHeard(reply)
	at.asking = false
	switch {
	case at.gone:
		return
	case at.leaving && at.count > 0 && ok:
		if at.left = heard == member.NotOwner; !at.left {
			at.told = at.asked
			l.wait(t)
			return
		}
	case !ok || heard == member.NotOwner:
		if moved := l.w.proxy.cfg.Moved; moved != nil && at.count > 0 {
			moved()
		}
		l.block(t)
		return
	case heard == member.TooMany:
		if l.refuse(t); t.count > 0 {
			l.block(t) // others subscribe to it already
			return
		}
	case at.count == 0:
		t.ended = t.ended || at.live && t.count > 0
		t.drop(at)
		l.withdraw(t, at)
	default:
		if heard == member.Gapped && !t.gap { // which is counted already
			l.countGap(t)
		}
		if t.kind == pubsub.Prefix && !at.live && t.wasAnswered() {
			l.w.forgetAll() // others follow it already, and may have missed what this node has told nobody
		}
		if at.told = at.asked; at.mode != member.Ahead {
			at.live, t.last, t.ended, t.gap = true, at.node, false, false
		}
	}
	l.look(t)
}

// withdraw tells the owner of a channel that it has no subscribers any more, when that was told to the owner
// before: that may have said that it has some.
func (l *listening) withdraw(t *topic, at *tie) {
	if l.isEverywhere(t) || t.count > 0 || !at.live {
		return
	}
	if owner := l.ownerOf(t); owner != nil && owner != at.node && t.tieTo(owner) == nil {
		t.ties = append(t.ties, &tie{l: l, of: t, node: owner})
	}
}

// Undone is the event that the answer will not come.
func (at *tie) Undone() {
	if at.asking = false; !at.gone {
		at.l.look(at.of)
	}
}

// drop forgets what a node knows.
func (t *topic) drop(at *tie) {
	at.gone = true
	t.ties = slices.DeleteFunc(t.ties, func(other *tie) bool { return other == at })
}

// forgetVoid drops the ties to nodes that were told nothing over their present connection. Such a
// node knows nothing of the topic, so there is nothing to end, and if it has gone, it cannot be told
// anything. Only the owner of a channel may know of it from the node before: that tie stays until
// the owner is told, even if only that there are no subscribers.
func (l *listening) forgetVoid(t *topic) {
	for _, at := range slices.Clone(t.ties) {
		switch p := at.node.Pipe(listenLane); {
		case p.IsOpen() && p.Attempt() == at.attempt:
			continue
		case at.live:
			t.gap = true
			l.countGap(t)
		case !l.isEverywhere(t) && at.node == l.ownerOf(t):
			continue
		}
		t.drop(at)
	}
}
