package node

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

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
