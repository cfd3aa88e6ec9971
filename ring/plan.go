package ring

import (
	"cmp"
	"slices"
)

// Plan returns the table that should follow cur, or nil if nothing changes or no node serves. alive
// are the alive members as self, the coordinator, sees them; reports are the nodes' reports on
// their copies. If cur is nil, Plan returns a cluster's first table, with a hash seed from seed, in
// which the ring's owner has each partition from the start.
//
// For each partition, let o* and f* be the ring's owner and follower for the nodes that serve
// (leaving nodes do not):
//
//	owner alive,  is not o*   it stays until o*, as follower or target of a move,
//	                          reports its copy in sync, and the owner that it serves;
//	                          then o* owns, the old owner follows, or f* if the old
//	                          owner leaves
//	owner alive,  is o*       a missing follower is f* at once; any other follower
//	                          stays until f* is in sync
//	owner dead                the one of follower and target that reports in sync
//	(failover)                owns, o* first; if none does, the partition begins
//	                          anew at o*
//
// So data move along: Since changes only where a partition begins anew. With copies < 2, Plan plans
// no followers, except that the old owner follows until the new owner reports that it serves. Plan
// ignores reports on another table than cur, and those of nodes that are not alive: without
// reports, no partition is handed over.
//
// While cur is Paused, an owner and a follower that serve stay where they are. The first table has
// level 0, because members that speak no more may be about to come; later tables keep the level of
// cur, see Raise.
//
// Plan is pure except for seed. It takes about as long as Target when the serving nodes change, and
// 0.3 ms otherwise, however many moves there are.
func Plan(cur *Table, alive []Member, reports []*Report, self Member, copies int, seed func() uint64) *Table {
	next := &Table{Epoch: 1, Issuer: self.Name()}
	if cur != nil {
		next.Epoch = cur.Epoch + 1
		next.Seed, next.Paused = cur.Seed, cur.Paused
		next.Level, next.Settings = cur.Level, cur.Settings
		next.Ancestors = joinLineages([]Version{cur.Version()}, cur)
	}
	p := newPlanner(cur, next, alive, copies)
	if p == nil {
		return nil
	}
	p.heed(reports)
	for i := range uint16(Partitions) {
		p.place(i)
	}
	p.leaveOutUnused()
	if cur == nil {
		next.Seed = seed()
	} else if sameSeats(cur, next) {
		return nil
	}
	return next
}

// sameSeats reports whether a and b agree in all that Plan decides. Since is left out: it changes
// only together with the owner, or with the epoch of a dead owner's partition.
func sameSeats(a, b *Table) bool {
	return slices.Equal(a.Nodes, b.Nodes) && a.Owner == b.Owner && a.Follower == b.Follower &&
		a.Since == b.Since && slices.Equal(a.Moves, b.Moves)
}

// Unripe reports whether next, which Plan returned for cur, does nothing but give partitions to new
// owners while other partitions still move. Each such table delays commands for some milliseconds,
// so the coordinator prefers fewer of them.
func Unripe(cur, next *Table) bool {
	if cur == nil || cur.Owner == next.Owner || !slices.Equal(cur.Nodes, next.Nodes) {
		return false
	}
	var moving [Partitions]bool
	for _, m := range cur.Moves {
		moving[m.Partition] = true
	}
	return slices.ContainsFunc(next.Moves, func(m Move) bool { return moving[m.Partition] && cur.Owner[m.Partition] == m.From })
}

// planner plans one table. It identifies nodes by their index in nodes.
type planner struct {
	cur, next *Table
	copies    int
	nodes     []Member // the serving nodes, and the leaving ones of cur; sorted by id
	serving   []bool
	// wantOwner and wantFollower are the ring's o* and f*; wantFollower is NoNode if there is no
	// second node.
	wantOwner, wantFollower [Partitions]uint16

	now    []uint16           // by index in cur.Nodes: its index in nodes, NoNode if it is dead
	target [Partitions]uint16 // where cur moves the partition; NoNode: nowhere, or to a dead node
	synced []*Report          // by node; nil: no report on cur
}

// newPlanner returns nil if no node serves, or no ring can be built.
func newPlanner(cur, next *Table, alive []Member, copies int) *planner {
	p := &planner{cur: cur, next: next, copies: copies, nodes: tableNodes(cur, alive)}
	var ids []string
	var places []uint16 // of ids, in nodes
	for i := range p.nodes {
		p.serving = append(p.serving, p.nodes[i].State == Serving)
		if p.serving[i] {
			ids = append(ids, p.nodes[i].ID)
			places = append(places, uint16(i))
		}
		p.nodes[i].State = Serving
	}
	if len(ids) == 0 {
		return nil
	}
	g, err := goalOf(ids)
	if err != nil {
		return nil
	}
	fill(&p.wantFollower, NoNode)
	for i := range p.wantOwner {
		p.wantOwner[i] = places[g.owner[i]]
		if copies >= 2 && g.follower[i] != NoNode {
			p.wantFollower[i] = places[g.follower[i]]
		}
	}
	p.lookBack()
	return p
}

// lookBack finds cur's nodes and the targets of its moves among nodes.
func (p *planner) lookBack() {
	fill(&p.target, NoNode)
	p.synced = make([]*Report, len(p.nodes))
	if p.cur == nil {
		return
	}
	for _, m := range p.cur.Nodes {
		p.now = append(p.now, indexOf(p.nodes, m.ID, m.Boot))
	}
	for _, m := range p.cur.Moves {
		p.target[m.Partition] = p.now[m.To]
	}
}

func (p *planner) heed(reports []*Report) {
	for _, r := range reports {
		if p.cur == nil || r.Version != p.cur.Version() {
			continue
		}
		for i, m := range p.nodes {
			if m.Name() == r.Node {
				p.synced[i] = r
			}
		}
	}
}

// seat holds a partition's owner, follower and target of its move; NoNode: none.
type seat struct{ owner, follower, target uint16 }

func (p *planner) place(part uint16) {
	before := seat{NoNode, NoNode, NoNode}
	if p.cur != nil {
		before.owner = p.now[p.cur.Owner[part]]
		before.target = p.target[part]
		if f := p.cur.Follower[part]; f != NoNode {
			before.follower = p.now[f]
		}
	}
	s := before
	if s.owner == NoNode {
		s = p.bury(part, before)
	}
	if s.owner == NoNode {
		p.next.Since[part] = p.next.Epoch
		s = seat{p.wantOwner[part], p.wantFollower[part], NoNode}
	} else {
		p.next.Since[part] = p.cur.Since[part]
		inSync := func(n uint16) bool { return p.inSync(part, n, before) }
		serves := p.synced[s.owner].Has(part)
		s = p.advance(s, p.wantOwner[part], p.wantFollower[part], serves, inSync)
		if p.copies < 2 {
			s = p.shelter(part, before, s)
		}
	}
	p.next.Owner[part], p.next.Follower[part] = s.owner, s.follower
	if s.target != NoNode {
		p.next.Moves = append(p.next.Moves, Move{Partition: part, From: s.owner, To: s.target})
	}
}

// leaveOutUnused sets the table's nodes: those that serve, and the leaving ones that own or follow
// something.
func (p *planner) leaveOutUnused() {
	used := slices.Clone(p.serving)
	for i := range Partitions {
		used[p.next.Owner[i]] = true
		if f := p.next.Follower[i]; f != NoNode {
			used[f] = true
		}
	}
	place := make([]uint16, len(p.nodes)) // in next.Nodes
	for i, m := range p.nodes {
		if used[i] {
			place[i] = uint16(len(p.next.Nodes))
			p.next.Nodes = append(p.next.Nodes, m)
		}
	}
	for i := range Partitions {
		p.next.Owner[i] = place[p.next.Owner[i]]
		if f := p.next.Follower[i]; f != NoNode {
			p.next.Follower[i] = place[f]
		}
	}
	for i, m := range p.next.Moves {
		p.next.Moves[i].From, p.next.Moves[i].To = place[m.From], place[m.To]
	}
	p.next.fillJoined(p.cur)
}

// Pause returns the successor of cur in which rebalancing is paused, or not; nil if cur already
// says so. The next Plan then starts or cancels moves.
func Pause(cur *Table, self Member, paused bool) *Table {
	if cur.Paused == paused {
		return nil
	}
	next := cur.successor(self)
	next.Paused = paused
	return next
}

// successor returns a copy of t with the version that self gives to the next table.
func (t *Table) successor(self Member) *Table {
	next := *t
	next.Epoch, next.Issuer = t.Epoch+1, self.Name()
	next.Ancestors = joinLineages([]Version{t.Version()}, t)
	return &next
}

// fillJoined sets Joined: the epoch in base (nil: none) of the nodes that are there, and t's own
// epoch for the others. It sets Gone for those that are in base only.
func (t *Table) fillJoined(base *Table) {
	t.Joined = make([]uint64, len(t.Nodes))
	for i, m := range t.Nodes {
		t.Joined[i] = t.Epoch
		if base == nil {
			continue
		}
		if b := base.NodeIndex(m.ID, m.Boot); b >= 0 {
			t.Joined[i] = base.Joined[b]
		}
	}
	if base == nil || t.Level < GoneLevel {
		return
	}
	t.Gone = base.Gone
	for b, m := range base.Nodes {
		if t.NodeIndex(m.ID, m.Boot) < 0 {
			t.Gone = max(t.Gone, base.Joined[b])
		}
	}
}

// tableNodes returns the nodes that a successor of cur may name, with their states, sorted by id.
// Of each id it takes the newest boot, if that is a node that places keys as this build does and
// serves, or leaves and is in cur. Fields that a table does not carry are cleared.
func tableNodes(cur *Table, alive []Member) []Member {
	var nodes []Member
	for _, m := range newestBoots(alive) {
		known := cur != nil && cur.NodeIndex(m.ID, m.Boot) >= 0
		if m.Role == RoleNode && m.Fingerprint == Fingerprint() &&
			(m.State == Serving || m.State == Leaving && known) {
			m.Epoch, m.Issuer, m.Level, m.TableLevel = 0, "", 0, 0
			nodes = append(nodes, m)
		}
	}
	if len(nodes) > MaxNodes {
		// The oldest stay: a node that joins a full cluster changes nothing.
		slices.SortFunc(nodes, compareAges)
		nodes = nodes[:MaxNodes]
	}
	slices.SortFunc(nodes, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return nodes
}

// indexOf returns the index of one boot of a node in nodes, which are sorted by id, or NoNode.
func indexOf(nodes []Member, id string, boot int64) uint16 {
	i, found := slices.BinarySearchFunc(nodes, id, func(m Member, id string) int {
		return cmp.Compare(m.ID, id)
	})
	if !found || nodes[i].Boot != boot {
		return NoNode
	}
	return uint16(i)
}

// joinLineages returns the ancestors of a table that replaces first and descends from the tables of
// from: first, then all their ancestors from the newest down, each once, at most maxAncestors.
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
