package ownership

import "github.com/dunlin-cache/dunlin/ring"

// Standing says what a node does with a command on a partition.
type Standing uint8

const (
	Foreign Standing = iota // answer MOVED: the table gives the partition to another node
	Gained                  // answer "wait": the table gives it to this node, but another may still serve it
	Serving                 // execute
)

// View is a table as one node obeys it. A View that has been published is immutable.
type View struct {
	Table *ring.Table // nil before the first one
	Self  int         // index of this node in Table.Nodes, -1 if it is not there

	Standing [ring.Partitions]Standing
	// Began[p] is the epoch in which this node gained p, 0 for partitions of others.
	Began [ring.Partitions]uint64
	// Newest is the greatest value of Began.
	Newest uint64
	// MoveTo[p] is the node that p is to move to, as an index in Table.Nodes. NoNode for most.
	MoveTo [ring.Partitions]uint16
	// From[p] is the name of the previous owner, if p is gained.
	From [ring.Partitions]string
	// Held has the partitions that a table has taken from this node while a transaction held them.
	// Their data is as it was served, feeds included, until the hold ends.
	Held ring.PartitionSet
}

// None is the view before the first table: it serves nothing.
var None = &View{Self: -1}

// Next returns the view of t for the node: it continues to serve those of its partitions whose data
// does not begin anew, and gains all others that t gives it.
func (v *View) Next(t *ring.Table, id string, boot int64) *View {
	n := &View{Table: t, Self: t.NodeIndex(id, boot), Held: v.Held}
	for p := range n.MoveTo {
		n.MoveTo[p] = ring.NoNode
	}
	for _, m := range t.Moves {
		n.MoveTo[m.Partition] = m.To
	}
	owners := v.OwnerNames()
	for p := range uint16(ring.Partitions) {
		switch {
		case !n.Owns(p):
			continue
		case v.Keeps(p, t):
			n.Standing[p], n.Began[p], n.From[p] = v.Standing[p], v.Began[p], v.From[p]
		default:
			n.Standing[p], n.Began[p] = Gained, t.Epoch
			if owners != nil {
				n.From[p] = owners[v.Table.Owner[p]]
			}
		}
		n.Newest = max(n.Newest, n.Began[p])
	}
	return n
}

// WithGained returns a copy of the view that serves everything that v has gained.
func (v *View) WithGained() *View { return v.withGained(new(ring.PartitionSet)) }

// withGained returns a copy of the view that serves what v has gained, but for the set.
func (v *View) withGained(but *ring.PartitionSet) *View {
	next := *v
	for p, s := range next.Standing {
		if s == Gained && !but.Has(uint16(p)) {
			next.Standing[p] = Serving
		}
	}
	return &next
}

// without returns a copy of the view in which the partitions of the set are foreign.
func (v *View) without(set *ring.PartitionSet) *View {
	if set.Empty() {
		return v
	}
	next := *v
	for p := range next.Standing {
		if set.Has(uint16(p)) {
			next.Standing[p] = Foreign
		}
	}
	return &next
}

// withHeld returns a copy of the view with another set of held partitions.
func (v *View) withHeld(held ring.PartitionSet) *View {
	next := *v
	next.Held = held
	return &next
}

// Epoch returns the table's epoch, 0 without a table.
func (v *View) Epoch() uint64 { return v.Table.Version().Epoch }

// Owns reports whether the table gives p to this node.
func (v *View) Owns(p uint16) bool { return v.Self >= 0 && int(v.Table.Owner[p]) == v.Self }

// Keeps reports whether this node owns p, and would own the same data of p under t if t gave it p.
func (v *View) Keeps(p uint16, t *ring.Table) bool {
	return v.Owns(p) && v.Table.Since[p] == t.Since[p] && v.Table.Seed == t.Seed
}

// Copies reports whether this node keeps a copy of p, which another node owns: as its follower, or
// because p moves here. As long as p is held here, its data is no copy.
func (v *View) Copies(p uint16) bool {
	self := uint16(v.Self)
	return v.Self >= 0 && !v.Owns(p) && !v.Held.Has(p) && (v.Table.Follower[p] == self || v.MoveTo[p] == self)
}

// CopiesFrom reports whether this node accepts a copy of p from the node named source: because
// source owns p, or because this node takes p over from source, which has not sent everything yet.
func (v *View) CopiesFrom(p uint16, source string) bool {
	if v.Held.Has(p) {
		return false
	}
	if v.Standing[p] == Gained {
		return v.From[p] == source
	}
	return v.Copies(p) && v.Table.OwnerOf(p).Name() == source
}

// Spares reports whether a copy of p exists only in case its owner dies. This node evicts such a
// copy before anything that it serves. A copy that this node will serve competes as if it were
// served already; otherwise a full node would receive nothing, however often the keys are read.
// Without followers every copy belongs to a move. With followers the table does not say whether the
// owner or the follower moves.
func (v *View) Spares(p uint16) bool {
	return v.Standing[p] != Gained && v.Table.Follower[p] != ring.NoNode
}

// Receivers returns the nodes that the owner of p feeds, as indexes in Table.Nodes or NoNode.
func (v *View) Receivers(p uint16) (to [2]uint16) {
	to = [2]uint16{v.Table.Follower[p], v.MoveTo[p]}
	if to[1] == to[0] {
		to[1] = ring.NoNode
	}
	return to
}

// WasAway reports whether the cluster has gone on without this node between the table of old and
// that of v. What this node holds may then lack what others did meanwhile, whatever the two tables
// say about it.
func (v *View) WasAway(old *View) bool {
	return old.Self >= 0 && (v.Self < 0 || v.Table.Joined[v.Self] > old.Epoch())
}

// OwnerNames returns the names of the table's nodes, by index. Nil without a table.
func (v *View) OwnerNames() []string {
	if v.Table == nil {
		return nil
	}
	names := make([]string, len(v.Table.Nodes))
	for i, m := range v.Table.Nodes {
		names[i] = m.Name()
	}
	return names
}

// gained returns the set of what the view has gained.
func (v *View) gained() (set ring.PartitionSet) {
	for p, s := range v.Standing {
		if s == Gained {
			set.Add(uint16(p))
		}
	}
	return set
}

// Count returns the number of partitions with the standing.
func (v *View) Count(s Standing) (n int) {
	for _, have := range v.Standing {
		if have == s {
			n++
		}
	}
	return n
}
