package office

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// What the coordinator does.

const (
	// officeSettle is how long a member must have been the coordinator in its own eyes before it
	// acts as one: a member that goes on after a standstill, or that hears of a death, must first
	// be seen, and told the news, by the others.
	officeSettle = 300 * time.Millisecond
	// A change is planned when nothing has changed for settle, so that nodes that start together
	// come into one table, but no later than settleAtMost after the first change.
	settle       = 150 * time.Millisecond
	settleAtMost = 600 * time.Millisecond
	// issueInterval allows five epochs a second.
	issueInterval = 200 * time.Millisecond
	// handOverInterval is how often partitions change owners while more of them are on their way.
	handOverInterval = time.Second
	// healWait is how long a heal waits for nodes of the sides' tables that are not alive yet:
	// after a split each of them comes back only when it has refuted its death, and a table without
	// it would drop what it stores.
	healWait = 2 * time.Second
	// meetWait is how long a member that has its first table from another one waits before it acts
	// as the coordinator: gossip may take as long to bring it everybody who is there. One of them
	// may be the coordinator, or about to take itself for it.
	meetWait = time.Second
	// maxTries is how often the coordinator tries to fetch a foreign table, about 5 s, before it
	// heals the split without looking at it.
	maxTries = 8
)

// holdOffice does the coordinator's work if this member is the coordinator.
func (m *Machine) holdOffice(alive []ring.Member) {
	if !m.elected(alive) {
		m.resign()
		m.firstChange = 0 // another member plans the change
		m.act(NoOffice{})
		return
	}
	// Behind a split the oldest member may still be the coordinator of the smaller side, while the
	// other side has a coordinator of its own. When they meet again, the former must gather anew.
	if Minority(alive, m.cfg.MinMembers) {
		m.resign()
		return // new members wake it
	}
	if m.outdated {
		m.resign()
		return // members that can read every table replace them
	}
	if m.electedAt == 0 {
		m.electedAt = m.now
	}
	if wait := m.electedAt + officeSettle - m.now; wait > 0 && !m.cfg.Broken.HastyOffice {
		m.lookAgain(wait)
		return
	}
	if m.inOffice {
		m.govern(alive)
		return
	}
	// The predecessor may have issued a table that only some have heard of.
	m.ask(Question{What: Tables, Nodes: m.cfg.otherNodes(alive)}, func(a Answer) {
		m.adoptNewest(a.Tables)
		m.inOffice = true
		alive := m.host.Alive() // time has passed
		if !m.elected(alive) && !m.cfg.Broken.HastyOffice {
			m.resign()
			m.lookAgain(0)
			return
		}
		m.updateUnread(alive)
		m.govern(alive)
	})
}

// elected reports whether this member is the coordinator of those that are alive.
func (m *Machine) elected(alive []ring.Member) bool {
	c, ok := ring.Coordinator(alive)
	return ok && c.Name() == m.cfg.Self.Name()
}

// resign makes this member gather anew before it acts as the coordinator again.
func (m *Machine) resign() { m.inOffice, m.electedAt, m.ableSince = false, 0, 0 }

// mayIssue reports whether this member is still the coordinator that it was when the step began,
// and nobody else has issued a table meanwhile. Polls and plans take time.
func (m *Machine) mayIssue() bool {
	awake := m.host.Standstills() == m.standstills || m.cfg.Broken.ActAfterStandstill
	alive := m.host.Alive()
	return awake && (m.cfg.Broken.HastyOffice || m.elected(alive)) && !m.overtaken(alive)
}

// overtaken reports whether somebody has a table that is news to this step: as announced, or in its
// reports. The coordinator before may have stood still for less than a standstill. Then it answers
// whoever gathers, and issues what it has planned before it hears of a new coordinator.
func (m *Machine) overtaken(alive []ring.Member) bool {
	if m.cfg.Broken.IgnoreNews {
		return false
	}
	current := m.host.Table()
	news := func(v ring.Version) bool {
		known := v.IsZero() || m.unread[v] != nil || current != nil && (v == current.Version() || current.Descends(v))
		return !known
	}
	return slices.ContainsFunc(alive, func(a ring.Member) bool { return news(a.Version()) }) ||
		m.lastPoll >= m.begun && slices.ContainsFunc(m.reports, func(r *ring.Report) bool { return news(r.Version) })
}

// govern issues the next table if one is due.
func (m *Machine) govern(alive []ring.Member) {
	current := m.host.Table()
	if current == nil && !m.mayFound(alive) {
		m.inOffice = false // a node that it meets meanwhile may have a table that gossip has not brought yet
		m.lookAgain(retryInterval)
		return
	}
	if wait := m.untilMet(); wait > 0 {
		m.inOffice = false
		m.lookAgain(wait)
		return
	}
	if wait := m.untilDue(); wait > 0 {
		m.lookAgain(wait)
		return
	}
	tables, ready := m.foreignTables(alive, current)
	if !ready || m.awaits(tables, alive) || m.expects(current, alive) {
		m.lookAgain(retryInterval)
		return
	}
	if len(m.unread) > 0 {
		m.issue(ring.Heal(tables, m.winner(tables, alive), alive, m.cfg.Self, m.cfg.Copies, m.cfg.Seed), nil, alive, len(tables))
		return
	}
	if next, named := m.ordered(current, alive); next != nil {
		m.issue(next, named, alive, 0)
		return
	}
	m.gatherReports(current, alive, func(ready bool) {
		if !ready {
			m.lookAgain(heirsRetry)
			return
		}
		next := m.plan(current, alive)
		if next != nil && m.now-m.lastIssue < handOverInterval && ring.Unripe(current, next) {
			m.lookAgain(m.untilPoll(current, alive))
			return
		}
		m.issue(next, nil, alive, 0)
	})
}

// winner returns the table whose lineage continues behind a split.
func (m *Machine) winner(tables []*ring.Table, alive []ring.Member) *ring.Table {
	if m.cfg.Broken.CountLost {
		alive = nil
	}
	return ring.LongestLived(tables, alive)
}

func (m *Machine) plan(current *ring.Table, alive []ring.Member) *ring.Table {
	reports := m.reports
	if m.cfg.Broken.IgnoreReports && current != nil {
		reports = nil
		for _, a := range alive {
			reports = append(reports, &ring.Report{Node: a.Name(), Version: current.Version(), Synced: ring.AllPartitions()})
		}
	}
	next := ring.Plan(current, alive, reports, m.cfg.Self, m.cfg.Copies, m.cfg.Seed)
	if next != nil && m.cfg.Broken.NeverShelter {
		for p := range next.Follower {
			next.Follower[p] = ring.NoNode
		}
	}
	return next
}

// ordered returns the next table if it is to differ from the present one in something that moves no
// data: an operator's order, the level, or the settings. Otherwise it returns nil. named is the
// proposal that the table is the first to name.
func (m *Machine) ordered(current *ring.Table, alive []ring.Member) (next *ring.Table, named *ring.Settings) {
	if current == nil {
		return nil, nil
	}
	if next = m.paused(current); next != nil {
		return next, nil
	}
	if next = m.raised(current, alive); next != nil {
		return next, nil
	}
	p := m.host.Proposed()
	if p == nil || current.Level < ring.SettingsLevel || p.ID().Version != current.Settings.Version+1 {
		return nil, nil
	}
	return ring.Settle(current, m.cfg.Self, p.ID()), p
}

// paused returns the table that an operator has asked for, nil if the present one is as ordered.
// The order stands until then, because the table that paused returns may not come to be issued.
func (m *Machine) paused(current *ring.Table) *ring.Table {
	if m.Pause == nil {
		return nil
	}
	next := ring.Pause(current, m.cfg.Self, *m.Pause)
	if next == nil {
		m.act(Paused{m.Pause})
	}
	return next
}

// raised returns the table that raises the cluster's level, nil if that is not due. The level never
// falls again, so an old proxy that restarts a moment after the last node was upgraded should find
// the cluster as it left it.
func (m *Machine) raised(current *ring.Table, alive []ring.Member) *ring.Table {
	common := ring.CommonLevel(alive)
	if common <= current.Level {
		m.ableSince = 0
		return nil
	}
	if m.ableSince == 0 {
		m.ableSince = m.now
	}
	if m.now-m.ableSince < m.cfg.LevelSettle {
		return nil
	}
	return ring.Raise(current, m.cfg.Self, common)
}

// issue adopts the next table and has it announced, if there is one and this member may. named is
// the proposal that the table is the first to name. It heals a split of so many sides.
func (m *Machine) issue(next *ring.Table, named *ring.Settings, alive []ring.Member, sides int) {
	if next == nil {
		m.issued(alive)
		return
	}
	m.hearEnough(alive, func(heard bool) {
		if !heard {
			m.lookAgain(retryInterval)
			return
		}
		if !m.mayIssue() {
			m.resign()
			m.lookAgain(retryInterval)
			return
		}
		// Not adopted if a TAKE brought a newer table this very moment, or if the proposal was
		// replaced or withdrawn while nodes were asked: plan again.
		if m.host.Adopt(next, named) {
			m.lastIssue = m.now
			m.act(Issued{Table: next, Healed: len(m.unread) > 0, Sides: sides})
		}
		m.issued(alive)
	})
}

// issued ends what began with a change.
func (m *Machine) issued(alive []ring.Member) {
	m.firstChange = 0
	if current := m.host.Table(); current != nil {
		m.lookAgain(m.untilPoll(current, alive))
	}
}

// hearEnough finds out whether enough nodes answer to issue a table. The nodes on the other side of
// a split are declared dead one by one, over a second and more. Until enough of them are, the
// smaller side does not look like a minority.
func (m *Machine) hearEnough(alive []ring.Member, then func(heard bool)) {
	want := m.cfg.MinMembers - 1 // others
	if want <= 0 || m.cfg.Broken.CountSilent {
		then(true)
		return
	}
	m.ask(Question{What: Signs, Nodes: m.cfg.otherNodes(alive), Enough: want}, func(a Answer) {
		heard := a.Signs >= want
		if !heard && !m.unheard {
			m.act(Unheard{})
		}
		m.unheard = !heard
		then(heard)
	})
}

// untilMet returns how long this member has to wait until it has met everybody. A member that
// founded its cluster, or has had a table for a while, does not wait.
func (m *Machine) untilMet() time.Duration {
	m.noteTable() // it may have come within this step
	if m.joined == 0 || m.cfg.Broken.GovernUnmet {
		return 0
	}
	return m.joined + meetWait - m.now
}

// untilDue returns how long the next table has to wait.
func (m *Machine) untilDue() time.Duration {
	settled := m.lastChange + settle
	if m.firstChange != 0 {
		settled = min(settled, m.firstChange+settleAtMost)
	}
	return max(settled-m.now, m.lastIssue+issueInterval-m.now)
}

// foreignTables returns our table and the foreign ones that are to be healed, and false while there
// is hope to read one that is still missing. Versions that only proxies hold are not worth waiting
// for: no data hangs on them.
func (m *Machine) foreignTables(alive []ring.Member, current *ring.Table) ([]*ring.Table, bool) {
	var tables []*ring.Table
	if current != nil {
		tables = append(tables, current)
	}
	for _, f := range m.sortedUnread() {
		if f.table != nil {
			tables = append(tables, f.table)
		}
	}
	for _, other := range m.cfg.otherNodes(alive) {
		f := m.unread[other.Version()]
		if f == nil || f.table != nil {
			continue
		}
		// Without any table of our own we would start the whole cluster anew: never give up then.
		if current == nil || f.tries < maxTries {
			return nil, false
		}
	}
	return tables, true
}

// awaits reports whether a split should not be healed yet, because a node of one of the tables may
// be about to come back.
func (m *Machine) awaits(tables []*ring.Table, alive []ring.Member) bool {
	if len(m.unread) == 0 || m.now-m.splitSince >= healWait {
		return false
	}
	present := make(map[string]bool, len(alive))
	for _, a := range alive {
		present[a.ID] = true // of any boot: an older one will not come back
	}
	return slices.ContainsFunc(tables, func(t *ring.Table) bool {
		return slices.ContainsFunc(t.Nodes, func(n ring.Member) bool { return !present[n.ID] })
	})
}

// expects reports whether the table names nodes that this member has never seen alive, and that may
// be about to come: it has the table from another member and gossip has not brought everybody yet.
// A plan without them would drop what they have.
func (m *Machine) expects(t *ring.Table, alive []ring.Member) bool {
	strange := t != nil && slices.ContainsFunc(t.Nodes, func(n ring.Member) bool {
		return !m.met[n.Name()] && !slices.ContainsFunc(alive, func(a ring.Member) bool { return a.ID == n.ID })
	})
	if !strange || m.cfg.Broken.BuryStrangers {
		m.strangersSince = 0
		return false
	}
	if m.strangersSince == 0 {
		m.strangersSince = m.now
	}
	return m.now-m.strangersSince < healWait
}

// mayFound reports whether this node may issue the first table of a cluster.
//
// Two nodes that start at the same time, and issue a first table before they meet, found two
// clusters. Healing makes them one again but drops what one of them stored. So a node that has join
// addresses waits until it has met another node (a proxy may know as little as this node), or until
// nobody has answered for the bootstrap wait. The other node may be as new, and a cluster that
// neither has met may live at another address. So each join address is asked once more, and the
// first table waits until all have answered or failed, but no longer than the bootstrap wait.
//
// A member that answers but refuses this node, because of another secret or another way to place
// keys, keeps this node waiting: a node that was started wrongly should never become ready rather
// than serve beside its cluster. A node that joins itself, through a name that stands for all
// members, has not met anybody.
func (m *Machine) mayFound(alive []ring.Member) bool {
	if !m.cfg.Searches {
		return true
	}
	if len(m.cfg.otherNodes(alive)) > 0 {
		if m.cfg.Broken.FoundAtOnce {
			return true
		}
		if !m.searching {
			m.searching = true
			m.act(Search{})
		}
		return m.Searched || m.now-m.started >= m.cfg.BootstrapWait
	}
	return m.now-max(m.Stranger, m.started) >= m.cfg.BootstrapWait
}
