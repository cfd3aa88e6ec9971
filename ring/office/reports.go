package office

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// What the coordinator does to learn which copies are in sync.
//
// While the table is not what the ring asks for, it polls all nodes, and each Plan takes what it
// learned a step further. When an owner has died, a copy that it does not hear of is lost: so it
// waits a little for those who may have one. In between, which is nearly always, it asks nobody.

const (
	pollInterval = 250 * time.Millisecond
	// heirsWait is how long the partitions of a dead owner wait for the reports of those who may
	// have copies of them: they may be about to adopt the present table.
	heirsWait  = time.Second
	heirsRetry = 50 * time.Millisecond
)

// gatherReports learns of copies under the present table. ready is false while more should be known
// before the next table is planned.
func (m *Machine) gatherReports(current *ring.Table, alive []ring.Member, then func(ready bool)) {
	if m.cfg.NoReports || current == nil {
		then(true)
		return
	}
	heirs := current.Heirs(alive)
	if len(heirs) == 0 {
		m.bereaved = 0
		if m.untilPoll(current, alive) > 0 {
			then(true)
			return
		}
		m.poll(current, alive, func() { then(true) })
		return
	}
	// What was reported before the death may not be so any more.
	if m.bereaved == 0 {
		m.bereaved = m.now
	}
	m.poll(current, alive, func() {
		missing := slices.ContainsFunc(heirs, func(heir ring.Member) bool {
			return !slices.ContainsFunc(m.reports, func(r *ring.Report) bool {
				return r.Node == heir.Name() && r.Version == current.Version()
			})
		})
		then(!missing || m.now-m.bereaved >= heirsWait)
	})
}

// untilPoll returns when the next poll is due; Idle if there is no need for one.
func (m *Machine) untilPoll(current *ring.Table, alive []ring.Member) time.Duration {
	if m.cfg.NoReports || current.Settled(alive, m.cfg.Copies) {
		return Idle
	}
	return m.lastPoll + pollInterval - m.now
}

// poll replaces the reports by those of the table's nodes that are alive, this one among them.
func (m *Machine) poll(current *ring.Table, alive []ring.Member, then func()) {
	var nodes []ring.Member
	for _, a := range alive {
		if current.NodeIndex(a.ID, a.Boot) >= 0 {
			nodes = append(nodes, a)
		}
	}
	m.ask(Question{What: Reports, Nodes: nodes}, func(a Answer) {
		m.reports, m.lastPoll = a.Reports, m.now
		then()
	})
}
