package node

import (
	"context"
	"fmt"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// A node that did not run for a while does not know what the others decided
// meanwhile: declared dead, it may have lost its partitions to somebody who serves
// them by now. So a loop that finds that it stood still for longer than the others
// need to decide such a thing fences the node before it reads anything:
//
//	loop stood still ──▶ fenced ──▶ Confirm: hear the table from another member
//	                       ▲               │ failed: again
//	                       │               ▼
//	               serve nothing     install it, drop what was lost ──▶ not fenced
//
// One loop is enough: members are heard on other threads, but a stopped process
// stops all of them, and a mistaken fence costs a round trip.

// confirmTimeout is how long one attempt to hear from another member may take.
const confirmTimeout = 5 * time.Second

// stalled is netloop's OnStall hook.
func (n *Node) stalled(_ *netloop.Loop, gap time.Duration) {
	n.Fence(fmt.Sprintf("a loop stood still for %v", gap.Round(time.Millisecond)))
}

// Fence stops serving until the current table is heard from another member,
// because of a doubt about the one in hand: others declared this node dead, say.
// It may be called from any goroutine, loops included, and does not wait.
func (n *Node) Fence(reason string) {
	n.fenceMu.Lock()
	defer n.fenceMu.Unlock()
	n.doubts++
	if n.ctx.Err() != nil || n.fenced.Load() {
		return // a goroutine is at it, and will see the new doubt
	}
	n.fenced.Store(true)
	n.goJob(func() { n.unfence(reason) })
}

// unfence confirms the table until no doubt has come up meanwhile.
func (n *Node) unfence(reason string) {
	n.log.Warn("fenced", "reason", reason)
	for n.ctx.Err() == nil {
		n.fenceMu.Lock()
		seen := n.doubts
		n.fenceMu.Unlock()
		if err := n.confirm(); err != nil {
			n.log.Warn("cannot confirm the table, staying fenced", "error", err)
			n.pause(retryPeriod)
			continue
		}
		if n.lift(seen) {
			n.log.Info("fence lifted", "epoch", n.view.Load().Epoch())
			return
		}
	}
}

// lift ends the fence if there was no doubt since the count was seen.
func (n *Node) lift(seen uint64) bool {
	n.fenceMu.Lock()
	defer n.fenceMu.Unlock()
	if n.doubts != seen {
		return false
	}
	n.fenced.Store(false)
	return true
}

// confirm hears the current table from another member and installs it.
func (n *Node) confirm() error {
	source := n.source()
	if source == nil {
		return nil // not in a cluster: there is nobody who could have decided
	}
	ctx, cancel := context.WithTimeout(n.ctx, confirmTimeout)
	defer cancel()
	t, err := source.Confirm(ctx)
	if err != nil {
		return err
	}
	if t != nil {
		source.Adopt(t)
	}
	// What the agent holds now is what counts: it may have adopted a newer one.
	n.SetTable(source.Table())
	return nil
}

// pause waits for d, or until the node closes.
func (n *Node) pause(d time.Duration) {
	select {
	case <-n.ctx.Done():
	case <-time.After(d):
	}
}
