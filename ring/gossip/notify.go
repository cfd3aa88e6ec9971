package gossip

import (
	"slices"
	"sync"

	"github.com/dunlin-cache/dunlin/ring"
)

// notifier calls the owner's callbacks, one at a time and in order, on a goroutine of its own: a
// slow callback delays callbacks, never gossip.
type notifier struct {
	onTable      func(*ring.Table)
	onMembers    func([]ring.Member)
	onSuperseded func()
	onMinority   func()
	onOutdated   func()

	mu    sync.Mutex
	queue []event
	wake  chan struct{} // capacity 1
}

// event is one of the five; the other fields are zero.
type event struct {
	table      *ring.Table
	members    []ring.Member
	superseded bool
	minority   bool
	outdated   bool
}

func (n *notifier) push(e event) {
	n.mu.Lock()
	// Only the last of a kind is of interest: a callback may take long.
	n.queue = append(slices.DeleteFunc(n.queue, e.replaces), e)
	n.mu.Unlock()
	poke(n.wake)
}

func (e event) replaces(o event) bool {
	return (e.table != nil) == (o.table != nil) && (e.members != nil) == (o.members != nil) &&
		e.superseded == o.superseded && e.minority == o.minority && e.outdated == o.outdated
}

func (n *notifier) run(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-n.wake:
		}
		for _, e := range n.takeAll() {
			if isClosed(done) {
				return
			}
			n.deliver(e)
		}
	}
}

func (n *notifier) takeAll() []event {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.queue
	n.queue = nil
	return all
}

func (n *notifier) deliver(e event) {
	switch {
	case e.table != nil && n.onTable != nil:
		n.onTable(e.table)
	case e.members != nil && n.onMembers != nil:
		n.onMembers(e.members)
	case e.superseded && n.onSuperseded != nil:
		n.onSuperseded()
	case e.minority && n.onMinority != nil:
		n.onMinority()
	case e.outdated && n.onOutdated != nil:
		n.onOutdated()
	}
}

// poke wakes the goroutine that waits on c, a channel of capacity 1, without blocking.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has not yet seen the last poke
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
