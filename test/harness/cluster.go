package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// ReadyTimeout is for a process to be ready, on a machine busy with other tests.
	ReadyTimeout = 30 * time.Second
	// PollInterval is how often a condition is looked at again.
	PollInterval = 10 * time.Millisecond
	// shownLog is how much of a log's end a failed test shows.
	shownLog = 8 << 10
)

// StartOptions are the differences between clusters; the zero value has none.
type StartOptions struct {
	Nodes, Proxies int
	Flags          []string        // for every member
	NodeFlags      []string        // for nodes only
	Env            []string        // in addition to an environment without DUNLIN_*
	Relayed        bool            // others reach the nodes through relays
	Network        *Network        // of the members' own; nil: the loopback interface
	Clocks         []time.Duration // of the members, nodes first: by how much they are off
	Path           string          // of the binary; "": the one under test
}

// Cluster is the members of one test.
type Cluster struct {
	T       testing.TB
	Members []*Member // nodes, then proxies
}

// StartCluster starts members that all know each other's addresses, and waits
// until they are ready and agree. flags go to all of them.
func StartCluster(t testing.TB, nodes, proxies int, flags ...string) *Cluster {
	t.Helper()
	return StartClusterWith(t, StartOptions{Nodes: nodes, Proxies: proxies, Flags: flags})
}

// StartClusterWith is StartCluster with everything that can differ.
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
		m.Flags = append([]string{"--join", strings.Join(join, ",")}, o.Flags...)
		if m.Role == "node" && o.Relayed {
			m.Flags = append(m.Flags, "--advertise", relayHost)
		}
		if m.Role == "node" {
			m.Flags = append(m.Flags, "--memory", "128mb") // unless nodeFlags say otherwise
			m.Flags = append(m.Flags, o.NodeFlags...)
		}
		m.Env, m.Path = o.Env, o.Path
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

// Epochs asks every running member, stopped ones not among them, for the epoch
// of its table. A member that does not answer within a second has epoch 0.
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

// Converge waits until all running members show the same table, with exactly the
// running nodes as owners of all partitions. It returns the table's epoch.
func (c *Cluster) Converge(within time.Duration) uint64 {
	c.T.Helper()
	epoch, why := uint64(0), ""
	Eventually(c.T, within, "members agree", func() bool {
		epoch, why = c.Agreed()
		return why == ""
	}, func() string { return why })
	return epoch
}

// Agreed says why members do not agree, or returns "" and the epoch.
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

type memberStatus struct {
	ID, Role   string
	Ready      bool
	Epoch      uint64
	Partitions int
	Keys       int64
	MemoryMax  int64 `json:"memory_max_bytes"`
	Hits       uint64
	Misses     uint64
	Clients    int
	Commands   uint64
}

// Eventually looks at a condition until it holds; after the deadline the test
// fails, and says with why what it saw last.
func Eventually(t testing.TB, within time.Duration, what string, holds func() bool, why ...func() string) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); time.Sleep(PollInterval) {
		if time.Now().After(deadline) {
			last := ""
			for _, f := range why {
				last += "; last: " + f()
			}
			t.Fatalf("waited %v in vain: %s%s", within, what, last)
		}
	}
}

// SleepUpTo is how long a fault lasts.
func SleepUpTo(d time.Duration, rng *rand.Rand) { time.Sleep(time.Duration(rng.Int64N(int64(d)))) }
