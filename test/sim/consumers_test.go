package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/proxy/order"
)

// producer is a client that pushes elements.
type producer struct {
	*client
	writes bool // it adds entries to journals instead
}

func (p producer) burst() {
	w := p.w
	if p.stopped {
		return
	}
	if p.open < pipelined {
		p.push(p.target(), 1+w.rng.IntN(3))
	}
	w.after(nil, w.between(time.Millisecond, 250*time.Millisecond), p.burst)
}

// target is where it pushes to next.
func (p producer) target() spot {
	if p.writes {
		n := p.w.rng.IntN(places * journals)
		return journal(n/journals, n%journals)
	}
	return poppedFrom(p.w.rng.IntN(places * poppable))
}

// push pushes some elements to a list, or adds entries to a journal, each by a command of its own.
func (p producer) push(at spot, count int) {
	kind := push
	if at.isJournal() {
		kind = add
	}
	for range count {
		p.w.ids++
		p.send(&command{client: p.client, kind: kind, place: at.place(), key: at.key(), value: p.w.ids})
	}
}

// consumer is a client that waits for elements, with one command at a time. Now and then it
// vanishes, and another one comes, or somebody unblocks it.
type consumer struct {
	*client
	cmd  *command     // that is not answered
	seen map[spot]int // of a reader: the last ID that it has read of each journal; nil: it is none
}

func newConsumer(x *proxy) *consumer {
	c := &consumer{client: newClient(x, nil, nil)}
	c.s = newSession(x, c)
	return c
}

// next sends the next command.
func (c *consumer) next() {
	w := c.w
	if c.stopped {
		return
	}
	var cmd *command
	if c.seen != nil {
		cmd = c.follow()
	} else {
		cmd = c.pop()
	}
	if w.chance(0.7) {
		cmd.limit = w.between(time.Millisecond, time.Second)
	}
	c.cmd = cmd
	c.send(cmd)
	s := c.s
	switch x := w.rng.Float64(); {
	case x < 0.15:
		w.after(nil, w.between(0, 200*time.Millisecond), func() { c.vanish(cmd) })
	case x < 0.25:
		w.after(s.x.p, w.between(0, 200*time.Millisecond), func() {
			if s.waits == cmd {
				s.unblock()
			}
		})
	}
}

// pop is the next command of a consumer that is no reader.
func (c *consumer) pop() *command {
	w := c.w
	cmd := &command{client: c.client, kind: pop, slept: c.s.x.p.slept}
	reads, most := w.chance(0.3), 1+w.rng.IntN(4)
	for _, n := range w.rng.Perm(places * poppable) {
		if at := poppedFrom(n); at.isStream() == reads && len(cmd.wanted) < most {
			cmd.wanted = append(cmd.wanted, at)
		}
	}
	if !reads && w.chance(0.3) { // several keys of one partition
		k := w.rng.IntN(places)
		cmd.wanted = []spot{spotOf(k, 1), spotOf(k, 0)}
	}
	return cmd
}

// vanish has the client of a command go, unless that is answered.
func (c *consumer) vanish(cmd *command) {
	if c.cmd != cmd || c.stopped {
		return
	}
	w := c.w
	w.after(c.s.x.p, w.between(0, 500*time.Microsecond), c.s.vanish)
	c.cmd = nil
	c.open--
	c.s = newSession(c.s.x, c)
	w.after(nil, w.between(0, 20*time.Millisecond), c.next)
}

const (
	// ageUnit is how exactly a claim says for how long it has waited, and a pop for how long it
	// waits.
	ageUnit = time.Millisecond
	// overtime is how late a reply may be, beside the time for which its proxy stood still: until that gives up a node
	// that has the command and is silent. A command that has claims, and has not popped, ends in time.
	overtime, overtimeOfClaims = (silentTicks + 3) * order.SilenceTick, 20 * time.Millisecond
)

// answered checks a reply, and sends the next command.
func (c *consumer) answered(cmd *command, reply any) {
	if c.cmd != cmd {
		return // it has vanished
	}
	w := c.w
	c.cmd = nil
	c.client.answered(cmd, reply)
	if found, ok := reply.(portions); ok {
		c.reads(cmd, found)
	}
	took, late := w.now-cmd.begun, overtime
	if cmd.claimed != 0 && !cmd.pops {
		late = overtimeOfClaims
	}
	late += c.s.x.p.slept - cmd.slept
	if _, null := reply.(nothing); null && !cmd.woken && (cmd.limit == 0 || took < cmd.limit-ageUnit) {
		w.violate("%d has nothing after %v of %v", cmd.id, took, cmd.limit)
	}
	if cmd.limit > 0 && took > cmd.limit+late && !w.anyTime {
		w.violate("%d is answered after %v of %v", cmd.id, took, cmd.limit)
	}
	w.after(nil, w.between(0, 20*time.Millisecond), c.next)
}

// market is all who push elements, or add entries, and wait for them.
type market struct {
	producers []producer
	consumers []*consumer
	movers    []mover
}

func newMarket(proxies []*proxy) (m market) {
	for _, x := range proxies {
		if x.w.claims {
			m.producers = append(m.producers, producer{client: newClient(x, nil, nil)})
			m.consumers = append(m.consumers, newConsumer(x), newConsumer(x))
		}
		if x.w.moves {
			m.movers = append(m.movers, newMover(x))
		}
		if x.w.reads {
			m.producers = append(m.producers, producer{client: newClient(x, nil, nil), writes: true})
			m.consumers = append(m.consumers, newReader(x), newReader(x))
		}
	}
	return m
}

func (m market) begin() {
	for _, p := range m.producers {
		p.burst()
	}
	for _, c := range m.consumers {
		c.next()
	}
	for _, v := range m.movers {
		v.next()
	}
}

func (m market) clients() (clients []*client) {
	for _, p := range m.producers {
		clients = append(clients, p.client)
	}
	for _, c := range m.consumers {
		clients = append(clients, c.client)
	}
	for _, v := range m.movers {
		clients = append(clients, v.client)
	}
	return clients
}

// close has elements come to one place after the other, when nothing else happens any more: they
// serve all who wait.
func (w *world) close(m market) {
	w.checkWaiters(m.consumers)
	var all []spot
	if w.claims {
		for _, n := range w.rng.Perm(places * poppable) {
			all = append(all, poppedFrom(n))
		}
	}
	if w.reads {
		for n := range places * journals {
			all = append(all, journal(n/journals, n%journals))
		}
	}
	for _, at := range all {
		m.producers[0].push(at, readMost*len(m.consumers)) // a read may take so many
		w.run(w.now + time.Second)
		w.checkWaiters(m.consumers)
	}
	if w.fault == "" {
		w.checkElements()
	}
}

// checkWaiters checks that nobody waits for a list that has elements, or a journal that goes on.
func (w *world) checkWaiters(consumers []*consumer) {
	for _, c := range consumers {
		for at := range spot(spots) {
			if w.fault != "" || c.cmd == nil || !slices.Contains(c.cmd.wanted, at) {
				continue
			}
			owner := w.ownerOf(at.place())
			if !at.isJournal() && len(owner.list(at)) > 0 || at.isJournal() && c.cmd.misses(at, owner.newest(at)) {
				w.violate("%d waits for %d, where %v lie", c.cmd.id, at, owner.list(at))
			}
		}
	}
}
