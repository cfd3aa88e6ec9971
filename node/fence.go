package node

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// absence is for how long a node must stand still before the others can have gone on without it:
// gossip suspects a member that long before it declares it dead.
const absence = time.Second

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
	n.fences.Add(1)
	n.fenced.Store(true)
	var doubted *ring.Table
	if source := n.source(); source != nil {
		doubted = source.Table()
	}
	n.goJob(func() { n.unfence(reason, doubted) })
}

// unfence confirms the table until no new doubt has come up meanwhile. doubted is the table that the
// member had when the fence rose.
func (n *Node) unfence(reason string, doubted *ring.Table) {
	n.log.Warn("fenced", "reason", reason)
	for n.ctx.Err() == nil {
		n.fenceMu.Lock()
		n.fence.Confirm()
		n.fenceMu.Unlock()
		if err := n.confirm(doubted); err != nil {
			n.log.Warn("cannot confirm the table, staying fenced", "error", err)
			n.pause(retryPeriod)
			continue
		}
		if n.lift() {
			n.reviewBlocked()
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

// confirm hears the current table from another member, and installs it. If nobody is left who knows,
// and others can have served meanwhile what this node serves, the node begins anew.
func (n *Node) confirm(doubted *ring.Table) error {
	source := n.source()
	if source == nil {
		return nil // without a cluster, nobody can have issued another table
	}
	ctx, cancel := context.WithTimeout(n.ctx, confirmTimeout)
	defer cancel()
	t, err := source.Confirm(ctx, doubted)
	if err != nil {
		return err
	}
	if t != nil {
		source.Adopt(t)
	}
	// Install what the agent has now: it may have adopted a newer table.
	n.SetTable(source.Table())
	if t == nil && n.wasAbsent(doubted) {
		n.log.Warn("nobody is left who knows what others have served meanwhile, dropping all keys")
		n.step((*ownership.Machine).Forget)
	}
	return nil
}

// wasAbsent reports whether the other nodes of the table that is doubted can have gone on without
// this one.
func (n *Node) wasAbsent(doubted *ring.Table) bool {
	n.fenceMu.Lock()
	defer n.fenceMu.Unlock()
	others := doubted != nil && slices.ContainsFunc(doubted.Nodes, func(m ring.Member) bool { return m.Name() != n.name() })
	return others && n.fence.WasAbsent()
}

// pause waits for d, or until the node closes.
func (n *Node) pause(d time.Duration) { pauseFor(n.ctx, d) }

// pauseFor waits for d, and reports false if ctx ends before.
func pauseFor(ctx context.Context, d time.Duration) bool {
	end := time.NewTimer(d)
	defer end.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-end.C:
		return ctx.Err() == nil
	}
}

// quorumLimit is for how long an answer of another node counts towards --min-members. The others take
// over from a silent node after 1.5 s at the earliest: they suspect it for a second, plan, and wait
// for the stall limit.
const quorumLimit = time.Second

// Pinger asks another node for a sign of life. Ping must respect ctx.
type Pinger interface {
	Ping(ctx context.Context, m ring.Member) error
}

// quorum is the node's side of its ownership.Quorum.
type quorum struct {
	until atomic.Int64 // by the loops' clock: after that, nothing is served

	mu   sync.Mutex
	mind ownership.Quorum
}

// RequireMembers makes the node serve only while so many nodes, itself included, answer each other.
// Call it before the node gets a table, at most once.
func (n *Node) RequireMembers(members int, p Pinger) { n.require(members, p, quorumLimit) }

// require is RequireMembers with another limit, for tests.
func (n *Node) require(members int, p Pinger, limit time.Duration) {
	if members <= 1 {
		return
	}
	q := &n.quorum
	q.mind = ownership.Quorum{Want: members - 1, Limit: limit}
	q.until.Store(int64(q.mind.Until()))
	n.goJob(func() {
		rounds := time.NewTicker(limit / 4)
		defer rounds.Stop()
		for {
			n.askMembers(p, limit)
			select {
			case <-n.ctx.Done():
				return
			case <-rounds.C:
			}
		}
	})
}

// askMembers begins a round of questions.
func (n *Node) askMembers(p Pinger, limit time.Duration) {
	members := make(map[string]ring.Member)
	var names []string
	for _, m := range n.aliveNodes() {
		if m.Name() != n.name() {
			members[m.Name()] = m
			names = append(names, m.Name())
		}
	}
	asked := n.cfg.Group.Clock()
	n.quorum.mu.Lock()
	ask, lapsed := n.quorum.mind.Round(asked, names)
	n.quorumLapsedLocked(lapsed)
	n.quorum.mu.Unlock()
	for _, name := range ask {
		n.goJob(func() {
			ctx, cancel := context.WithTimeout(n.ctx, limit/2)
			defer cancel()
			if p.Ping(ctx, members[name]) != nil {
				return
			}
			n.quorum.mu.Lock()
			defer n.quorum.mu.Unlock()
			n.quorumLapsedLocked(n.quorum.mind.Heard(n.cfg.Group.Clock(), asked, name))
			n.quorum.until.Store(int64(n.quorum.mind.Until()))
		})
	}
}

// quorumLapsedLocked raises the fence when the quorum has lapsed, before a new one lets the node
// serve again: the others may have taken over meanwhile.
func (n *Node) quorumLapsedLocked(lapsed bool) {
	if lapsed && n.view.Load().Table != nil {
		n.Fence(fmt.Sprintf("fewer than %d other nodes answer", n.quorum.mind.Want))
	}
}

// isFenced reports whether the node serves nothing at now, by the loops' clock: it is fenced, or has
// not heard enough others. Ask before you load the view: when it ends, the view is at least as new
// as what ended it.
func (n *Node) isFenced(now time.Duration) bool {
	return int64(now) > n.quorum.until.Load() || n.fenced.Load()
}

// startQuorum has the node serve without others. Start calls it.
func (n *Node) startQuorum() { n.quorum.until.Store(math.MaxInt64) }
