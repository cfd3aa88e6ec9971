package replica

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// copySchedule is node b with its ownership.Machine and its Copies, between two peers that own a
// partition in turn and feed b. Tables, streams and barriers come in random order; streams stand
// still at times, and b may be away while the others go on. The data is a number of writes since it
// began, so that a copy is right if it has the first of them without a hole.
type copySchedule struct {
	rng    *rand.Rand
	now    time.Duration
	table  *ring.Table // the newest
	server int         // node that serves the partition; nobody: it changes hands
	since  uint64      // of the data
	writes []time.Duration
	seal   uint64 // of the data, while it changes hands; 0: it has none
	seals  uint64
	by     time.Duration // when b obeys the table at the latest
	peers  map[int]*streamingPeer
	broken *Broken
	fault  string

	m        *ownership.Machine
	copies   *Copies
	calm     bool // nothing new happens
	idle     bool // nobody writes, so no effect shows the owner that b has no copy
	pending  bool // the loops have not passed a barrier
	admitted string
	have     content
	asks     []ownership.Ask
}

const (
	place  = uint16(7)
	nobody = -1
)

// content is what b has of the partition.
type content struct {
	since  uint64
	writes int
	broken bool // some are missing in between
}

func newCopySchedule(seed uint64, broken *Broken, rules ownership.Broken) *copySchedule {
	s := &copySchedule{rng: rand.New(rand.NewPCG(seed, 1)), now: time.Hour, since: 1, table: trio(),
		m:      ownership.New(ownership.Config{ID: "b", Boot: 2, StallLimit: time.Second, Broken: rules}),
		copies: NewCopies(broken), broken: broken, peers: map[int]*streamingPeer{0: {name: "a@1"}, 2: {name: "c@3"}}}
	for i := range s.table.Nodes {
		s.table.Nodes[i].Addr = s.table.Nodes[i].ID
	}
	for _, p := range s.peers {
		p.table, p.heard = s.table, Never
	}
	s.m.Members(s.table.Nodes)
	s.m.Install(s.now, s.table)
	s.obey()
	return s
}

func (s *copySchedule) view() *ownership.View { return s.m.View() }

// issue plans the next table as a coordinator may: data moves to b when b reports that it is in
// sync and the owner obeys the table, and to a peer always.
func (s *copySchedule) issue() {
	if int(s.table.Owner[place]) != s.server || s.pending {
		return
	}
	next := after(s.table, func(*ring.Table) {})
	s.by = s.now + time.Second
	owner := s.rng.IntN(3)
	if s.idle {
		owner = s.server
	}
	switch {
	case s.rng.IntN(10) == 0:
		next.Since[place] = next.Epoch
	case owner == 1 && s.server != 1 && !(s.view().Table == s.table && s.reported() && s.peers[s.server].table == s.table):
		owner = s.server
	case s.server == 1 && owner != 1 && s.rng.IntN(3) == 0: // b stands still, and is back
		next.Joined[1] = next.Epoch
		s.server, s.seal, s.by = nobody, 0, s.now+8*time.Second
	}
	next.Owner[place], next.Follower[place] = uint16(owner), ring.NoNode
	if f := s.rng.IntN(3); f != owner && s.rng.IntN(4) > 0 {
		next.Follower[place] = uint16(f)
	}
	s.table = next
}

func (s *copySchedule) apply(p *streamingPeer, m message) {
	switch {
	case m.mark.Kind != NoMark:
		s.copies.Marked(p.name, place, m.mark, s.now)
		s.act()
	case s.admitted != p.name:
		p.vain = true
	case m.whole:
		s.have = content{since: m.since, writes: m.writes}
	default:
		s.have.broken = s.have.broken || s.have.writes != m.writes-1 || s.have.since != m.since
		s.have.writes = m.writes
	}
}

// act does what the Copies want done.
func (s *copySchedule) act() {
	for _, a := range slices.Clone(s.copies.Actions()) {
		if a.Partition != place {
			continue
		}
		switch a.Do {
		case CopyAdmit:
			s.admitted = a.Source
		case CopyShut:
			s.admitted = ""
		case CopyForget:
			s.have = content{}
		case CopyRefuse, CopyAccept:
			for _, p := range s.peers {
				if p.name == a.Source {
					p.vain = a.Do == CopyRefuse
				}
			}
		case CopySpare, CopyUnseal:
		}
	}
}

// obey does what b's Machine wants done, up to a barrier.
func (s *copySchedule) obey() {
	for actions := s.m.Actions(); len(actions) > 0; actions = s.m.Actions() {
		for _, a := range actions {
			s.do(a)
		}
	}
}

func (s *copySchedule) do(a ownership.Action) {
	switch a := a.(type) {
	case ownership.Obey:
		if a.View.Standing[place] == ownership.Serving && a.View.Table == s.table && s.server == nobody {
			s.server = 1
		}
	case ownership.Barrier:
		s.pending = true
	case ownership.HandOver:
		s.handOver(a)
	case ownership.Drop:
		if slices.Contains(a.Partitions, place) {
			if s.have = (content{}); s.server == 1 {
				s.server, s.seal = nobody, 0
			}
		}
	case ownership.Review:
		s.copies.Review(a.View, a.Away, map[string]bool{"a@1": true, "b@2": true, "c@3": true}, nil)
		s.act()
	case ownership.Settle:
		s.copies.Settle(a.View)
	case ownership.AskForCopies:
		s.copies.Ask(a.View)
		s.act()
	case ownership.Ask:
		s.asks = append(s.asks, a)
	case ownership.CancelAsks:
		s.asks = nil
	case ownership.Claim:
		s.claim(a)
	}
}

// handOver gives up what b served: a peer has had all of it.
func (s *copySchedule) handOver(a ownership.HandOver) {
	if a.Old.Standing[place] == ownership.Serving && !a.Next.Owns(place) {
		lives := a.Old.Table.Since[place] == a.Next.Table.Since[place]
		s.seals++
		if s.server == 1 {
			if s.server, s.seal = nobody, 0; lives {
				s.seal = s.seals
			}
		}
		if lives {
			s.copies.Keep("b@2", &HandOver{Lost: []Lost{{Partition: place, Since: a.Old.Table.Since[place], Seal: s.seals}}, Away: a.Away}, s.now)
		} else {
			s.have = content{}
		}
		s.act()
	}
	s.m.HandedTo(s.now, nil)
}

// claim makes b's copy its own: nothing that was handed over may be missing.
func (s *copySchedule) claim(a ownership.Claim) {
	claims, _ := s.copies.Claim(a.View, a.Ended)
	s.act()
	if c, gained := claims[place]; gained && a.View.Table == s.table {
		if s.table.Since[place] == s.since && (s.have.broken || s.have.since != s.since || s.have.writes != len(s.writes)) {
			s.fault = fmt.Sprintf("b serves %v of %d writes since %d, kept %t", s.have, len(s.writes), s.since, c.Kept)
		}
		s.begin()
		s.have.since = s.since
	}
	s.m.Claimed(s.now)
}

func (s *copySchedule) reported() bool {
	r := new(ring.Report)
	s.copies.Report(r, s.view(), s.now, func(source string) time.Duration {
		for _, p := range s.peers {
			if p.name == source {
				return p.heard
			}
		}
		return Never
	})
	return r.Version == s.table.Version() && r.Has(place)
}

// check looks at a copy that counts as one in sync: if the owner died now, b would serve it. By the
// time that b obeys a table as to copies, it has dropped those that the table does not give it.
func (s *copySchedule) check() {
	s.checkFeed()
	if s.table.Owner[place] != 1 && s.table.Follower[place] != 1 && s.reported() {
		s.fault = fmt.Sprintf("b reports %v, which table %d does not give it", s.have, s.table.Epoch)
	}
	if s.table.Owner[place] == 1 || s.table.Since[place] != s.since {
		return
	}
	// A mark that says that all was handed over may be late itself.
	have := s.copies.Of(place)
	slow := have.State == Handed && have.Source != "b@2"
	late := !slow && s.have.writes < len(s.writes) && s.now-s.writes[s.have.writes] > CopyPatience
	if (s.have.broken || s.have.since != s.since || late) && s.reported() {
		s.fault = fmt.Sprintf("b reports %v of %d writes since %d, late %t", s.have, len(s.writes), s.since, late)
	}
}

// checkFeed looks for a copy that b lacks though its owner takes it for whole. Nothing is on its way
// that would tell the owner, so b would have no copy before the next write.
func (s *copySchedule) checkFeed() {
	p := s.peers[s.server]
	if p == nil || !p.feeds || len(p.queue) > 0 || p.vain || p.table != s.table {
		return
	}
	settled := s.view().Table == s.table && !s.pending
	if settled && s.table.Follower[place] == 1 && s.copies.Of(place).State == NoCopy {
		s.fault = fmt.Sprintf("b has no copy under table %d, and %s feeds it as if it had", s.table.Epoch, p.name)
	}
}

func (s *copySchedule) step() {
	s.now += time.Duration(s.rng.IntN(int(100 * time.Millisecond)))
	i := 2 * s.rng.IntN(2)
	x := s.rng.IntN(100)
	if s.calm {
		x = 25 + s.rng.IntN(75)
	}
	switch {
	case x < 1:
		s.idle = s.rng.IntN(3) == 0
	case x < 20 && s.idle:
		s.deliver(i)
	case x < 20:
		s.write()
	case x < 25:
		s.issue()
	case x < 35:
		s.adopt(i)
	case x < 45:
		s.takeOver(i)
	case x < 48:
		s.peers[i].down = !s.calm && !s.peers[i].down
	case x < 65:
		s.deliver(i)
	case s.pending:
		if x < 80 {
			s.pending = false
			s.m.BarrierPassed(s.now, ring.PartitionSet{})
		}
	case s.view().Table != s.table && (x < 75 && s.by < s.now+2*time.Second || s.now > s.by):
		s.m.Install(s.now, s.table)
	case x < 90 && len(s.asks) > 0:
		s.answer()
	default:
		s.m.Tick(s.now)
	}
	s.obey()
	s.check()
}

// answer has a peer acknowledge a table, when it has handed over what it lost.
func (s *copySchedule) answer() {
	a := s.asks[0]
	s.asks = s.asks[1:]
	for _, i := range slices.Sorted(maps.Keys(s.peers)) {
		p := s.peers[i]
		if p.name != a.Member.Name() {
			continue
		}
		if p.table.Epoch < a.Table.Epoch || len(p.queue) > 0 || p.vain {
			s.m.Failed(s.now, a.ID, false)
			return
		}
		s.m.Acknowledged(s.now, a.ID, p.name, p.table.Epoch, ring.PartitionSet{})
	}
}

func (s *copySchedule) write() {
	if s.server == nobody || s.server == 1 && s.pending {
		return
	}
	s.writes = append(s.writes, s.now)
	if s.server == 1 {
		s.have.writes++
		return
	}
	if p := s.peers[s.server]; p.feeds {
		s.send(p, message{writes: len(s.writes)})
	}
}

// firstBadCopy runs so many schedules, from the first one on.
func firstBadCopy(first uint64, schedules int, broken Broken, rules ownership.Broken) (fault string) {
	for seed := first; seed < first+uint64(schedules); seed++ {
		s := newCopySchedule(seed, cmp.Or(&broken, unbroken), rules)
		for range 1500 {
			if s.step(); s.fault != "" {
				return fmt.Sprintf("schedule %d: %s", seed, s.fault)
			}
		}
		s.calm = true
		for range 1000 {
			s.step()
		}
		if s.table.Follower[place] == 1 && s.have.writes != len(s.writes) {
			return fmt.Sprintf("schedule %d: in the end b has %v of %d writes", seed, s.have, len(s.writes))
		}
	}
	return ""
}

// What b reports as in sync, or serves, is what the owner has had. In the end b has all that the
// table gives it.
func TestCopiesInRandomSchedules(t *testing.T) {
	schedules := 200
	if testing.Short() {
		schedules = 20
	}
	if fault := firstBadCopy(0, schedules, Broken{}, ownership.Broken{}); fault != "" {
		t.Error(fault)
	}
}

// Random schedules show what becomes of rules that are broken. They begin with one that does.
func TestBrokenRulesOfCopies(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, for which tests are short, sees nothing in a machine without goroutines")
	}
	const within = 500
	for _, rule := range []struct {
		name   string
		first  uint64
		broken Broken
		rules  ownership.Broken
	}{
		{name: "date a copy by the receiver's table", first: 43, broken: Broken{IgnoreSince: true}},
		{name: "count copies of silent owners", first: 38, broken: Broken{TrustSilence: true}},
		{name: "continue any copy that was handed over", first: 256, broken: Broken{IgnoreSeals: true}},
		{name: "promote a copy that is still filling", first: 0, broken: Broken{PromoteFilling: true}},
		{name: "do not ask for missing copies", first: 47, broken: Broken{NeverAsk: true}},
		{name: "begin copies before the old ones are dropped", first: 1, rules: ownership.Broken{CopyEarly: true}},
	} {
		fault := firstBadCopy(rule.first, within, rule.broken, rule.rules)
		if fault == "" {
			t.Errorf("%s: not noticed in %d schedules from %d on", rule.name, within, rule.first)
		}
		t.Logf("%s: %s", rule.name, fault)
	}
}
