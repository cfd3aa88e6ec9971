package harness

import (
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// StartOptions say how a cluster differs from the default, which the zero value stands for.
type StartOptions struct {
	Nodes, Proxies int
	Flags          []string        // for every member
	NodeFlags      []string        // for nodes only
	Env            []string        // added to an environment without DUNLIN_*
	Relayed        bool            // the other members reach the nodes through relays
	Network        *Network        // gives each member a namespace; nil: the loopback interface
	Clocks         []time.Duration // offsets of the members' wall clocks, nodes first
	Path           string          // binary to run; "": the one under test
	// Settles: the protocol level of the cluster rises as late as in production, not after levelSettle.
	Settles bool
}

// levelSettle is how long members of one build must have spoken a higher protocol level before the cluster
// uses it.
const levelSettle = 200 * time.Millisecond

var busy = flag.Bool("harness.busy", false, "members wait longer for a silent node, which may get no processor beside other tests")

// nodeTimeout is how long a node may owe replies in silence. The race detector makes everything up to ten
// times slower.
func nodeTimeout() time.Duration {
	if RaceEnabled || *busy {
		return time.Second
	}
	return 250 * time.Millisecond
}

// Cluster is the members of one test.
type Cluster struct {
	T       testing.TB
	Members []*Member // nodes, then proxies
}

// StartCluster starts members that all know each other's addresses, and waits until they are ready
// and agree on a table. All members get the flags.
func StartCluster(t testing.TB, nodes, proxies int, flags ...string) *Cluster {
	t.Helper()
	return StartClusterWith(t, StartOptions{Nodes: nodes, Proxies: proxies, Flags: flags})
}

// StartClusterWith is StartCluster with all options.
func StartClusterWith(t testing.TB, o StartOptions) *Cluster {
	t.Helper()
	c := &Cluster{T: t}
	for i := range o.Nodes {
		c.Members = append(c.Members, o.Network.NewMember(t, "node", fmt.Sprintf("n%d", i+1)))
	}
	for i := range o.Proxies {
		c.Members = append(c.Members, o.Network.NewMember(t, "proxy", fmt.Sprintf("p%d", i+1)))
	}
	if o.Relayed {
		for _, m := range c.ByRole("node") {
			m.Relay = relayed(t, m)
			_, port, _ := net.SplitHostPort(m.Gossip)
			m.Gossip = net.JoinHostPort(relayHost, port)
		}
	}
	var join []string
	for _, m := range c.Members {
		join = append(join, m.Gossip)
	}
	for i, off := range o.Clocks {
		c.Members[i].Clock = off
	}
	for _, m := range c.Members {
		m.Flags = slices.Clone(o.Flags)
		if m.Role == "proxy" || o.Nodes > 1 { // a sole node would wait for others before it founds the cluster
			m.Flags = append(m.Flags, "--join", strings.Join(join, ","))
		}
		if m.Role == "node" && o.Relayed {
			m.Flags = append(m.Flags, "--advertise", relayHost)
		}
		if m.Role == "node" {
			m.Flags = append(m.Flags, "--memory", "128mb") // unless NodeFlags say otherwise
			m.Flags = append(m.Flags, o.NodeFlags...)
		}
		if m.Path = o.Path; m.Path == "" {
			m.Env = append(m.Env, "DUNLIN_NODE_TIMEOUT="+nodeTimeout().String())
			if !o.Settles {
				m.Env = append(m.Env, "DUNLIN_LEVEL_SETTLE="+levelSettle.String())
			}
		}
		m.Env = append(m.Env, o.Env...)
		m.Launch()
	}
	c.WaitReady()
	c.Converge(ReadyTimeout)
	return c
}

// Node returns the i-th node, from 0.
func (c *Cluster) Node(i int) *Member { return c.ByRole("node")[i] }

// Proxy returns the i-th proxy, from 0.
func (c *Cluster) Proxy(i int) *Member { return c.ByRole("proxy")[i] }

// ByRole returns all nodes or all proxies.
func (c *Cluster) ByRole(role string) (found []*Member) {
	for _, m := range c.Members {
		if m.Role == role {
			found = append(found, m)
		}
	}
	return found
}

// WaitReady waits until all running members are ready.
func (c *Cluster) WaitReady() {
	c.T.Helper()
	for _, m := range c.Members {
		if m.Running() {
			m.WaitReady()
		}
	}
}

// Epochs asks every running member that is not stopped for the epoch of its table, and returns the
// epochs by member. A member that does not answer within a second has epoch 0.
func (c *Cluster) Epochs() map[string]uint64 {
	all := map[string]uint64{}
	for _, m := range c.Members {
		if m.Running() && !m.Stopped {
			s, _ := m.Status()
			all[m.ID] = s.Cluster.Epoch
		}
	}
	return all
}

// Converge waits until all running members show the same table, in which the running nodes, and no
// others, own all partitions. It returns the table's epoch.
func (c *Cluster) Converge(within time.Duration) uint64 {
	c.T.Helper()
	epoch, why := uint64(0), ""
	Eventually(c.T, within, "members agree", func() bool {
		epoch, why = c.Agreed()
		return why == ""
	}, func() string { return why })
	return epoch
}

// Agreed returns the epoch on which all members agree, or why they do not agree.
func (c *Cluster) Agreed() (epoch uint64, why string) {
	var nodes []string
	for _, m := range c.ByRole("node") {
		if m.Running() && !m.Stopped {
			nodes = append(nodes, m.ID)
		}
	}
	for _, m := range c.Members {
		if !m.Running() || m.Stopped {
			continue
		}
		s, err := m.Status()
		if err != nil {
			return 0, fmt.Sprintf("%s: %v", m.ID, err)
		}
		if epoch == 0 {
			epoch = s.Cluster.Epoch
		}
		if owners := s.owners(); s.Cluster.Epoch != epoch || epoch == 0 || !slices.Equal(owners, nodes) {
			return 0, fmt.Sprintf("%s shows epoch %d with owners %v; epoch %d with owners %v is expected",
				m.ID, s.Cluster.Epoch, owners, epoch, nodes)
		}
	}
	return epoch, ""
}
