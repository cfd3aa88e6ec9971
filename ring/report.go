package ring

import "fmt"

// Report says what a node has, so that the coordinator can tell whom a partition may be
// given to, and whether its owner has taken it over. On the wire it is a version and the bitmap.
type Report struct {
	// Node is the Name of who reports.
	Node string
	// Version is the table that it obeys. Plan heeds a report on its own table only.
	Version Version
	// Synced has the partitions of which the node holds a copy that is in sync with the
	// owner, and began in the epoch, that the table names; and those that it owns and serves.
	Synced PartitionSet
}

// Add notes that the copy of p is in sync, or that p is served.
func (r *Report) Add(p uint16) { r.Synced.Add(p) }

// Has reports whether the copy of p is in sync, or p is served. A nil report says nothing.
func (r *Report) Has(p uint16) bool { return r != nil && r.Synced.Has(p) }

// DecodeReport makes the report of the node named node from what it sent. It copies
// the bitmap.
func DecodeReport(node string, v Version, bitmap []byte) (*Report, error) {
	synced, ok := DecodePartitionSet(bitmap)
	if !ok {
		return nil, fmt.Errorf("cannot decode report of %s: its bitmap has %d bytes, want %d",
			node, len(bitmap), len(PartitionSet{}))
	}
	if v.Epoch > maxEpoch || len(v.Issuer) > maxIssuer {
		return nil, fmt.Errorf("cannot decode report of %s: impossible version %d %q", node, v.Epoch, v.Issuer)
	}
	return &Report{Node: node, Version: v, Synced: *synced}, nil
}

// Settled reports whether t is what the ring asks for, so that reports would change
// nothing: no partition moves, and each has the ring's owner and follower, or may not
// get them because t is Paused.
func (t *Table) Settled(alive []Member, copies int) bool {
	p := newPlanner(t, &Table{}, alive, copies)
	if p == nil || len(t.Moves) > 0 {
		return p == nil // if nobody plans, nothing is going to change
	}
	for part := range Partitions {
		follower := uint16(NoNode)
		if f := t.Follower[part]; f != NoNode {
			follower = p.now[f]
		}
		owner := p.now[t.Owner[part]]
		if t.Paused && owner != NoNode && p.serving[owner] {
			wrong := (follower == NoNode) != (p.wantFollower[part] == NoNode)
			if wrong || follower != NoNode && !p.serving[follower] {
				return false
			}
			continue
		}
		if owner != p.wantOwner[part] || follower != p.wantFollower[part] {
			return false
		}
	}
	return true
}

// Heirs returns the alive nodes that may have copies of dead owners' partitions. Their
// reports decide which of those are lost.
func (t *Table) Heirs(alive []Member) []Member {
	newest := newestBoots(alive)
	lives := make([]bool, len(t.Nodes))
	for i, m := range t.Nodes {
		lives[i] = newest[m.ID].Boot == m.Boot
	}
	heirs := make([]bool, len(t.Nodes))
	for p, o := range t.Owner {
		if f := t.Follower[p]; !lives[o] && f != NoNode {
			heirs[f] = true
		}
	}
	for _, m := range t.Moves {
		if !lives[m.From] {
			heirs[m.To] = true
		}
	}
	var found []Member
	for i, m := range t.Nodes {
		if heirs[i] && lives[i] {
			found = append(found, m)
		}
	}
	return found
}
