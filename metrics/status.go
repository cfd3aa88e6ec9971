package metrics

import (
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// Status is what /api/status answers, and what `dunlin status` reads. Fields
// are only ever added: a newer dunlin must be able to read an older one's.
type Status struct {
	Version string   `json:"version"`
	Cluster Cluster  `json:"cluster"`
	Members []Member `json:"members"` // the members in this process, with figures
}

// Cluster is the whole cluster as the first member of this process sees it.
type Cluster struct {
	Name       string `json:"name"`
	Epoch      uint64 `json:"epoch"` // of its table; 0: it has none yet
	Issuer     string `json:"issuer"`
	Partitions int    `json:"partitions"` // in all
	Peers      []Peer `json:"peers"`      // the alive members, itself among them
}

// Peer is a member as gossip and the table describe it.
type Peer struct {
	ID         string `json:"id"`
	Boot       int64  `json:"boot,string"` // unix nanoseconds: beyond what JavaScript's numbers hold
	Role       string `json:"role"`
	State      string `json:"state"`
	Epoch      uint64 `json:"epoch"`
	Addr       string `json:"addr"`
	Admin      string `json:"admin"`
	Partitions int    `json:"partitions"` // owned by the table
}

// Member is one member of this process with its figures. What a role does not
// have (a proxy's keys) stays 0.
type Member struct {
	ID            string  `json:"id"`
	Boot          int64   `json:"boot,string"`
	Role          string  `json:"role"`
	Addr          string  `json:"addr"`
	Ready         bool    `json:"ready"`
	Epoch         uint64  `json:"epoch"`
	UptimeSeconds float64 `json:"uptime_seconds"`

	Partitions int    `json:"partitions"`
	Keys       int64  `json:"keys"`
	MemoryUsed int64  `json:"memory_used_bytes"`
	MemoryMax  int64  `json:"memory_max_bytes"`
	Hits       uint64 `json:"hits"`
	Misses     uint64 `json:"misses"`

	Clients           int     `json:"clients"`
	Commands          uint64  `json:"commands"`
	CommandsPerSecond float64 `json:"commands_per_second"` // over the last seconds
}

const (
	roleNode  = "node"
	roleProxy = "proxy"
)

func roleName(r ring.Role) string {
	if r == ring.RoleProxy {
		return roleProxy
	}
	return roleNode
}

func stateName(s ring.State) string {
	switch s {
	case ring.Joining:
		return "joining"
	case ring.Serving:
		return "serving"
	case ring.Leaving:
		return "leaving"
	}
	return "unknown"
}

// cluster describes what view sees. A nil table (nobody issued one yet) leaves
// the epoch 0.
func cluster(name string, view View) Cluster {
	c := Cluster{Name: name, Partitions: ring.Partitions}
	table := view.Table()
	if table != nil {
		c.Epoch, c.Issuer = table.Epoch, table.Issuer
	}
	for _, m := range view.Members() {
		c.Peers = append(c.Peers, Peer{
			ID:         m.ID,
			Boot:       m.Boot,
			Role:       roleName(m.Role),
			State:      stateName(m.State),
			Epoch:      m.Epoch,
			Addr:       m.Addr,
			Admin:      m.Admin,
			Partitions: owned(table, m.ID, m.Boot),
		})
	}
	return c
}

// owned counts the partitions that table gives to a member.
func owned(table *ring.Table, id string, boot int64) int {
	if table == nil {
		return 0
	}
	self := table.NodeIndex(id, boot)
	if self < 0 {
		return 0
	}
	n := 0
	for _, owner := range table.Owner {
		if int(owner) == self {
			n++
		}
	}
	return n
}

// covered says whether every partition has an owner in table.
func covered(table *ring.Table) bool {
	if table == nil {
		return false
	}
	for _, owner := range table.Owner {
		if owner == ring.NoNode {
			return false
		}
	}
	return true
}

func uptime(boot int64) float64 { return time.Since(time.Unix(0, boot)).Seconds() }
