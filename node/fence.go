package node

import (
	"context"
	"fmt"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/ownership"
)

// confirmTimeout is how long one attempt to hear from another member may take.
const confirmTimeout = 5 * time.Second

// stalled is netloop's OnStall hook.
func (n *Node) stalled(_ *netloop.Loop, gap time.Duration) {
	n.doubt(fmt.Sprintf("a loop stood still for %v", gap.Round(time.Millisecond)),
		func(f *ownership.Fence) bool { return f.Stalled(gap) })
}

// Fence stops serving until the current table is heard from another member, because of a doubt
// about the one in hand: others declared this node dead, say. It may be called from any goroutine,
// loops included, and does not wait.
func (n *Node) Fence(reason string) { n.doubt(reason, (*ownership.Fence).Doubt) }

// doubt tells the fence about an event that may raise it.
func (n *Node) doubt(reason string, event func(*ownership.Fence) (raise bool)) {
	n.fenceMu.Lock()
	defer n.fenceMu.Unlock()
	if !event(&n.fence) || n.ctx.Err() != nil {
		return
	}
	n.fenced.Store(true)
	n.goJob(func() { n.unfence(reason) })
}

// unfence confirms the table until no doubt has come up meanwhile.
func (n *Node) unfence(reason string) {
	n.log.Warn("fenced", "reason", reason)
	for n.ctx.Err() == nil {
		n.fenceMu.Lock()
		n.fence.Confirm()
		n.fenceMu.Unlock()
		if err := n.confirm(); err != nil {
			n.log.Warn("cannot confirm the table, staying fenced", "error", err)
			n.pause(retryPeriod)
			continue
		}
		if n.lift() {
			n.log.Info("fence lifted", "epoch", n.view.Load().Epoch())
			return
		}
	}
}

// lift ends the fence, unless there was another doubt.
func (n *Node) lift() bool {
	n.fenceMu.Lock()
	defer n.fenceMu.Unlock()
	lift := n.fence.Confirmed()
	if lift {
		n.fenced.Store(false)
	}
	return lift
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
