package ring

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// history is a cluster to which things happen at random: its members, its table, and
// what each node truly holds.
type history struct {
	t      *testing.T
	rnd    *rand.Rand
	copies int
	boot   int64
	alive  []Member
	cur    *Table
	// held says by node which copies it has in sync: the Since of each, 0 for none.
	held map[string]*[Partitions]uint64
	// obeys is the version of the last table that a node has heard of.
	obeys map[string]Version
}

func newHistory(t *testing.T, seed uint64, copies int) *history {
	return &history{
		t: t, rnd: rand.New(rand.NewPCG(seed, 0)), copies: copies, boot: 1,
		held: make(map[string]*[Partitions]uint64), obeys: make(map[string]Version),
	}
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
	switch what := h.rnd.IntN(9); {
	case what <= 1 || at < 0: // a node joins, or one that stopped returns
		id := "n" + strconv.Itoa(h.rnd.IntN(6))
		if !slices.ContainsFunc(h.alive, func(m Member) bool { return m.ID == id }) {
			h.alive = append(h.alive, node(id, h.boot))
		}
	case what == 2: // a crash
		h.alive = slices.Delete(h.alive, at, at+1)
	case what == 3:
		h.alive[at].State = Leaving
	case what == 4:
		h.alive[at].State = Serving
	case what == 5: // a restart, noticed before the older self is known to be dead
		h.alive = append(h.alive, node(h.alive[at].ID, h.boot))
	case what == 6: // nothing of interest to the table
		h.alive[at].Epoch, h.alive[at].Issuer = uint64(h.boot), "somebody@1"
	case what == 7 && h.cur != nil:
		h.adopt(Pause(h.cur, h.alive[at], !h.cur.Paused))
	case what == 8: // a leaver that is done exits
		h.alive = slices.DeleteFunc(h.alive, func(m Member) bool {
			return m.State == Leaving && (h.cur == nil || h.cur.NodeIndex(m.ID, m.Boot) < 0)
		})
	}
}

// copyData completes each copy under way with the probability of one in of, and now
// and then loses one that was in sync.
func (h *history) copyData(of int) {
	for p := range uint16(Partitions) {
		for _, n := range h.fed(p) {
			have := &h.held[h.cur.Nodes[n].Name()][p]
			switch r := h.rnd.IntN(20 * of); {
			case r < 20 && h.lives(h.cur.Owner[p]):
				*have = h.cur.Since[p]
			case of > 1 && r == 20:
				*have = 0
			}
		}
	}
}

// fed returns the nodes, by index, that the owner feeds.
func (h *history) fed(p uint16) (nodes []uint16) {
	if f := h.cur.Follower[p]; f != NoNode {
		nodes = append(nodes, f)
	}
	i, found := slices.BinarySearchFunc(h.cur.Moves, p, func(m Move, p uint16) int { return int(m.Partition) - int(p) })
	if found {
		nodes = append(nodes, h.cur.Moves[i].To)
	}
	return nodes
}

func (h *history) lives(n uint16) bool { return isAlive(h.alive, h.cur.Nodes[n]) }

func isAlive(alive []Member, m Member) bool { return newestBoots(alive)[m.ID].Boot == m.Boot }

// reports returns what the living nodes report. Unless all is set, some hear late of
// the table and some do not answer.
func (h *history) reports(all bool) (reports []*Report) {
	if h.cur == nil {
		return nil
	}
	for _, m := range h.cur.Nodes {
		if all || h.rnd.IntN(4) > 0 {
			h.obeys[m.Name()] = h.cur.Version()
		}
		if !isAlive(h.alive, m) || !all && h.rnd.IntN(6) == 0 {
			continue
		}
		r := &Report{Node: m.Name(), Version: h.obeys[m.Name()]}
		for p := range uint16(Partitions) {
			has := h.held[m.Name()][p] == h.cur.Since[p] && slices.Contains(h.fed(p), h.index(m))
			if has || h.cur.Owner[p] == h.index(m) {
				r.Add(p)
			}
		}
		reports = append(reports, r)
	}
	return reports
}

func (h *history) index(m Member) uint16 { return indexOf(h.cur.Nodes, m.ID, m.Boot) }

// plan lets the coordinator plan once, checks the table, and lets all nodes adopt it.
func (h *history) plan(reports []*Report) (changed bool) {
	self, _ := Coordinator(h.alive)
	next := Plan(h.cur, h.alive, reports, self, h.copies, fixedSeed)
	if next == nil {
		return false
	}
	if h.cur != nil {
		h.checkStep(next, reports)
	}
	h.adopt(next)
	return true
}

func (h *history) checkStep(next *Table, reports []*Report) {
	h.t.Helper()
	if next.Epoch != h.cur.Epoch+1 || !next.Newer(h.cur) || h.cur.Newer(next) {
		h.t.Fatalf("table %v does not follow %v", next.Version(), h.cur.Version())
	}
	for p := range uint16(Partitions) {
		now := next.OwnerOf(p)
		if next.Since[p] == h.cur.Since[p] {
			stays := now.Name() == h.cur.OwnerOf(p).Name()
			if !stays && h.held[now.Name()][p] != next.Since[p] {
				h.t.Fatalf("epoch %d: partition %d is given to %s, whose copy is not in sync", next.Epoch, p, now.Name())
			}
			continue
		}
		if next.Since[p] != next.Epoch {
			h.t.Fatalf("partition %d has data since %d, it had %d", p, next.Since[p], h.cur.Since[p])
		}
		if h.lives(h.cur.Owner[p]) {
			h.t.Fatalf("epoch %d: partition %d begins anew although its owner lives", next.Epoch, p)
		}
		for _, r := range reports {
			known := r.Version == h.cur.Version() && r.Has(p)
			if known {
				h.t.Fatalf("epoch %d: partition %d begins anew although %s has a copy", next.Epoch, p, r.Node)
			}
		}
	}
}

// adopt is what nodes do with a table: a copy that is not fed is dropped, but an owner
// that handed its partition over still has all of it.
func (h *history) adopt(next *Table) {
	before := h.cur
	h.cur = next
	for _, m := range next.Nodes {
		name := m.Name()
		had, now := h.held[name], new([Partitions]uint64)
		self := h.index(m)
		for p := range uint16(Partitions) {
			switch {
			case next.Owner[p] == self:
				now[p] = next.Since[p]
			case before == nil || had == nil || had[p] != next.Since[p] || !slices.Contains(h.fed(p), self):
			case before.OwnerOf(p).Name() == next.OwnerOf(p).Name() || before.OwnerOf(p).Name() == name:
				now[p] = had[p]
			}
		}
		h.held[name] = now
	}
}

// settle plans until nothing changes any more and checks that this is what the ring
// asks for.
func (h *history) settle() {
	h.t.Helper()
	if _, ok := Coordinator(h.alive); !ok {
		return
	}
	if h.cur != nil && h.cur.Paused {
		h.adopt(Pause(h.cur, h.alive[0], false))
	}
	if h.cur != nil {
		h.copyData(1)
	}
	const atMost = 6
	for plans := 0; h.plan(h.reports(true)); plans++ {
		if plans == atMost {
			h.t.Fatalf("not settled after %d plans", plans)
		}
		h.copyData(1)
	}
	if wrong := unsettled(h.cur, h.alive, h.copies); wrong != "" {
		h.t.Fatalf("settled, but %s", wrong)
	}
	checkTable(h.t, h.cur)
}

// unsettled tells what cur lacks to be what the ring asks for.
func unsettled(cur *Table, alive []Member, copies int) string {
	var serving []Member
	for _, m := range tableNodes(nil, alive) {
		m.State = Serving
		serving = append(serving, m)
	}
	if !slices.Equal(cur.Nodes, serving) {
		return fmt.Sprintf("its nodes are %v, want %v", cur.Nodes, serving)
	}
	var ids []string
	for _, m := range serving {
		ids = append(ids, m.ID)
	}
	g, err := goalOf(ids)
	if err != nil {
		return err.Error()
	}
	want := g.follower
	if copies < 2 {
		fill(&want, NoNode)
	}
	switch {
	case cur.Owner != g.owner:
		return "its owners are not the ring's"
	case cur.Follower != want:
		return "its followers are not the ring's"
	case len(cur.Moves) > 0:
		return fmt.Sprintf("%d partitions move", len(cur.Moves))
	}
	return ""
}

// TestRandomHistories: whatever happens, and however late or sparse the reports are, no
// data are given up that a living owner or a reported copy holds, and when nothing
// happens any more the table soon is what the ring asks for.
func TestRandomHistories(t *testing.T) {
	histories := uint64(*histories)
	if testing.Short() {
		histories /= 5
	}
	for seed := range histories {
		h := newHistory(t, seed, 1+int(seed%2))
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			h.t = t
			for range 12 {
				h.happen()
				for range h.rnd.IntN(3) {
					h.plan(h.reports(false))
					if h.cur != nil {
						h.copyData(3)
					}
				}
			}
			h.settle()
		})
	}
}
