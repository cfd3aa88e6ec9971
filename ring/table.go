package ring

import (
	"cmp"
	"slices"
)

// NoNode stands in Owner and Follower for "nobody".
const NoNode = 0xFFFF

const (
	// MaxNodes bounds the nodes of a table. Sixteen partitions a node are few enough,
	// and the ring's library takes seconds for so many; 0.1 s for 50.
	MaxNodes = 256
	// maxAncestors bounds the memory of a lineage. A member that missed more epochs
	// than this (13 s at the fastest) looks foreign and is healed like one.
	maxAncestors = 64
	// maxEpoch leaves room for every epoch that a cluster can count up to, so that
	// adding one never overflows.
	maxEpoch = 1 << 62
)

// Version names a table.
type Version struct {
	Epoch  uint64
	Issuer string // Name of the coordinator that issued it
}

// IsZero reports whether v names no table.
func (v Version) IsZero() bool { return v.Epoch == 0 }

// CompareVersions orders versions by epoch, then issuer.
func CompareVersions(a, b Version) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Issuer, b.Issuer))
}

// Move says that From, the owner of Partition, feeds To as well as the follower. To
// is to become its owner or its follower. Both are indexes in Nodes.
type Move struct {
	Partition, From, To uint16
}

// Table says who serves each partition. It is immutable.
type Table struct {
	Epoch  uint64
	Issuer string
	// Ancestors are versions that this table replaces, directly or not: the ones
	// replaced directly first, then from the newest down, at most 64.
	Ancestors []Version
	// Seed is the cluster's hash seed of the nodes' indexes: SCAN cursors survive a
	// move because all nodes agree on it. It stays the same along a lineage.
	Seed uint64
	// Nodes are the serving nodes, and leaving ones as long as they own or follow
	// something, sorted by ID; their State here is always Serving.
	Nodes []Member
	// Joined[i] is the epoch in which this boot of Nodes[i] came into the lineage,
	// without having left it since. It tells after a split how many nodes of the
	// last common table each side kept.
	Joined []uint64
	// Owner and Follower are indexes in Nodes; Follower may be NoNode.
	Owner, Follower [Partitions]uint16
	// Since[p] is the epoch in which the present data of p began.
	Since [Partitions]uint64
	// Paused: an operator wants nothing to move that need not. Leaving nodes hand over
	// what they have, and missing followers are replaced, all the same.
	Paused bool
	// Moves has at most one of each partition, in their order.
	Moves []Move
	// Level is the cluster's protocol level: every member speaks it.
	Level uint8
	// Settings names the settings document that holds; zero below level 1, and before
	// anything was set.
	Settings SettingsID
}

// Version returns the name of t; the zero Version for nil.
func (t *Table) Version() Version {
	if t == nil {
		return Version{}
	}
	return Version{t.Epoch, t.Issuer}
}

// NodeIndex returns the index in Nodes of one life of a node, or -1.
func (t *Table) NodeIndex(id string, boot int64) int {
	i, found := slices.BinarySearchFunc(t.Nodes, id, func(m Member, id string) int {
		return cmp.Compare(m.ID, id)
	})
	if !found || t.Nodes[i].Boot != boot {
		return -1
	}
	return i
}

// OwnerOf returns the node that serves partition p.
func (t *Table) OwnerOf(p uint16) *Member { return &t.Nodes[t.Owner[p]] }

// Descends reports whether t replaces the table of version v, as far back as its
// ancestors tell.
func (t *Table) Descends(v Version) bool { return slices.Contains(t.Ancestors, v) }

// Newer reports whether a member that holds o (nil: none) may adopt t: t is of
// o's lineage, of a later epoch, and of no lower level. A table of a foreign lineage
// is not newer, however high its epoch. One of a lower level was issued by somebody
// who could not read ours, and replaced it unread.
func (t *Table) Newer(o *Table) bool {
	return o == nil || t.Epoch > o.Epoch && t.Level >= o.Level && t.Descends(o.Version())
}

// Counts returns for each node how many partitions it owns.
func (t *Table) Counts() []int {
	counts := make([]int, len(t.Nodes))
	for _, o := range t.Owner {
		counts[o]++
	}
	return counts
}

// FollowCounts returns for each node how many partitions it follows.
func (t *Table) FollowCounts() []int {
	counts := make([]int, len(t.Nodes))
	for _, f := range t.Follower {
		if f != NoNode {
			counts[f]++
		}
	}
	return counts
}
