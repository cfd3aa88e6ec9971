package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// Copies and hand-over, after node/copies.go and node/feeding.go.

type copyState uint8

const (
	noCopy copyState = iota
	filling
	synced
	handed
)

func (s copyState) String() string { return [...]string{"none", "filling", "synced", "handed"}[s] }

type copyInfo struct {
	state  copyState
	source string
	since  uint64
	seal   uint64
	sealed time.Duration
}

func (i copyInfo) fed() bool { return i.state == filling || i.state == synced }

const copyPatience = 4 * time.Second

type copies struct {
	of       [places]copyInfo
	lastWord map[string]time.Duration
	refused  map[string]placeSet
	told     map[string]placeSet // what a source was told so of, and of which we have taken nothing since
}

func newCopies() copies {
	return copies{lastWord: make(map[string]time.Duration), refused: make(map[string]placeSet), told: make(map[string]placeSet)}
}

func (c *copies) clear() { c.of = [places]copyInfo{} }

// admits tells whether a source's effects go into our copy.
func (n *node) admits(source string, k int) bool {
	info := n.copies.of[k]
	if info.fed() && info.source == source {
		return true
	}
	if n.w.admitAll && n.serves(n.view, k) {
		return true
	}
	n.copies.refuse(source, k)
	return false
}

// copiesFrom reports whether we are to have a copy that the source feeds.
func (n *node) copiesFrom(v *ownership.View, k int, source string) bool {
	return v.CopiesFrom(n.w.tracked[k], source) && !(n.w.refuseBegin && n.standing(v, k) == ownership.Gained)
}

// marked takes a mark of a source's stream.
func (n *node) marked(source string, k int, m mark, arg uint64, last *change) {
	v, c := n.settled, &n.copies
	if n.w.copyEarly {
		v = n.view
	}
	info := c.of[k]
	fed := info.fed() && info.source == source
	switch m {
	case markBegin:
		if !n.copiesFrom(v, k, source) {
			if fed && !n.w.refuseBegin {
				n.drop(k)
			}
			c.refuse(source, k)
			return
		}
		n.data[k] = content{}
		c.take(source, k)
		info = copyInfo{state: filling, source: source, since: arg}
		if n.w.ignoreSince {
			info.since = n.since(v, k)
		}
	case markContinue:
		if info.state != handed || info.seal != arg && !n.w.ignoreSeals || !n.copiesFrom(v, k, source) {
			c.refuse(source, k)
			return
		}
		c.take(source, k)
		info.state, info.source = synced, source
	case markSynced:
		if !fed {
			c.refuse(source, k)
			return
		}
		info.state = synced
		n.data[k].last = last
	case markHanded:
		if !fed || info.state != synced {
			c.refuse(source, k)
			return
		}
		info.state, info.seal, info.sealed = handed, arg, n.w.now
	}
	c.of[k] = info
	n.w.checkCopy(n, k)
}

// drop forgets a copy.
func (n *node) drop(k int) {
	n.data[k] = content{}
	n.copies.of[k] = copyInfo{}
}

// refuse notes that a source feeds a copy that we do not have.
func (c *copies) refuse(source string, k int) { c.refused[source] |= 1 << k }

func (c *copies) take(source string, k int) {
	c.refused[source] &^= 1 << k
	c.told[source] &^= 1 << k
}

// askForCopies tells the owners of which copies we have nothing, though the table has us keep them.
func (n *node) askForCopies(v *ownership.View) {
	for k := range places {
		if v.Copies(n.w.tracked[k]) && n.copies.of[k].state == noCopy && !n.w.neverAsk {
			n.copies.refuse(v.Table.OwnerOf(n.w.tracked[k]).Name(), k)
		}
	}
}

// voidCopies gives up what a source has fed: something of its stream is missing.
func (n *node) voidCopies(source string) {
	delete(n.copies.refused, source)
	delete(n.copies.told, source)
	for k := range places {
		if info := n.copies.of[k]; info.fed() && info.source == source {
			n.drop(k)
		}
	}
}

// report says which copies are in sync, and what is served. Of the partitions that have no keys, all are.
func (n *node) report() *ring.Report {
	v := n.settled
	r := &ring.Report{Node: n.p.name, Version: v.Table.Version()}
	if v.Table == nil || n.fenced {
		return r
	}
	for i := range r.Synced {
		r.Synced[i] = 0xFF
	}
	for k, p := range n.w.tracked {
		serves := n.owns(v, k) && n.view.Table == v.Table && n.serves(n.view, k)
		if !serves && !n.inSync(v, k) {
			r.Synced[p/8] &^= 1 << (p % 8)
		}
	}
	return r
}

func (n *node) inSync(v *ownership.View, k int) bool {
	info := n.copies.of[k]
	lately := n.w.now - copyPatience
	switch {
	case info.since != n.since(v, k) || n.owns(v, k):
		return false
	case info.state == handed:
		return info.sealed > lately && !n.w.handedIsNothing
	case info.state == synced || n.w.promoteFilling && info.state == filling:
		heard := n.copies.lastWord[info.source] > lately || n.w.trustSilence
		return heard && info.source == v.Table.OwnerOf(n.w.tracked[k]).Name()
	}
	return false
}

type claimed struct {
	kept bool
	seal uint64
}

// claim makes the copies of gained partitions ours, those that are whole.
func (n *node) claim(v *ownership.View, acknowledged func(source string) bool) (of map[int]claimed) {
	of = make(map[int]claimed)
	for k := range places {
		if n.standing(v, k) != ownership.Gained {
			continue
		}
		info := n.copies.of[k]
		n.copies.of[k] = copyInfo{}
		whole := info.state == handed || info.state == synced && !acknowledged(info.source)
		if n.w.promoteFilling || n.w.keepUnhanded {
			whole = whole || info.state == synced || n.w.promoteFilling && info.state == filling
		}
		if whole && info.since == n.since(v, k) {
			of[k] = claimed{kept: true, seal: info.seal}
			continue
		}
		n.w.tracef("%s drops what it has of %d: %v from %s since %d, gained since %d", n.p.name, k,
			info.state, info.source, info.since, n.since(v, k))
		n.w.aboutToDrop(n, k, info)
		n.data[k] = content{}
		of[k] = claimed{}
	}
	return of
}

// review drops the copies that a table leaves no use for; after an absence all.
func (n *node) review(v *ownership.View, away bool) {
	present := make(map[string]bool)
	for _, m := range slices.Concat(v.Table.Nodes, n.aliveNodes()) {
		present[m.Name()] = true
	}
	spared := n.spared()
	for k := range places {
		info := n.copies.of[k]
		awaited := !away && n.standing(v, k) == ownership.Gained && info.since == n.since(v, k)
		if info.state == noCopy || awaited || spared[info.seal] {
			continue
		}
		orphan := info.state != handed && !present[info.source]
		if away || orphan || !v.Copies(n.w.tracked[k]) || info.since != n.since(v, k) {
			n.drop(k)
		}
	}
}

// fed is what one node is fed.
type fed struct {
	sender *sender
	set    placeSet
}

type lostPartition struct {
	place       int
	since, seal uint64
}

type handOver struct {
	lost  []lostPartition
	heirs []*sender
	away  bool
}

func (h *handOver) names() (names []string) {
	for _, s := range h.heirs {
		names = append(names, s.name)
	}
	return names
}

func (n *node) fedTo(name string) *fed {
	for _, f := range n.feeding {
		if f.sender.name == name {
			return f
		}
	}
	return nil
}

// never is when nothing that counts has happened.
const never = -time.Hour

// handOver ends the feeds of what next takes from us, and keeps as copies what the new owner was fed.
func (n *node) handOver(old, next *ownership.View, away bool) *handOver {
	h := &handOver{away: away}
	sealed := n.w.now
	if h.away {
		sealed = never
	}
	for k := range places {
		if !n.serves(old, k) || n.owns(next, k) {
			continue
		}
		n.w.seal++
		l := lostPartition{k, n.since(old, k), n.w.seal}
		heir := n.endFeeds(l, next)
		if heir == nil {
			n.data[k] = content{}
			continue
		}
		if !slices.Contains(h.heirs, heir) {
			h.heirs = append(h.heirs, heir)
		}
		h.lost = append(h.lost, l)
		n.copies.of[k] = copyInfo{state: handed, source: n.p.name, since: l.since, seal: l.seal, sealed: sealed}
	}
	return h
}

// beginHandOver waits for the heirs to have everything.
func (n *node) beginHandOver(h *handOver, id uint64) {
	if id == 0 {
		return
	}
	n.handOvers[id] = h
	for _, s := range h.heirs {
		s.flushHanded(func() {
			n.step(func(m *ownership.Machine, _ time.Duration) { m.Flushed(id, s.name) }, nil)
		})
	}
}

// endFeeds ends those of a lost partition, and returns that to its new owner, if there is one.
func (n *node) endFeeds(l lostPartition, next *ownership.View) (heir *sender) {
	k, name := l.place, next.Table.OwnerOf(n.w.tracked[l.place]).Name()
	for _, f := range n.feeding {
		if !f.set.has(k) {
			continue
		}
		f.set &^= 1 << k
		if l.since != n.since(next, k) {
			f.sender.stop(k)
			continue
		}
		f.sender.hand(k, l.seal, f.sender.name == name)
		if f.sender.name == name {
			heir = f.sender
		}
	}
	return heir
}

func (n *node) finishHandOver(id uint64) {
	h := n.handOvers[id]
	delete(n.handOvers, id)
	for _, l := range h.lost {
		if h.away && n.copies.of[l.place].seal == l.seal {
			n.drop(l.place)
		}
	}
	n.review(n.view, false)
	n.refeed(n.view, nil)
}

// handsTo tells whether a hand-over waits for the node.
func (n *node) handsTo(name string) bool {
	for _, h := range n.handOvers {
		if slices.Contains(h.names(), name) {
			return true
		}
	}
	return false
}

// spared are the seals of the copies that are still being sent.
func (n *node) spared() map[uint64]bool {
	seals := make(map[uint64]bool)
	for _, h := range n.handOvers {
		for _, l := range h.lost {
			seals[l.seal] = true
		}
	}
	return seals
}

// refeed begins and ends feeds, so that everybody is fed what v asks for of what it serves. fresh are the places that
// it serves anew: a copy with their seal is continued.
func (n *node) refeed(v *ownership.View, fresh map[int]claimed) {
	wanted := make([]placeSet, len(v.Table.Nodes))
	for k := range places {
		if !n.serves(v, k) {
			continue
		}
		for _, i := range v.Receivers(n.w.tracked[k]) {
			if i != ring.NoNode && int(i) != v.Self {
				wanted[i] |= 1 << k
			}
		}
	}
	n.feeding = slices.DeleteFunc(n.feeding, func(f *fed) bool {
		i := slices.IndexFunc(v.Table.Nodes, func(m ring.Member) bool { return m.Name() == f.sender.name })
		for k := range places {
			_, anew := fresh[k]
			if f.set.has(k) && (anew || i < 0 || !wanted[i].has(k)) {
				f.sender.stop(k)
				f.set &^= 1 << k
			}
		}
		if i < 0 && !n.handsTo(f.sender.name) {
			f.sender.close()
			return true
		}
		return false
	})
	for i, set := range wanted {
		for k := range places {
			if !set.has(k) {
				continue
			}
			f := n.fedTo(v.Table.Nodes[i].Name())
			if f == nil {
				f = &fed{sender: newSender(n, v.Table.Nodes[i])}
				n.feeding = append(n.feeding, f)
			}
			if f.set.has(k) {
				continue
			}
			f.set |= 1 << k
			if fresh[k].seal != 0 || n.w.ignoreSeals && fresh[k].kept {
				f.sender.resume(k, fresh[k].seal)
			} else {
				f.sender.sync(k, n.since(v, k))
			}
		}
	}
}
