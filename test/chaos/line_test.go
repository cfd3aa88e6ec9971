package chaos

import (
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestChaosLinesNotice: clients that are served ahead of others are found, unless something has happened to the node of
// one of the keys, or the machine was busy.
func TestChaosLinesNotice(t *testing.T) {
	const key, beside = "line-0:1", "beside:line-0:1"
	start := time.Now().Add(-time.Hour)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	moves, changed := &ring.Table{Epoch: 2}, &ring.Table{Epoch: 3}
	first := &ring.Table{Epoch: 1, Nodes: []ring.Member{{ID: "n1"}, {ID: "n2"}, {ID: "n3"}}}
	for p := range first.Owner {
		first.Owner[p] = 1 // n1 has the key, n3 the one beside it, and n2 all others
	}
	first.Owner[ring.PartitionOf([]byte(key))] = 0
	first.Owner[ring.PartitionOf([]byte(beside))] = 2
	*moves, *changed = *first, *first
	moves.Epoch, changed.Epoch = 2, 3
	moves.Moves = []ring.Move{{Partition: ring.PartitionOf([]byte(key)), From: 0, To: 1}}
	changed.Owner[ring.PartitionOf([]byte(key))] = 1
	x := &Rig{T: t, C: &harness.Cluster{}, Pulse: newPulse()}
	t.Cleanup(x.Pulse.close)
	for _, id := range []string{"n1", "n2", "n3"} {
		x.C.Members = append(x.C.Members, &harness.Member{ID: id, Role: "node"})
	}
	x.Tables = &tableWatch{seen: map[ring.Version]time.Time{}}
	x.Tables.note(first, at(0))
	x.Tables.note(moves, at(500))
	x.Tables.note(first, at(510))
	x.Tables.note(changed, at(600))
	x.strokes = []*stroke{{"n1", at(100), at(101)}, {"n2", at(200), at(201)}, {"", at(300), at(301)}, {"n3", at(400), at(401)}, {"n2", at(700), time.Time{}}}
	x.deaths = []death{{"n1", at(150), at(151)}}
	f := func(seconds int, may bool, change ...func(*round)) {
		t.Helper()
		r := round{keys: []string{key}, from: at(seconds), to: at(seconds + 1)}
		for _, c := range change {
			c(&r)
		}
		if got := x.mayJump(&r); got != may {
			t.Errorf("an order after %d s is believed: %v, want %v", seconds, got, may)
		}
	}
	claims := func(r *round) { r.keys = append(r.keys, beside) }
	f(50, false)
	f(50, false, claims)
	f(50, true, func(r *round) { r.slowest = lineLag })
	f(50, true, func(r *round) { r.hurried = true })
	f(50, true, func(r *round) { r.serving = member.ClaimTurn })
	f(97, true)
	f(102, true)
	f(110, false)
	f(150, true)
	f(200, false) // of another node
	f(300, true)
	f(400, false)
	f(400, true, claims)
	f(505, true)
	f(599, true)
	f(650, false)
	f(800, true) // it goes on
	x.lines = []*lining{{x: x, name: "a"}}
	for i, order := range [][]string{{"0", "1", "2"}, {"0", "2", "1"}, {"0", "1"}, {"1", "0", "2"}} {
		x.lines[0].ends(round{keys: []string{key}, from: at(50 * i), to: at(50*i + 1), order: order})
	}
	if x.judgeLines(); x.lines[0].served != 3 || len(x.violations) != 1 {
		t.Errorf("of %d rounds these are violations: %q", x.lines[0].served, x.violations)
	}
}
