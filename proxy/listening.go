package proxy

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// A worker listens to the brokers of the channels to which its sessions subscribe: the owners of their
// slots, and all nodes for patterns. It tells a broker how many subscribers a topic has, so that PUBLISH
// counts them, and a session's subscription is answered when its broker has acknowledged it:
//
//	SUBSCRIBE c ─▶ topic: count, version ─▶ DUNLIN LISTEN c count ═▶ broker
//	            answered, and shown what comes from now on   ◀── acknowledged
//
// When a channel moves, the worker first tells the next owner how many there are (Ahead), as soon as the
// table says where the channel goes. When the table has a new owner, the worker asks the node before until
// that has obeyed the table too: earlier, others may still publish there. Then it ends what it has there;
// behind that node's answer nothing more of the channel can come from there. Then it follows (Follow). If the
// channel has moved on meanwhile, the newest owner has what was published in between (broker.Missed). So planned
// moves lose nothing and keep the order. If the connection to a broker breaks, an owner has not handed over what was
// published, or a node that all have to know serves before the worker has told it of a pattern, messages may be lost:
// these gaps are counted.

const (
	// settleTurn is how many steps of looking at topics make a turn: one for a topic and each node that it
	// concerns.
	settleTurn = 512
	// listenPause is how long a worker waits before it tells a broker again what that did not take.
	listenPause = 10 * time.Millisecond
	// leavePatience is how long a worker waits for a broker to obey a newer table. One that takes longer is
	// cut off from the cluster. Less than half of the time for which the next owner keeps messages.
	leavePatience = 4 * time.Second
	// leavePause is the longest pause before such a broker is asked again. The first one is listenPause, and each
	// is twice as long as the one before.
	leavePause = 32 * listenPause
)

// listenLane is that of the pipes over which a worker listens.
var listenLane = order.Lane{Kind: member.Listening, Version: resp.RESP3}

// listening is what a worker listens to.
type listening struct {
	w       *worker
	session order.Session // on whose behalf it asks
	topics  [pubsub.Prefix + 1]map[string]*topic
	all     []*topic // the topics of all kinds, see lookAtAll
	next    int      // in all, from the end: the next one that lookAtAll has looked at
	left    int      // so many of all
	ready   []*topic // to be looked at
	posted  bool     // turn runs in the next iteration
	blocked []*topic // to be looked at after listenPause
	timer   bool     // which a timer will do
	waiting []*topic // to be looked at after pause, because the owner before does not obey the table yet
	paced   bool     // which a timer will do
	pause   time.Duration
	heirs   map[uint16]*order.Node
	epoch   uint64 // of the newest table; 0: there was none yet
	unheard uint32 // how often nodes have come and gone of which the tables here say nothing else

	owner [1]*order.Node // see brokersOf

	subscriptions int // of the worker's sessions
	follows       int // of these, to prefixes of keys

	board   pubsub.Board
	leaving []*pubsub.Subscriber // those who have gone, whose subscriptions end in turns
	paused  []*netloop.Conn      // pipes whose messages wait until the present one was shown to all
}

// topic is what sessions of the worker subscribe to.
type topic struct {
	kind     pubsub.Kind
	name     string
	count    int    // of subscribers
	version  uint64 // grows with each change of count
	ties     []*tie
	last     *order.Node // the last one that was live
	ended    bool        // the tie to last was ended, because the topic has moved
	gap      bool        // the connection to an owner broke, and no other one has acknowledged the topic since
	unheard  uint32      // as listening.unheard when the topic was last looked at
	changes  []change    // that are not acknowledged, by version
	listed   bool        // in ready, blocked or waiting
	place    int         // in listening.all
	notifies uint8       // of keyspace notifications: the level from which on nodes publish them; 0: it is no such channel
}

// change is a subscription or the end of one, which is answered when it is acknowledged.
type change struct {
	s       asker // nil: nobody waits for the answer
	seq     uint64
	version uint64
	more    bool
	count   int // in the answer
}

// asker is who has asked for a change.
type asker interface {
	isClosed() bool
	subscribed(t *topic, c change)    // the topic's brokers know of the change
	notSubscribed(t *topic, c change) // a broker has refused it
}

func newListening(w *worker) *listening { return &listening{w: w} }

// topicOf returns a topic, which it makes at the first subscription.
func (l *listening) topicOf(kind pubsub.Kind, name string) *topic {
	t := l.topics[kind][name]
	if t == nil {
		t = &topic{kind: kind, name: name, unheard: l.unheard}
		if database, ok := keyevent.Channel([]byte(name)); ok && kind == pubsub.Channel {
			if t.notifies = ring.EventsLevel; database > 0 {
				t.notifies = ring.DatabasesLevel
			}
		}
		if l.topics[kind] == nil {
			l.topics[kind] = make(map[string]*topic)
		}
		l.topics[kind][name] = t
		t.place = len(l.all)
		l.all = append(l.all, t)
	}
	return t
}

// forget drops a topic that nobody wants and no node knows.
func (l *listening) forget(t *topic) {
	delete(l.topics[t.kind], t.name)
	end := len(l.all) - 1
	last := l.all[end]
	l.all[t.place], l.all[end] = last, nil
	if l.all = l.all[:end]; last == t {
		return
	}
	if last.place = t.place; l.left > 0 {
		l.look(last) // lookAtAll may have passed its place
	}
}

// change notes that a topic has one subscriber more or fewer.
func (l *listening) change(kind pubsub.Kind, name string, more bool, c change) {
	t := l.topicOf(kind, name)
	by := -1
	if more {
		by = 1
	}
	t.count += by
	l.subscriptions += by
	if kind == pubsub.Prefix {
		l.follows += by
	}
	if t.version++; t.count == 0 {
		t.last, t.gap = nil, false // who subscribes later has missed nothing
	}
	if c.s != nil {
		c.version, c.more = t.version, more
		t.changes = append(t.changes, c)
	}
	l.look(t)
}

// look has a topic looked at soon.
func (l *listening) look(t *topic) {
	if !t.listed {
		t.listed = true
		l.ready = append(l.ready, t)
	}
	l.post()
}

func (l *listening) post() {
	if !l.posted && (len(l.ready) > 0 || l.left > 0) {
		l.posted = true
		l.w.loop.Post(l.turn)
	}
}

// lookAtAll has all topics looked at, in turns: there is another table, or a pipe has opened or broken. It
// goes round from where it is, so that those at the end of all get their turn however often it begins.
func (l *listening) lookAtAll() {
	l.left = len(l.all)
	l.post()
}

// turn looks at some topics: those in ready, and then as many of all.
func (l *listening) turn() {
	l.posted = false
	steps := settleTurn
	for len(l.ready) > 0 && steps > 0 {
		t := l.ready[0]
		l.ready[0] = nil
		l.ready = l.ready[1:]
		t.listed = false
		steps -= l.settle(t)
	}
	for steps = settleTurn; l.left > 0 && len(l.all) > 0 && steps > 0; {
		if l.next--; l.next < 0 || l.next >= len(l.all) {
			l.next = len(l.all) - 1
		}
		l.left--
		steps -= l.settle(l.all[l.next])
	}
	l.w.act()
	if len(l.ready) == 0 {
		l.ready = nil
	}
	if len(l.all) == 0 {
		l.left, l.all = 0, nil
	}
	l.post()
}

// unblock looks again at the topics that found no way.
func (l *listening) unblock() {
	l.timer = false
	l.ready = append(l.ready, l.blocked...)
	l.blocked = nil
	l.post()
}

// block looks at a topic again after listenPause.
func (l *listening) block(t *topic) {
	if !t.listed {
		t.listed = true
		l.blocked = append(l.blocked, t)
	}
	if !l.timer {
		l.timer = true
		l.w.loop.After(listenPause, l.unblock)
	}
}

// wait looks at a topic again after pause.
func (l *listening) wait(t *topic) {
	if !t.listed {
		t.listed = true
		l.waiting = append(l.waiting, t)
	}
	if l.paced {
		return
	}
	l.paced = true
	l.w.loop.After(l.pause, func() {
		l.paced = false
		l.pause = min(2*l.pause, leavePause)
		l.ready = append(l.ready, l.waiting...)
		l.waiting = nil
		l.post()
	})
}

// install follows the moves of a newer table.
func (l *listening) install(t *ring.Table) {
	l.pause = listenPause
	if l.epoch > 0 && t.Gone > l.epoch {
		l.unheard++
	}
	l.epoch = t.Epoch
	l.heirs = make(map[uint16]*order.Node, len(t.Moves))
	if l.w.order.Table() == t {
		for _, m := range t.Moves {
			l.heirs[m.Partition] = l.w.order.Nodes()[m.To]
		}
	}
	l.lookAtAll()
}

// settle tells nodes what they do not know of a topic yet, and answers what is acknowledged. It returns how
// many steps it has made.
func (l *listening) settle(t *topic) (steps int) {
	steps = 1 + len(t.ties) + len(t.changes)
	l.forgetVoid(t)
	t.changes = slices.DeleteFunc(t.changes, func(c change) bool { return c.s.isClosed() })
	if l.isEverywhere(t) {
		l.countUnheard(t)
		nodes := l.w.order.Nodes()
		steps += len(nodes)
		mode := member.Live
		if t.wasAnswered() { // a node that serves already may have published what nobody was shown
			mode = member.Follow
		}
		for _, n := range nodes {
			l.tell(t, n, mode)
		}
		for _, at := range t.ties {
			if !slices.Contains(nodes, at.node) {
				l.ask(at, member.Live, 0) // behind the answer nothing more comes from a node that leaves
			}
		}
	} else {
		l.settleChannel(t)
	}
	l.answer(t)
	if t.count == 0 && len(t.ties) == 0 && len(t.changes) == 0 && l.topics[t.kind][t.name] == t {
		l.forget(t)
	}
	return steps
}

// countUnheard counts what nodes have published that the worker could not tell of the topic: they came and went
// between two of its tables.
func (l *listening) countUnheard(t *topic) {
	if t.unheard == l.unheard {
		return
	}
	t.unheard = l.unheard
	if !t.wasAnswered() {
		return
	}
	l.countGap(t)
	if t.kind == pubsub.Prefix {
		l.w.forgetAll()
	}
}

// countGap counts that messages of a topic may be missing. Nobody misses those of a prefix: its sessions are told to
// forget everything.
func (l *listening) countGap(t *topic) {
	if t.kind != pubsub.Prefix {
		l.w.stats.Gaps++
	}
}

// isEverywhere reports whether all nodes must know a topic: patterns, and the channels of keyspace
// notifications, which the owners of the keys publish.
func (l *listening) isEverywhere(t *topic) bool {
	return t.kind == pubsub.Pattern || t.kind == pubsub.Prefix || t.notifies > 0 && l.w.order.Level() >= t.notifies
}

// settleChannel tells the owner of a channel and its heir. The owner does not send anything before all that
// comes from the node before is here. What the worker has said at a node to which the channel was to come
// stays until it is live at the owner: that node may serve for a moment, and tells the owner of the worker.
func (l *listening) settleChannel(t *topic) {
	p := ring.PartitionOf([]byte(t.name))
	owner, heir := l.w.order.OwnerByTable(p), l.heirs[p]
	waits, here := false, t.tieTo(owner)
	arrived := t.count == 0 || here != nil && here.live
	for _, at := range t.ties {
		if at.node != owner && (at.live || at.node != heir && arrived) {
			waits = waits || at.live
			l.end(at)
		}
	}
	moved := owner != nil && t.hasMoved(owner)
	switch {
	case owner == nil: // until a table says who that is, see install
	case !waits && moved:
		l.tell(t, owner, member.Follow)
	case !waits:
		l.tell(t, owner, member.Live)
	}
	if heir != nil && heir != owner {
		l.tell(t, heir, member.Ahead)
	}
}

// wasAnswered reports whether somebody subscribes to the topic who was told so.
func (t *topic) wasAnswered() bool {
	waiting := 0
	for i := range t.changes {
		if t.changes[i].more {
			waiting++
		}
	}
	return t.count > waiting
}

// hasMoved reports whether the owner has what was published between the end of the topic at the
// node before and now. The process that was at the owner's address before may have been the owner
// itself, which has come back and sent what it published, until that connection broke: then the
// worker goes on behind the gap that it has counted.
func (t *topic) hasMoved(owner *order.Node) bool {
	return t.last != nil && (t.ended || t.last != owner && t.last.Member.Addr != owner.Member.Addr)
}

// answer answers the changes that all brokers of the topic have acknowledged.
func (l *listening) answer(t *topic) {
	known, brokers := t.version, l.brokersOf(t)
	if len(brokers) == 0 {
		known = 0 // before the first table
	}
	for _, n := range brokers {
		switch at := t.tieTo(n); {
		case n == nil, at == nil && t.count > 0, at != nil && !at.live:
			known = 0
		case at != nil:
			known = min(known, at.told)
		}
	}
	for len(t.changes) > 0 && t.changes[0].version <= known {
		c := t.changes[0]
		t.changes = t.changes[1:]
		if !c.s.isClosed() {
			c.s.subscribed(t, c) // which may close it
		}
	}
}

// brokersOf returns the nodes that must know a topic; nil stands for an unknown one.
func (l *listening) brokersOf(t *topic) []*order.Node {
	if l.isEverywhere(t) {
		return l.w.order.Nodes()
	}
	l.owner[0] = l.ownerOf(t)
	return l.owner[:]
}

// ownerOf returns the node to which the table gives a channel, nil if there is none.
func (l *listening) ownerOf(t *topic) *order.Node {
	return l.w.order.OwnerByTable(ring.PartitionOf([]byte(t.name)))
}

// refuse answers with an error whatever waits for a topic that a broker does not take.
func (l *listening) refuse(t *topic) {
	waiting := t.changes
	t.changes = nil
	for _, c := range waiting {
		if !c.s.isClosed() {
			c.s.notSubscribed(t, c)
		}
	}
}
