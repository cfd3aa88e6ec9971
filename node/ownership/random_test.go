package ownership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// schedule is three nodes' Machines where everything happens in random order: tables come, loops
// pass barriers, nodes ask one another, and answers arrive. At times two lineages of tables are
// about, as after a split. At times a table drops the last node as dead, though it runs. If it does
// not hear of that within the stall limit, it has stood still, and is fenced. In every second
// schedule nodes hold partitions, and obey tables that take those. Nobody dies, so no two nodes ever serve
// or hold one partition.
type schedule struct {
	rng     *rand.Rand
	now     time.Duration
	nodes   []*actor
	tips    []*ring.Table // the newest table of each lineage
	dropped *ring.Table   // that drops the last node; nil: it is of the newest table
	until   time.Duration // when that node is fenced, if it has not heard of it
	fault   string
}

const stallLimit = 500 * time.Millisecond

// actor is a node around its Machine.
type actor struct {
	*schedule
	member ring.Member
	m      *Machine
	table  *ring.Table
	looped *View    // that the loops execute under
	behind *View    // behind the barrier; nil: there is none
	inbox  []func() // what happens to it next, in any order
	takes  map[uint64]func(Reply)
	holds  [groups]bool
	told   [groups]bool // the Machine knows that it has lost what is held
}

// groups of partitions share their owners.
const groups = 4

func newSchedule(seed uint64, broken Broken) *schedule {
	s := &schedule{rng: rand.New(rand.NewPCG(seed, 1)), now: time.Minute}
	for i := range 3 {
		id := string(rune('a' + i))
		s.nodes = append(s.nodes, &actor{
			schedule: s, member: ring.Member{ID: id, Boot: 1, Addr: id}, looped: None, takes: make(map[uint64]func(Reply)),
			m: New(Config{ID: id, Boot: 1, StallLimit: stallLimit, Broken: broken}),
		})
	}
	first := &ring.Table{Epoch: 1, Issuer: "x", Joined: []uint64{1, 1, 1}, Level: uint8(seed%2) * ring.HoldLevel}
	for _, n := range s.nodes {
		first.Nodes = append(first.Nodes, n.member)
	}
	for p := range first.Owner {
		first.Follower[p], first.Since[p] = ring.NoNode, 1
	}
	s.tips = []*ring.Table{first}
	s.gossip(first.Nodes)
	for _, n := range s.nodes {
		n.adopt(first)
	}
	return s
}

// issue has a table follow others: one of its lineage, or those of two that become one.
func (s *schedule) issue(issuer string, from ...*ring.Table) *ring.Table {
	next := *from[0]
	next.Issuer, next.Ancestors = issuer, nil
	for _, t := range from {
		next.Epoch = max(next.Epoch, t.Epoch+1)
		next.Ancestors = append(append(next.Ancestors, t.Version()), t.Ancestors...)
	}
	group := s.rng.IntN(groups)
	owner := s.rng.IntN(len(next.Nodes))
	// Data only moves to a node that reports under the table before. Elsewhere it begins anew.
	anew := s.nodes[owner].m.View().Table != from[0]
	for p := group; p < ring.Partitions; p += groups {
		if next.Owner[p] = uint16(owner); anew {
			next.Since[p] = next.Epoch
		}
	}
	if len(from) > 1 {
		for p := range next.Since {
			next.Since[p] = next.Epoch
		}
	}
	return &next
}

// drop has a table declare the last node dead, and one of the others succeed it.
func (s *schedule) drop() {
	last := len(s.nodes) - 1
	next := *s.issue(s.tips[0].Issuer, s.tips[0])
	next.Nodes, next.Joined = next.Nodes[:last], next.Joined[:last]
	heir := s.rng.IntN(last)
	anew := s.nodes[heir].m.View().Table != s.tips[0]
	for p, owner := range next.Owner {
		if int(owner) != last {
			continue
		}
		if next.Owner[p] = uint16(heir); anew {
			next.Since[p] = next.Epoch
		}
	}
	s.tips[0], s.dropped, s.until = &next, &next, s.now+stallLimit
	s.gossip(next.Nodes)
}

func (s *schedule) gossip(alive []ring.Member) {
	for _, n := range s.nodes {
		n.m.Members(alive)
	}
}

// takeBack has a table name the last node again.
func (s *schedule) takeBack() {
	last := s.nodes[len(s.nodes)-1]
	next := *s.issue(s.tips[0].Issuer, s.tips[0])
	next.Nodes = append(slices.Clone(next.Nodes), last.member)
	next.Joined = append(slices.Clone(next.Joined), next.Epoch)
	s.tips[0], s.dropped = &next, nil
	s.gossip(next.Nodes)
}

// fenced reports whether a node has stood still and not heard yet what happened meanwhile.
func (s *schedule) fenced(n *actor) bool {
	return s.unaware(n) && s.now >= s.until
}

// unaware reports whether the newest tables drop a node that still executes under an older one.
func (s *schedule) unaware(n *actor) bool {
	return s.dropped != nil && n == s.nodes[len(s.nodes)-1] && n.looped.Epoch() < s.dropped.Epoch
}

// step lets something happen.
func (s *schedule) step() {
	s.now += time.Duration(s.rng.IntN(int(20 * time.Millisecond)))
	n := s.nodes[s.rng.IntN(len(s.nodes))]
	switch x := s.rng.IntN(100); {
	case x < 3:
		i := s.rng.IntN(len(s.tips))
		s.tips[i] = s.issue(s.tips[i].Issuer, s.tips[i])
	case x < 4 && s.dropped != nil:
		if !s.unaware(s.nodes[len(s.nodes)-1]) {
			s.takeBack()
		}
	case x < 4 && len(s.tips) == 1 && s.rng.IntN(2) == 0:
		s.drop()
	case x < 4 && len(s.tips) == 1:
		s.tips = append(s.tips, s.issue("y", s.tips[0]))
		s.tips[0] = s.issue("x", s.tips[0])
	case x < 5 && len(s.tips) == 2:
		s.tips = []*ring.Table{s.issue("x", s.tips...)}
	case x < 8:
		n.hold(s.rng.IntN(groups))
	case n.behind != nil: // it waits for its loops
		if n.looped = n.behind; x < 50 {
			n.behind = nil
			n.m.BarrierPassed(s.now, n.tell())
			n.run()
		}
	case x < 20 && s.unaware(n) && s.rng.IntN(8) > 0: // the others think that it is dead
	case x < 20:
		n.adopt(s.tips[s.rng.IntN(len(s.tips))])
	case len(n.inbox) > 0:
		i := s.rng.IntN(len(n.inbox))
		do := n.inbox[i]
		n.inbox = slices.Delete(n.inbox, i, i+1)
		do()
	default:
		n.m.Tick(s.now)
		n.run()
	}
	s.check()
}

// adopt has a node obey a table that replaces its own.
func (n *actor) adopt(t *ring.Table) {
	if t.Newer(n.table) {
		if n.unaware(n) { // it hears that others think it dead, and gives up what it holds
			n.holds = [groups]bool{}
		}
		n.table = t
		n.m.Install(n.now, t)
		n.run()
	}
}

// hold begins or ends a hold on the first partition of a group.
func (n *actor) hold(group int) {
	switch {
	case !n.holds[group]:
		n.holds[group] = n.looped.Standing[group] == Serving && n.looped.Table.Level > 0 && !n.told[group] && !n.unaware(n)
	case n.fenced(n): // it does not go on
	case n.told[group]:
		n.holds[group], n.told[group] = false, false
		n.post(func() {
			n.m.Released(n.now, uint16(group))
			n.run()
		})
	default:
		n.holds[group] = false
	}
}

// lost is what the node holds and does not serve.
func (n *actor) lost() (set ring.PartitionSet) {
	for p, holds := range n.holds {
		if holds && n.m.View().Standing[p] != Serving {
			set.Add(uint16(p))
		}
	}
	return set
}

// tell is lost, of which the Machine knows from now on.
func (n *actor) tell() ring.PartitionSet {
	set := n.lost()
	for g := range n.told {
		n.told[g] = n.told[g] || set.Has(uint16(g))
	}
	return set
}

// post has something happen to the node before long.
func (n *actor) post(do func()) { n.inbox = append(n.inbox, do) }

// run does what the Machine wants done, up to a barrier.
func (n *actor) run() {
	for actions := n.m.Actions(); len(actions) > 0; actions = n.m.Actions() {
		for _, a := range actions {
			n.do(a)
		}
	}
}

func (n *actor) do(a Action) {
	switch a := a.(type) {
	case Obey:
		if n.looped.Table == a.View.Table {
			n.looped = a.View
		}
	case Barrier:
		n.behind = n.m.View()
	case HandOver:
		n.m.HandedTo(n.now, nil)
	case Claim:
		n.m.Claimed(n.now)
	case Ask:
		to := n.nodes[slices.IndexFunc(n.nodes, func(o *actor) bool { return o.member.ID == a.Member.ID })]
		to.post(func() {
			to.adopt(a.Table)
			to.post(func() { to.take(n, a) })
		})
	case Reply:
		n.takes[a.ID](a)
	}
}

// take answers another node's Ask.
func (n *actor) take(asker *actor, a Ask) {
	id := uint64(len(n.takes))
	n.takes[id] = func(r Reply) {
		asker.post(func() {
			if r.Answer == Obeyed {
				asker.m.Acknowledged(n.now, a.ID, n.member.Name(), r.Epoch, r.Held)
			} else {
				asker.m.Failed(n.now, a.ID, false)
			}
			asker.run()
		})
	}
	n.m.Take(n.now, id, a.Table)
	n.run()
}

// check looks for partitions that two nodes serve.
func (s *schedule) check() {
	for p := range groups {
		var by *actor
		for _, n := range s.nodes {
			switch {
			case n.looped.Standing[p] != Serving && !n.holds[p], s.fenced(n):
			case by == nil:
				by = n
			default:
				s.fault = fmt.Sprintf("%s serves %d by %d of %s, and %s by %d of %s", by.member.ID, p, by.looped.Epoch(),
					by.looped.Table.Issuer, n.member.ID, n.looped.Epoch(), n.looped.Table.Issuer)
			}
		}
	}
}

// firstFault is the first schedule in which two nodes served something.
func firstFault(schedules int, broken Broken) (seed uint64, fault string, tables uint64) {
	for seed = 1; seed <= uint64(schedules); seed++ {
		s := play(seed, broken)
		if s.fault != "" {
			return seed, s.fault, tables
		}
		tables += s.tips[0].Epoch
	}
	return 0, "", tables
}

// play plays one schedule to its end, or to a fault.
func play(seed uint64, broken Broken) *schedule {
	s := newSchedule(seed, broken)
	for i := 0; i < 1000 && s.fault == ""; i++ {
		s.step()
	}
	return s
}

// However lineages run side by side, no two nodes serve one partition.
func TestOneServesInRandomSchedules(t *testing.T) {
	seed, fault, tables := firstFault(20, Broken{})
	if fault != "" {
		t.Errorf("schedule %d: %s", seed, fault)
	}
	t.Logf("%d tables", tables)
}

// The schedule that found a fault shows it again when the mend is taken away: a table takes a node
// back, but others see only the next table, which drops it again.
func TestPinnedSchedule(t *testing.T) {
	const seed = 454
	if fault := play(seed, Broken{}).fault; fault != "" {
		t.Errorf("schedule %d: %s", seed, fault)
	}
	if play(seed, Broken{ClaimOutpaced: true}).fault == "" {
		t.Errorf("schedule %d shows no fault any more: find another one", seed)
	}
}

// Random schedules show what becomes of rules that are broken.
func TestBrokenRulesInRandomSchedules(t *testing.T) {
	for name, broken := range map[string]Broken{
		"adopt foreign tables":              {AdoptForeign: true},
		"serve before TAKE is acknowledged": {ServeBeforeTake: true},
		"do not ask whom a table dropped":   {ForgetDeparted: true},
		"hand over what is held":            {HandHeld: true},
	} {
		if seed, fault, _ := firstFault(30, broken); fault == "" {
			t.Errorf("%s: not noticed in 30 schedules", name)
		} else {
			t.Logf("%s: schedule %d: %s", name, seed, fault)
		}
	}
}
