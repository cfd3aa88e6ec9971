package ring

import (
	"cmp"
	"slices"
)

// NoNode stands in Owner and Follower for "nobody".
const NoNode = 0xFFFF

const (
	// MaxNodes bounds the number of nodes of a table. Sixteen partitions for each node are few
	// enough, and the ring's library takes seconds for 256 nodes (0.1 s for 50).
	MaxNodes = 256
	// maxAncestors bounds the memory of a lineage. A member that missed more epochs (13 s at the
	// fastest) looks foreign, and Heal treats it like a foreign one.
	maxAncestors = 64
	// maxEpoch is beyond every epoch that a cluster can count up to; adding one never overflows.
	maxEpoch = 1 << 62
)

// Version identifies a table.
type Version struct {
	Epoch  uint64
	Issuer string // Name of the coordinator that issued it
}

// IsZero reports whether v names no table.
func (v Version) IsZero() bool { return v.Epoch == 0 }

// CompareVersions orders versions by epoch, then by issuer.
func CompareVersions(a, b Version) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Issuer, b.Issuer))
}

// Move says that From, the owner of Partition, feeds To beside the follower. To shall become the
// partition's owner or follower. From and To are indexes in Nodes.
type Move struct {
	Partition, From, To uint16
}

// Table says which node serves each partition. It is immutable.
type Table struct {
	Epoch  uint64
	Issuer string
	// Ancestors are versions that this table replaces, directly or indirectly: first those that it
	// replaces directly, then the others from the newest down. There are at most 64.
	Ancestors []Version
	// Seed is the hash seed of the nodes' indexes. All tables of a lineage have the same seed, so
	// SCAN cursors survive a move.
	Seed uint64
	// Nodes are the serving nodes, and the leaving ones that still own or follow something, sorted
	// by ID. Their State here is always Serving.
	Nodes []Member
	// Joined[i] is the epoch in which this boot of Nodes[i] joined the lineage for good. After a
	// split, it shows how many nodes of the last common table each side kept.
	Joined []uint64
	// Gone is the last epoch in which a node joined that is not in Nodes any more; 0: there is none. Who
	// comes from a table before that one has never heard of that node. It is 0 below GoneLevel.
	Gone uint64
	// Owner and Follower are indexes in Nodes; Follower may be NoNode.
	Owner, Follower [Partitions]uint16
	// Since[p] is the epoch in which the present data of p began.
	Since [Partitions]uint64
	// Paused is true while an operator wants no moves that can be avoided. Leaving nodes still hand
	// over what they have, and missing followers are still replaced.
	Paused bool
	// Moves has at most one move of each partition, sorted by partition.
	Moves []Move
	// Level is the cluster's protocol level: every member speaks it.
	Level uint8
	// Settings identifies the current settings document. It is zero below level 1, and before
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

// NodeIndex returns the index in Nodes of one boot of a node, or -1.
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

// Descends reports whether t replaces the table of version v, as far back as its ancestors go.
func (t *Table) Descends(v Version) bool { return slices.Contains(t.Ancestors, v) }

// Newer reports whether a member that holds o (nil: none) may adopt t: t belongs to o's lineage and
// has a later epoch and no lower level. A table of a foreign lineage is not newer, however high its
// epoch. The issuer of a table of a lower level could not read o, and replaced it unread.
func (t *Table) Newer(o *Table) bool {
	return o == nil || t.Epoch > o.Epoch && t.Level >= o.Level && t.Descends(o.Version())
}

// Counts returns how many partitions each node owns.
func (t *Table) Counts() []int {
	counts := make([]int, len(t.Nodes))
	for _, o := range t.Owner {
		counts[o]++
	}
	return counts
}

// FollowCounts returns how many partitions each node follows.
func (t *Table) FollowCounts() []int {
	counts := make([]int, len(t.Nodes))
	for _, f := range t.Follower {
		if f != NoNode {
			counts[f]++
		}
	}
	return counts
}
