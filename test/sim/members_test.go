package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// A model of memberlist: members tell one another what they know of each. A member that nobody has
// heard for a while is declared dead. Everybody believes that until the member refutes it. News
// arrives late, and at some members later than at others.

const (
	beatInterval  = 250 * time.Millisecond
	suspicionTime = time.Second
	beatFanout    = 3
	joinTimeout   = 2 * time.Second
	freshDeath    = 600 * time.Millisecond // for so long a death is spread, and believed
)

type status uint8

const (
	alive status = iota
	dead
	left
)

// entry is what one member knows of another, or of itself.
type entry struct {
	who    *proc
	member ring.Member // as it announced itself
	seq    uint64      // of that
	inc    int         // raised to come back from the dead
	beat   int
	heard  time.Duration // when beat grew last, by the clock of who knows it
	status status
	died   time.Duration // when it was declared dead
}

// agent is a process's membership, and what it thinks of tables (steer_test.go).
type agent struct {
	w *world
	p *proc
	entry
	peers   []*entry // by name
	patient time.Duration

	table *ring.Table
	steering
}

func newAgent(p *proc) *agent {
	a := &agent{w: p.w, p: p, patient: p.w.between(1250*time.Millisecond, 1700*time.Millisecond)}
	a.entry = entry{who: p, seq: 1, member: ring.Member{
		ID: p.id, Boot: p.boot, Role: p.role, State: ring.Serving, Addr: p.addr, Fingerprint: ring.Fingerprint()}}
	if a.w.holds || a.w.claims || a.w.reads || a.w.channels {
		a.member.Level = ring.Level
	}
	a.steering = newSteering(a)
	a.w.after(p, a.w.between(0, beatInterval), a.beatNow)
	a.wake()
	return a
}

func (a *agent) peer(p *proc) *entry {
	i, found := slices.BinarySearchFunc(a.peers, p.name, func(e *entry, name string) int { return cmp.Compare(e.who.name, name) })
	if !found {
		return nil
	}
	return a.peers[i]
}

// beatNow tells some members what this one knows, and one that is not known alive.
func (a *agent) beatNow() {
	w := a.w
	a.beat++
	a.declareDead()
	to, lost := []*proc{}, []*proc{}
	for _, e := range a.peers {
		if e.status == alive {
			to = append(to, e.who)
		}
	}
	for _, p := range w.procs { // the join addresses
		if e := a.peer(p); p != a.p && w.byAddr[p.addr] == p && (e == nil || e.status != alive) {
			lost = append(lost, p)
		}
	}
	w.rng.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
	to = to[:min(len(to), beatFanout)]
	if len(lost) > 0 && (len(to) == 0 || w.chance(0.5)) {
		to = append(to, lost[w.rng.IntN(len(lost))])
	}
	for _, p := range to {
		a.gossip(p)
	}
	w.after(a.p, beatInterval+w.between(-10*time.Millisecond, 10*time.Millisecond), a.beatNow)
}

// gossip sends all that is known.
func (a *agent) gossip(to *proc) {
	news := a.known()
	a.w.datagram(a.p, to, func() { to.agent.hear(news) })
}

func (a *agent) known() []entry {
	news := make([]entry, 0, len(a.peers)+1)
	news = append(news, a.entry)
	for _, e := range a.peers {
		news = append(news, *e)
	}
	return news
}

// search asks each join address once whose member this one does not know to be alive: see mayFound
// in package ring/office.
func (a *agent) search() {
	missing := 1
	answered := func() {
		if missing--; missing == 0 {
			a.searched = true
			a.wake()
		}
	}
	for _, p := range a.w.procs {
		e := a.peer(p)
		if p == a.p || a.w.byAddr[p.addr] != p || e != nil && e.status == alive {
			continue
		}
		missing++
		own := a.known()
		a.w.call(a.p, p.addr, joinTimeout, func(at *proc, reply func(any)) {
			at.agent.hear(own)
			reply(at.agent.known())
		}, func(answer any) {
			if news, ok := answer.([]entry); ok {
				a.hear(news)
			}
			answered()
		})
	}
	answered()
}

func (a *agent) declareDead() {
	for _, e := range a.peers {
		if e.status == alive && a.w.now-e.heard > a.patient {
			e.status, e.died = dead, a.w.now
			a.w.tracef("%s declares %s dead", a.p.name, e.who.name)
			a.spread()
			a.wake()
		}
	}
}

// spread tells everybody at once.
func (a *agent) spread() {
	for _, e := range a.peers {
		if e.status == alive {
			a.gossip(e.who)
		}
	}
}

func (a *agent) hear(news []entry) {
	for i := range news {
		e := &news[i]
		if e.who == a.p {
			if e.status == dead && e.inc >= a.inc {
				a.inc = e.inc + 1
				a.w.tracef("%s says that it is not dead", a.p.name)
				a.spread()
			}
			continue
		}
		a.merge(e)
	}
}

func (a *agent) merge(e *entry) {
	have := a.peer(e.who)
	if have == nil {
		if e.status != alive {
			return
		}
		have = &entry{who: e.who, member: e.member, seq: e.seq, inc: e.inc, beat: e.beat, heard: a.w.now}
		a.peers = append(a.peers, have)
		slices.SortFunc(a.peers, func(x, y *entry) int { return cmp.Compare(x.who.name, y.who.name) })
		a.wake()
		return
	}
	if e.seq > have.seq {
		have.seq, have.member = e.seq, e.member
		a.wake()
	}
	before := have.status
	switch {
	case e.status == dead && have.status == alive && e.inc >= have.inc && a.w.now-e.died > freshDeath:
		// memberlist takes a death that an exchange of states brings for a suspicion, which can
		// be refuted.
		have.inc = e.inc
		have.heard = min(have.heard, a.w.now-a.patient+suspicionTime)
		news := []entry{{who: e.who, inc: e.inc, status: dead, died: e.died}}
		a.w.datagram(a.p, e.who, func() { e.who.agent.hear(news) })
	case have.status == left:
	case e.status == left:
		have.status = left
	case e.inc > have.inc:
		have.inc, have.beat, have.status, have.heard, have.died = e.inc, e.beat, e.status, a.w.now, e.died
	case e.inc < have.inc || have.status == dead:
	case e.status == dead:
		have.status, have.died = dead, e.died
	case e.beat > have.beat:
		have.beat, have.heard = e.beat, a.w.now
	}
	if have.status != before {
		a.wake()
	}
}

// announce sends this member's new state to all members that are alive.
func (a *agent) announce() {
	a.seq++
	own := a.entry
	for _, e := range a.peers {
		if e.status == alive {
			a.w.datagram(a.p, e.who, func() { e.who.agent.hear([]entry{own}) })
		}
	}
}

// alive returns the members that are not declared dead, this one included, sorted by id. Of each id
// it returns the newest boot.
func (a *agent) alive() []ring.Member {
	members := make([]ring.Member, 0, len(a.peers)+1)
	add := func(m ring.Member) {
		i := slices.IndexFunc(members, func(o ring.Member) bool { return o.ID == m.ID })
		switch {
		case i < 0:
			members = append(members, m)
		case m.Boot > members[i].Boot:
			members[i] = m
		}
	}
	add(a.member)
	for _, e := range a.peers {
		if e.status == alive {
			add(e.member)
		}
	}
	slices.SortFunc(members, func(x, y ring.Member) int { return cmp.Compare(x.ID, y.ID) })
	return members
}

// otherNodes are the nodes of members other than this one.
func (a *agent) otherNodes(members []ring.Member) (nodes []ring.Member) {
	for _, m := range members {
		if m.Role == ring.RoleNode && (m.ID != a.p.id || m.Boot != a.p.boot) {
			nodes = append(nodes, m)
		}
	}
	return nodes
}

// leave is a graceful end: others take over first.
func (a *agent) leave(gone func()) {
	a.member.State = ring.Leaving
	a.w.tracef("%s begins to leave", a.p.name)
	a.announce()
	a.wake()
	deadline := a.w.now + 20*time.Second
	var look func()
	goodbye := func() {
		a.status = left
		a.spread()
		a.w.after(a.p, a.w.between(10*time.Millisecond, 500*time.Millisecond), gone) // it waits until that is sent, at most half a second
	}
	look = func() {
		named := a.table != nil && a.table.NodeIndex(a.p.id, a.p.boot) >= 0
		needed := named &&
			slices.ContainsFunc(a.otherNodes(a.alive()), func(m ring.Member) bool { return m.State == ring.Serving })
		if needed && a.w.now < deadline {
			a.w.after(a.p, 20*time.Millisecond, look)
			return
		}
		if named {
			a.w.hurt(a.p) // what it has is lost: nobody takes over, or not in time
		}
		if named || a.table == nil {
			goodbye()
			return
		}
		a.p.node.release(a.table, max(deadline-a.w.now, time.Second), goodbye)
	}
	look()
}
