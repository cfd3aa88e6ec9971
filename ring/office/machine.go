package office

import (
	"maps"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// Config is what a Machine needs to know of its member.
type Config struct {
	Self       ring.Member // who it is; Epoch, Issuer and State do not matter
	Copies     int         // how many nodes should hold each partition
	MinMembers int         // a table is issued only while as many nodes answer; 0 and 1: any number
	// Searches: there are join addresses, to be asked before a first table is issued. It is issued
	// BootstrapWait after the start at the latest, if no stranger answers.
	Searches      bool
	BootstrapWait time.Duration
	// LevelSettle is for how long every member must have spoken a higher level before the cluster
	// is raised to it.
	LevelSettle time.Duration
	NoReports   bool          // nodes report nothing, so that no data ever move
	Seed        func() uint64 // of a new cluster's hashes
	Shuffle     func(n int, swap func(i, j int))
	Broken      Broken // for the simulation
}

// Host is the member that a Machine decides for.
type Host interface {
	// Alive returns the alive members, this one included, sorted by id, of each id the newest boot.
	Alive() []ring.Member
	// Table returns the adopted table, nil before the first.
	Table() *ring.Table
	// Adopt makes t the member's table; false if it is not newer along its lineage. named is the
	// proposal that t, a table of this member's own, is the first to name, nil for none: Adopt also
	// returns false if that is not the proposal any longer, because nobody could find it then.
	Adopt(t *ring.Table, named *ring.Settings) bool
	// Proposed returns the settings that the next table of this member's own is to name, nil for
	// none.
	Proposed() *ring.Settings
	// Standstills counts how often the process did not run for a while.
	Standstills() uint64
}

const (
	// Idle is how often a member looks around without being woken.
	Idle = time.Second
	// FetchTimeout bounds the answer to a question, and with it how long one dead but unsuspected
	// node can hold up a step.
	FetchTimeout = 700 * time.Millisecond

	// retryInterval is how soon a version that could not be fetched is tried again.
	retryInterval = 200 * time.Millisecond
	// refreshInterval bounds what a storm of MOVED replies can cost.
	refreshInterval = 50 * time.Millisecond
)

// What is what a Question is about.
type What uint8

const (
	Tables  What = iota // each node's table
	Reports             // each node's report of its copies
	Signs               // a sign of life; Enough of them end the question
)

// Question is a question to several nodes. The shell asks all of them at the same time, and waits
// FetchTimeout at most.
type Question struct {
	What   What
	Nodes  []ring.Member // this one among them only for Reports
	Enough int           // of Signs
}

// Answer has what came in time; nodes that did not answer are left out.
type Answer struct {
	Tables  []*ring.Table
	Reports []*ring.Report
	Signs   int
}

// Event is something that happened since the last step.
type Event struct {
	Searched bool // every join address has answered or failed
	// Stranger is when a process last answered that cannot be in one cluster with this one; 0:
	// never.
	Stranger time.Duration
	Pause    *bool // an operator wants rebalancing paused, or not; nil: neither
}

// Machine decides for one member. See the package.
type Machine struct {
	cfg  Config
	host Host
	now  time.Duration
	event
	steering
	begun time.Duration // the present step

	question *Question
	then     func(Answer)
	wait     time.Duration
	actions  []Action
}

// event is that of the present step.
type event struct{ Event }

// steering is what is remembered from one step to the next. Times are 0 where nothing is
// remembered.
type steering struct {
	started time.Duration // or has gone on after a standstill
	members []ring.Member // as last reported by Changed
	// firstChange is when the members changed for the first time since the last table was planned;
	// lastChange is the last time.
	firstChange, lastChange time.Duration
	lastIssue, lastRefresh  time.Duration
	standstills             uint64          // of this process, as of the last step
	electedAt               time.Duration   // since when this member is the coordinator
	hadTable                bool            // it has, or has had, a table
	joined                  time.Duration   // when its first table came from another member
	inOffice                bool            // this member is coordinator and has gathered
	ableSince               time.Duration   // since when every member speaks more than the cluster's level
	met                     map[string]bool // names of members that were alive here
	strangersSince          time.Duration   // since when the table names nodes that are not among those
	minority                bool            // there were too few nodes for the table
	outdated                bool            // another member's table has a level that this one does not speak
	unheard                 bool            // too few of them answered, the last time
	searching               bool            // the search before the first table has begun
	wantRefresh             bool
	// unread are the versions announced by others that do not belong to our lineage as far as we
	// know, and their tables once fetched.
	unread     map[ring.Version]*foreign
	splitSince time.Duration // since when there are some
	// reports are the answers to the last poll, at lastPoll. bereaved is since when a dead owner's
	// partitions have waited for reports.
	reports            []*ring.Report
	lastPoll, bereaved time.Duration
}

// foreign is an unread version.
type foreign struct {
	table *ring.Table // nil: not fetched yet
	tries int
	next  time.Duration // of the next try
}

// New returns the machine of a member that starts now.
func New(cfg Config, host Host, now time.Duration) *Machine {
	const longAgo = -time.Hour
	return &Machine{cfg: cfg, host: host, steering: steering{
		started: now, lastIssue: longAgo, lastRefresh: longAgo, lastPoll: longAgo,
		unread: make(map[ring.Version]*foreign),
	}}
}

// Refresh has the next step look for a newer table: somebody seems to have one.
func (m *Machine) Refresh() { m.wantRefresh = true }

// Begin begins a step. It returns what to ask before the step can go on, nil if it is over.
func (m *Machine) Begin(now time.Duration, e Event) *Question {
	m.now, m.begun, m.event, m.wait = now, now, event{e}, Idle
	if n := m.host.Standstills(); n != m.standstills {
		m.standstills = n
		m.started = now // it has asked nobody meanwhile whether there is a cluster
		if !m.cfg.Broken.ActAfterStandstill {
			m.resign()
		}
	}
	alive := m.host.Alive()
	m.noteMembers(alive)
	m.noteMinority(alive)
	m.noteLevel(alive)
	m.noteTable()
	m.meet(alive)
	m.refresh(alive)
	return m.question
}

// Answered goes on with the answer to the last question. It returns the next one, nil if the step
// is over.
func (m *Machine) Answered(now time.Duration, a Answer) *Question {
	then := m.then
	m.now, m.question, m.then = now, nil, nil
	then(a)
	return m.question
}

// Wait returns how long the member may wait until the next step, unless something changes.
func (m *Machine) Wait() time.Duration { return m.wait }

// Actions returns what the member has to do since the last call.
func (m *Machine) Actions() []Action {
	actions := m.actions
	m.actions = nil
	return actions
}

func (m *Machine) act(a Action) { m.actions = append(m.actions, a) }

// ask asks the nodes and then calls then, at once if there are no nodes to ask.
func (m *Machine) ask(q Question, then func(Answer)) {
	if len(q.Nodes) == 0 {
		then(Answer{})
		return
	}
	m.question, m.then = &q, then
}

// lookAgain notes that a part of the step wants the next one within d.
func (m *Machine) lookAgain(d time.Duration) { m.wait = min(m.wait, max(d, 0)) }

// noteMembers reports changed members.
func (m *Machine) noteMembers(alive []ring.Member) {
	if sameMembers(m.members, alive) {
		return
	}
	m.lastChange = m.now
	if m.firstChange == 0 {
		m.firstChange = m.lastChange
	}
	m.act(Changed{Before: m.members, Alive: alive})
	m.members = alive
}

// sameMembers compares two lists, versions of tables apart.
func sameMembers(a, b []ring.Member) bool {
	return slices.EqualFunc(a, b, func(x, y ring.Member) bool {
		x.Epoch, x.Issuer, x.TableLevel = 0, "", 0
		y.Epoch, y.Issuer, y.TableLevel = 0, "", 0
		return x == y
	})
}

// noteMinority reports when there are too few nodes for a table that is there.
func (m *Machine) noteMinority(alive []ring.Member) {
	few := m.host.Table() != nil && Minority(alive, m.cfg.MinMembers)
	if few && !m.minority {
		m.act(TooFew{})
	}
	m.minority = few
}

// noteTable notes when this member has joined a cluster that another one founded.
func (m *Machine) noteTable() {
	t := m.host.Table()
	if m.hadTable || t == nil {
		return
	}
	m.hadTable = true
	if t.Issuer != m.cfg.Self.Name() {
		m.joined = m.now
	}
}

// noteLevel reports when this member has become too old for its cluster.
func (m *Machine) noteLevel(alive []ring.Member) {
	need := m.cfg.Outdated(alive)
	if need > 0 && !m.outdated {
		m.act(Outdated{need})
	}
	m.outdated = need > 0
}

// Outdated returns the level of the cluster if one of the alive members holds a table of a higher
// level than this member speaks, otherwise 0. This member can neither read nor replace that table:
// the cluster goes on without this member.
func (c *Config) Outdated(alive []ring.Member) (need uint8) {
	if need = ring.TableLevel(alive); need <= c.Self.Level {
		return 0
	}
	return need
}

// Minority reports whether fewer than minMembers nodes are alive. Then the others may be on the
// other side of a split, and they may be many.
func Minority(alive []ring.Member, minMembers int) bool {
	nodes := 0
	for _, m := range alive {
		if m.Role == ring.RoleNode {
			nodes++
		}
	}
	return nodes < minMembers
}

// meet notes which members are alive, and forgets the others unless the present table names them.
func (m *Machine) meet(alive []ring.Member) {
	met := make(map[string]bool, len(alive))
	for _, a := range alive {
		met[a.Name()] = true
	}
	if t := m.host.Table(); t != nil {
		for _, n := range t.Nodes {
			met[n.Name()] = met[n.Name()] || m.met[n.Name()]
		}
	}
	m.met = met
}

// otherNodes returns the nodes of members other than this one.
func (c *Config) otherNodes(members []ring.Member) (nodes []ring.Member) {
	for _, other := range members {
		if other.Role == ring.RoleNode && other.Name() != c.Self.Name() {
			nodes = append(nodes, other)
		}
	}
	return nodes
}

// shuffledNodes returns the other nodes in random order, so that not everybody asks the same one.
func (m *Machine) shuffledNodes(alive []ring.Member) []ring.Member {
	nodes := m.cfg.otherNodes(alive)
	m.cfg.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

// refresh looks for a newer table if somebody asked to: at the coordinator and two other nodes.
func (m *Machine) refresh(alive []ring.Member) {
	if wait := m.lastRefresh + refreshInterval - m.now; !m.wantRefresh || wait > 0 {
		if m.wantRefresh {
			m.lookAgain(wait)
		}
		m.catchUp(alive)
		return
	}
	m.wantRefresh = false
	nodes := m.shuffledNodes(alive)
	nodes = slices.Clone(nodes[:min(len(nodes), 2)])
	if c, ok := ring.Coordinator(alive); ok && c.Name() != m.cfg.Self.Name() {
		nodes = append(nodes, c)
	}
	m.ask(Question{What: Tables, Nodes: nodes}, func(a Answer) {
		m.adoptNewest(a.Tables)
		m.lastRefresh = m.now
		m.catchUp(alive)
	})
}

// catchUp fetches the tables that other members announce and that our lineage does not know.
func (m *Machine) catchUp(alive []ring.Member) {
	m.updateUnread(alive)
	var holders []ring.Member
	asked := make(map[ring.Version]bool)
	for _, holder := range m.shuffledNodes(alive) {
		f := m.unread[holder.Version()]
		if f == nil || f.table != nil || asked[holder.Version()] || m.now < f.next {
			continue
		}
		asked[holder.Version()] = true
		f.tries++
		f.next = m.now + retryInterval
		holders = append(holders, holder)
	}
	m.ask(Question{What: Tables, Nodes: holders}, func(a Answer) {
		m.adoptNewest(a.Tables)
		for _, f := range m.sortedUnread() {
			// Foreign when it was fetched, perhaps not any longer.
			if f.table != nil {
				m.host.Adopt(f.table, nil)
			}
		}
		m.updateUnread(alive)
		for _, f := range m.unread {
			if f.table == nil {
				m.lookAgain(retryInterval)
			}
		}
		m.holdOffice(alive)
	})
}

// adoptNewest adopts what can be adopted of tables, the newest first, and keeps foreign ones.
func (m *Machine) adoptNewest(tables []*ring.Table) {
	for _, t := range newestFirst(tables) {
		if m.host.Adopt(t, nil) {
			continue
		}
		f := m.unread[t.Version()]
		if f == nil || f.table != nil {
			continue
		}
		f.table = t
		if current := m.host.Table(); current != nil && t.Outlives(current, m.host.Alive()) {
			m.act(Superseded{})
		}
	}
}

func newestFirst(tables []*ring.Table) []*ring.Table {
	return slices.SortedFunc(slices.Values(tables), func(a, b *ring.Table) int {
		return ring.CompareVersions(b.Version(), a.Version())
	})
}

// sortedUnread returns what is unread in the order of versions.
func (m *Machine) sortedUnread() (all []*foreign) {
	for _, v := range slices.SortedFunc(maps.Keys(m.unread), ring.CompareVersions) {
		all = append(all, m.unread[v])
	}
	return all
}

// updateUnread notes the versions that alive members announce and forgets those that nobody holds
// any longer or that our lineage has come to know.
func (m *Machine) updateUnread(alive []ring.Member) {
	unread := make(map[ring.Version]*foreign)
	current := m.host.Table()
	for _, a := range alive {
		v := a.Version()
		if v.IsZero() || current != nil && (v == current.Version() || current.Descends(v)) {
			continue
		}
		if unread[v] = m.unread[v]; unread[v] == nil {
			unread[v] = &foreign{}
		}
	}
	m.unread = unread
	if len(unread) == 0 {
		m.splitSince = 0
	} else if m.splitSince == 0 {
		m.splitSince = m.now
	}
}
