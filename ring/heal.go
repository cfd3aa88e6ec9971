package ring

import (
	"cmp"
	"slices"
)

// After a split, each side has issued its own tables, and neither side's table is an ancestor of
// the other's:
//
//	        ┌─ 8 n1 ── 9 n1      {n1 n2}, kept 2 of {n1 n2 n3}: wins
//	 7 n1 ──┤                                                    ──> 10 n1
//	        └─ 8 n3              {n3},    kept 1
//
// A node that a table lists does not count for it if it is seen to hold a table of another side: a coordinator that
// stood still just behind the table that it has issued had nobody's consent. A node that is not seen
// counts less than one that is: nobody can tell on which side it was. Nor does one tell that is seen
// to hold a table from before the split: gossip may be late. And a node that is seen on a side counts
// there even if its table has dropped the node, or has dropped it and taken it back: the node follows
// that side, and no other.
//
// If as many are seen on both sides, a table that lists a node of the other side loses against one
// that does not. The former is from before the sides parted: whoever is not seen may have gone on
// without it, and have left since. The latter is from behind that, and its nodes were there.
//
//	        ┌─ 8 n1              {n0 n1 n2 n3}, and n1 slept behind it
//	 7 n0 ──┤
//	        └─ 8 n2 ── 9 n2      {n2 n3}: wins, if n0 has left and n3 is cut off when n1 and n2 meet
//
// Nobody adopts a foreign table. When the sides see each other again, there is one coordinator
// again. It collects the tables, picks the lineage that continues, and issues the last table of
// that lineage once more, under a version that names all of the tables as ancestors. Then everybody
// may adopt it. What the losing side wrote during the split is dropped. Nothing is merged, because
// nothing shows which of two values is the later one.
//
// A healed table only says which data count. It may name dead nodes, and it does not yet name the
// losing side's nodes. The next Plan, with reports made under the healed table, replaces the dead
// nodes and lets the others join. So no copy counts as in sync because it was in sync in another
// lineage.

// Heal returns the table that ends a split, or nil if no node serves. tables are the tables that
// the alive members hold and that do not descend from one another, in any order, and winner is the one that
// LongestLived returns; alive shows which member holds which version. The result also replaces versions
// whose table is not in tables, but these cannot win. It has the highest level of all of them. Without any
// table, because only proxies outlived the last node, Heal starts anew with a hash seed from seed. The result
// is newer than every table and every version in alive.
func Heal(tables []*Table, winner *Table, alive []Member, self Member, copies int, seed func() uint64) *Table {
	sorted := slices.SortedFunc(slices.Values(tables), func(a, b *Table) int {
		return CompareVersions(b.Version(), a.Version())
	})
	replaced := []Version{winner.Version()}
	for _, t := range sorted {
		replaced = append(replaced, t.Version())
	}
	for _, m := range alive {
		replaced = append(replaced, m.Version())
	}
	last := slices.MaxFunc(replaced, CompareVersions)

	var next *Table
	if winner == nil {
		next = Plan(nil, alive, nil, self, copies, seed)
	} else if _, serves := Coordinator(alive); serves {
		again := *winner
		next = &again
	}
	if next == nil {
		return nil // no node serves
	}
	next.Epoch, next.Issuer = last.Epoch+1, self.Name()
	next.Ancestors = joinLineages(replaced, sorted...)
	// No lower than any table that it replaces, read or not: the holder would never adopt it.
	next.Level = TableLevel(alive)
	for _, t := range sorted {
		next.Level = max(next.Level, t.Level)
	}
	if winner == nil {
		next.beginAnew()
	} else {
		next.keepThroughSplit(winner, holdings(sorted, alive))
	}
	if next.Level >= GoneLevel && len(next.Ancestors) > 0 {
		next.Gone = next.Epoch // nobody has heard of all nodes of the other sides
	}
	return next
}

// beginAnew sets the epochs in a first table to the epoch that the table finally has.
func (t *Table) beginAnew() {
	for i := range t.Joined {
		t.Joined[i] = t.Epoch
	}
	for p := range t.Since {
		t.Since[p] = t.Epoch
	}
}

// keepThroughSplit decides for each partition of winner whether its data and its copies continue.
func (t *Table) keepThroughSplit(winner *Table, at map[string]holding) {
	stayed := make([]bool, len(winner.Nodes))
	for i, m := range winner.Nodes {
		stayed[i] = at[m.Name()].isOf(winner)
	}
	for p, o := range winner.Owner {
		owner := winner.Nodes[o]
		if !keptThroughSplit(winner, at[owner.Name()], p, owner) {
			t.Since[p] = t.Epoch
		}
		if f := winner.Follower[p]; f != NoNode && !stayed[f] {
			t.Follower[p] = NoNode
		}
	}
	t.Moves = nil
	for _, m := range winner.Moves {
		if stayed[m.To] {
			t.Moves = append(t.Moves, m)
		}
	}
}

// holding is what is known about the table that a node holds.
type holding struct {
	version Version
	table   *Table // nil: unknown, or none
}

// isOf reports whether the holder of h has followed t's lineage only, as far as the version shows.
// A holder of no table has.
func (h holding) isOf(t *Table) bool {
	return h.version.IsZero() || h.version == t.Version() || t.Descends(h.version)
}

func holdings(tables []*Table, alive []Member) map[string]holding {
	at := make(map[string]holding, len(alive))
	for _, m := range alive {
		h := holding{version: m.Version()}
		for _, t := range tables {
			if t.Version() == h.version {
				h.table = t
			}
		}
		at[m.Name()] = h
	}
	return at
}

// keptThroughSplit reports whether owner, which has partition p in the winning table, has had p
// without interruption, as that table says. It has not if it was on another side of the split on
// which p was given away or began anew: then its copy is not the one that Since promises. (Given
// away and taken back counts as kept: on the winning side, only owner could serve p meanwhile.)
func keptThroughSplit(winner *Table, h holding, p int, owner Member) bool {
	if h.isOf(winner) {
		return true
	}
	if h.table == nil {
		return false
	}
	i := h.table.NodeIndex(owner.ID, owner.Boot)
	common, ok := lastCommon(winner, h.table)
	return ok && i >= 0 && h.table.Owner[p] == uint16(i) &&
		h.table.Since[p] == winner.Since[p] && winner.Since[p] <= common.Epoch
}

// LongestLived returns the table whose lineage continues, in whatever order they are, or nil if there is no table.
func LongestLived(tables []*Table, alive []Member) (winner *Table) {
	for _, t := range tables {
		if winner == nil || t.Outlives(winner, alive) {
			winner = t
		}
	}
	return winner
}

// Outlives reports whether, of two tables foreign to each other, the lineage of t continues rather
// than that of o. The lineage continues that more nodes of the last common table follow, as far as
// the two tables tell who was in it, and alive shows on which side they are; then the one with more
// nodes on its side, then the one whose table lists no node of the other side, then the one with more
// that alive does not show; then the higher epoch decides, then the greater issuer. Without a common
// table, because two clusters started separately, the one with more nodes continues. That does not
// hold if a lineage was cut, because then one of the two may simply be the other's past.
func (t *Table) Outlives(o *Table, alive []Member) bool {
	common, ok := lastCommon(t, o)
	var byNodes int
	switch {
	case ok:
		byNodes = t.keptSince(common, o, alive).compare(o.keptSince(common, t, alive))
	case len(t.Ancestors) < maxAncestors && len(o.Ancestors) < maxAncestors:
		byNodes = cmp.Compare(len(t.Nodes), len(o.Nodes))
	}
	return cmp.Or(byNodes, CompareVersions(t.Version(), o.Version())) > 0
}

// lastCommon returns the newest version that is in both lineages.
func lastCommon(a, b *Table) (last Version, ok bool) {
	for _, v := range append([]Version{a.Version()}, a.Ancestors...) {
		inBoth := v == b.Version() || b.Descends(v)
		if inBoth && (!ok || CompareVersions(v, last) > 0) {
			last, ok = v, true
		}
	}
	return last, ok
}

// kept says which nodes a lineage kept of one of its tables.
type kept struct {
	stayed int // were in that table, and alive shows them on the lineage's side
	living int // all that alive shows there: those, and who has joined or come back since
	parted int // 1 if the lineage's table lists no node that alive shows on the other side
	unseen int // stayed as well, and alive does not show on which side they are, or died
}

// keptSince says which nodes t kept of the table v, which is in its lineage and in that of o. What t has dropped since,
// perhaps only o tells.
func (t *Table) keptSince(v Version, o *Table, alive []Member) (k kept) {
	here, there := make(map[string]bool, len(alive)), make(map[string]bool)
	for _, m := range alive {
		h := holding{version: m.Version()}
		if h.isOf(t) && h.isOf(o) {
			continue // what it announces is from before the split, and so it may be on either side
		}
		here[m.Name()], there[m.Name()] = h.isOf(t), h.isOf(o)
	}
	k.parted = 1
	for i, joined := range t.Joined {
		there := there[t.Nodes[i].Name()]
		here, seen := here[t.Nodes[i].Name()]
		if here {
			k.living++
		} else if there {
			k.parted = 0
		}
		switch stayed := joined <= v.Epoch; {
		case stayed && here:
			k.stayed++
		case stayed && !seen:
			k.unseen++
		}
	}
	for i, joined := range o.Joined {
		m := o.Nodes[i]
		if joined > v.Epoch || !here[m.Name()] {
			continue
		}
		switch at := t.NodeIndex(m.ID, m.Boot); {
		case at < 0: // t does not list it any more
			k.stayed++
			k.living++
		case t.Joined[at] > v.Epoch: // or lists it again
			k.stayed++
		}
	}
	return k
}

func (k kept) compare(o kept) int {
	return cmp.Or(cmp.Compare(k.stayed, o.stayed), cmp.Compare(k.living, o.living),
		cmp.Compare(k.parted, o.parted), cmp.Compare(k.unseen, o.unseen))
}
