package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/node/broker"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/ring"
)

// The channel of each place at its nodes: package node/broker itself, and around it what
// node/listen.go and topics.go do.

// topicsPatience is how much longer than the hand-over of data that of channels may take.
const topicsPatience = 200 * time.Millisecond

// What goes over a pipe that listens, beside what package member encodes.
type (
	listening struct{ member.Listen }
	message   struct { // a push
		place, id int
	}
	lost struct{} // a push
)

// channels is a node's part in pub/sub.
type channels struct {
	broker    *broker.Broker
	following broker.Following
	listeners map[*nodePipe]*broker.Receiver
	untold    placeSet             // what this node has lost, and of which it has not looked yet who listens there
	told      map[*nodePipe]uint64 // how many messages the proxy knows to be lost
}

func newChannels() channels {
	return channels{
		broker:    broker.New(func(int64) bool { return true }, func(int64) {}),
		listeners: make(map[*nodePipe]*broker.Receiver), told: make(map[*nodePipe]uint64),
	}
}

func (w *world) channelOf(k int) []byte { return []byte("{" + tags()[w.tracked[k]] + "}channel") }

// originOf says whose receiver a proxy's is.
func (p *proc) origin() broker.Origin { return broker.Origin{Boot: p.boot} }

// publish executes a PUBLISH.
func (n *node) publish(c *command, k int, genuine bool) (subscribers int) {
	w := n.w
	n.forgetBacklogs()
	w.published[k] = append(w.published[k], publication{id: c.id, sure: genuine && !w.apart() && !w.truth[k].unsure})
	keep := n.following.Since(n.looped, w.tracked[k], w.now)
	if w.noBacklogs {
		keep = 0
	}
	subscribers, _ = n.broker.Publish(pubsub.Channel, w.channelOf(k), strconv.AppendInt(nil, int64(c.id), 10), keep)
	return subscribers
}

func (n *node) forgetBacklogs() {
	if n.following.HasEnded(n.w.now) && n.broker.Keeps() {
		n.broker.Forget()
	}
}

// hear answers LISTEN.
func (p *nodePipe) hear(l *listening) {
	n := p.n
	n.forgetBacklogs()
	rc := n.listeners[p]
	if rc == nil {
		rc = broker.NewReceiver(1<<30, func() { n.w.after(n.p, n.w.between(0, time.Millisecond), func() { p.deliver() }) })
		rc.Origin = n.w.procNamed(p.key.proxy).origin()
		n.listeners[p] = rc
	}
	v, at := n.looped, ring.PartitionOf(l.Name)
	brokers, live := v.Standing[at] == ownership.Serving, broker.Mode(l.Mode) == broker.Live
	switch {
	case v.Standing[at] == ownership.Gained:
		brokers = !live
	case v.Standing[at] == ownership.Foreign && v.Table != nil:
		comes := v.MoveTo[at] != ring.NoNode && int(v.MoveTo[at]) == v.Self
		brokers = comes && (broker.Mode(l.Mode) == broker.Ahead || n.w.listenEarly)
	}
	had := rc.Count(pubsub.Channel, l.Name) > 0
	answer := member.Noted
	switch {
	case l.Count == 0:
		n.broker.Listen(rc, pubsub.Channel, l.Name, 0)
		p.deliver()
	case !brokers && !(had && live && (v.Held.Has(at) || v.Standing[at] == ownership.Gained || n.untold.has(n.w.place(at)))):
		answer = member.NotOwner
	default:
		answer = p.listenAs(rc, l, at)
	}
	p.c.send(1, member.AppendHeard(nil, answer))
}

func (p *nodePipe) listenAs(rc *broker.Receiver, l *listening, at uint16) member.Heard {
	n, v, mode := p.n, p.n.looped, broker.Mode(l.Mode)
	late := mode == broker.Follow && n.following.Since(v, at, n.w.now) == 0
	torn := mode == broker.Follow && (v.Table.Level >= ring.HandedLevel && !n.following.IsWhole(v, at) && !n.w.trustAnybody ||
		!n.broker.IsTold(rc.Origin, pubsub.Channel, l.Name) && !n.w.knowAnybody)
	waits := torn && v.Standing[at] == ownership.Gained
	if waits {
		mode = broker.Ahead
	}
	switch whole := n.broker.ListenAs(mode, rc, pubsub.Channel, l.Name, l.Count, v.Began[at]); {
	case waits:
		return member.NotOwner
	case torn, late, !whole:
		return member.Gapped
	}
	return member.Noted
}

// deliver sends what was published.
func (p *nodePipe) deliver() {
	n := p.n
	rc := n.listeners[p]
	if rc == nil || p.superseded || p.ended {
		return
	}
	list, _ := rc.Take(nil, 1<<30)
	if rc.Lost() > n.told[p] {
		n.told[p] = rc.Lost()
		p.c.send(1, lost{})
	}
	for _, m := range list {
		id, _ := strconv.Atoi(string(m.Payload))
		p.c.send(1, message{n.w.place(ring.PartitionOf(m.Channel)), id})
		m.Release()
	}
}

// endListening ends what a pipe listens to.
func (p *nodePipe) endListening() {
	if rc := p.n.listeners[p]; rc != nil {
		delete(p.n.listeners, p)
		p.n.broker.Leave(rc)
	}
}

// obeyChannels is told of the next view.
func (n *node) obeyChannels(next *ownership.View) {
	old := n.view
	if next.Newest > old.Newest {
		n.following.Gained(next.Newest, n.w.now)
	}
	n.broker.Discard(func(channel string) bool {
		p := ring.PartitionOf([]byte(channel))
		return next.Began[p] != old.Began[p] && next.Owns(p)
	}, old.Epoch())
	returned := n.following.Returned(old, next)
	if n.w.knowAnybody {
		returned = ring.PartitionSet{}
	}
	var torn ring.PartitionSet
	if next.Table.Level >= ring.HandedLevel {
		torn = n.following.Torn(old, next)
	}
	n.broker.Gap(func(channel string) uint64 {
		if p := ring.PartitionOf([]byte(channel)); torn.Has(p) || returned.Has(p) {
			return next.Began[p]
		}
		return 0
	}, func(channel string) bool { return torn.Has(ring.PartitionOf([]byte(channel))) }, func() bool { return true })
	n.following.Obeys(old, next)
	for k, p := range n.w.tracked {
		switch {
		case next.Standing[p] != ownership.Foreign:
			n.untold &^= 1 << k
		case old.Standing[p] != ownership.Foreign:
			n.untold |= 1 << k
		}
	}
}

// channelsOf is what a hand-over tells an heir of channels.
type channelsOf struct {
	n       *node
	heir    string // an address
	epoch   uint64
	gets    placeSet
	topics  []broker.Told
	missed  []missed
	whole   ring.PartitionSet
	all     bool // nothing was refused
	ended   bool
	flushed func() // when the rest is handed over: it waits for this
}

type missed struct {
	place   int
	channel string
	payload []byte
	by      []broker.Origin
}

// handChannels begins to tell the heirs of a hand-over what they get of channels, by name. It
// returns who gets only that.
func (n *node) handChannels(a ownership.HandOver, h *replica.HandOver) (told map[string]*channelsOf, others []string) {
	a.Old, a.Away = n.w.tracking(a.Old), a.Away && !n.w.handAway
	handed, gets := n.following.HandOver(a, h.Partitions(), n.broker.Overrun(), n.w.now), make(map[string]placeSet)
	set := handed.Over
	for k, p := range n.w.tracked {
		heir := a.Next.Table.OwnerOf(p).Name()
		if set.Has(p) && heir != n.p.name {
			gets[heir] |= 1 << k
		}
		if handed.Unserved.Has(p) && !slices.Contains(h.Heirs, heir) && !slices.Contains(others, heir) {
			others = append(others, heir)
		}
	}
	if !n.w.keepUnhanded {
		n.broker.Discard(func(channel string) bool { return handed.Gone.Has(ring.PartitionOf([]byte(channel))) }, a.Old.Epoch())
	}
	for k, p := range n.w.tracked {
		if a.Old.Standing[p] != ownership.Foreign && !set.Has(p) {
			n.untold &^= 1 << k
		}
	}
	told = make(map[string]*channelsOf)
	for _, heir := range slices.Concat(h.Heirs, others) {
		at := slices.IndexFunc(a.Next.Table.Nodes, func(m ring.Member) bool { return m.Name() == heir })
		to := &channelsOf{n: n, heir: a.Next.Table.Nodes[at].Addr, epoch: a.Next.Epoch(), gets: gets[heir], all: true}
		told[heir] = to
		began := a.Old
		n.w.after(n.p, n.w.between(0, time.Millisecond), func() { to.begin(began, handed.Whole) })
	}
	return told, others
}

func (to *channelsOf) begin(old *ownership.View, whole ring.PartitionSet) {
	n, w := to.n, to.n.w
	keep := func(channel string) bool { return to.gets.has(w.place(ring.PartitionOf([]byte(channel)))) }
	goOn := func() bool { return true }
	list, _, done := n.broker.Missed(keep, func(channel string) uint64 { return old.Began[ring.PartitionOf([]byte(channel))] }, goOn)
	for _, m := range list {
		at := w.place(ring.PartitionOf(m.Channel))
		to.missed = append(to.missed, missed{at, string(m.Channel), slices.Clone(m.Payload), m.By})
	}
	done()
	topics, _, done := n.broker.Told(keep, goOn)
	to.topics = topics
	done()
	n.untold &^= to.gets
	// The broker goes by hashes that are others in each run.
	slices.SortStableFunc(to.missed, func(a, b missed) int { return cmp.Compare(a.place, b.place) })
	slices.SortFunc(to.topics, func(a, b broker.Told) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Origin.Boot, b.Origin.Boot))
	})
	for k, p := range w.tracked {
		if to.gets.has(k) && whole.Has(p) {
			to.whole.Add(p)
		}
	}
	if w.noMissed {
		to.missed = nil
	}
	to.tell(func(at *node) bool {
		at.following.Gained(to.epoch, w.now)
		for _, t := range to.topics {
			at.broker.Expect(t, to.epoch)
		}
		return true
	}, to.tellMissed)
}

// tell has the heir take something in, and goes on with what follows.
func (to *channelsOf) tell(take func(at *node) bool, then func()) {
	n := to.n
	n.w.call(n.p, to.heir, ownership.TakeTimeout, func(at *proc, reply func(any)) { reply(at.node != nil && take(at.node)) }, func(answer any) {
		ok, came := answer.(bool)
		switch {
		case to.ended:
		case !came || !ok:
			to.end(false)
		default:
			then()
		}
	})
}

func (to *channelsOf) tellMissed() {
	if len(to.missed) == 0 {
		by := to.n.p.name
		to.tell(func(at *node) bool { at.following.Took(&to.whole, by); return true }, func() { to.end(true) })
		return
	}
	w, m := to.n.w, to.missed[0]
	to.missed = to.missed[1:]
	to.tell(func(at *node) bool {
		if broker.IsLate(at.view, w.tracked[m.place], to.epoch) && !w.takeLate {
			return false
		}
		return at.broker.Miss(pubsub.Channel, []byte(m.channel), m.payload, m.by, to.epoch)
	}, to.tellMissed)
}

// end is the end of what is told. Whatever does not reach the heir in time is a gap.
func (to *channelsOf) end(all bool) {
	if to.ended {
		return
	}
	to.ended = true
	if w := to.n.w; !all {
		w.untold = w.now
	}
	if to.flushed != nil {
		to.flushed()
	}
}

// awaitEnd calls f when all is told, or that takes too long.
func (to *channelsOf) awaitEnd(f func()) {
	if to.ended {
		f()
		return
	}
	to.flushed = f
	to.n.w.after(to.n.p, topicsPatience, func() { to.end(false) })
}

// publication is a message that was published. sure: by the one server of its place.
type publication struct {
	id   int
	sure bool
}

// publisher is a client that publishes, one message at a time.
type publisher struct{ *client }

func newPublisher(x *proxy) publisher {
	p := publisher{newClient(x, nil, nil)}
	p.s = newSession(x, p)
	return p
}

func (p publisher) next() {
	if !p.stopped {
		p.send(&command{client: p.client, kind: publish, place: p.w.rng.IntN(places)})
	}
}

// answered takes the reply, and sends the next command.
func (p publisher) answered(cmd *command, reply any) {
	p.client.answered(cmd, reply)
	pause := 40 * time.Millisecond
	if p.w.busy {
		pause = 5 * time.Millisecond
	}
	p.w.after(nil, p.w.between(0, pause), p.next)
}

// procNamed returns the process with a name.
func (w *world) procNamed(name string) *proc {
	i := slices.IndexFunc(w.procs, func(p *proc) bool { return p.name == name })
	if i < 0 {
		panic(fmt.Sprintf("BUG: nobody is %s", name))
	}
	return w.procs[i]
}
