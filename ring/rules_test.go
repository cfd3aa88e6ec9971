package ring

import (
	"slices"
	"strings"
	"testing"
)

// rule is one partition's way through Plan. A seat is written "owner follower target":
// o and f are the ring's owner and follower, x is a third node that serves, l one that
// leaves, d a dead one, and - nobody.
type rule struct {
	what   string
	before string
	synced string // who reports that its copy is in sync, or that it serves
	after  string
	anew   bool // the data begin anew
}

var rulesOfTwo = []rule{
	{"at home", "o f -", "f", "o f -", false},
	{"at home, its follower behind", "o f -", "", "o f -", false},
	{"no follower", "o - -", "", "o f -", false},
	{"dead follower", "o d -", "", "o f -", false},
	{"dead follower, target at hand", "o d f", "", "o f -", false},
	{"another follower", "o x -", "x", "o x f", false},
	{"another follower, target behind", "o x f", "x", "o x f", false},
	{"another follower, target in sync", "o x f", "f", "o f -", false},
	{"the follower leaves", "o l -", "l", "o l f", false},
	{"the follower leaves, target in sync", "o l f", "lf", "o f -", false},

	{"owner elsewhere", "x f -", "f", "x f o", false},
	{"owner elsewhere, target behind", "x f o", "f", "x f o", false},
	{"owner elsewhere, target in sync", "x f o", "xo", "o f -", false},
	{"owner elsewhere, and behind, target in sync", "x f o", "o", "x f o", false},
	{"owner elsewhere, no follower", "x - o", "xo", "o x f", false},
	{"its follower is to own, and behind", "x o -", "", "x o -", false},
	{"its follower is to own", "x o -", "xo", "o x f", false},
	{"its follower is to own, needless move", "x o f", "xof", "o f -", false},
	{"owner and follower change places", "f o -", "fo", "o f -", false},
	{"owner elsewhere, dead follower", "x d -", "", "x - o", false},
	{"owner elsewhere, dead target", "x f d", "f", "x f o", false},

	{"owner leaves", "l f -", "f", "l f o", false},
	{"owner leaves to its follower", "l o -", "lo", "o f -", false},
	{"owner leaves, and is behind, its follower in sync", "l o -", "o", "l o -", false},
	{"owner leaves to the target", "l x o", "lox", "o x f", false},
	{"owner leaves, nobody in sync", "l o -", "", "l o -", false},

	{"owner dead, follower in sync", "d f -", "f", "f - o", false},
	{"owner dead, follower is the ring's owner", "d o -", "o", "o f -", false},
	{"owner dead, target in sync", "d f o", "o", "o f -", false},
	{"owner dead, both in sync", "d f o", "of", "o f -", false},
	{"owner dead, only the target in sync", "d o x", "x", "x o -", false},
	{"owner dead, leaving follower in sync", "d l -", "l", "l - o", false},
	{"owner dead, nobody in sync", "d o f", "", "o f -", true},
	{"owner dead, nobody there", "d - -", "", "o f -", true},
	{"owner dead, a stranger in sync", "d o -", "x", "o f -", true},
	{"owner and follower dead", "d d -", "", "o f -", true},
}

var rulesOfOne = []rule{
	{"at home", "o - -", "", "o - -", false},
	{"a follower of earlier days", "o f -", "of", "o - -", false},
	{"the owner before follows, the new one does not serve yet", "o x -", "x", "o x -", false},
	{"the owner before follows, the new one serves", "o x -", "o", "o - -", false},
	{"the owner before follows and leaves", "o l -", "l", "o l -", false},
	{"the owner before follows, the new one has died", "d x -", "x", "x - o", false},
	{"owner elsewhere", "x - -", "", "x - o", false},
	{"owner elsewhere, target in sync", "x - o", "xo", "o x -", false},
	{"owner elsewhere, target behind", "x - o", "", "x - o", false},
	{"its follower of earlier days is to own", "x o -", "x", "x - o", false},
	{"the owner before follows, and is to own again", "x o -", "", "x o -", false},
	{"the owner before is to own again, and in sync", "x o -", "xo", "o x -", false},
	{"the owner before is to own again, and in sync, the new one does not serve yet", "x o -", "o", "x o -", false},
	{"owner leaves", "l - -", "", "l - o", false},
	{"owner leaves, target in sync", "l - o", "lo", "o l -", false},
	{"owner dead, target in sync", "d - o", "o", "o - -", false},
	{"owner dead, target behind", "d - o", "", "o - -", true},
}

// rulesOfPause are for two copies, while rebalancing is paused.
var rulesOfPause = []rule{
	{"owner elsewhere", "x f -", "f", "x f -", false},
	{"owner elsewhere, move under way", "x f o", "fo", "x f -", false},
	{"its follower is to own", "x o -", "o", "x o -", false},
	{"its follower is to own, owner follows", "f x -", "x", "f x -", false},
	{"another follower", "o x f", "fx", "o x -", false},
	{"no follower", "o - -", "", "o f -", false},
	{"no follower, owner elsewhere", "f - -", "", "f o -", false},
	{"dead follower", "x d -", "", "x f -", false},
	{"the follower leaves", "x l -", "l", "x l f", false},
	{"the follower leaves, target in sync", "x l f", "f", "x f -", false},
	{"owner leaves", "l f -", "f", "l f o", false},
	{"owner leaves to its follower", "l o -", "lo", "o f -", false},
	{"owner dead, follower in sync", "d x -", "x", "x f -", false},
	{"owner dead, nobody in sync", "d x -", "", "o f -", true},
}

func TestRules(t *testing.T) {
	for _, r := range rulesOfTwo {
		r.check(t, 2, false)
	}
	for _, r := range rulesOfOne {
		r.check(t, 1, false)
	}
	for _, r := range rulesOfPause {
		r.check(t, 2, true)
	}
}

// TestPause: what was to move stays while rebalancing is paused, and then moves.
func TestPause(t *testing.T) {
	h := newHistory(t, 1, 2)
	h.alive = nodes("a", "b", "c")
	h.settle()
	before := h.cur
	h.adopt(Pause(h.cur, h.alive[1], true))
	if again := Pause(h.cur, h.alive[1], true); again != nil || h.cur.Epoch != before.Epoch+1 || !h.cur.Newer(before) {
		t.Errorf("pausing twice leads from %v to %v and %v", before.Version(), h.cur.Version(), again.Version())
	}
	h.become([]string{"a", "b", "c", "d"})
	for h.plan(h.reports(true)) {
		h.copyData(1)
	}
	if moved := differing(before, h.cur); moved > 0 || len(h.cur.Nodes) != 4 || !h.cur.Paused {
		t.Errorf("%d partitions moved to the node that joined", moved)
	}
	if !h.cur.Settled(h.alive, 2) {
		t.Error("there is something to ask for although nothing may move")
	}
	h.adopt(Pause(h.cur, h.alive[1], false))
	if h.cur.Settled(h.alive, 2) {
		t.Error("there is nothing to ask for although partitions have to move")
	}
	h.settle()
}

const ruled = 1234 // the partition that rules are about

func (r rule) check(t *testing.T, copies int, paused bool) {
	t.Helper()
	five := nodes("a", "b", "c", "d", "l")
	alive := append(five[:3:3], five[4])
	alive[3].State = Leaving
	g, err := goalOf([]string{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	seats := map[string]uint16{
		"o": g.owner[ruled], "f": g.follower[ruled], "x": 3 - g.owner[ruled] - g.follower[ruled],
		"d": 3, "l": 4, "-": NoNode,
	}
	cur := Plan(nil, five, nil, five[0], copies, fixedSeed)
	cur.Paused = paused
	words := strings.Fields(r.before)
	cur.Owner[ruled], cur.Follower[ruled] = seats[words[0]], seats[words[1]]
	if to := seats[words[2]]; to != NoNode {
		cur.Moves = append(cur.Moves, Move{ruled, cur.Owner[ruled], to})
	}
	if words[1] != "d" { // nobody follows himself, not even in a table of the dead
		checkTable(t, cur)
	}
	var reports []*Report
	for _, who := range strings.Split(r.synced, "") {
		report := &Report{Node: cur.Nodes[seats[who]].Name(), Version: cur.Version()}
		report.Add(ruled)
		reports = append(reports, report)
	}
	if paused {
		r.what += ", paused"
	}
	next := Plan(cur, alive, reports, five[0], copies, nil)
	checkTable(t, next)
	if got := seatOf(next, seats, cur); got != r.after {
		t.Errorf("%s, %d copies: %q with %q in sync becomes %q, want %q", r.what, copies, r.before, r.synced, got, r.after)
	}
	if anew := next.Since[ruled] == next.Epoch; anew != r.anew {
		t.Errorf("%s, %d copies: data begin anew: %v, want %v", r.what, copies, anew, r.anew)
	}
}

// seatOf writes the seat of the partition as rules do. seats are indexes in cur.
func seatOf(next *Table, seats map[string]uint16, cur *Table) string {
	name := func(n uint16) string {
		for letter, in := range seats {
			same := n == NoNode && in == NoNode ||
				n != NoNode && in != NoNode && next.Nodes[n].Name() == cur.Nodes[in].Name()
			if same {
				return letter
			}
		}
		return "?"
	}
	target := uint16(NoNode)
	for _, m := range next.Moves {
		if m.Partition == ruled {
			target = m.To
		}
	}
	return name(next.Owner[ruled]) + " " + name(next.Follower[ruled]) + " " + name(target)
}

// TestReportsThatDoNotCount: only what was said of the present table, by a node that
// is alive, moves a partition.
func TestReportsThatDoNotCount(t *testing.T) {
	first := Plan(nil, nodes("a"), nil, node("a", 1), 1, fixedSeed)
	alive := nodes("a", "b")
	cur := Plan(first, alive, nil, alive[0], 1, nil)
	full := func(name string, v Version) *Report {
		r := &Report{Node: name, Version: v}
		for p := range uint16(Partitions) {
			r.Add(p)
		}
		return r
	}
	check := func(what string, alive []Member, r *Report) {
		t.Helper()
		next := Plan(cur, alive, []*Report{r}, alive[0], 1, nil)
		if next != nil && next.Owner != cur.Owner {
			t.Errorf("%s moves partitions", what)
		}
	}
	check("a report on an older table", alive, full("b@2", first.Version()))
	check("a report on another table", alive, full("b@2", Version{cur.Epoch, "x@9"}))
	check("the report of an earlier life", alive, full("b@1", cur.Version()))
	check("the report of a dead node", alive[:1], full("b@2", cur.Version()))
	check("the report of the owner", alive, full("a@1", cur.Version()))
	check("a report without the owner's", alive, full("b@2", cur.Version()))
	next := Plan(cur, alive, []*Report{full("a@1", cur.Version()), full("b@2", cur.Version())}, alive[0], 1, nil)
	if next == nil || next.Owner == cur.Owner || next.Since != cur.Since || len(next.Moves) != 0 {
		t.Error("a good report does not move the partitions with their data")
	}
}

// TestLeaversStayAsLongAsNeeded: a node that leaves is in the table until it has
// handed over all that it owns and follows.
func TestLeaversStayAsLongAsNeeded(t *testing.T) {
	for copies := 1; copies <= 2; copies++ {
		h := newHistory(t, 1, copies)
		h.alive = nodes("a", "b", "c", "d")
		h.settle()
		h.alive[1].State, h.alive[3].State = Leaving, Leaving
		h.plan(nil)
		if len(h.cur.Nodes) != 4 {
			t.Fatalf("%d copies: two of four nodes leave, and the table has %d", copies, len(h.cur.Nodes))
		}
		h.settle()
		if len(h.cur.Nodes) != 2 || h.cur.Since[0] != 1 {
			t.Errorf("%d copies: handed over to %d nodes, with data since %d", copies, len(h.cur.Nodes), h.cur.Since[0])
		}
		// The last ones leave together: nobody is there to take over.
		h.alive = h.alive[:3:3]
		h.alive[0].State, h.alive[2].State = Leaving, Leaving
		if h.plan(nil) {
			t.Errorf("%d copies: a table was planned without anybody who serves", copies)
		}
		// One of them changes its mind.
		h.alive[0].State = Serving
		h.settle()
		if len(h.cur.Nodes) != 1 || h.cur.Since[0] != 1 {
			t.Errorf("%d copies: the last node has data since %d", copies, h.cur.Since[0])
		}
	}
}

// TestMovesAreWhatTheRingAsks counts the partitions whose owner changes while nodes
// come and go.
func TestMovesAreWhatTheRingAsks(t *testing.T) {
	for copies := 1; copies <= 2; copies++ {
		h := newHistory(t, 1, copies)
		moved, asked := 0, 0
		for i, ids := range []string{"a b c", "a b c d", "a b c d e", "a b d e", "b d e", "b c d e"} {
			before := h.cur
			h.become(strings.Fields(ids))
			for plans := 0; i > 0 && plans < 10; plans++ {
				was := h.cur
				h.plan(h.reports(true))
				moved += differing(was, h.cur)
				h.copyData(1)
			}
			h.settle()
			if i > 0 {
				asked += differing(before, h.cur)
			}
		}
		t.Logf("%d copies: %d partitions moved, the ring asked for %d", copies, moved, asked)
		if moved != asked || slices.Max(h.cur.Since[:]) != 1 {
			t.Errorf("%d copies: %d partitions moved, want %d, and none lost", copies, moved, asked)
		}
	}
}

// become lets those leave that are not in ids, and the others join.
func (h *history) become(ids []string) {
	stay := make(map[string]bool)
	for _, id := range ids {
		stay[id] = true
	}
	for i, m := range h.alive {
		if !stay[m.ID] {
			h.alive[i].State = Leaving
		}
		delete(stay, m.ID)
	}
	for _, id := range ids {
		if stay[id] {
			h.boot++
			h.alive = append(h.alive, node(id, h.boot))
		}
	}
}

// differing counts the partitions that the tables give to different nodes.
func differing(a, b *Table) (n int) {
	for p := range uint16(Partitions) {
		if a.OwnerOf(p).Name() != b.OwnerOf(p).Name() {
			n++
		}
	}
	return n
}
