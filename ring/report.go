package ring

import "fmt"

// Report says which partitions a node has, so that the coordinator knows to whom it may give a
// partition, and whether the owner has taken it over. On the wire it is a version and a bitmap.
type Report struct {
	// Node is the Name of the reporting node.
	Node string
	// Version is the table that the node obeys. Plan uses only reports on the table that it
	// replaces.
	Version Version
	// Synced contains the partitions that the node owns and serves, and those of which its copy is
	// in sync. A copy is in sync only with the owner, and since the epoch, that the table names.
	Synced PartitionSet
}

// Add records that the copy of p is in sync, or that the node serves p.
func (r *Report) Add(p uint16) { r.Synced.Add(p) }

// Has reports whether the copy of p is in sync, or the node serves p. A nil report has nothing.
func (r *Report) Has(p uint16) bool { return r != nil && r.Synced.Has(p) }

// DecodeReport returns the report of the named node from the version and bitmap that it sent. It
// copies the bitmap.
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

// Settled reports whether t is what the ring asks for, so that no report could change it: no
// partition moves, and each has the ring's owner and follower, or keeps others because t is Paused.
func (t *Table) Settled(alive []Member, copies int) bool {
	p := newPlanner(t, &Table{}, alive, copies)
	if p == nil || len(t.Moves) > 0 {
		return p == nil // if no node serves, nothing is going to change
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

// Heirs returns the alive nodes that may have copies of partitions of dead owners. Their reports
// decide which of these partitions are lost.
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
