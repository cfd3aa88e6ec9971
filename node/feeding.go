package node

import (
	"cmp"
	"context"
	"errors"
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
	done  chan struct{}
}

// flushPatience is for how long at a time a hand-over waits for a stream before it looks whether the receiver still lives.
const flushPatience = 500 * time.Millisecond

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

// handOverLocked ends the feeds of what next takes from us. What a new owner was fed we keep as a copy, as it is handed over. The
// loops execute nothing under old any more.
func (n *Node) handOverLocked(old, next *ownership.View) {
	if old.Table == nil || old.Table.Seed != next.Table.Seed {
		return // another cluster's: there is nobody to hand it to
	}
	h := &handOver{heirs: make(map[string]*sender), away: next.WasAway(old), done: make(chan struct{})}
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
	if len(h.lost) == 0 {
		return
	}
	n.keep(h.lost, h.away)
	n.tellHeirs(next.Table, h.heirs)
	n.handOvers = append(n.handOvers, h)
	n.goJob(func() { n.finishHandOver(h) })
}

// tellHeirs hands the table to those who are to take over: commands wait until they do, and gossip may take some rounds.
func (n *Node) tellHeirs(t *ring.Table, heirs map[string]*sender) {
	encoded := t.Encode()
	for _, s := range heirs {
		n.goJob(func() {
			if err := n.handTable(n.ctx, s.to, t.Epoch, encoded); err != nil {
				n.log.Debug("the next owner hears of a table by gossip only", "node", s.to.Name(), "error", err)
			}
		})
	}
}

// finishHandOver waits until the new owners have all that we had; before, we do not acknowledge the table.
func (n *Node) finishHandOver(h *handOver) {
	begun := time.Now()
	for name, s := range h.heirs {
		n.flushTo(name, s)
	}
	n.tableMu.Lock()
	defer n.tableMu.Unlock()
	close(h.done)
	n.handOvers = slices.DeleteFunc(n.handOvers, func(o *handOver) bool { return o == h })
	if n.ctx.Err() != nil {
		return
	}
	if h.away {
		n.forgetSealed(h.lost)
	}
	v := n.view.Load()
	n.review(v, false, n.sparedLocked())
	n.refeedLocked(v, nil) // ends the streams that only the hand-over kept
	n.log.Info("handed over", "partitions", len(h.lost), "took", time.Since(begun).Round(time.Millisecond))
}

// handsToLocked tells whether a hand-over waits for the node.
func (n *Node) handsToLocked(name string) bool {
	return slices.ContainsFunc(n.handOvers, func(h *handOver) bool { return h.heirs[name] != nil })
}

// sparedLocked are the seals of the copies that are still being sent.
func (n *Node) sparedLocked() map[uint64]bool {
	seals := make(map[uint64]bool)
	for _, h := range n.handOvers {
		for _, l := range h.lost {
			seals[l.seal] = true
		}
	}
	return seals
}

// flushTo returns when a node has all that is handed over to it, or is dead.
func (n *Node) flushTo(name string, s *sender) {
	for n.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(n.ctx, flushPatience)
		err := s.flushHanded(ctx)
		cancel()
		alive := n.source() == nil || slices.ContainsFunc(n.aliveNodes(), func(m ring.Member) bool { return m.Name() == name })
		if err == nil || errors.Is(err, errSenderClosed) {
			return
		}
		if !alive {
			n.log.Warn("gave up handing over to a node that died", "node", name, "error", err)
			return
		}
	}
}

// awaitHandOvers returns when the new owners have what tables have taken from us, or an error when that takes too long.
func (n *Node) awaitHandOvers(ctx context.Context) error {
	n.tableMu.Lock()
	waiting := slices.Clone(n.handOvers)
	n.tableMu.Unlock()
	for _, h := range waiting {
		select {
		case <-h.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
