package ring

import (
	"math/rand/v2"
	"slices"
	"strconv"
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
	table := Plan(nil, alive, alive[0], 2, fixedSeed)
	if table.Epoch != 1 || table.Issuer != "b@1" || table.Seed != 42 || len(table.Ancestors) != 0 {
		t.Errorf("first table is %d by %q, seed %d, ancestors %v",
			table.Epoch, table.Issuer, table.Seed, table.Ancestors)
	}
	if again := Plan(table, alive, alive[0], 2, fixedSeed); again != nil {
		t.Errorf("nothing has changed, but a table of epoch %d was planned", again.Epoch)
	}
}

func TestPlanCountsOnlyServingNodes(t *testing.T) {
	a := node("a", 1)
	check := func(what string, change func(*Member)) {
		t.Helper()
		b := node("b", 2)
		change(&b)
		table := Plan(nil, []Member{a, b}, a, 1, fixedSeed)
		if len(table.Nodes) != 1 {
			t.Errorf("%s got into the table", what)
		}
		if Plan(nil, []Member{b}, b, 1, fixedSeed) != nil {
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
	one := Plan(nil, alive, alive[0], 1, fixedSeed)
	two := Plan(one, alive, alive[0], 2, fixedSeed)
	if two == nil || two.Follower[0] == NoNode || two.Since != one.Since {
		t.Fatal("a second copy does not lead to a table with followers and the same data")
	}
	if one = Plan(two, alive, alive[0], 1, fixedSeed); one == nil || one.Follower[0] != NoNode {
		t.Fatal("giving up the second copy does not lead to a table without followers")
	}
}

// TestFollowerTakesOver: whoever dies, its followers own its partitions next.
func TestFollowerTakesOver(t *testing.T) {
	alive := nodes("a", "b", "c", "d")
	before := Plan(nil, alive, alive[0], 2, fixedSeed)
	for i := range alive {
		rest := slices.Delete(slices.Clone(alive), i, i+1)
		after := Plan(before, rest, rest[0], 2, fixedSeed)
		for p := range Partitions {
			if before.OwnerOf(uint16(p)).ID != alive[i].ID {
				continue
			}
			follower := before.Nodes[before.Follower[p]].ID
			if got := after.OwnerOf(uint16(p)).ID; got != follower {
				t.Fatalf("%s died: partition %d went to %s, want its follower %s", alive[i].ID, p, got, follower)
			}
		}
	}
}

// history is a cluster to which things happen at random.
type history struct {
	rnd   *rand.Rand
	alive []Member
	boot  int64
}

// happen changes up to three things at once.
func (h *history) happen() {
	for range 1 + h.rnd.IntN(3) {
		h.happenOnce()
	}
}

func (h *history) happenOnce() {
	h.boot++
	at := -1
	if len(h.alive) > 0 {
		at = h.rnd.IntN(len(h.alive))
	}
	switch what := h.rnd.IntN(6); {
	case what == 0 || at < 0: // a node joins, or one that stopped returns
		id := "n" + strconv.Itoa(h.rnd.IntN(8))
		if !slices.ContainsFunc(h.alive, func(m Member) bool { return m.ID == id }) {
			h.alive = append(h.alive, node(id, h.boot))
		}
	case what == 1: // a crash
		h.alive = slices.Delete(h.alive, at, at+1)
	case what == 2:
		h.alive[at].State = Leaving
	case what == 3:
		h.alive[at].State = Serving
	case what == 4: // a restart, noticed before the older self is known to be dead
		h.alive = append(h.alive, node(h.alive[at].ID, h.boot))
	case what == 5: // nothing of interest to the table
		h.alive[at].Epoch, h.alive[at].Issuer = uint64(h.boot), "somebody@1"
	}
}

func TestPlanOverRandomHistories(t *testing.T) {
	for seed := range uint64(8) {
		h := &history{rnd: rand.New(rand.NewPCG(seed, 0)), boot: 1}
		var cur *Table
		for range 30 {
			h.happen()
			self, ok := Coordinator(h.alive)
			next := Plan(cur, h.alive, self, 1+int(seed%2), fixedSeed)
			checkSuccessor(t, cur, next, h.alive, ok)
			if next != nil {
				cur = next
			}
			if t.Failed() {
				t.Fatalf("history of seed %d", seed)
			}
		}
	}
}

func checkSuccessor(t *testing.T, cur, next *Table, alive []Member, someoneServes bool) {
	t.Helper()
	want := servingNodes(alive)
	if next == nil {
		if someoneServes && (cur == nil || !slices.Equal(cur.Nodes, want)) {
			t.Error("no table was planned although the nodes changed")
		}
		return
	}
	checkTable(t, next)
	if !slices.Equal(next.Nodes, want) {
		t.Errorf("table has nodes %v, want %v", next.Nodes, want)
	}
	ids := make([]string, len(next.Nodes))
	for i, m := range next.Nodes {
		ids[i] = m.ID
	}
	target := mustTarget(t, ids)
	if !slices.Equal(next.Owner[:], target) {
		t.Error("owners are not the target")
	}
	if cur == nil {
		return
	}
	if slices.Equal(cur.Nodes, next.Nodes) {
		t.Error("a table was planned although nothing has changed")
	}
	if next.Epoch != cur.Epoch+1 || !next.Newer(cur) || cur.Newer(next) {
		t.Errorf("table %v does not follow %v", next.Version(), cur.Version())
	}
	for p := range Partitions {
		before, after := cur.OwnerOf(uint16(p)), next.OwnerOf(uint16(p))
		stays := before.Name() == after.Name()
		if stays && next.Since[p] != cur.Since[p] {
			t.Fatalf("partition %d lost its data although %s keeps it", p, after.Name())
		}
		if !stays && next.Since[p] != next.Epoch {
			t.Fatalf("partition %d moved to %s with data since %d", p, after.Name(), next.Since[p])
		}
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
		a.Owner == b.Owner && a.Follower == b.Follower && a.Since == b.Since
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
