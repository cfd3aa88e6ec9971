package node

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/replica"
)

// An owner feeds each of its partitions to the follower and to the node that the partition moves to.
// Which those are, and what a table has this node hand over, replica.Feeding derives from tables.
// tableMu protects what is here.

// handOver is what one table has taken from this node, until its new owners have it.
type handOver struct {
	*replica.HandOver
	begun time.Duration
	ctx   context.Context // ends with it
	end   context.CancelFunc
}

// actFeedingLocked does what the machine wants done.
func (n *Node) actFeedingLocked() {
	for _, a := range n.feeding.Actions() {
		switch a.Do {
		case replica.FeedOpen:
			n.fedBy[a.To] = n.sender(*a.Member)
		case replica.FeedClose:
			n.fedBy[a.To].close()
			delete(n.fedBy, a.To)
		case replica.FeedSync:
			n.fedBy[a.To].sync(a.Partition, a.Since)
		case replica.FeedResume:
			n.fedBy[a.To].resume(a.Partition, a.Since, a.Seal)
		case replica.FeedStop:
			n.fedBy[a.To].stop(a.Partition)
		case replica.FeedHand:
			n.fedBy[a.To].hand(a.Partition, a.Seal, a.Heir)
		case replica.FeedForget:
			n.forgetCopy(a.Partition)
		case replica.FeedKeep:
			n.keep(a.HandOver)
		case replica.FeedUnkeep:
			n.unkeep(a.HandOver)
		case replica.FeedReview:
			n.review(n.view.Load(), false, n.feeding.Spared())
		}
	}
}

// refeedLocked begins and ends feeds, so that everybody is fed what v asks for of what it serves.
// claims are the partitions that v serves anew.
func (n *Node) refeedLocked(v *ownership.View, claims map[uint16]replica.Claim) {
	heat := sync.OnceValue(n.heat)
	n.feeding.Refeed(v, claims, func(partitions []uint16) {
		by := heat()
		slices.SortStableFunc(partitions, func(p, q uint16) int { return cmp.Compare(by[q], by[p]) })
	})
	n.actFeedingLocked()
}

// handOverLocked ends the feeds of what a table takes from this node, and waits for the new owners to
// have it. The loops execute nothing under the older view any more.
func (n *Node) handOverLocked(a ownership.HandOver) {
	lost := n.feeding.HandOver(a.Old, a.Next, a.Away, newSeal)
	n.actFeedingLocked()
	id := n.machine.HandedTo(n.monotonic(), lost.Heirs)
	if id == 0 {
		return // there are none
	}
	h := &handOver{HandOver: lost, begun: n.monotonic()}
	h.ctx, h.end = context.WithCancel(n.ctx)
	n.handOvers[id] = h
	for _, heir := range lost.Heirs {
		s := n.fedBy[heir]
		n.goJob(func() {
			_ = s.flushHanded(h.ctx) // or the stream has ended, or the heir was given up
			n.step(func(m *ownership.Machine, _ time.Duration) { m.Flushed(id, heir) })
		})
	}
}

// newSeal returns a number that no other hand-over has.
func newSeal() uint64 { return rand.Uint64() | 1 }

// finishHandOverLocked is called when the new owners have everything that this node had. Before that
// it does not acknowledge the table.
func (n *Node) finishHandOverLocked(id uint64) {
	h := n.handOvers[id]
	delete(n.handOvers, id)
	h.end()
	n.feeding.Ended(h.HandOver, n.view.Load())
	n.actFeedingLocked()
	n.log.Info("handed over", "partitions", len(h.Lost), "took", (n.monotonic() - h.begun).Round(time.Millisecond))
}
