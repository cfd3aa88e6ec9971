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
	Followed   int    `json:"followed"`   // partitions that have a follower
	Moves      int    `json:"moves"`      // partitions on their way to another node
	Paused     bool   `json:"paused"`     // nothing moves that need not

	Coordinator string `json:"coordinator"` // id of the node that issues tables; "": there is none
	Peers       []Peer `json:"peers"`       // the alive members, itself among them
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
	Follows    int    `json:"follows"`    // followed by the table
}

// Member is one member of this process with its figures. What a role does not
// have (a proxy's keys) stays 0.
type Member struct {
	ID            string  `json:"id"`
	Boot          int64   `json:"boot,string"`
	Role          string  `json:"role"`
	Addr          string  `json:"addr"`
	Ready         bool    `json:"ready"`
	Fenced        bool    `json:"fenced"` // it serves nothing until it has heard the current table
	Epoch         uint64  `json:"epoch"`
	UptimeSeconds float64 `json:"uptime_seconds"`

	Partitions int    `json:"partitions"`
	Follows    int    `json:"follows"`
	Keys       int64  `json:"keys"` // copies included
	MemoryUsed int64  `json:"memory_used_bytes"`
	MemoryMax  int64  `json:"memory_max_bytes"`
	Hits       uint64 `json:"hits"`
	Misses     uint64 `json:"misses"`

	Clients           int     `json:"clients"`
	Commands          uint64  `json:"commands"`
	CommandsPerSecond float64 `json:"commands_per_second"` // over the last seconds
}

// cluster describes what view sees. Without a table (nobody issued one yet) the
// epoch stays 0.
func cluster(name string, view View) Cluster {
	c := Cluster{Name: name, Partitions: ring.Partitions, Peers: []Peer{}}
	table := view.Table()
	if table != nil {
		c.Epoch, c.Issuer, c.Paused, c.Moves = table.Epoch, table.Issuer, table.Paused, len(table.Moves)
		c.Followed = followed(table)
	}
	if coordinator, ok := ring.Coordinator(view.Members()); ok {
		c.Coordinator = coordinator.ID
	}
	for _, m := range view.Members() {
		c.Peers = append(c.Peers, Peer{
			ID:         m.ID,
			Boot:       m.Boot,
			Role:       m.Role.String(),
			State:      m.State.String(),
			Epoch:      m.Epoch,
			Addr:       m.Addr,
			Admin:      m.Admin,
			Partitions: owned(table, m.ID, m.Boot),
			Follows:    follows(table, m.ID, m.Boot),
		})
	}
	return c
}

// owned counts the partitions that table, which may be nil, gives to a member.
func owned(table *ring.Table, id string, boot int64) int {
	if table == nil {
		return 0
	}
	self := table.NodeIndex(id, boot)
	if self < 0 {
		return 0
	}
	return table.Counts()[self]
}

// follows counts the partitions of which table, which may be nil, gives the second copy
// to a member.
func follows(table *ring.Table, id string, boot int64) (n int) {
	if table == nil {
		return 0
	}
	self := table.NodeIndex(id, boot)
	for _, f := range table.Follower {
		if int(f) == self {
			n++
		}
	}
	return n
}

// followed counts the partitions that have a follower.
func followed(table *ring.Table) (n int) {
	for _, f := range table.Follower {
		if f != ring.NoNode {
			n++
		}
	}
	return n
}

func uptime(boot int64) float64 { return time.Since(time.Unix(0, boot)).Seconds() }
