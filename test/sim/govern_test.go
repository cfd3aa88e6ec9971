package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// What the coordinator does.

func (a *agent) isCoordinator(members []ring.Member) bool {
	c, ok := ring.Coordinator(members)
	return ok && c.Name() == a.p.name
}

func (a *agent) holdOffice(members []ring.Member, done func(time.Duration)) {
	if !a.isCoordinator(members) {
		a.resign()
		a.firstChange = 0
		done(idle)
		return
	}
	// The others have to hear that this member is back, and stop issuing, before it asks them for their tables.
	if a.electedAt == 0 {
		a.electedAt = a.w.now
	}
	if wait := a.electedAt + officeWait - a.w.now; wait > 0 && !a.w.hastyOffice {
		done(wait)
		return
	}
	if a.inOffice {
		a.govern(members, done)
		return
	}
	a.fetchEach(a.otherNodes(members), fetchTimeout, func(tables []*ring.Table) {
		a.adoptNewest(tables)
		a.inOffice = true
		now := a.alive()
		if !a.isCoordinator(now) && !a.w.hastyOffice {
			a.resign()
			done(0)
			return
		}
		a.updateUnread(now)
		a.govern(now, done)
	})
}

// resign has this member gather anew before it acts as the coordinator again.
func (s *steering) resign() { s.inOffice, s.electedAt = false, 0 }

// mayFound tells whether this member may issue a first table: if it has met another node, and then asked at every join
// address whether there is a cluster; or the wait for that is over.
func (a *agent) mayFound(members []ring.Member) bool {
	switch {
	case a.w.now-a.started >= bootstrapWait:
		return true
	case len(a.otherNodes(members)) == 0:
		return false
	case !a.searching && !a.w.foundAtOnce:
		a.searching = true
		a.search()
	}
	return a.searchedBefore || a.w.foundAtOnce
}

func (a *agent) govern(members []ring.Member, done func(time.Duration)) {
	if a.table == nil && !a.mayFound(members) {
		a.inOffice = false // whom it meets meanwhile may have a table that gossip does not know of yet
		done(retryInterval)
		return
	}
	if a.minority(members) {
		done(idle)
		return
	}
	if wait := a.untilDue(); wait > 0 {
		done(wait)
		return
	}
	tables, ready := a.foreignTables(members)
	if !ready || a.awaits(tables, members) || a.expects(members) {
		done(retryInterval)
		return
	}
	if len(a.unread) > 0 {
		next := ring.Heal(tables, members, a.member, a.w.copies, a.w.rng.Uint64)
		a.issue(next, members, len(tables) > 1, done)
		return
	}
	a.gatherReports(members, func(ready bool) {
		if !ready {
			done(heirsRetry)
			return
		}
		next := a.w.plan(a.table, members, a.reports, a.member)
		if next != nil && a.w.now-a.lastIssue < handOverInterval && ring.Unripe(a.table, next) {
			done(max(a.untilPoll(members), 0))
			return
		}
		a.issue(next, members, false, done)
	})
}

// gatherReports asks the nodes which copies are in sync, while anything depends on it, and tells whether more should
// be known before the next table is planned.
func (a *agent) gatherReports(members []ring.Member, done func(ready bool)) {
	if a.table == nil {
		done(true)
		return
	}
	t := a.table
	heirs := t.Heirs(members)
	if len(heirs) == 0 {
		a.bereaved = 0
		if a.untilPoll(members) > 0 {
			done(true)
			return
		}
		a.poll(t, members, func() { done(true) })
		return
	}
	if a.bereaved == 0 {
		a.bereaved = a.w.now
	}
	a.poll(t, members, func() {
		missing := slices.ContainsFunc(heirs, func(m ring.Member) bool {
			return !slices.ContainsFunc(a.reports, func(r *ring.Report) bool {
				return r.Node == m.Name() && r.Version == t.Version()
			})
		})
		done(!missing || a.w.now-a.bereaved >= heirsWait)
	})
}

func (a *agent) untilPoll(members []ring.Member) time.Duration {
	if a.table == nil || a.table.Settled(members, a.w.copies) {
		return idle
	}
	return a.lastPoll + pollInterval - a.w.now
}

// poll replaces the reports by those of the table's nodes that are alive.
func (a *agent) poll(t *ring.Table, members []ring.Member, done func()) {
	members = slices.DeleteFunc(slices.Clone(members), func(m ring.Member) bool {
		return t.NodeIndex(m.ID, m.Boot) < 0
	})
	each(a, members, fetchTimeout, func(at *proc) *ring.Report {
		if at.node == nil {
			return nil
		}
		return at.node.report()
	}, func(reports []*ring.Report) {
		a.reports, a.lastPoll = reports, a.w.now
		done()
	})
}

// meet notes who was alive here, as far as the present table is about them.
func (a *agent) meet(members []ring.Member) {
	met := make(map[string]bool)
	for _, m := range members {
		met[m.Name()] = true
	}
	if a.table != nil {
		for _, m := range a.table.Nodes {
			met[m.Name()] = met[m.Name()] || a.met[m.Name()]
		}
	}
	a.met = met
}

// expects tells whether the table names nodes that this member has never seen alive, and that may be about to come.
func (a *agent) expects(members []ring.Member) bool {
	strange := a.table != nil && slices.ContainsFunc(a.table.Nodes, func(m ring.Member) bool {
		return !a.met[m.Name()] && !slices.ContainsFunc(members, func(o ring.Member) bool { return o.ID == m.ID })
	})
	switch {
	case !strange || a.w.buryStrangers:
		a.strangers = 0
		return false
	case a.strangers == 0:
		a.strangers = a.w.now
	}
	return a.w.now-a.strangers < healWait
}

// mayIssue tells whether this member is still the coordinator that it was when the step began.
func (a *agent) mayIssue() bool {
	return (a.standstills == a.noted || a.w.officeAsleep) && (a.isCoordinator(a.alive()) || a.w.hastyOffice)
}

// issue adopts the next table, if there is one, and tells when to look again.
func (a *agent) issue(next *ring.Table, members []ring.Member, heals bool, done func(time.Duration)) {
	if next == nil {
		a.firstChange = 0
		done(max(a.untilPoll(members), 0))
		return
	}
	a.hearsEnough(members, func(heard bool) {
		switch {
		case !heard:
			done(retryInterval)
			return
		case !a.mayIssue():
			a.resign()
			done(retryInterval)
			return
		}
		a.firstChange = 0
		if a.adopt(next) {
			a.lastIssue = a.w.now
			a.w.issued[next.Version()] = next
			a.w.noteIssued(a.p, next, heals)
		}
		done(max(a.untilPoll(members), 0))
	})
}

func (a *agent) untilDue() time.Duration {
	settled := a.lastChange + settle
	if a.firstChange != 0 {
		settled = min(settled, a.firstChange+settleAtMost)
	}
	return max(settled-a.w.now, a.lastIssue+issueInterval-a.w.now)
}

func (a *agent) foreignTables(members []ring.Member) ([]*ring.Table, bool) {
	var tables []*ring.Table
	if a.table != nil {
		tables = append(tables, a.table)
	}
	for _, v := range a.unreadVersions() {
		if t := a.unread[v].table; t != nil {
			tables = append(tables, t)
		}
	}
	for _, m := range a.otherNodes(members) {
		f := a.unread[m.Version()]
		if f != nil && f.table == nil && (a.table == nil || f.tries < maxTries) {
			return nil, false
		}
	}
	return tables, true
}

func (a *agent) awaits(tables []*ring.Table, members []ring.Member) bool {
	if len(a.unread) == 0 || a.w.now-a.splitSince >= healWait {
		return false
	}
	for _, t := range tables {
		for _, n := range t.Nodes {
			if !slices.ContainsFunc(members, func(m ring.Member) bool { return m.ID == n.ID }) {
				return true
			}
		}
	}
	return false
}

// confirm hears the current table from the other nodes: see gossip's Confirm. done gets whether that worked.
func (a *agent) confirm(begun time.Duration, done func(bool)) {
	nodes := a.otherNodes(a.alive())
	if a.table != nil {
		nodes = append(nodes, a.otherNodes(a.table.Nodes)...)
	}
	again := func() {
		alone := len(a.otherNodes(a.alive())) == 0 && a.w.atLeast == 0
		switch {
		case alone && a.w.now-begun >= suspicionTime:
			done(true)
		case a.w.now-begun > 5*time.Second:
			done(false)
		default:
			a.w.after(a.p, 100*time.Millisecond, func() { a.confirm(begun, done) })
		}
	}
	a.fetchEach(nodes, suspicionTime, func(tables []*ring.Table) {
		few := a.minority(a.alive()) || len(tables)+1 < a.w.atLeast && !a.w.countSilent
		if len(tables) == 0 || few {
			again()
			return
		}
		for _, t := range tables {
			a.adopt(t)
		}
		for _, t := range tables {
			if a.table.Version() != t.Version() && !a.table.Descends(t.Version()) {
				a.wake()
				again()
				return
			}
		}
		done(true)
	})
}
