package node

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// An owner feeds each of its partitions to the follower and to the node that the partition moves to. Which those are, tables
// say; tableMu protects what is here.

// fed is what one node is fed.
type fed struct {
	sender     *sender
	partitions ring.PartitionSet
}

// lostPartition is one that a table has taken from us.
type lostPartition struct {
	partition uint16
	since     uint64
	seal      uint64 // of the copies of it that we leave
}

// handOver is what one table has taken from us, until its new owners have it.
type handOver struct {
	lost  []lostPartition    // of these we keep copies until then
	heirs map[string]*sender // the new owners, by name
	away  bool               // the copies are only to be sent
	begun time.Time
	ctx   context.Context // ends with it
	end   context.CancelFunc
}

func (h *handOver) names() []string { return slices.Sorted(maps.Keys(h.heirs)) }

// refeedLocked begins and ends feeds, so that everybody is fed what v asks for of what it serves. fresh are the partitions
// that it serves anew, with their seals: a copy with the same one is continued.
func (n *Node) refeedLocked(v *ownership.View, fresh map[uint16]uint64) {
	wanted := make([]ring.PartitionSet, len(v.Table.Nodes))
	for p := range uint16(ring.Partitions) {
		if v.Standing[p] != ownership.Serving {
			continue
		}
		for _, i := range v.Receivers(p) {
			if i != ring.NoNode && int(i) != v.Self {
				wanted[i].Add(p)
			}
		}
	}
	for name, f := range n.feeding {
		i := slices.IndexFunc(v.Table.Nodes, func(m ring.Member) bool { return m.Name() == name })
		for p := range uint16(ring.Partitions) {
			_, anew := fresh[p]
			if f.partitions.Has(p) && (anew || i < 0 || !wanted[i].Has(p)) {
				f.sender.stop(p)
				f.partitions.Remove(p)
			}
		}
		if i < 0 && !n.handsToLocked(name) {
			f.sender.close()
			delete(n.feeding, name)
		}
	}
	heat := sync.OnceValue(n.heat)
	for i, set := range wanted {
		if set != (ring.PartitionSet{}) {
			n.feedLocked(v.Table, v.Table.Nodes[i], &set, fresh, heat)
		}
	}
}

// feedLocked begins to feed the partitions to a node that does not get them yet. Those that are asked for most go first: what a
// move that is cut off has brought is whole partitions.
func (n *Node) feedLocked(t *ring.Table, to ring.Member, set *ring.PartitionSet, fresh map[uint16]uint64, heat func() *partitionHeat) {
	f := n.feeding[to.Name()]
	if f == nil {
		f = &fed{sender: n.sender(to)}
		n.feeding[to.Name()] = f
	}
	var anew []uint16
	for p := range uint16(ring.Partitions) {
		if !set.Has(p) || f.partitions.Has(p) {
			continue
		}
		f.partitions.Add(p)
		if seal := fresh[p]; seal != 0 {
			f.sender.resume(p, seal)
		} else {
			anew = append(anew, p)
		}
	}
	if len(anew) > 1 && fresh == nil { // commands wait for what was gained, whose keys nobody has asked for here yet
		by := heat()
		slices.SortStableFunc(anew, func(p, q uint16) int { return cmp.Compare(by[q], by[p]) })
	}
	for _, p := range anew {
		f.sender.sync(p, t.Since[p])
	}
}

// handOverLocked ends the feeds of what next takes from us. What a new owner was fed we keep as a
// copy while it is handed over. The loops execute nothing under old any more.
func (n *Node) handOverLocked(old, next *ownership.View, away bool) *handOver {
	h := &handOver{heirs: make(map[string]*sender), away: away, begun: time.Now()}
	for p := range uint16(ring.Partitions) {
		if old.Standing[p] != ownership.Serving || next.Owns(p) {
			continue
		}
		l := lostPartition{partition: p, since: old.Table.Since[p], seal: rand.Uint64() | 1}
		heir, fedHeir := next.Table.OwnerOf(p).Name(), false
		for name, f := range n.feeding {
			if !f.partitions.Has(p) {
				continue
			}
			if l.since != next.Table.Since[p] {
				f.sender.stop(p)
				f.partitions.Remove(p)
				continue
			}
			f.sender.hand(p, l.seal, name == heir)
			f.partitions.Remove(p)
			if name == heir {
				h.heirs[name], fedHeir = f.sender, true
			}
		}
		if fedHeir {
			h.lost = append(h.lost, l)
		} else {
			n.forgetCopy(p)
		}
	}
	if len(h.lost) > 0 {
		n.keep(h.lost, away)
	}
	return h
}

// beginHandOverLocked waits for the heirs to have everything.
func (n *Node) beginHandOverLocked(h *handOver, id uint64) {
	if id == 0 {
		return // there are none
	}
	h.ctx, h.end = context.WithCancel(n.ctx)
	n.handOvers[id] = h
	for name, s := range h.heirs {
		n.goJob(func() {
			_ = s.flushHanded(h.ctx) // or the stream has ended, or the heir was given up
			n.step(func(m *ownership.Machine, _ time.Duration) { m.Flushed(id, name) })
		})
	}
}

// finishHandOverLocked is called when the heirs have everything. Before, we do not acknowledge the
// table.
func (n *Node) finishHandOverLocked(id uint64) {
	h := n.handOvers[id]
	delete(n.handOvers, id)
	h.end()
	if h.away {
		n.forgetSealed(h.lost)
	}
	v := n.view.Load()
	n.review(v, false, n.sparedLocked())
	n.refeedLocked(v, nil) // ends the streams that only the hand-over kept
	n.log.Info("handed over", "partitions", len(h.lost), "took", time.Since(h.begun).Round(time.Millisecond))
}

// handsToLocked reports whether a hand-over waits for the node.
func (n *Node) handsToLocked(name string) bool {
	for _, h := range n.handOvers {
		if h.heirs[name] != nil {
			return true
		}
	}
	return false
}

// sparedLocked returns the seals of the copies that are still being sent.
func (n *Node) sparedLocked() map[uint64]bool {
	seals := make(map[uint64]bool)
	for _, h := range n.handOvers {
		for _, l := range h.lost {
			seals[l.seal] = true
		}
	}
	return seals
}
