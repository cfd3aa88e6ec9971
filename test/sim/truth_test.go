package sim

import (
	"time"

	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/ring"
)

// The promises. The world sees everything at once: which node serves which partition, with which
// data, and what its clients were told. From that it keeps the truth of each partition: its one
// server and the history of its data.
//
// While the network keeps nodes apart, and for a while after, both sides may serve: a cache prefers
// that to refusing. Then only the end is checked: the sides become one again, and nothing is stale
// from there on.

// change is one state of a partition's data, as its server brought it about.
type change struct {
	before *change
	values [keysPer]int
	at     time.Duration
	by     string
}

// truth is that of one partition.
type truth struct {
	server *node
	epoch  uint64       // in which it became the server
	last   *change      // nil: it has nothing
	unsure bool         // the network was split: whoever executes something next is the server
	gen    int          // counts losses
	losses []loss       // by gen
	floor  [keysPer]int // what was acknowledged last
}

// loss is that of what was written last: what was left.
type loss struct{ left [keysPer]int }

// command is one of a client's.
type command struct {
	id     int // says in which database it is, too: each request must name that
	kind   commandKind
	place  int
	key    int
	value  int
	large  bool // it travels in the lane of large requests
	front  bool // it pushes to the front
	client *client

	// of a pop or an XREAD
	wanted  []spot
	limit   time.Duration // 0: none
	claimed time.Duration // since when it has claims
	blocked time.Duration // since when it waits in one place
	over    bool          // they have ended, or it has popped
	pops    bool          // it has tried to pop for one of them
	woken   bool          // by CLIENT UNBLOCK
	slept   time.Duration // for how long its proxy had stood still before

	// of an XREAD
	behind  []int        // an ID for each of wanted
	settled map[spot]int // which ID each $ means, as its proxy was told first

	floors   [places][keysPer]int // what it must find at least
	gens     [places]int          // at its beginning
	executed int
	answered bool // with something else than that nobody knows
	begun    time.Duration
}

func valuesOf(c *change) (v [keysPer]int) {
	if c != nil {
		v = c.values
	}
	return v
}

// descends reports whether c is a or came after it.
func (c *change) descends(a *change) bool {
	for ; c != nil; c = c.before {
		if c == a {
			return true
		}
	}
	return a == nil
}

const (
	splitMemory = 12 * time.Second // after a cut between nodes, in which the sides may still differ
	hurtMemory  = 12 * time.Second // in which something bad explains a loss
)

// apart reports whether the network may be split, or was a moment ago.
func (w *world) apart() bool {
	return w.cutNow || w.starting || w.lastCut != 0 && w.now-w.lastCut < splitMemory && !w.calm
}

func (w *world) wasHurt(p *proc) bool {
	return p.dead && !p.left || p.stopped || w.trouble[p.host] != 0 && w.now-w.trouble[p.host] < hurtMemory
}

// execute executes a command at a node that believes it serves the partition, and checks that it
// does.
func (w *world) execute(n *node, c *command, k int, late bool) (value, gen int) {
	if c.kind == both {
		n.beginUnit(k)
		defer n.endUnit(k)
		w.executeHalf(n, c, k, late, 0)
		return w.executeHalf(n, c, k, late, 1)
	}
	genuine := w.checkServer(n, c, k, late)
	w.checkPair(n, k)
	t, d := &w.truth[k], &n.data[k]
	values := d.values
	e := effect{key: c.key}
	switch c.kind {
	case get, scan:
		return d.values[c.key], t.gen
	case publish:
		return n.publish(c, k, genuine), t.gen
	case set:
		// A write to a key of another database replaces nothing: only here they have one value.
		newer, known := c.client.sets[[3]int{k, c.key, values[c.key]}]
		if values[c.key] > c.value && known && newer == databaseOf(c.id) && genuine && !late && !w.apart() && !w.setsAgain {
			w.violate("%s executes SET %d of %d again behind SET %d, which others may have seen", n.p.name, c.value, k, values[c.key])
		}
		values[c.key] = c.value
	case incr:
		values[c.key]++
	case push:
		values[c.key] = w.withPushed(n, c)
	case add:
		values[c.key] = w.withEntry(n, c)
	case flushAll:
		values, e.clear = [keysPer]int{}, true
	}
	w.change(n, c, k, genuine, values, e)
	if (c.kind == push || c.kind == add) && genuine {
		w.put(n, c)
	}
	return values[c.key], t.gen
}

// executeHalf sets one key of a pair.
func (w *world) executeHalf(n *node, c *command, k int, late bool, half int) (value, gen int) {
	genuine := w.checkServer(n, c, k, late)
	values := n.data[k].values
	values[pair+half] = c.value
	w.change(n, c, k, genuine, values, effect{key: pair + half})
	return c.value, w.truth[k].gen
}

// checkPair checks that nobody is about to see a transaction half done, unless it has given up.
func (w *world) checkPair(n *node, k int) {
	if v := n.data[k].values; v[pair] != v[pair+1] && !w.halves[[2]int{k, v[pair]}] {
		w.violate("%s serves %d with half of a transaction: %v", n.p.name, k, v)
	}
}

// checkServer checks that a node that executes a command is the one that serves the partition.
func (w *world) checkServer(n *node, c *command, k int, late bool) (genuine bool) {
	t, d := &w.truth[k], &n.data[k]
	if t.server != n && !late && (w.apart() || t.unsure) {
		t.server, t.epoch, t.last = n, n.looped.Epoch(), d.last
		w.lose(t, [keysPer]int{})
		w.tear(k, false)
	}
	t.unsure = t.unsure && t.server != n || w.apart()
	genuine = t.server == n
	if !genuine && !late {
		w.violate("%s executes %v on %d in epoch %d, but %s has served that since epoch %d", n.p.name, c.kind, k,
			n.looped.Epoch(), t.server.p.name, t.epoch)
	}
	if !c.kind.repeatable() {
		if c.executed++; c.executed > 1 {
			w.violate("%s executes %v %d a second time", n.p.name, c.kind, c.id)
		}
	}
	if c.kind == flushAll && c.id < c.client.newest[k] && !w.apart() { // or on the other side of a split
		w.violate("%s executes FLUSHALL %d on %d behind %d of its client", n.p.name, c.id, k, c.client.newest[k])
	}
	c.client.newest[k] = max(c.client.newest[k], c.id)
	return genuine
}

// change makes a change, and feeds it to copies.
func (w *world) change(n *node, c *command, k int, genuine bool, values [keysPer]int, e effect) {
	t, d := &w.truth[k], &n.data[k]
	d.values = values
	d.last = &change{before: d.last, values: values, at: w.now, by: n.p.name}
	e.value, e.change = values[e.key], d.last
	if genuine {
		w.happened(t, c, k, d)
	}
	for _, s := range n.senders {
		s.fed(k, e)
	}
}

// happened takes a change of the true data.
func (w *world) happened(t *truth, c *command, k int, d *content) {
	t.last = d.last
	switch {
	case c.kind == flushAll:
		if c.answered && !w.apart() {
			w.violate("FLUSHALL %d is executed on %d after its answer", c.id, k)
		}
		w.lose(t, d.values)
		w.tear(k, true)
	case (c.kind == set || c.kind == both) && c.value < t.floor[c.key] && !w.apart():
		w.violate("SET %d of key %d/%d is executed over an acknowledged %d", c.value, k, c.key, t.floor[c.key])
	}
}

// lose notes that of a partition's values at most these are left.
func (w *world) lose(t *truth, left [keysPer]int) {
	t.gen++
	t.losses = append(t.losses, loss{left})
	for i := range left {
		t.floor[i] = min(t.floor[i], left[i])
	}
}

// startsServing is called when a node begins to serve a partition.
func (w *world) startsServing(n *node, k int, kept bool) {
	if n.fenced || n.gap > stallLimit {
		return // see noFence. Before anything is executed, the loops notice how long they stood still
	}
	t, d := &w.truth[k], &n.data[k]
	before := t.server
	w.tracef("%s serves %d from epoch %d, kept %v, %v", n.p.name, k, n.view.Epoch(), kept, d.values)
	w.endMoves(n, k)
	if d.values != valuesOf(d.last) {
		w.violate("%s serves %d with %v, which never was: %v", n.p.name, k, d.values, valuesOf(d.last))
	}
	if n.holds[k] == nil {
		w.checkPair(n, k)
	}
	if before != nil && before != n && !w.apart() && !t.unsure && !before.p.dead && !before.fenced && before.serves(before.looped, k) &&
		before.gap <= stallLimit && !(before.p.stopped && w.now-before.p.since > stallLimit/2) {
		w.violate("%s serves %d from epoch %d while %s does, by epoch %d", n.p.name, k, n.view.Epoch(),
			before.p.name, before.looped.Epoch())
	}
	if before != nil && before != n && !w.apart() && !t.unsure && before.holdsOn(k) {
		w.violate("%s serves %d from epoch %d while %s holds it", n.p.name, k, n.view.Epoch(), before.p.name)
	}
	if before != nil && d.last != t.last && !w.apart() && !t.unsure {
		w.checkLoss(n, k, kept)
	}
	n.forgot &^= 1 << k
	t.server, t.epoch, t.unsure = n, n.view.Epoch(), w.apart()
	if d.last != t.last {
		w.tracef("of %d there was %v, there is %v", k, valuesOf(t.last), d.values)
		t.last = d.last
		w.lose(t, d.values)
		w.tear(k, false)
	}
}

// noFence is called when a node serves again what it has served before its fence rose.
func (w *world) noFence(n *node) {
	for k := range places {
		t := &w.truth[k]
		if !n.serves(n.looped, k) || t.server == n && t.last == n.data[k].last {
			continue
		}
		again := t.server != nil && t.server != n && n.looped.Began[w.tracked[k]] < t.epoch
		if again && !w.apart() && !t.unsure {
			w.violate("%s serves %d again, with %v, though %s has served it meanwhile", n.p.name, k, n.data[k].values, t.server.p.name)
		}
		w.startsServing(n, k, true)
	}
}

// checkLoss is called when a partition's new server does not have what the last one had. It checks
// that this was unavoidable.
func (w *world) checkLoss(n *node, k int, kept bool) {
	t, d := &w.truth[k], &n.data[k]
	if kept && !t.last.descends(d.last) {
		w.violate("%s serves %d with what is no past of it: %v instead of %v", n.p.name, k, d.values, valuesOf(t.last))
		return
	}
	excuse := w.wasHurt(t.server.p)
	for v, issued := range w.issued {
		if v.Epoch >= t.epoch && v.Epoch <= n.view.Epoch() {
			name := issued.OwnerOf(w.tracked[k]).Name()
			for _, p := range w.procs {
				excuse = excuse || p.name == name && w.wasHurt(p)
			}
		}
	}
	if !excuse {
		w.violate("%s serves %d with %v instead of %v though nobody died", n.p.name, k, d.values, valuesOf(t.last))
		return
	}
	if kept || n.forgot.has(k) {
		return
	}
	if holder := w.holder(k, n); holder != nil {
		w.violate("%s serves %d with nothing though %s has a copy in sync, %v", n.p.name, k, holder.p.name, holder.data[k].values)
	}
}

// holder returns a node with a whole copy of the partition that no fault has touched, nil if there
// is none.
func (w *world) holder(k int, but *node) *node {
	t := &w.truth[k]
	for _, p := range w.procs {
		n := p.node
		if n == nil || n == but || p.dead || w.wasHurt(p) || n.data[k].last != t.last || t.last == nil || n.fenced {
			continue
		}
		if s := n.copies.Of(w.tracked[k]).State; s == replica.Synced || s == replica.Handed {
			return n
		}
	}
	return nil
}

// aboutToDrop is called when a node drops what it has of a partition that it is about to serve.
func (w *world) aboutToDrop(n *node, k int, state replica.CopyState) {
	t := &w.truth[k]
	if t.unsure {
		return
	}
	if (state == replica.Synced || state == replica.Handed) && n.data[k].last == t.last && t.last != nil && !w.apart() && !w.wasHurt(n.p) {
		w.violate("%s drops %d, %v, which it had in sync, %v", n.p.name, k, n.data[k].values, state)
	}
}

// checkCopy checks a copy that claims to be one.
func (w *world) checkCopy(n *node, k int) {
	if s := n.copies.Of(w.tracked[k]).State; s != replica.Synced && s != replica.Handed {
		return
	}
	if d := &n.data[k]; d.values != valuesOf(d.last) {
		w.violate("%s has a copy of %d with %v, which never was: %v", n.p.name, k, d.values, valuesOf(d.last))
	}
}

// begins notes what a command must find.
func (w *world) begins(c *command) {
	c.begun = w.now
	for k := range places {
		c.floors[k], c.gens[k] = w.truth[k].floor, w.truth[k].gen
	}
}

// ends checks what a client is told.
func (w *world) ends(c *command, reply any) {
	c.answered = true
	if w.apart() || c.kind == push || c.kind == pop || c.kind == add || c.kind == read || c.kind == move || c.kind == publish {
		return
	}
	switch m := reply.(type) {
	case done:
		t := &w.truth[c.place]
		if c.kind == get || c.kind == incr {
			w.checkRead(c, c.place, c.key, m.value)
		}
		if c.kind == set && m.gen >= 0 {
			m.value = c.value
		}
		if c.kind != get {
			w.acknowledged(c, t, c.key, m)
		}
		if c.kind == both {
			w.acknowledged(c, t, c.key+1, m)
		}
	case covered:
		for k := range places {
			if c.kind == scan {
				for i, v := range m.values[k] {
					w.checkRead(c, k, i, v)
				}
			}
		}
	}
}

// acknowledged checks that what was written to a key is there.
func (w *world) acknowledged(c *command, t *truth, key int, m done) {
	kept := m.value
	for _, l := range t.losses[m.gen:] {
		kept = min(kept, l.left[key])
	}
	if have := valuesOf(t.last)[key]; kept == m.value && have < kept {
		w.violate("%v %d of key %d/%d is acknowledged, but there is %d", c.kind, m.value, c.place, key, have)
	}
	t.floor[key] = max(t.floor[key], kept)
}

// checkRead checks that a value is not older than what was acknowledged before the command began.
func (w *world) checkRead(c *command, k, key, value int) {
	floor := c.floors[k][key]
	for _, l := range w.truth[k].losses[c.gens[k]:] {
		floor = min(floor, l.left[key])
	}
	if value < floor {
		w.violate("%v of key %d/%d gives %d, but %d was acknowledged before", c.kind, k, key, value, floor)
	}
}

// noteIssued checks a table that was just issued.
func (w *world) noteIssued(p *proc, t *ring.Table, heals bool) {
	w.tracef("%s issues %d, %s", p.name, t.Epoch, w.describe(t))
	if w.takerDies {
		w.crashTaker(t)
	}
	if heals {
		w.checkHealed(t)
	}
	if heals && !w.apart() && !w.adoptForeign && w.issuer.alone == nil {
		w.violate("%s heals a split though the network never was split", p.name)
	}
	if heals && w.atLeast > 0 {
		w.violate("%s heals a split of which one side should have issued nothing", p.name)
	}
	if heals {
		w.issuer.alone = nil
		w.lastCut = max(w.lastCut, w.now)
	}
}
