package status

import "github.com/dunlin-cache/dunlin/ring"

// Status is the answer of /api/status, which `dunlin status` reads. Fields are only ever added: a
// newer dunlin must be able to read the Status of an older one.
type Status struct {
	Version string   `json:"version"`
	Cluster Cluster  `json:"cluster"`
	Members []Member `json:"members"` // the members in this process, with figures
}

// Cluster is the whole cluster as the first member of this process sees it.
type Cluster struct {
	Name       string `json:"name"`
	Epoch      uint64 `json:"epoch"` // of its table; 0: none yet
	Issuer     string `json:"issuer"`
	Partitions int    `json:"partitions"` // of the cluster
	Followed   int    `json:"followed"`   // partitions that have a follower
	Moves      int    `json:"moves"`      // partitions that move
	Paused     bool   `json:"paused"`     // only unavoidable moves happen

	Coordinator string `json:"coordinator"` // id of the node that issues tables; "": none
	Peers       []Peer `json:"peers"`       // the alive members, including itself
}

// Peer is a member as gossip and the table describe it.
type Peer struct {
	ID         string `json:"id"`
	Boot       int64  `json:"boot,string"` // Unix nanoseconds: too large for JavaScript's numbers
	Role       string `json:"role"`
	State      string `json:"state"`
	Epoch      uint64 `json:"epoch"`
	Addr       string `json:"addr"`
	Admin      string `json:"admin"`
	Partitions int    `json:"partitions"` // that it owns by the table
	Follows    int    `json:"follows"`    // that it follows by the table
}

// Member is one member of this process with its figures. Figures that a role does not have (a
// proxy's keys) are 0.
type Member struct {
	ID            string  `json:"id"`
	Boot          int64   `json:"boot,string"`
	Role          string  `json:"role"`
	Addr          string  `json:"addr"`
	Ready         bool    `json:"ready"`
	Fenced        bool    `json:"fenced"` // it serves nothing until it receives the current table
	Epoch         uint64  `json:"epoch"`
	UptimeSeconds float64 `json:"uptime_seconds"`

	Partitions int    `json:"partitions"`
	Follows    int    `json:"follows"`
	Keys       int64  `json:"keys"` // of the partitions that it serves
	MemoryUsed int64  `json:"memory_used_bytes"`
	MemoryMax  int64  `json:"memory_max_bytes"`
	Hits       uint64 `json:"hits"` // since the start
	Misses     uint64 `json:"misses"`

	Clients       int    `json:"clients"`
	Waiting       int64  `json:"waiting"`       // a proxy's clients and a node's commands that wait for keys, or in WAIT
	Subscriptions int64  `json:"subscriptions"` // of a proxy's clients
	Commands      uint64 `json:"commands"`

	// Rates cover the last RecentSeconds: about the same time for all members, less for one that
	// has just started; 0 from an older dunlin.
	RecentSeconds     float64 `json:"recent_seconds"`
	CommandsPerSecond float64 `json:"commands_per_second"`
	RecentHits        uint64  `json:"recent_hits"`
	RecentMisses      uint64  `json:"recent_misses"`

	HotKeys []HotKey `json:"hot_keys,omitempty"` // a few, the most used first
	Pinned  []Pinned `json:"pinned,omitempty"`   // databases that it serves, by number
}

// Pinned is a pinned database.
type Pinned struct {
	Database  uint8   `json:"database"`
	Partition uint16  `json:"partition"`
	Keys      int64   `json:"keys"`
	Bytes     int64   `json:"bytes"`            // that its keys take with their values
	Share     float64 `json:"share"`            // of its node's commands, 0 to 1, estimated
	Crowds    bool    `json:"crowds,omitempty"` // it takes more than half of its node
}

// HotKey is one of the most used keys.
type HotKey struct {
	Key           string `json:"key"`
	Database      uint8  `json:"database"`
	UsesPerSecond int64  `json:"uses_per_second"` // estimated
}

// cluster describes the cluster as view sees it. The epoch is 0 before the first table.
func cluster(name string, view View) Cluster {
	c := Cluster{Name: name, Partitions: ring.Partitions, Peers: []Peer{}}
	table, members := view.Table(), view.Members()
	parts := sharesOf(table)
	if table != nil {
		c.Epoch, c.Issuer, c.Paused, c.Moves = table.Epoch, table.Issuer, table.Paused, len(table.Moves)
		c.Followed = parts.followed()
	}
	if coordinator, ok := ring.Coordinator(members); ok {
		c.Coordinator = coordinator.ID
	}
	for _, m := range members {
		c.Peers = append(c.Peers, parts.peer(m, m.State.String()))
	}
	return c
}

// shares has how many partitions each node of a table owns and follows.
type shares struct {
	table          *ring.Table // nil: none yet
	owned, follows []int       // by index in its Nodes
}

func sharesOf(t *ring.Table) shares {
	if t == nil {
		return shares{}
	}
	return shares{table: t, owned: t.Counts(), follows: t.FollowCounts()}
}

// of returns how many partitions a member owns and follows.
func (s *shares) of(id string, boot int64) (owned, follows int) {
	if s.table == nil {
		return 0, 0
	}
	at := s.table.NodeIndex(id, boot)
	if at < 0 {
		return 0, 0
	}
	return s.owned[at], s.follows[at]
}

// followed returns how many partitions have a follower.
func (s *shares) followed() (n int) {
	for _, of := range s.follows {
		n += of
	}
	return n
}

// PeerOf describes a node of a table, or a member by its entry in a table. t may be nil.
func PeerOf(t *ring.Table, m ring.Member, state string) Peer {
	parts := sharesOf(t)
	return parts.peer(m, state)
}

func (s *shares) peer(m ring.Member, state string) Peer {
	owned, follows := s.of(m.ID, m.Boot)
	return Peer{
		ID:         m.ID,
		Boot:       m.Boot,
		Role:       m.Role.String(),
		State:      state,
		Epoch:      m.Epoch,
		Addr:       m.Addr,
		Admin:      m.Admin,
		Partitions: owned,
		Follows:    follows,
	}
}
