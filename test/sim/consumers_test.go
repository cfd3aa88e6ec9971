package sim

import (
	"slices"
	"time"
)

// producer is a client that pushes elements.
type producer struct{ *client }

func (p producer) burst() {
	w := p.w
	if p.stopped {
		return
	}
	if p.open < pipelined {
		p.push(spot(w.rng.IntN(spots)), 1+w.rng.IntN(3))
	}
	w.after(nil, w.between(time.Millisecond, 250*time.Millisecond), p.burst)
}

// push pushes some elements to a list, each by a command of its own.
func (p producer) push(at spot, count int) {
	for range count {
		p.w.ids++
		p.send(&command{client: p.client, kind: push, place: at.place(), key: at.key(), value: p.w.ids})
	}
}

// consumer is a client that waits for elements, with one command at a time. Now and then it
// vanishes, and another one comes, or somebody unblocks it.
type consumer struct {
	*client
	cmd *command // that is not answered
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
	cmd := &command{client: c.client, kind: pop, slept: c.s.x.p.slept}
	reads, most := w.chance(0.3), 1+w.rng.IntN(4)
	for _, at := range w.rng.Perm(spots) {
		if at := spot(at); at.isStream() == reads && len(cmd.wanted) < most {
			cmd.wanted = append(cmd.wanted, at)
		}
	}
	if !reads && w.chance(0.3) { // several keys of one partition
		k := w.rng.IntN(places)
		cmd.wanted = []spot{spotOf(k, 1), spotOf(k, 0)}
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
	// overtime is how late a reply may be: as long as a proxy stands still and pops are parked. A
	// command that has claims, and has not popped, ends in time.
	overtime, overtimeOfClaims = holdLimit + 12*time.Second, 20 * time.Millisecond
)

// answered checks a reply, and sends the next command.
func (c *consumer) answered(cmd *command, reply any) {
	if c.cmd != cmd {
		return // it has vanished
	}
	w := c.w
	c.cmd = nil
	c.client.answered(cmd, reply)
	took, late := w.now-cmd.begun, overtime
	if cmd.claimed != 0 && !cmd.pops {
		late = overtimeOfClaims + c.s.x.p.slept - cmd.slept
	}
	if _, null := reply.(nothing); null && !cmd.woken && (cmd.limit == 0 || took < cmd.limit-ageUnit) {
		w.violate("%d has nothing after %v of %v", cmd.id, took, cmd.limit)
	}
	if cmd.limit > 0 && took > cmd.limit+late {
		w.violate("%d is answered after %v of %v", cmd.id, took, cmd.limit)
	}
	w.after(nil, w.between(0, 20*time.Millisecond), c.next)
}

// market is all who push elements and wait for them.
type market struct {
	producers []producer
	consumers []*consumer
}

func newMarket(proxies []*proxy) (m market) {
	for _, x := range proxies {
		m.producers = append(m.producers, producer{newClient(x, nil, nil)})
		m.consumers = append(m.consumers, newConsumer(x), newConsumer(x))
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
}

func (m market) clients() (clients []*client) {
	for _, p := range m.producers {
		clients = append(clients, p.client)
	}
	for _, c := range m.consumers {
		clients = append(clients, c.client)
	}
	return clients
}

// close has elements come to one place after the other, when nothing else happens any more: they
// serve all who wait.
func (w *world) close(m market) {
	w.checkWaiters(m.consumers)
	for _, at := range w.rng.Perm(spots) {
		m.producers[0].push(spot(at), len(m.consumers))
		w.run(w.now + time.Second)
		w.checkWaiters(m.consumers)
	}
	if w.fault == "" {
		w.checkElements()
	}
}

// checkWaiters checks that nobody waits for a list that has elements.
func (w *world) checkWaiters(consumers []*consumer) {
	for _, c := range consumers {
		for at := range spot(spots) {
			if w.fault == "" && c.cmd != nil && slices.Contains(c.cmd.wanted, at) && len(w.ownerOf(at.place()).list(at)) > 0 {
				w.violate("%d waits for %d, where %v lie", c.cmd.id, at, w.ownerOf(at.place()).list(at))
			}
		}
	}
}
