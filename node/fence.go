package node

import (
	"context"
	"fmt"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/ownership"
)

// confirmTimeout is how long one attempt to hear from another member can take.
const confirmTimeout = 5 * time.Second

// stalled is netloop's OnStall hook.
func (n *Node) stalled(_ *netloop.Loop, gap time.Duration) {
	n.doubt(fmt.Sprintf("a loop stood still for %v", gap.Round(time.Millisecond)),
		func(f *ownership.Fence) bool { return f.Stalled(gap) })
}

// Fence stops serving until the node has heard the current table from another member. reason names
// the doubt about the present table, for example that others have declared this node dead. Any
// goroutine may call Fence, loops included; it does not wait.
func (n *Node) Fence(reason string) { n.doubt(reason, (*ownership.Fence).Doubt) }

// doubt reports an event to the fence, which may go up.
func (n *Node) doubt(reason string, event func(*ownership.Fence) (raise bool)) {
	n.fenceMu.Lock()
	defer n.fenceMu.Unlock()
	if !event(&n.fence) || n.ctx.Err() != nil {
		return
	}
	n.fenced.Store(true)
	n.goJob(func() { n.unfence(reason) })
}

// unfence confirms the table until no new doubt has come up meanwhile.
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

// confirm hears the current table from another member, and installs it.
func (n *Node) confirm() error {
	source := n.source()
	if source == nil {
		return nil // without a cluster, nobody can have issued another table
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
	// Install what the agent has now: it may have adopted a newer table.
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
