package ring

import (
	"slices"
	"testing"
)

func fixedSeed() uint64 { return 42 }

func node(id string, boot int64) Member {
	return Member{
		ID: id, Boot: boot, State: Serving, Addr: id + ":6380", Admin: id + ":9180",
		Fingerprint: Fingerprint(),
	}
}

func nodes(ids ...string) []Member {
	var all []Member
	for i, id := range ids {
		all = append(all, node(id, int64(i+1)))
	}
	return all
}

func TestFirstTable(t *testing.T) {
	alive := nodes("b", "a", "c")
	table := Plan(nil, alive, nil, alive[0], 2, fixedSeed)
	if table.Epoch != 1 || table.Issuer != "b@1" || table.Seed != 42 || len(table.Ancestors) != 0 {
		t.Errorf("first table is %d by %q, seed %d, ancestors %v",
			table.Epoch, table.Issuer, table.Seed, table.Ancestors)
	}
	if again := Plan(table, alive, nil, alive[0], 2, fixedSeed); again != nil {
		t.Errorf("nothing has changed, but a table of epoch %d was planned", again.Epoch)
	}
}

func TestPlanCountsOnlyServingNodes(t *testing.T) {
	a := node("a", 1)
	check := func(what string, change func(*Member)) {
		t.Helper()
		b := node("b", 2)
		change(&b)
		table := Plan(nil, []Member{a, b}, nil, a, 1, fixedSeed)
		if len(table.Nodes) != 1 {
			t.Errorf("%s got into the table", what)
		}
		if Plan(nil, []Member{b}, nil, b, 1, fixedSeed) != nil {
			t.Errorf("%s alone got a table", what)
		}
	}
	check("a joining node", func(m *Member) { m.State = Joining })
	check("a leaving node", func(m *Member) { m.State = Leaving })
	check("a proxy", func(m *Member) { m.Role = RoleProxy })
	check("a node that places keys differently", func(m *Member) { m.Fingerprint++ })
}

func TestPlanFollowsCopies(t *testing.T) {
	alive := nodes("a", "b", "c")
	one := Plan(nil, alive, nil, alive[0], 1, fixedSeed)
	two := Plan(one, alive, nil, alive[0], 2, fixedSeed)
	if two == nil || two.Follower[0] == NoNode || two.Since != one.Since {
		t.Fatal("a second copy does not lead to a table with followers and the same data")
	}
	serving := make([]*Report, len(two.Nodes))
	for i, m := range two.Nodes {
		serving[i] = &Report{Node: m.Name(), Version: two.Version()}
	}
	for p := range uint16(Partitions) {
		serving[two.Owner[p]].Add(p)
	}
	if one = Plan(two, alive, serving, alive[0], 1, fixedSeed); one == nil || one.Follower[0] != NoNode {
		t.Fatal("giving up the second copy does not lead to a table without followers")
	}
}

// checkTable checks a table's invariants by having the decoder do it.
func checkTable(t *testing.T, table *Table) {
	t.Helper()
	back, err := DecodeTable(table.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if !sameTable(back, table) {
		t.Fatal("decoding returns another table than was encoded")
	}
}

func sameTable(a, b *Table) bool {
	return a.Version() == b.Version() && a.Seed == b.Seed &&
		slices.Equal(a.Ancestors, b.Ancestors) && slices.Equal(a.Nodes, b.Nodes) &&
		slices.Equal(a.Joined, b.Joined) && slices.Equal(a.Moves, b.Moves) &&
		a.Level == b.Level && a.Gone == b.Gone && a.Paused == b.Paused && a.Owner == b.Owner && a.Follower == b.Follower && a.Since == b.Since
}

// TestGone: a table says of nodes that have come and gone when the last of them had come.
func TestGone(t *testing.T) {
	alive := nodes("a", "b", "c")
	plan := func(cur *Table, alive ...Member) *Table {
		return Plan(cur, alive, nil, alive[0], 1, fixedSeed)
	}
	check := func(what string, table *Table, want uint64) {
		t.Helper()
		if checkTable(t, table); table.Gone != want {
			t.Errorf("%s: the last node that has gone joined at %d, want %d", what, table.Gone, want)
		}
	}
	first := plan(nil, alive[:2]...)
	first.Level = GoneLevel
	came := plan(first, alive...)
	check("a node came", came, 0)
	went := plan(came, alive[:2]...)
	check("it went", went, came.Epoch)
	check("an older one went", plan(went, alive[0]), came.Epoch)
	again := alive[1]
	again.Boot++
	restarted := plan(went, alive[0], again)
	check("a node began anew", restarted, came.Epoch)
	check("that one went", plan(restarted, alive[0]), restarted.Epoch)

	came.Level = GoneLevel - 1
	check("it went from an older cluster", plan(came, alive[:2]...), 0)
}

func TestCoordinator(t *testing.T) {
	check := func(want string, alive ...Member) {
		t.Helper()
		got, ok := Coordinator(alive)
		if got.ID != want || ok != (want != "") {
			t.Errorf("coordinator is %q, %v, want %q", got.ID, ok, want)
		}
	}
	leaving, proxy := node("l", 1), node("p", 1)
	leaving.State, proxy.Role = Leaving, RoleProxy
	check("")
	check("", leaving, proxy)
	check("b", node("a", 3), node("b", 2), leaving, proxy)
	check("a", node("b", 2), node("a", 2))
}

// A table that hands some partitions over, while more of the same move is to come, can wait; any
// other cannot.
func TestUnripe(t *testing.T) {
	alive := nodes("a", "b", "c")
	cur := Plan(nil, alive[:1], nil, alive[0], 1, fixedSeed)
	cur = Plan(cur, alive[:2], nil, alive[0], 1, fixedSeed)
	report := func(moved int) []*Report {
		from := &Report{Node: alive[0].Name(), Version: cur.Version(), Synced: AllPartitions()}
		to := &Report{Node: alive[1].Name(), Version: cur.Version()}
		for _, m := range cur.Moves[:moved] {
			to.Add(m.Partition)
		}
		return []*Report{from, to}
	}
	all := len(cur.Moves)
	for _, test := range []struct {
		name  string
		alive []Member
		moved int
		want  bool
	}{
		{"one of them", alive[:2], 1, true},
		{"all but one", alive[:2], all - 1, true},
		{"all", alive[:2], all, false},
		{"one, and a node has joined", alive, 1, false},
		{"one, and the old owner has died", alive[1:2], 1, false},
	} {
		if next := Plan(cur, test.alive, report(test.moved), alive[0], 1, fixedSeed); next == nil || Unripe(cur, next) != test.want {
			t.Errorf("%s: the table is unripe: %v, want %v", test.name, !test.want, test.want)
		}
	}
	if next := Pause(cur, alive[0], true); Unripe(cur, next) || Unripe(nil, cur) {
		t.Error("a table that gives nothing to anybody can wait")
	}
}
