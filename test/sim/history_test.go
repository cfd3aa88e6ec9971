package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// In a history nodes and proxies start and clients talk to them. Faults happen for a while. When
// they have ended, the cluster must recover.

const (
	healTime = 60 * time.Second // within which all is well again
	wellFor  = 2 * time.Second
	lastTime = 2 * time.Second // of talk after that
)

// newWorld makes a history that has not begun.
func newWorld(o options) *world {
	w := &world{options: o, rng: rand.New(rand.NewPCG(o.seed, 0x51D)), byAddr: make(map[string]*proc),
		issued: make(map[ring.Version]*ring.Table), truth: make([]truth, places), halves: make(map[[2]int]bool),
		lists: make([][]int, 1), elements: make(map[int]*element)}
	w.now = time.Second // 0 stands for never
	for len(w.tracked) < places {
		p := uint16(w.rng.IntN(ring.Partitions))
		pinned := p == ring.PinnedPartition(databaseOf(1)) || p == ring.PinnedPartition(databaseOf(2)) // which is special there
		if !pinned && !slices.Contains(w.tracked, p) {
			w.tracked = append(w.tracked, p)
		}
	}
	if o.copies == 0 {
		w.copies = 1 + min(1, w.rng.IntN(4))
	}
	w.slow = []float64{0, 0.01, 0.1}[w.rng.IntN(3)]
	w.pace = []time.Duration{0, 20 * time.Millisecond, 200 * time.Millisecond}[w.rng.IntN(3)]
	w.lossy = []float64{0, 0, 0.02}[w.rng.IntN(3)]
	if o.hard {
		w.slow, w.pace = 0.3, 200*time.Millisecond
	}
	return w
}

// history runs one and returns its world.
func history(o options) *world {
	w := newWorld(o)
	nodes := 2 + w.rng.IntN(3)
	if o.majority {
		w.atLeast = nodes/2 + 1
	}
	for i := range nodes {
		w.startNode(i)
	}
	var clients []*client
	var proxies []*proxy
	for i := range 2 {
		x := w.startProxy(maxHosts - 1 - i)
		proxies = append(proxies, x)
		for j := range 2 {
			var own [][2]int
			var pairs []int
			for k := range places {
				if k%4 == i*2+j {
					pairs = append(pairs, k)
				}
				for key := range ownKeys {
					if (k*2+key)%4 == i*2+j {
						own = append(own, [2]int{k, key})
					}
				}
			}
			clients = append(clients, newClient(x, own, pairs))
		}
	}
	var m market
	if o.claims || o.reads {
		m = newMarket(proxies)
	}
	var publishers []publisher
	if o.channels {
		for i := range 4 {
			publishers = append(publishers, newPublisher(proxies[i%len(proxies)]))
		}
	}
	w.starting = true
	w.settle()
	w.starting, w.calm, w.lastCut = false, false, 0
	for _, c := range clients {
		w.after(nil, w.between(0, 50*time.Millisecond), c.burst)
	}
	m.begin()
	if o.channels {
		for _, x := range proxies {
			x.listen()
		}
	}
	for _, p := range publishers {
		w.after(nil, w.between(0, 50*time.Millisecond), p.next)
	}
	w.run(w.now + w.between(0, 2*time.Second))
	times, pause := 1+w.rng.IntN(5), 4*time.Second
	if o.restless {
		times, pause = 12, 2*time.Second
	}
	if o.script != nil {
		o.script(w)
		times = 0
	}
	for range times {
		w.doMischief()
		w.run(w.now + w.between(0, pause))
	}
	w.run(w.now + 3*time.Second)
	w.makePeace()
	w.settle()
	w.run(w.now + lastTime)
	clients = append(clients, m.clients()...)
	for _, p := range publishers {
		clients = append(clients, p.client)
	}
	for _, c := range clients {
		c.stopped = true
	}
	w.run(w.now + holdLimit + 3*time.Second)
	if o.claims || o.reads {
		w.close(m)
	}
	if o.channels {
		w.checkSubscribers(proxies)
	}
	for _, c := range clients {
		if c.open > 0 {
			w.violate("a client waits for %d replies for ever", c.open)
		}
	}
	return w
}

// leaveSleeper has a node sleep, with its machine, until the others have taken over from it, and have died, all of
// them. Then it goes on. Nothing that they sent meanwhile reaches it.
func leaveSleeper(w *world) {
	sleeper := w.coordinator()
	sleeper.stop()
	for host := range maxHosts {
		w.cut[sleeper.host][host], w.cut[host][sleeper.host] = true, true
	}
	w.run(w.now + 5*time.Second)
	for _, p := range w.nodes() {
		if p != sleeper {
			p.kill()
		}
	}
	w.run(w.now + time.Second)
	w.heal()
	sleeper.resume()
	w.run(w.now + 5*time.Second)
}

// sleepThroughMoves has a proxy stand still while channels move to a node, and on from there when that has
// forgotten the proxy.
func sleepThroughMoves(w *world) {
	sleeper := w.procs[slices.IndexFunc(w.procs, func(p *proc) bool { return p.proxy != nil })]
	comes := w.join()
	w.run(w.now + w.between(0, time.Second)) // it may hear that channels are to move
	sleeper.stop()
	w.run(w.now + w.between(11*time.Second, 14*time.Second))
	if w.chance(0.5) && slices.Contains(w.nodes(), comes) {
		comes.agent.leave(comes.end)
	} else {
		w.join()
	}
	w.run(w.now + w.between(time.Second, 5*time.Second))
	sleeper.resume()
	w.run(w.now + 5*time.Second)
}

func (w *world) start(id string, role ring.Role, host int) *proc {
	w.boots++
	p := &proc{w: w, id: id, boot: w.boots, addr: fmt.Sprintf("%s:6380", id), host: host, role: role}
	p.name = ring.Member{ID: id, Boot: p.boot}.Name()
	w.procs = append(w.procs, p)
	w.byAddr[p.addr] = p
	w.tracef("%s starts", p.name)
	return p
}

func (w *world) startNode(host int) {
	p := w.start(fmt.Sprintf("n%d", host), ring.RoleNode, host)
	p.node = newNode(p)
	p.agent = newAgent(p)
	p.node.a = p.agent
}

func (w *world) startProxy(host int) *proxy {
	p := w.start(fmt.Sprintf("x%d", host), ring.RoleProxy, host)
	p.proxy = newProxy(p)
	p.agent = newAgent(p)
	return p.proxy
}

// nodes returns the serving nodes that live.
func (w *world) nodes() (nodes []*proc) {
	for _, p := range w.procs {
		if p.node != nil && !p.dead && p.agent.status != left && p.agent.member.State == ring.Serving {
			nodes = append(nodes, p)
		}
	}
	return nodes
}

func (w *world) someNode() *proc {
	nodes := w.nodes()
	return nodes[w.rng.IntN(len(nodes))]
}

// coordinator is the oldest node.
func (w *world) coordinator() *proc {
	return slices.MinFunc(w.nodes(), func(a, b *proc) int { return int(a.boot - b.boot) })
}

// mischief is a kind of what may happen to the cluster.
type mischief uint8

const (
	crashes mischief = iota
	crashesOfTwo
	stops
	stopsOfTwo
	stopsOfProxies
	joins
	leaves
	cuts // nodes from nodes
	proxyCuts
	resets
	crashesOfTakers // nodes that have just been given something
	stopsOfIssuers  // behind a table that nobody else has seen
	returns         // what a node loses while a proxy cannot reach it comes back to it meanwhile
)

// often has the share of each kind of mischief, in percent.
var often = []int{crashes: 12, crashesOfTwo: 6, stops: 15, stopsOfTwo: 6, stopsOfProxies: 6, joins: 12, leaves: 12, cuts: 10, proxyCuts: 6, resets: 4, crashesOfTakers: 6, stopsOfIssuers: 3, returns: 2}

func (w *world) chooseMischief() mischief {
	if w.only != nil {
		return w.only[w.rng.IntN(len(w.only))]
	}
	x := w.rng.IntN(100)
	for m, share := range often {
		if x -= share; x < 0 {
			return mischief(m)
		}
	}
	panic("BUG: the shares are less than a hundred")
}

// doMischief does something to the cluster.
func (w *world) doMischief() {
	if len(w.nodes()) == 0 {
		return
	}
	p := w.someNode()
	if w.chance(0.3) {
		p = w.coordinator()
	}
	switch w.chooseMischief() {
	case crashes:
		w.crash(p)
	case crashesOfTwo:
		w.crash(p)
		if len(w.nodes()) > 1 {
			w.crash(w.someNode())
		}
	case stops:
		w.pause(p)
	case stopsOfTwo:
		w.pause(p)
		w.pause(w.someNode())
	case stopsOfProxies:
		w.pause(w.procs[slices.IndexFunc(w.procs, func(p *proc) bool { return p.proxy != nil })])
	case joins:
		w.join()
	case leaves:
		if len(w.nodes()) > 1 {
			p.agent.leave(p.end)
		}
	case cuts:
		w.isolate(p)
	case proxyCuts:
		w.cutProxy(p, w.between(100*time.Millisecond, 3*time.Second))
	case resets:
		w.breakConns(p)
	case returns:
		w.giveAndTake(p)
	case crashesOfTakers:
		w.takerDies = true
		w.shift(p)
	case stopsOfIssuers:
		w.issuer.stops = true
		w.shift(p)
	}
}

// shift has a node leave or another one join, so that a table is issued.
func (w *world) shift(p *proc) {
	if len(w.nodes()) > 1 && w.chance(0.5) {
		p.agent.leave(p.end)
	} else {
		w.join()
	}
}

// takerTime is about how long it takes to hand over what a table gives to another node.
const takerTime = 50 * time.Millisecond

// crashTaker kills a node to which a table gives what another one serves, while it takes that over.
func (w *world) crashTaker(t *ring.Table) {
	for k, p := range w.tracked {
		before, name := w.truth[k].server, t.OwnerOf(p).Name()
		i := slices.IndexFunc(w.nodes(), func(p *proc) bool { return p.name == name })
		if before == nil || before.p.dead || before.p.name == name || i < 0 {
			continue
		}
		w.takerDies = false
		taker := w.nodes()[i]
		w.after(nil, w.between(0, takerTime), func() {
			if !taker.dead && !w.peace {
				w.crash(taker)
			}
		})
		return
	}
}

func (p *proc) end() {
	if !p.dead {
		p.dead, p.left = true, true
		p.w.tracef("%s ends", p.name)
		if p.w.byAddr[p.addr] == p {
			delete(p.w.byAddr, p.addr)
		}
		for _, c := range slices.Clone(p.conns) {
			c.lost(c.end(p))
		}
	}
}

// crash kills a node; it comes back at once, within the suspicion time, later or never.
func (w *world) crash(p *proc) {
	p.kill()
	if len(w.nodes()) == 0 || w.chance(0.7) {
		host := p.host
		w.after(nil, w.between(0, 3*time.Second), func() { w.startNode(host) })
	}
}

func (w *world) pause(p *proc) {
	p.stop()
	d := w.between(10*time.Millisecond, 900*time.Millisecond)
	if w.chance(0.6) {
		d = w.between(500*time.Millisecond, 6*time.Second)
	}
	w.after(nil, d, p.resume)
}

// join has another node come, if there may be more. It returns it, or nil.
func (w *world) join() *proc {
	for host := range 6 {
		used := slices.ContainsFunc(w.procs, func(p *proc) bool { return p.host == host })
		if !used {
			w.startNode(host)
			return w.procs[len(w.procs)-1]
		}
	}
	return nil
}

// giveAndTake keeps a node and a proxy apart, while another node comes and goes again.
func (w *world) giveAndTake(p *proc) {
	w.cutProxy(p, w.between(3*time.Second, 9*time.Second))
	q := w.join()
	w.after(nil, w.between(2*time.Second, 4*time.Second), func() {
		if q != nil && !q.dead && !w.peace && len(w.nodes()) > 1 {
			q.agent.leave(q.end)
		}
	})
}

// isolate keeps some hosts from the others.
func (w *world) isolate(p *proc) {
	var side [maxHosts]bool
	side[p.host] = true
	for h := range side {
		side[h] = side[h] || w.chance(0.2)
	}
	w.tracef("the network is cut: %v", side)
	for a := range side {
		for b := range side {
			w.cut[a][b] = w.cut[a][b] || side[a] != side[b]
		}
	}
	w.cutNow = true
	w.after(nil, w.between(200*time.Millisecond, 8*time.Second), w.heal)
}

func (w *world) heal() {
	w.tracef("the network is whole")
	w.cut = [maxHosts][maxHosts]bool{}
	if w.cutNow {
		w.lastCut = w.now
	}
	w.cutNow = false
}

// cutProxy keeps a node and a proxy apart. Gossip goes around that.
func (w *world) cutProxy(p *proc, within time.Duration) {
	host := maxHosts - 1 - w.rng.IntN(2)
	w.tracef("%s and host %d are cut off from each other", p.name, host)
	w.cut[p.host][host], w.cut[host][p.host] = true, true
	w.proxyCut = max(w.proxyCut, w.now+within)
	w.after(nil, within, w.heal)
}

// breakConns resets connections of a process.
func (w *world) breakConns(p *proc) {
	w.tracef("connections of %s break", p.name)
	w.lastReset = w.now
	for _, c := range slices.Clone(p.conns) {
		if w.chance(0.5) {
			for end := range 2 {
				if c.ends[end] != nil {
					c.push(end, fin{})
				}
			}
		}
	}
}

// makePeace ends all that is bad.
func (w *world) makePeace() {
	w.heal()
	for _, p := range w.procs {
		p.resume()
	}
	w.lossy, w.slow = 0, 0
	w.peace, w.takerDies, w.issuer.stops = true, false, false
}

// settle waits until all is well.
func (w *world) settle() {
	from := w.now
	since := w.now
	for w.now-since < wellFor {
		w.run(w.now + 250*time.Millisecond)
		why := w.unwell()
		if w.fault != "" {
			return
		}
		if why != "" {
			since = w.now
		}
		if w.now-from > healTime {
			w.violate("all is not well %v after the last trouble: %s", healTime, why)
			return
		}
	}
	w.tracef("all is well after %v", w.now-from)
	w.calm = true
	for k := range w.truth { // what the sides of a split did is settled
		t := &w.truth[k]
		owner := w.ownerOf(k)
		if t.server != owner || t.last != owner.data[k].last {
			t.server, t.last, t.epoch = owner, owner.data[k].last, owner.view.Epoch()
			w.tear(k, false)
		}
		w.lose(t, owner.data[k].values)
		t.floor = [keysPer]int{}
	}
}

func (w *world) ownerOf(k int) *node {
	for _, p := range w.nodes() {
		if p.node.owns(p.node.view, k) {
			return p.node
		}
	}
	return nil
}

// unwell says what is not as it should be in the end; nothing: "".
func (w *world) unwell() string {
	var table *ring.Table
	nodes := w.nodes()
	for _, p := range w.procs {
		if p.dead || p.agent.status == left || p.agent.member.State == ring.Leaving {
			if !p.dead {
				return p.name + " is still leaving"
			}
			continue
		}
		t := p.agent.table
		switch {
		case t == nil:
			return p.name + " has no table"
		case table != nil && t.Version() != table.Version():
			return fmt.Sprintf("%s has table %v, another one has %v", p.name, t.Version(), table.Version())
		case p.node != nil && (p.node.fenced || p.node.view.Table != t):
			return p.name + " does not obey the table"
		case p.proxy != nil && p.proxy.machine.Table() != t:
			return p.name + " does not route by the table"
		}
		table = t
	}
	if len(table.Nodes) != len(nodes) || len(table.Moves) > 0 {
		return fmt.Sprintf("the table has %d nodes and %d moves, %d live", len(table.Nodes), len(table.Moves), len(nodes))
	}
	for k, p := range w.tracked {
		owner := w.ownerOf(k)
		if owner == nil || !owner.serves(owner.view, k) || owner.looped != owner.view {
			return fmt.Sprintf("%d is not served", k)
		}
		f := table.Follower[p]
		if (f != ring.NoNode) != (w.copies > 1 && len(nodes) > 1) {
			return fmt.Sprintf("%d has follower %d", k, f)
		}
		if f == ring.NoNode {
			continue
		}
		for _, q := range nodes {
			if q.name == table.Nodes[f].Name() && !q.node.report().Has(p) {
				return fmt.Sprintf("%s's copy of %d is %v", q.name, k, q.node.copies.Of(p).State)
			}
		}
	}
	return ""
}

// describe shows a table's tracked partitions: owner, follower, and where they move.
func (w *world) describe(t *ring.Table) string {
	var b strings.Builder
	name := func(i uint16) string {
		if i == ring.NoNode {
			return "-"
		}
		return t.Nodes[i].Name()
	}
	for k, p := range w.tracked {
		fmt.Fprintf(&b, " %d:%s/%s", k, name(t.Owner[p]), name(t.Follower[p]))
		for _, m := range t.Moves {
			if m.Partition == p {
				fmt.Fprintf(&b, "→%s", name(m.To))
			}
		}
		fmt.Fprintf(&b, "(%d)", t.Since[p])
	}
	return b.String()
}
