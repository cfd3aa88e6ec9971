package ring

import "slices"

// Plan returns the table that should follow cur, given the alive members as self,
// the coordinator, sees them; nil when nothing changes or no node serves. With cur
// nil it plans a cluster's first table, with a hash seed from seed.
//
// The owners are exactly the ring's target for the serving nodes, so the same set
// of nodes leads to the same owners whatever came before. A partition whose owner
// changes, be it only from one boot to the next, starts empty: its Since is the
// new epoch. copies >= 2 also plans a follower for each partition.
//
// Plan is pure but for seed. It takes about as long as Target.
func Plan(cur *Table, alive []Member, self Member, copies int, seed func() uint64) *Table {
	nodes := servingNodes(alive)
	if len(nodes) == 0 || cur != nil && !changes(cur, nodes, copies) {
		return nil
	}
	next := &Table{Epoch: 1, Issuer: self.Name()}
	if cur == nil {
		next.Seed = seed()
	} else {
		next.Epoch = cur.Epoch + 1
		next.Seed = cur.Seed
		next.Ancestors = joinLineages([]Version{cur.Version()}, cur)
	}
	all := func(int, Member) bool { return true }
	if !next.place(cur, nodes, copies, all) {
		return nil
	}
	return next
}

// changes reports whether nodes and copies ask for another table than cur. The
// owners need no look: they follow from the nodes.
func changes(cur *Table, nodes []Member, copies int) bool {
	hasFollowers := cur.Follower[0] != NoNode
	wantFollowers := copies >= 2 && len(nodes) >= 2
	return hasFollowers != wantFollowers || !slices.Equal(cur.Nodes, nodes)
}

// place fills in the nodes of t and who owns what, starting from base (nil: from
// nothing). An owner keeps its partition's data only if it had it in base and
// keeps agrees. It reports false if no ring can be built.
func (t *Table) place(base *Table, nodes []Member, copies int, keeps func(p int, owner Member) bool) bool {
	ids := make([]string, len(nodes))
	for i, m := range nodes {
		ids[i] = m.ID
	}
	owner, err := Target(ids)
	if err != nil {
		return false
	}
	t.Nodes = nodes
	t.Owner = [Partitions]uint16(owner)
	t.placeFollowers(ids, copies)
	before := t.placeNodes(base)
	for p, o := range owner {
		t.Since[p] = t.Epoch
		i := before[o]
		if i >= 0 && base.Owner[p] == uint16(i) && keeps(p, nodes[o]) {
			t.Since[p] = base.Since[p]
		}
	}
	return true
}

// placeNodes fills in Joined and returns for each node its index in base, -1 for
// a newcomer.
func (t *Table) placeNodes(base *Table) []int {
	before := make([]int, len(t.Nodes))
	t.Joined = make([]uint64, len(t.Nodes))
	for i, m := range t.Nodes {
		before[i] = -1
		t.Joined[i] = t.Epoch
		if base == nil {
			continue
		}
		if b := base.NodeIndex(m.ID, m.Boot); b >= 0 {
			before[i] = b
			t.Joined[i] = base.Joined[b]
		}
	}
	return before
}

func (t *Table) placeFollowers(ids []string, copies int) {
	if copies >= 2 && len(ids) >= 2 {
		t.Follower = followers(ids, &t.Owner)
		return
	}
	for p := range t.Follower {
		t.Follower[p] = NoNode
	}
}

// joinLineages returns the ancestors of a table that replaces first and descends
// from the tables of from: first, then all their ancestors from the newest down,
// each once, cut at the bound.
func joinLineages(first []Version, from ...*Table) []Version {
	var rest []Version
	for _, t := range from {
		rest = append(rest, t.Ancestors...)
	}
	slices.SortFunc(rest, func(a, b Version) int { return CompareVersions(b, a) })
	seen := make(map[Version]bool, len(first)+len(rest))
	var joined []Version
	for _, v := range slices.Concat(first, rest) {
		if len(joined) == maxAncestors {
			break
		}
		if !v.IsZero() && !seen[v] {
			seen[v] = true
			joined = append(joined, v)
		}
	}
	return joined
}
