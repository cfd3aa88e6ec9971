// Package fake has fake members for the tests of the packages beside it: a node, a proxy and a view
// that answer with what a test sets.
package fake

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/node"
	"github.com/dunlin-cache/dunlin/proxy"
	"github.com/dunlin-cache/dunlin/ring"
)

// Node is a fake node.
type Node struct {
	Figures node.Stats
	Up      bool
}

// Stats returns Figures.
func (n *Node) Stats() (node.Stats, error) { return n.Figures, nil }

// Serving reports whether the node is Up.
func (n *Node) Serving() bool { return n.Up }

// Slow returns one request of 12 ms.
func (n *Node) Slow(int) []figures.SlowRequest {
	return []figures.SlowRequest{{
		At:     time.Unix(1700000000, 0),
		Took:   12 * time.Millisecond,
		Words:  []string{"KEYS", "*"},
		Client: "bob",
	}}
}

// Proxy is a fake proxy.
type Proxy struct {
	Figures proxy.Stats
	Err     error // of Stats
	Up      bool
}

// Stats returns Figures and Err.
func (p *Proxy) Stats() (proxy.Stats, error) { return p.Figures, p.Err }

// Ready reports whether the proxy is Up.
func (p *Proxy) Ready() bool { return p.Up }

// View is what a fake member knows about its cluster.
type View struct {
	Holds *ring.Table
	Alive []ring.Member
}

// Table returns Holds.
func (v *View) Table() *ring.Table { return v.Holds }

// Members returns Alive.
func (v *View) Members() []ring.Member { return v.Alive }

// TwoNodes returns a view with a table of the nodes n1 and n2, which own alternate partitions. The
// proxy p is alive too, and n2 is leaving.
func TwoNodes() *View {
	t := &ring.Table{Epoch: 7, Issuer: "n1@1", Nodes: []ring.Member{{ID: "n1", Boot: 1}, {ID: "n2", Boot: 2}}}
	for p := range t.Owner {
		t.Owner[p] = uint16(p % 2)
		t.Follower[p] = ring.NoNode
	}
	return &View{Holds: t, Alive: []ring.Member{
		{ID: "n1", Boot: 1, State: ring.Serving, Addr: "10.0.0.1:6380", Admin: "10.0.0.1:9180", Epoch: 7},
		{ID: "n2", Boot: 2, State: ring.Leaving, Addr: "10.0.0.2:6380", Epoch: 6},
		{ID: "p", Boot: 3, Role: ring.RoleProxy, State: ring.Serving},
	}}
}
