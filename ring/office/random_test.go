package office

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// schedule is a cluster of Machines to which things happen in random order: members start, stand
// still, crash and come back, news and answers take their time. The network is never split, so two
// promises hold whatever happens: there is one lineage of tables, and no partition begins anew while
// its owner lives.
//
// What stands for gossip keeps to what the Machines count on. A member that is known to be there, or
// dead, is so to everybody within 100 ms. Whoever joins may take a second to hear of all others.
type schedule struct {
	rng     *rand.Rand
	now     time.Duration
	events  []happening // by time
	members []*player
	issued  map[ring.Version]*ring.Table
	read    map[ring.Version]bool // by others than the issuer
	broken  Broken
	fault   string
}

type happening struct {
	at time.Duration
	do func()
}

// player is one life of a member.
type player struct {
	*schedule
	self  ring.Member
	mind  *Machine
	table *ring.Table
	alive map[*player]ring.Member // as it has heard of them; not the dead
	have  ring.PartitionSet       // what it reports

	dead, paused bool
	parked       []func() // what waits for it to go on
	standstills  uint64
	hurt         time.Duration // when it was last paused
	adopted      time.Duration // when it got its table
	searched     bool
	busy, again  bool // within a step; to be woken when it is over
	timer        int
}

const (
	soon      = 100 * time.Millisecond
	inTheEnd  = time.Second             // everybody has met
	burial    = 1250 * time.Millisecond // at the earliest
	excuse    = 5 * time.Second         // for who stood still
	slots     = 5
	playtime  = 14 * time.Second
	bootstrap = 5 * time.Second
)

func (s *schedule) between(a, b time.Duration) time.Duration {
	return a + time.Duration(s.rng.Int64N(int64(b-a)))
}

func (s *schedule) after(d time.Duration, do func()) {
	e := happening{s.now + d, do}
	i, _ := slices.BinarySearchFunc(s.events, e, func(a, b happening) int {
		return cmp.Or(cmp.Compare(a.at, b.at), -1)
	})
	s.events = slices.Insert(s.events, i, e)
}

// later has the member do something, if it lives and runs by then, or when it goes on.
func (p *player) later(d time.Duration, do func()) {
	p.after(d, func() {
		switch {
		case p.dead:
		case p.paused:
			p.parked = append(p.parked, do)
		default:
			do()
		}
	})
}

func (s *schedule) violate(format string, args ...any) {
	if s.fault == "" {
		s.fault = fmt.Sprintf(format, args...)
	}
}

// start begins a life. Clocks differ: the youngest member may be the oldest by its boot.
func (s *schedule) start(slot int) {
	id := fmt.Sprintf("n%d", slot)
	boot := 1 + s.rng.Int64N(1000)
	for _, o := range s.members {
		if o.self.ID == id {
			boot = max(boot, o.self.Boot+1)
		}
	}
	p := &player{schedule: s, self: node(id, boot), alive: make(map[*player]ring.Member)}
	p.mind = New(Config{Self: p.self, Copies: 1 + s.rng.IntN(2), Searches: true, BootstrapWait: bootstrap, LevelSettle: bootstrap,
		Seed: s.rng.Uint64, Shuffle: s.rng.Shuffle, Broken: s.broken}, p, s.now)
	s.members = append(s.members, p)
	p.wake(0)
	p.later(p.between(0, 2*soon), p.join)
}

// running returns the member of a slot, nil if it does not answer.
func (s *schedule) running(slot int) *player {
	for _, p := range s.members {
		if p.self.ID == fmt.Sprintf("n%d", slot) && !p.dead && !p.paused {
			return p
		}
	}
	return nil
}

// join looks for somebody at one of the join addresses, and again before long.
func (p *player) join() {
	p.later(p.between(500*time.Millisecond, 2*time.Second), p.join)
	contact := p.running(p.rng.IntN(slots))
	if contact == nil || contact == p {
		return
	}
	p.hear(contact)
	contact.hear(p)
	group := p.group()
	for _, a := range group {
		for _, b := range group {
			if _, known := a.alive[b]; !known {
				within := soon
				if a == p {
					within = inTheEnd
				}
				a.later(p.between(0, within), func() { a.hear(b) })
			}
		}
	}
}

// group returns those who hear of one another: whom this member knows, whom those know, and so on.
func (p *player) group() []*player {
	group := []*player{p}
	for i := 0; i < len(group); i++ {
		for _, o := range p.members {
			if _, known := group[i].alive[o]; known && !slices.Contains(group, o) {
				group = append(group, o)
			}
		}
	}
	return group
}

// hear has this member know the other as it is now, if it is there.
func (p *player) hear(o *player) {
	if o.dead || o.paused || o == p {
		return
	}
	if have, known := p.alive[o]; !known || have != o.self {
		p.alive[o] = o.self
		p.wake(0)
	}
}

// announce tells all others about this member.
func (p *player) announce() {
	self := p.self
	for _, o := range p.members {
		if have, known := o.alive[p]; known {
			o.later(p.between(0, soon), func() {
				if have, known = o.alive[p]; known && self.Epoch >= have.Epoch {
					o.alive[p] = self
					o.wake(0)
				}
			})
		}
	}
}

// bury has others declare it dead in a while, if it does not go on before.
func (p *player) bury() {
	for _, o := range p.members {
		o.later(p.between(burial, burial+soon), func() {
			if _, known := o.alive[p]; known && (p.dead || p.paused && p.now-p.hurt >= burial) {
				delete(o.alive, p)
				o.wake(0)
			}
		})
	}
}

func (p *player) crash() {
	p.dead = true
	p.bury()
}

func (p *player) pause(d time.Duration) {
	p.paused, p.hurt = true, p.now
	p.bury()
	p.after(d, func() {
		p.paused = false
		if p.dead {
			return
		}
		if d > time.Second {
			p.standstills++
		}
		p.hurt = p.now
		parked := p.parked
		p.parked = nil
		for _, do := range parked {
			p.later(p.between(0, soon), do)
		}
		for _, o := range p.group() {
			o.later(p.between(soon/2, 2*soon), func() { o.hear(p) })
			p.later(p.between(0, soon), func() { p.hear(o) })
		}
		p.wake(0)
	})
}

// wake has the member look around after d at the latest.
func (p *player) wake(d time.Duration) {
	if p.busy {
		p.again = true
		return
	}
	p.timer++
	turn := p.timer
	p.later(d, func() {
		if p.timer == turn && !p.busy {
			p.busy = true
			p.goOn(p.mind.Begin(p.now, Event{Searched: p.searched}))
		}
	})
}

// goOn obeys the machine, and answers its question.
func (p *player) goOn(q *Question) {
	for _, a := range p.mind.Actions() {
		switch a := a.(type) {
		case Issued:
			p.checkIssued(a)
		case Search:
			for _, o := range p.members {
				p.later(p.between(0, soon), func() { p.hear(o) })
				o.later(p.between(0, soon), func() { o.hear(p) })
			}
			p.later(soon, func() {
				p.searched = true
				p.wake(0)
			})
		}
	}
	if q != nil {
		p.ask(q)
		return
	}
	wait := p.mind.Wait()
	if p.busy = false; p.again {
		p.again, wait = false, 0
	}
	p.wake(max(wait, time.Millisecond))
}

// ask collects answers until all have come, or the time is up.
func (p *player) ask(q *Question) {
	answer, missing, over := new(Answer), len(q.Nodes), false
	end := func() {
		if !over {
			over = true
			p.goOn(p.mind.Answered(p.now, *answer))
		}
	}
	p.later(FetchTimeout, end)
	for _, m := range q.Nodes {
		i := slices.IndexFunc(p.members, func(o *player) bool { return o.self.Name() == m.Name() })
		o := p.members[i]
		if o.dead {
			p.later(0, func() {
				if missing--; missing == 0 {
					end()
				}
			})
			continue
		}
		slow := 20 * time.Millisecond
		if p.rng.IntN(5) == 0 {
			slow = soon
		}
		o.later(p.between(0, slow), func() {
			table, report := o.table, o.report()
			p.later(p.between(0, slow), func() {
				if over {
					return
				}
				if answer.Signs++; table != nil {
					answer.Tables = append(answer.Tables, table)
					answer.Reports = append(answer.Reports, report)
				}
				if missing--; missing == 0 {
					end()
				}
			})
		})
	}
}

func (p *player) report() *ring.Report {
	return &ring.Report{Node: p.self.Name(), Version: p.table.Version(), Synced: p.have}
}

// Alive, Table, Adopt and Standstills make a player a Host.
func (p *player) Alive() []ring.Member {
	members := []ring.Member{p.self}
	for _, m := range p.alive {
		if i := slices.IndexFunc(members, func(o ring.Member) bool { return o.ID == m.ID }); i < 0 {
			members = append(members, m)
		} else if members[i].Boot < m.Boot {
			members[i] = m
		}
	}
	slices.SortFunc(members, func(a, b ring.Member) int { return cmp.Compare(a.ID, b.ID) })
	return members
}

func (p *player) Table() *ring.Table  { return p.table }
func (p *player) Standstills() uint64 { return p.standstills }

func (p *player) Adopt(t *ring.Table) bool {
	if t == nil || !t.Newer(p.table) {
		return false
	}
	p.keep(t)
	p.table, p.adopted = t, p.now
	p.self.Epoch, p.self.Issuer = t.Epoch, t.Issuer
	p.checkLineage(t)
	p.announce()
	p.wake(0)
	p.later(p.between(50*time.Millisecond, 500*time.Millisecond), func() {
		if p.table == t {
			for part := range uint16(ring.Partitions) {
				if p.hasPart(t, part) {
					p.have.Add(part)
				}
			}
		}
	})
	return true
}

// keep forgets what the next table has no use for.
func (p *player) keep(next *ring.Table) {
	have := p.have
	p.have = ring.PartitionSet{}
	for part := range uint16(ring.Partitions) {
		if have.Has(part) && p.hasPart(next, part) && next.Since[part] == p.table.Since[part] {
			p.have.Add(part)
		}
	}
}

// hasPart reports whether a table gives the member a copy of a partition, or the partition.
func (p *player) hasPart(t *ring.Table, part uint16) bool {
	self := t.NodeIndex(p.self.ID, p.self.Boot)
	return self >= 0 && (int(t.Owner[part]) == self || t.Follower[part] == uint16(self) ||
		slices.ContainsFunc(t.Moves, func(m ring.Move) bool { return m.Partition == part && int(m.To) == self }))
}

// checkLineage is called when a member has adopted a table. One that only its issuer has may be lost
// with it: then the others go on from the one before.
func (p *player) checkLineage(t *ring.Table) {
	if t.Issuer == p.self.Name() {
		return
	}
	p.read[t.Version()] = true
	for _, o := range p.members {
		have := o.table
		if !o.dead && have != nil && p.read[have.Version()] && have.Version() != t.Version() &&
			!t.Descends(have.Version()) && !have.Descends(t.Version()) {
			p.violate("%s adopts %d of %s, but %s has %d of %s", p.self.Name(), t.Epoch, t.Issuer, o.self.Name(), have.Epoch, have.Issuer)
		}
	}
}

// checkIssued is called when the member has issued a table.
func (p *player) checkIssued(a Issued) {
	t := a.Table
	p.issued[t.Version()] = t
	if a.Sides > 1 {
		p.violate("%s heals a split of %d sides in %d", p.self.Name(), a.Sides, t.Epoch)
	}
	if a.Healed || len(t.Ancestors) == 0 {
		return
	}
	before := p.issued[t.Ancestors[0]]
	for part := range uint16(ring.Partitions) {
		if t.Since[part] != t.Epoch {
			continue
		}
		owner := before.OwnerOf(part).Name()
		for _, o := range p.members {
			calm := !o.dead && !o.paused && (o.hurt == 0 || o.now-o.hurt > excuse)
			if calm && o.self.Name() == owner {
				p.violate("%s begins %d anew in %d though %s lives", p.self.Name(), part, t.Epoch, owner)
			}
		}
	}
}

// restart begins another life in a slot where there is none.
func (s *schedule) restart(slot int) {
	id := fmt.Sprintf("n%d", slot)
	if !slices.ContainsFunc(s.members, func(o *player) bool { return !o.dead && o.self.ID == id }) {
		s.start(slot)
	}
}

// mischief does something to the cluster, and again after a while.
func (s *schedule) mischief() {
	s.after(s.between(0, 2*time.Second), s.mischief)
	slot := s.rng.IntN(slots)
	p := s.running(slot)
	others := 0
	for i := range slots {
		if i != slot && s.running(i) != nil {
			others++
		}
	}
	switch {
	case p == nil:
		for i := range 1 + s.rng.IntN(2) { // perhaps two at once
			s.restart((slot + i) % slots)
		}
	case others < 2 || p.table != nil && p.table.Issuer == p.self.Name() && p.now-p.adopted < 3*soon:
		// Nobody but p may have the newest table. If p stops now, the others rightly go on without.
	case s.rng.IntN(3) == 0:
		p.crash()
	default:
		p.pause(s.between(200*time.Millisecond, 4*time.Second))
	}
}

// run plays one schedule to its end, or to a fault.
func run(seed uint64, broken Broken) *schedule {
	s := &schedule{rng: rand.New(rand.NewPCG(seed, 1)), now: time.Second, broken: broken,
		issued: make(map[ring.Version]*ring.Table), read: make(map[ring.Version]bool)}
	for slot := range slots {
		if slot < 2 || s.rng.IntN(2) == 0 {
			s.after(s.between(0, 2*time.Second), func() { s.start(slot) })
		}
	}
	s.after(s.between(2*time.Second, 5*time.Second), s.mischief)
	for s.now < playtime && s.fault == "" {
		e := s.events[0]
		s.events = s.events[1:]
		s.now = e.at
		e.do()
	}
	return s
}

func TestLineageInRandomSchedules(t *testing.T) {
	tables := 0
	for seed := range uint64(25) {
		s := run(seed, Broken{})
		if tables += len(s.issued); s.fault != "" {
			t.Errorf("schedule %d: %s", seed, s.fault)
		}
	}
	t.Logf("%d tables", tables)
}

// Random schedules show what becomes of rules that are broken.
func TestBrokenRulesInRandomSchedules(t *testing.T) {
	const within = 60
	for name, broken := range map[string]Broken{
		"issue at once when coming into office":           {HastyOffice: true},
		"bury nodes that were never met":                  {BuryStrangers: true},
		"found a cluster with the first node that is met": {FoundAtOnce: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(within) {
				if s := run(seed, broken); s.fault != "" {
					t.Logf("schedule %d: %s", seed, s.fault)
					return
				}
			}
			t.Errorf("not noticed in %d schedules", within)
		})
	}
}
