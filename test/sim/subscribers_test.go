package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// A proxy that listens to the channel of each place, for one subscriber: what proxy/listening.go
// and listening_ties.go do. The subscriber hears all messages in the order in which they were
// published, but for gaps that the proxy has counted. It counts none while all goes by plan.

const (
	listenPause   = 10 * time.Millisecond
	leavePatience = 4 * time.Second
	gapMemory     = 12 * time.Second // in which something bad explains a gap
)

var listenLane = order.Lane{Kind: member.Listening, Version: resp.RESP3}

// ears are a proxy's part in pub/sub.
type ears struct {
	x       *proxy
	session order.Session
	topics  []*topic // nil: it does not listen
	heirs   map[uint16]*order.Node
}

// topic is the channel of a place.
type topic struct {
	of     *ears
	k      int
	ties   []*tie
	last   *order.Node
	ended  bool
	gap    bool
	listed bool // it is to be looked at

	// for the checks
	begun  bool
	first  bool // it has heard something
	next   int  // of world.published, behind what it has heard
	missed int  // of world.published: what comes before may be missing, for a gap was counted
}

// tie is what a node knows of a topic.
type tie struct {
	of            *topic
	node          *order.Node
	attempt       uint64
	told, live    bool
	asking        bool
	mode          member.Mode
	count         int
	gone          bool
	leaving, left bool
	since         time.Duration
}

// listen begins to listen to all channels.
func (x *proxy) listen() {
	x.ears.x = x
	for k := range places {
		x.ears.topics = append(x.ears.topics, &topic{of: &x.ears, k: k})
	}
	x.ears.install(x.machine.Table())
}

// install follows the moves of a newer table.
func (l *ears) install(t *ring.Table) {
	l.heirs = make(map[uint16]*order.Node)
	if l.x != nil && t != nil && l.x.machine.Table() == t {
		for _, m := range t.Moves {
			l.heirs[m.Partition] = l.x.machine.Nodes()[m.To]
		}
	}
	for _, at := range l.topics {
		at.look(0)
	}
}

// look has the topic looked at.
func (t *topic) look(in time.Duration) {
	if t.listed {
		return
	}
	x := t.of.x
	t.listed = true
	x.w.after(x.p, in, func() {
		t.listed = false
		t.settle()
		x.act()
	})
}

// settle tells nodes what they do not know of the topic yet.
func (t *topic) settle() {
	t.forgetVoid()
	l, p := t.of, t.of.x.w.tracked[t.k]
	owner, heir := l.x.machine.OwnerByTable(p), l.heirs[p]
	waits := false
	arrived := slices.ContainsFunc(t.ties, func(at *tie) bool { return at.node == owner && at.live })
	for _, at := range slices.Clone(t.ties) {
		if at.node != owner && (at.live || at.node != heir && arrived) {
			waits = waits || at.live
			t.end(at)
		}
	}
	waits = waits && !l.x.w.followEarly
	moved := owner != nil && t.hasMoved(owner)
	switch {
	case owner == nil:
		t.look(listenPause)
	case !waits && moved:
		t.tell(owner, member.Follow)
	case !waits:
		t.tell(owner, member.Live)
	}
	if heir != nil && heir != owner {
		t.tell(heir, member.Ahead)
	}
}

// hasMoved reports whether the owner has what was published since the topic was ended at the node
// before.
func (t *topic) hasMoved(owner *order.Node) bool {
	return t.last != nil && (t.ended || t.last != owner && t.last.Member.Addr != owner.Member.Addr)
}

// end ends what the proxy has at a node that is not the owner any more, once that does not publish.
func (t *topic) end(at *tie) {
	now := t.of.x.w.now
	if at.live && !at.leaving && !at.asking {
		at.leaving, at.since = true, now
	}
	if at.leaving && !at.left && now-at.since < leavePatience && !t.of.x.w.endEarly {
		t.ask(at, member.Live, 1)
		return
	}
	t.ask(at, member.Live, 0)
}

func (t *topic) tell(n *order.Node, mode member.Mode) {
	i := slices.IndexFunc(t.ties, func(at *tie) bool { return at.node == n })
	if i < 0 {
		i = len(t.ties)
		t.ties = append(t.ties, &tie{of: t, node: n})
	}
	at := t.ties[i]
	if mode != member.Ahead {
		at.leaving, at.left = false, false
	}
	if at.told && (at.live || mode == member.Ahead) {
		return
	}
	t.ask(at, mode, 1)
}

func (t *topic) ask(at *tie, mode member.Mode, count int) {
	if at.asking {
		return
	}
	x := t.of.x
	p := at.node.Pipe(listenLane)
	raw := member.AppendListen(nil, member.Listen{Mode: mode, Name: x.w.channelOf(t.k), Count: count})
	if !x.machine.Ask(p, order.Request{Session: &t.of.session, Part: at}, raw, x.w.now) {
		t.look(listenPause)
		return
	}
	at.asking, at.mode, at.count, at.attempt = true, mode, count, p.Attempt()
}

// Done is the node's answer.
func (at *tie) Done(_ int32, reply []byte) {
	t := at.of
	heard, ok := member.ParseHeard(reply)
	at.asking = false
	switch {
	case at.gone:
		return
	case at.leaving && at.count > 0 && ok:
		if at.left = heard == member.NotOwner; !at.left {
			at.told = true
			t.look(listenPause)
			return
		}
	case !ok || heard == member.NotOwner:
		t.of.x.p.agent.refreshSoon()
		t.look(listenPause)
		return
	case at.count == 0:
		t.ended = t.ended || at.live
		t.drop(at)
	default:
		w := t.of.x.w
		if heard == member.Gapped && !t.gap {
			w.checkGap(t)
		}
		if at.told = true; at.mode != member.Ahead {
			if t.gap {
				t.missed = len(w.published[t.k])
			}
			at.live, t.last, t.ended, t.gap = true, at.node, false, false
			if !t.begun {
				t.begun, t.next = true, len(w.published[t.k])
				w.tracef("%s listens to %d", t.of.x.p.name, t.k)
			}
		}
	}
	t.look(0)
}

// Undone is the event that the answer will not come.
func (at *tie) Undone() {
	if at.asking = false; !at.gone {
		at.of.look(0)
	}
}

func (t *topic) drop(at *tie) {
	at.gone = true
	t.ties = slices.DeleteFunc(t.ties, func(other *tie) bool { return other == at })
}

// forgetVoid drops the ties to nodes that were told nothing over their present connection. Here
// nobody unsubscribes, so no owner has to be told of no subscribers.
func (t *topic) forgetVoid() {
	for _, at := range slices.Clone(t.ties) {
		if p := at.node.Pipe(listenLane); p.Attempt() != at.attempt || !p.IsOpen() {
			if at.live {
				t.gap = true
			}
			t.drop(at)
		}
	}
}

// broke is told that a pipe has opened or broken.
func (l *ears) broke() {
	for _, t := range l.topics {
		t.look(0)
	}
}

// lost is told that a node has lost a message for this proxy.
func (l *ears) lost() {
	for _, t := range l.topics {
		l.x.w.checkGap(t)
	}
}

// checkGap counts a gap, and checks that something bad has happened.
func (w *world) checkGap(t *topic) {
	t.missed = len(w.published[t.k])
	recently := func(at time.Duration) bool { return at != 0 && w.now-at < gapMemory }
	excuse := w.apart() || recently(w.lastReset) || recently(w.untold) || recently(w.proxyCut) || slices.ContainsFunc(w.procs, w.wasHurt)
	if !excuse {
		w.violate("%s counts a gap of %d, though nobody has died", t.of.x.p.name, t.k)
	}
}

// heard is a message that a subscriber is shown.
func (l *ears) heard(m message) {
	w, t := l.x.w, l.topics[m.place]
	at := slices.IndexFunc(w.published[m.place], func(p publication) bool { return p.id == m.id })
	switch p := w.published[m.place][at]; {
	case !p.sure:
	case w.apart(): // who comes from the other side of a split is shown again what is kept here
		t.next, t.missed = max(t.next, at+1), len(w.published[m.place])
	case !t.begun, !t.first && at < t.next: // published before the answer came
		t.begun, t.first, t.next = true, true, at+1
	case at < t.next:
		w.violate("%s hears message %d of %d again, or behind a later one", l.x.p.name, m.id, m.place)
	default:
		w.checkHeard(t, at)
		t.first, t.next = true, at+1
	}
}

// checkHeard checks that a subscriber has heard what was published before a place, or knows of a
// gap.
func (w *world) checkHeard(t *topic, before int) {
	for i, p := range w.published[t.k][t.next:before] {
		if p.sure && !t.gap && t.next+i >= t.missed {
			w.violate("%s does not hear message %d of %d, and counts no gap", t.of.x.p.name, p.id, t.k)
		}
	}
}

// checkSubscribers checks, in the end, that everybody has heard everything, and asks nobody for
// ever.
func (w *world) checkSubscribers(proxies []*proxy) {
	for _, x := range proxies {
		for _, t := range x.ears.topics {
			if !t.begun {
				w.violate("%s cannot listen to %d", x.p.name, t.k)
				continue
			}
			if t.listed {
				w.violate("%s asks without end who is to tell it of %d", x.p.name, t.k)
			}
			for _, at := range t.ties {
				if !slices.Contains(x.machine.Nodes(), at.node) {
					w.violate("%s has not forgotten that %s knew of %d", x.p.name, at.node.Member.Name(), t.k)
				}
			}
			t.forgetVoid()
			w.checkHeard(t, len(w.published[t.k]))
		}
	}
}
