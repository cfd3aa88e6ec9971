package ring

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// holds returns m as a holder of t.
func holds(m Member, t *Table) Member {
	m.Epoch, m.Issuer = t.Epoch, t.Issuer
	return m
}

// side lets the nodes plan tables among themselves, count of them: by taking the
// last one in and out.
func side(cur *Table, alive []Member, count int) *Table {
	for i := range count {
		seen := alive
		if i%2 == 1 {
			seen = alive[:len(alive)-1]
		}
		if next := Plan(cur, seen, nil, seen[0], 1, fixedSeed); next != nil {
			cur = next
		}
	}
	return cur
}

// heal is Heal with the winner that LongestLived returns.
func heal(tables []*Table, alive []Member, self Member, copies int) *Table {
	return Heal(tables, LongestLived(tables, alive), alive, self, copies, fixedSeed)
}

func TestTheLineageThatWins(t *testing.T) {
	all := nodes("a", "b", "c", "d", "e")
	common := Plan(nil, all, nil, all[0], 1, fixedSeed)
	check := func(what string, a, b, want *Table) {
		t.Helper()
		got := LongestLived([]*Table{a, b}, nil)
		if other := LongestLived([]*Table{b, a}, nil); got != other {
			t.Errorf("%s: the winner depends on the order", what)
		}
		if got != want {
			t.Errorf("%s: %v wins over %v", what, got.Version(), want.Version())
		}
	}
	three := side(common, all[:3], 1)
	two := side(common, all[3:], 1)
	check("more nodes of the common table", three, two, three)

	// Newcomers do not count: d and e alone, with three new nodes, at a higher epoch.
	crowd := side(two, append(slices.Clone(all[3:]), nodes("x", "y", "z")...), 3)
	if len(crowd.Nodes) < 5 || crowd.Epoch <= three.Epoch {
		t.Fatal("the crowd is not larger and later")
	}
	check("newcomers", three, crowd, three)
	// Nor do nodes that left the lineage and came back, or restarted.
	restarted := slices.Clone(all[:3])
	restarted[1].Boot, restarted[2].Boot = 101, 102
	check("restarted nodes", side(common, restarted, 1), two, two)

	// Equal otherwise: the higher epoch, then the greater issuer.
	left, right := side(common, all[:2], 1), side(common, all[2:4], 1)
	check("greater issuer", left, right, right)
	later := side(left, append(slices.Clone(all[:2]), node("x", 9)), 1)
	check("higher epoch", later, right, later)
}

func TestTheLineageThatWinsWithoutCommonTable(t *testing.T) {
	a := side(nil, nodes("a", "b"), 6)
	b := side(nil, nodes("x", "y", "z"), 1)
	if LongestLived([]*Table{a, b}, nil) != b {
		t.Error("the smaller of two clusters that were founded apart wins")
	}
	// One lineage's distant past must not win over its present by having had more
	// nodes.
	past := side(nil, nodes("a", "b", "c"), 1)
	present := side(past, nodes("a", "b"), 2*maxAncestors+2)
	if present.Descends(past.Version()) {
		t.Fatal("the lineage is too short for this test")
	}
	if LongestLived([]*Table{past, present}, nil) != present {
		t.Error("a lineage's distant past wins over its present")
	}
}

func TestHealIsNewerThanEverything(t *testing.T) {
	all := nodes("a", "b", "c", "d", "e")
	common := Plan(nil, all, nil, all[0], 1, fixedSeed)
	left, right := side(common, all[:3], 4), side(common, all[3:], 1)
	right.Level = GoneLevel
	proxy := Member{ID: "p", Boot: 77, Role: RoleProxy, Fingerprint: Fingerprint(), Epoch: 99, Issuer: "gone@1"}
	alive := []Member{
		holds(all[0], left), holds(all[1], left), holds(all[2], left),
		holds(all[3], right), holds(all[4], right), proxy,
	}
	healed := heal([]*Table{left, right}, alive, all[0], 1)
	checkTable(t, healed)
	for _, before := range []*Table{common, left, right} {
		if !healed.Newer(before) {
			t.Errorf("healed table %v is not newer than %v", healed.Version(), before.Version())
		}
	}
	if healed.Epoch != 100 || !healed.Descends(proxy.Version()) {
		t.Errorf("healed table %v does not replace the proxy's %v", healed.Version(), proxy.Version())
	}
	if healed.Seed != left.Seed || healed.Owner != left.Owner || healed.Since != left.Since {
		t.Error("the healed table is not the winner's")
	}
	if healed.Gone != healed.Epoch {
		t.Errorf("the healed table says that all have heard of the nodes since %d, want nobody before %d", healed.Gone, healed.Epoch)
	}
	after := Plan(healed, alive, nil, all[0], 1, nil)
	if len(after.Nodes) != 5 || after.Owner != left.Owner || after.Since != left.Since || len(after.Moves) == 0 {
		t.Errorf("after the heal the losing side does not join: %d nodes, %d moves", len(after.Nodes), len(after.Moves))
	}
}

// TestWhoStoodStillDoesNotWin: a coordinator has issued tables for all nodes, and stood still before another one has
// seen them. The others went on without it, and clients with them.
func TestWhoStoodStillDoesNotWin(t *testing.T) {
	all := nodes("a", "b", "c")
	common := Plan(nil, all, nil, all[0], 2, fixedSeed)
	alone, served := side(common, all, 3), side(common, all[1:], 1)
	alive := []Member{holds(all[0], alone), holds(all[1], served), holds(all[2], served)}
	for _, tables := range [][]*Table{{alone, served}, {served, alone}} {
		if healed := heal(tables, alive, all[0], 2); healed.Owner != served.Owner || len(healed.Nodes) != 2 {
			t.Errorf("the side of one node wins, with %d nodes", len(healed.Nodes))
		}
	}
	if alone.Outlives(served, alive) || !served.Outlives(alone, alive) {
		t.Error("the side of two nodes is told that it will lose")
	}
}

// TestWhoStoodStillDoesNotWinByTheDead: as before, but c stood still as well and came back to b, and d has died since.
// Only the table of a still lists it.
func TestWhoStoodStillDoesNotWinByTheDead(t *testing.T) {
	all := nodes("a", "b", "c", "d")
	common := Plan(nil, all, nil, all[0], 2, fixedSeed)
	alone := Raise(common, all[0], common.Level+1)
	served := side(side(common, all[1:2], 1), all[1:3], 1)
	alive := []Member{holds(all[0], alone), holds(all[1], served), holds(all[2], served)}
	if len(alone.Nodes) != 4 || len(served.Nodes) != 2 {
		t.Fatalf("%d nodes and %d", len(alone.Nodes), len(served.Nodes))
	}
	if alone.Outlives(served, alive) || !served.Outlives(alone, alive) {
		t.Error("a node that is dead counts more than one that is alive")
	}
	// Of two sides with one node each, the one that lists more of the dead continues: its other nodes died just now.
	left, right := side(common, all[:3], 1), side(common, all[3:], 1)
	alive = []Member{holds(all[0], left), holds(all[3], right)}
	if !left.Outlives(right, alive) || right.Outlives(left, alive) {
		t.Error("the side whose nodes died behind the split loses")
	}
}

// TestWhoIsSeenAtATableFromBeforeTheSplitCountsForNobody: gossip shows c and d at the table that both sides have had:
// what they announced behind the split has not come around yet.
func TestWhoIsSeenAtATableFromBeforeTheSplitCountsForNobody(t *testing.T) {
	all := nodes("a", "b", "c", "d")
	common := Plan(nil, all, nil, all[0], 2, fixedSeed)
	small, large := Raise(side(common, all[:1], 1), all[0], common.Level+1), side(common, all[1:], 1)
	if small.Epoch <= large.Epoch {
		t.Fatalf("the small side's table %v is not of a later epoch than %v", small.Version(), large.Version())
	}
	for late := 0; late <= 2; late++ {
		alive := []Member{holds(all[0], small), holds(all[1], large), holds(all[2], large), holds(all[3], large)}
		for i := range late {
			alive[2+i] = holds(all[2+i], common)
		}
		if small.Outlives(large, alive) || !large.Outlives(small, alive) {
			t.Errorf("the side of one node wins over that of three, of which %d are seen at an old table", late)
		}
	}
}

// TestWhoStoodStillDoesNotWinByTheUnseen: as before, but only b is seen of those who went on without a. Its table has
// dropped a and d, which has left, and lists c or not. The table of a still lists all of them.
func TestWhoStoodStillDoesNotWinByTheUnseen(t *testing.T) {
	all := nodes("a", "b", "c", "d")
	common := Plan(nil, all, nil, all[0], 2, fixedSeed)
	alone := common
	for range 3 { // more than b has issued
		alone = Raise(alone, all[0], alone.Level+1)
	}
	for _, together := range [][]Member{all[1:3], all[1:2]} {
		served := side(common, together, 1)
		if len(alone.Nodes) != 4 || len(served.Nodes) != len(together) || alone.Epoch <= served.Epoch {
			t.Fatalf("%d nodes in %v, %d in %v", len(alone.Nodes), alone.Version(), len(served.Nodes), served.Version())
		}
		alive := []Member{holds(all[0], alone), holds(all[1], served)}
		if alone.Outlives(served, alive) || !served.Outlives(alone, alive) {
			t.Errorf("%v wins over %v by nodes that have gone on without it", alone.Version(), served.Version())
		}
	}
}

// TestWhoStoodStillDoesNotWinByTheDropped: as before, but a newcomer, d, has taken b and c for dead. They follow its
// table, which does not list them, or which has just taken them back.
func TestWhoStoodStillDoesNotWinByTheDropped(t *testing.T) {
	all := nodes("a", "b", "c")
	common := Plan(nil, all, nil, all[0], 2, fixedSeed)
	alone := Raise(common, all[0], common.Level+1)
	d := node("d", 9)
	dropped := Plan(side(common, all[1:], 1), []Member{d}, nil, d, 2, fixedSeed)
	back := Plan(dropped, []Member{all[1], all[2], d}, nil, d, 2, fixedSeed)
	for _, served := range []*Table{dropped, back} {
		alive := []Member{holds(all[0], alone), holds(all[1], served), holds(all[2], served), holds(d, served)}
		if alone.Outlives(served, alive) || !served.Outlives(alone, alive) {
			t.Errorf("%v, which three nodes follow, loses against %v", served.Version(), alone.Version())
		}
	}
	// A node that has not adopted the newest table of its side counts there as well.
	alive := []Member{holds(all[0], alone), holds(all[1], dropped), holds(all[2], back), holds(d, back)}
	if alone.Outlives(back, alive) || !back.Outlives(alone, alive) {
		t.Error("a node counts only with the newest table")
	}
}

// TestHealTrustsNoCopyOfTheOtherSide: who lived on the losing side is neither follower
// nor target of a move, whatever it holds.
func TestHealTrustsNoCopyOfTheOtherSide(t *testing.T) {
	all := nodes("a", "b", "c")
	common := Plan(nil, all, nil, all[0], 2, fixedSeed)
	joining := Plan(common, nodes("a", "b", "c", "d"), nil, all[0], 2, fixedSeed)
	all = nodes("a", "b", "c", "d")
	// c and d are cut off; the others have not noticed yet.
	other := Plan(joining, all[2:], nil, all[2], 2, fixedSeed)
	alive := []Member{holds(all[0], joining), holds(all[1], joining), holds(all[2], other), holds(all[3], other)}
	healed := heal([]*Table{joining, other}, alive, all[0], 2)
	checkTable(t, healed)
	if healed.Seed != joining.Seed || len(joining.Moves) == 0 {
		t.Fatal("this test needs moves on the winning side")
	}
	for p, f := range healed.Follower {
		if f != NoNode && f >= 2 {
			t.Fatalf("partition %d is followed by %s", p, healed.Nodes[f].ID)
		}
	}
	for _, m := range healed.Moves {
		if m.To >= 2 {
			t.Fatalf("partition %d moves to %s", m.Partition, healed.Nodes[m.To].ID)
		}
	}
}

func TestHealWithoutTables(t *testing.T) {
	a := node("a", 1)
	proxy := Member{ID: "p", Boot: 7, Role: RoleProxy, Epoch: 56, Issuer: "gone@1"}
	healed := heal(nil, []Member{a, proxy}, a, 1)
	checkTable(t, healed)
	if healed.Epoch != 57 || healed.Seed != 42 || !healed.Descends(proxy.Version()) || healed.Since[0] != 57 {
		t.Errorf("healed table is %v, seed %d, ancestors %v, since %d",
			healed.Version(), healed.Seed, healed.Ancestors, healed.Since[0])
	}
	if heal(nil, []Member{proxy}, proxy, 1) != nil {
		t.Error("healed without any node")
	}
}

// splitWorld plays a split with data: what each node stores, and what a client on
// each side wrote last.
type splitWorld struct {
	held   map[string]*Table              // by node: its table
	copies map[string]*[Partitions]stored // by node: what it stores
	writes int
}

type stored struct {
	since uint64
	value int // 0: nothing
}

// adopt lets m take table as a node does: copies that are not its own, or that
// began at another epoch, are dropped.
func (w *splitWorld) adopt(m Member, table *Table) {
	mine := w.copies[m.Name()]
	if mine == nil {
		mine = new([Partitions]stored)
		w.copies[m.Name()] = mine
	}
	w.held[m.Name()] = table
	me := uint16(0xFFFE) // nobody
	if i := table.NodeIndex(m.ID, m.Boot); i >= 0 {
		me = uint16(i)
	}
	for p := range mine {
		if table.Owner[p] != me {
			mine[p] = stored{}
		} else if mine[p].since != table.Since[p] {
			mine[p] = stored{since: table.Since[p]}
		}
	}
}

// write stores a new value in each partition that one of members may serve by the
// table that it holds, and notes in last what was acknowledged on this side.
func (w *splitWorld) write(members []Member, last *[Partitions]int) {
	for _, m := range members {
		table := w.held[m.Name()]
		if table == nil {
			continue
		}
		me := table.NodeIndex(m.ID, m.Boot)
		for p, o := range table.Owner {
			if int(o) == me {
				w.writes++
				w.copies[m.Name()][p].value = w.writes
				last[p] = w.writes
			}
		}
	}
}

// TestHealNeverRevivesOldData splits a cluster at random, lets both sides change and
// write, and heals it: what is served afterwards is the last write of the winning
// side or nothing.
func TestHealNeverRevivesOldData(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		all := nodes("a", "b", "c", "d", "e")
		w := &splitWorld{held: map[string]*Table{}, copies: map[string]*[Partitions]stored{}}
		common := Plan(nil, all, nil, all[0], 1, fixedSeed)
		var before [Partitions]int
		for _, m := range all {
			w.adopt(m, common)
		}
		w.write(all, &before)

		cut := 1 + rnd.IntN(4)
		sides := [][]Member{all[:cut], all[cut:]}
		lasts := [2][Partitions]int{before, before}
		tables := []*Table{common, common}
		for range 4 {
			i := rnd.IntN(2)
			seen := sides[i][:1+rnd.IntN(len(sides[i]))]
			if next := Plan(tables[i], seen, nil, seen[0], 1, fixedSeed); next != nil {
				tables[i] = next
				for _, m := range sides[i] {
					w.adopt(m, next)
				}
				w.write(sides[i], &lasts[i])
			}
		}
		var alive []Member
		for _, m := range all {
			alive = append(alive, holds(m, w.held[m.Name()]))
		}
		winner := 0
		if LongestLived(tables, alive) == tables[1] {
			winner = 1
		}
		healed := heal(slices.Compact(slices.Clone(tables)), alive, all[0], 1)
		for _, m := range all {
			w.adopt(m, healed)
		}
		for p := range Partitions {
			owner := healed.OwnerOf(uint16(p))
			got := w.copies[owner.Name()][p].value
			want := lasts[winner][p]
			// An owner that stayed the same on both sides is the only one that was written
			// to, wherever it stood.
			onlyOne := want == before[p] && got > want
			if got != 0 && got != want && !onlyOne {
				t.Fatalf("seed %d: partition %d at %s serves write %d, the last one was %d",
					seed, p, owner.Name(), got, want)
			}
		}
	}
}
