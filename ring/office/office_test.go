package office

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// stage is a Host that tests arrange.
type stage struct {
	alive       []ring.Member
	table       *ring.Table
	proposed    *ring.Settings
	standstills uint64
}

func (s *stage) Proposed() *ring.Settings { return s.proposed }

func (s *stage) Alive() []ring.Member { return s.alive }
func (s *stage) Table() *ring.Table   { return s.table }
func (s *stage) Standstills() uint64  { return s.standstills }
func (s *stage) Adopt(t *ring.Table, named *ring.Settings) bool {
	if !t.Newer(s.table) || named != nil && named != s.proposed {
		return false
	}
	s.table = t
	for i := range s.alive {
		if s.alive[i].ID == "n1" {
			s.alive[i].Epoch, s.alive[i].Issuer, s.alive[i].TableLevel = t.Epoch, t.Issuer, t.Level
		}
	}
	return true
}

func node(id string, boot int64) ring.Member {
	return ring.Member{ID: id, Boot: boot, State: ring.Serving, Addr: id + ":1", Fingerprint: ring.Fingerprint()}
}

// start returns the machine of n1.
func (s *stage) start(change ...func(*Config)) *Machine {
	cfg := Config{Self: node("n1", 1), Copies: 1, BootstrapWait: 5 * time.Second, LevelSettle: 5 * time.Second,
		Seed: func() uint64 { return 1 }, Shuffle: func(int, func(i, j int)) {}}
	for _, f := range change {
		f(&cfg)
	}
	return New(cfg, s, time.Second)
}

// run takes steps until the time, each as soon as the machine wants it, and answers nothing.
func (m *Machine) run(from, until time.Duration, e Event) (actions []Action, asked []What) {
	for now := from; now <= until; now += max(m.Wait(), time.Millisecond) {
		q := m.Begin(now, e)
		for actions = append(actions, m.Actions()...); q != nil; actions = append(actions, m.Actions()...) {
			asked = append(asked, q.What)
			q = m.Answered(now, Answer{})
		}
	}
	return actions, asked
}

func issuedIn(actions []Action) (tables []*ring.Table) {
	for _, a := range actions {
		if i, ok := a.(Issued); ok {
			tables = append(tables, i.Table)
		}
	}
	return tables
}

// A node without join addresses founds its cluster, when it has settled in its office.
func TestFounding(t *testing.T) {
	s := &stage{alive: []ring.Member{node("n1", 1)}}
	m := s.start()
	if actions, _ := m.run(time.Second, time.Second+officeSettle-time.Millisecond, Event{}); issuedIn(actions) != nil {
		t.Error("a table was issued at once")
	}
	actions, _ := m.run(time.Second+officeSettle, 3*time.Second, Event{})
	if tables := issuedIn(actions); len(tables) != 1 || s.table != tables[0] {
		t.Errorf("%d tables were issued, want 1", len(tables))
	}
}

// A node that has join addresses asks them all when it has met another node, and waits for their
// answers.
func TestFoundingAsksFirst(t *testing.T) {
	s := &stage{alive: []ring.Member{node("n1", 1), node("n2", 2)}}
	m := s.start(func(c *Config) { c.Searches = true })
	actions, _ := m.run(time.Second, 3*time.Second, Event{})
	if issuedIn(actions) != nil || !slices.Contains(actions, Action(Search{})) {
		t.Errorf("without answers it did %v", actions)
	}
	actions, _ = m.run(3*time.Second, 4*time.Second, Event{Searched: true})
	if len(issuedIn(actions)) != 1 {
		t.Errorf("with answers it did %v", actions)
	}
	alone := &stage{alive: []ring.Member{node("n1", 1)}}
	m = alone.start(func(c *Config) { c.Searches = true })
	if actions, _ = m.run(time.Second, 7*time.Second, Event{Stranger: 3 * time.Second}); issuedIn(actions) != nil {
		t.Error("a table was issued 4 s after a stranger had answered")
	}
	if actions, _ = m.run(7*time.Second, 9*time.Second, Event{Stranger: 3 * time.Second}); len(issuedIn(actions)) != 1 {
		t.Error("no table was issued 6 s after a stranger had answered")
	}
}

// A node that is the oldest by its clock, and has its first table from another one, issues nothing
// before gossip has had the time to bring it everybody.
func TestNewcomerWaits(t *testing.T) {
	first := ring.Plan(nil, []ring.Member{node("n2", 2)}, nil, node("n2", 2), 1, func() uint64 { return 1 })
	s := &stage{alive: []ring.Member{node("n1", 1)}}
	m := s.start(func(c *Config) { c.Searches, c.NoReports = true, true })
	m.run(time.Second, 2*time.Second, Event{})
	s.alive, s.table = append(s.alive, node("n2", 2)), first
	if actions, _ := m.run(2*time.Second, 2*time.Second+meetWait-time.Millisecond, Event{}); issuedIn(actions) != nil {
		t.Error("it issued a table before it can have met everybody")
	}
	actions, _ := m.run(2*time.Second+meetWait, 2*time.Second+2*meetWait, Event{})
	if tables := issuedIn(actions); len(tables) != 1 || len(tables[0].Nodes) != 2 {
		t.Errorf("it issued %d tables, want one of two nodes", len(tables))
	}
}

// A member that has had its table for a while does not wait when it becomes the coordinator.
func TestSuccessorDoesNotWait(t *testing.T) {
	both := []ring.Member{node("n0", 0), node("n1", 1)}
	s := &stage{alive: both, table: ring.Plan(nil, both, nil, both[0], 1, func() uint64 { return 1 })}
	m := s.start(func(c *Config) { c.NoReports = true })
	m.run(time.Second, 10*time.Second, Event{})
	s.alive = both[1:]
	if actions, _ := m.run(10*time.Second, 10*time.Second+officeSettle, Event{}); len(issuedIn(actions)) != 1 {
		t.Error("it did not issue a table as soon as it was in office")
	}
}

// A node that stood still has asked nobody meanwhile, so its bootstrap wait begins anew.
func TestFoundingWaitsAfterStandstill(t *testing.T) {
	s := &stage{alive: []ring.Member{node("n1", 1)}}
	m := s.start(func(c *Config) { c.Searches = true })
	m.run(time.Second, 2*time.Second, Event{})
	s.standstills++
	if actions, _ := m.run(7*time.Second, 11*time.Second, Event{}); issuedIn(actions) != nil {
		t.Error("a table was issued 4 s after a standstill")
	}
	if actions, _ := m.run(12*time.Second, 14*time.Second, Event{}); len(issuedIn(actions)) != 1 {
		t.Error("no table was issued 6 s after a standstill")
	}
}

// A coordinator that stood still while it asked gathers anew before it issues.
func TestStandstillEndsOffice(t *testing.T) {
	s := &stage{alive: []ring.Member{node("n1", 1), node("n2", 2)}}
	m := s.start(func(c *Config) { c.MinMembers = 2 })
	now := 2 * time.Second
	m.Begin(time.Second, Event{})
	for q := m.Begin(now, Event{}); q != nil; q = m.Answered(now, Answer{Signs: 1}) {
		if q.What == Signs {
			s.standstills++
		}
	}
	if s.table != nil || m.inOffice {
		t.Errorf("it issued %v, in office: %v", s.table.Version(), m.inOffice)
	}
}

// A table that came from another member names nodes that gossip has not brought yet: they are
// waited for, but not for ever, and not when a newer life of theirs is there.
func TestUnmetNodesAreWaitedFor(t *testing.T) {
	met, unmet := ring.Member{ID: "n1", Boot: 1}, ring.Member{ID: "n2", Boot: 1}
	table := &ring.Table{Nodes: []ring.Member{met, unmet}}
	m := (&stage{}).start()
	m.met = map[string]bool{met.Name(): true}
	expects := func(now time.Duration, alive ...ring.Member) bool {
		m.now = now
		return m.expects(table, alive)
	}
	if !expects(time.Second, met) {
		t.Error("n2 is not waited for")
	}
	if expects(time.Second+healWait, met) {
		t.Error("n2 is waited for for ever")
	}
	if expects(time.Second, met, ring.Member{ID: "n2", Boot: 2}) {
		t.Error("an older life of n2 is waited for")
	}
	if m.met[unmet.Name()] = true; expects(time.Second, met) {
		t.Error("n2 is waited for though it died before our eyes")
	}
}

// Nodes that start together come into one table, if they take no longer than a while.
func TestChangesAreCollected(t *testing.T) {
	const begin = time.Hour
	f := func(what string, first, last, issued, now, want time.Duration) {
		t.Helper()
		m := (&stage{}).start()
		m.firstChange, m.lastChange, m.lastIssue, m.now = begin+first, begin+last, begin+issued, begin+now
		if got := m.untilDue(); got != want {
			t.Errorf("%s: the next table is due in %v, want %v", what, got, want)
		}
	}
	const long, millis = -time.Hour, time.Millisecond
	f("one change", 0, 0, long, 0, settle)
	f("another one soon after", 0, 100*millis, long, 100*millis, settle)
	f("one after another", 0, settleAtMost-50*millis, long, settleAtMost-50*millis, 50*millis)
	f("they do not end", 0, settleAtMost, long, settleAtMost, 0)
	f("a table just before", 0, 0, 0, settle, issueInterval-settle)
}

// A coordinator that has seen too few nodes gathers anew when there are enough again: the other
// side of the split may have had a coordinator of its own, and issued a table.
func TestMinorityEndsOffice(t *testing.T) {
	both := []ring.Member{node("n1", 1), node("n2", 2)}
	s := &stage{alive: both}
	m := s.start(func(c *Config) { c.MinMembers = 2 })
	step := func(now time.Duration) (asked []What) {
		for q := m.Begin(now, Event{}); q != nil; q = m.Answered(now, Answer{Signs: 1}) {
			asked = append(asked, q.What)
		}
		return asked
	}
	step(time.Second)
	if step(2 * time.Second); s.table == nil || !m.inOffice {
		t.Fatal("two nodes of two founded nothing")
	}
	s.alive = both[:1]
	step(3 * time.Second)
	s.alive = both
	if asked := step(4 * time.Second); m.inOffice || slices.Contains(asked, Signs) {
		t.Errorf("it goes on with its office, and asks %v", asked)
	}
	if asked := step(4*time.Second + officeSettle); !m.inOffice || !slices.Contains(asked, Tables) {
		t.Errorf("it does not gather anew, but asks %v", asked)
	}
}

// A proposal that is replaced while nodes are asked for signs of life is not named: nobody could
// find its document. The next step names the other one.
func TestReplacedProposalIsNotNamed(t *testing.T) {
	s := &stage{alive: []ring.Member{node("n1", 1), node("n2", 2)}}
	for i := range s.alive {
		s.alive[i].Level = ring.SettingsLevel
	}
	m := s.start(func(c *Config) { c.Self, c.MinMembers, c.LevelSettle, c.NoReports = s.alive[0], 2, 0, true })
	propose := func(value string) *ring.Settings {
		p, err := (*ring.Settings)(nil).With(1, map[string]string{"x": value})
		if err != nil {
			t.Fatal(err)
		}
		s.proposed = p
		return p
	}
	step := func(now time.Duration, meanwhile func()) {
		for q := m.Begin(now, Event{}); q != nil; q = m.Answered(now, Answer{Signs: 1}) {
			if q.What == Signs {
				meanwhile()
			}
		}
	}
	nothing := func() {}
	for now := time.Second; now < 3*time.Second; now += 250 * time.Millisecond {
		step(now, nothing)
	}
	if s.table == nil || s.table.Level != ring.SettingsLevel {
		t.Fatalf("there is no table of level %d", ring.SettingsLevel)
	}
	first := propose("1")
	var second *ring.Settings
	step(3*time.Second, func() { second = propose("2") })
	if s.table.Settings == first.ID() {
		t.Error("a table names a document that was replaced")
	}
	if step(4*time.Second, nothing); s.table.Settings != second.ID() {
		t.Error("no table names the document that replaced the first")
	}
}

// A cluster begins at level 0, and rises when old members have had time to come back: also after
// the coordinator was out of office, when it may not have seen them.
func TestLevelRisesLate(t *testing.T) {
	self := node("n1", 1)
	self.Level = 1
	s := &stage{alive: []ring.Member{self}}
	m := s.start(func(c *Config) { c.Self = self })
	m.run(time.Second, 5*time.Second, Event{})
	if s.table == nil || s.table.Level != 0 {
		t.Fatalf("after 4 s the table is %v", s.table)
	}
	s.standstills++
	m.run(5*time.Second, 10*time.Second, Event{})
	if s.table.Level != 0 {
		t.Error("the level rose less than 5 s after a standstill")
	}
	old := ring.Member{ID: "p", Boot: 2, Role: ring.RoleProxy, State: ring.Serving, Addr: "p:1", Fingerprint: ring.Fingerprint()}
	s.alive = append(s.alive, old)
	m.run(10*time.Second, 20*time.Second, Event{})
	if s.table.Level != 0 {
		t.Error("the level rose while an old proxy was there")
	}
	s.alive = s.alive[:1]
	m.run(20*time.Second, 26*time.Second, Event{})
	if s.table.Level != 1 {
		t.Error("the level did not rise when the old proxy had gone")
	}
}

// A member that does not speak the level of another one's table reports that once, issues nothing,
// and confirms nothing, until that one has gone.
func TestOutdatedMemberIssuesNothing(t *testing.T) {
	s := &stage{alive: []ring.Member{node("n1", 1), node("n2", 2)}}
	m := s.start()
	m.run(time.Second, 3*time.Second, Event{})
	s.alive[1].Epoch, s.alive[1].Issuer, s.alive[1].TableLevel, s.alive[1].Level = 9, "n2@2", 1, 1
	before := s.table
	actions, _ := m.run(3*time.Second, 13*time.Second, Event{})
	told := slices.DeleteFunc(actions, func(a Action) bool { _, is := a.(Outdated); return !is })
	if len(told) != 1 || told[0] != Action(Outdated{1}) || s.table != before {
		t.Errorf("it reports %v, and its table is %v", told, s.table.Version())
	}
	var refusal *ring.LevelError
	if _, err := m.cfg.Confirm(s, nil, []Told{{Table: before}}); !errors.As(err, &refusal) || refusal.Need != 1 {
		t.Errorf("it confirms its table: %v", err)
	}
	if s.alive = s.alive[:1]; m.cfg.Outdated(s.alive) != 0 {
		t.Error("it is outdated alone")
	}
	m.run(13*time.Second, 16*time.Second, Event{})
	if _, err := m.cfg.Confirm(s, nil, []Told{{Table: s.table}}); err != nil || s.table == before {
		t.Errorf("it does not go on alone: %v, %v", s.table.Version(), err)
	}
}
