package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// The agent's mind, after ring/gossip's steer.go, tables.go and govern.go, with calls in the place of blocking ones.
// What it decides it has decided by ring.Plan and ring.Heal themselves.

const (
	settle           = 150 * time.Millisecond
	settleAtMost     = 600 * time.Millisecond
	issueInterval    = 200 * time.Millisecond
	handOverInterval = time.Second
	healWait         = 2 * time.Second
	maxTries         = 8
	retryInterval    = 200 * time.Millisecond
	refreshInterval  = 50 * time.Millisecond
	idle             = time.Second
	standstill       = time.Second
	fetchTimeout     = 700 * time.Millisecond
	pollInterval     = 250 * time.Millisecond
	bootstrapWait    = 5 * time.Second
	officeWait       = 300 * time.Millisecond
	heirsWait        = time.Second
	heirsRetry       = 50 * time.Millisecond
)

type steering struct {
	members                 []ring.Member
	firstChange, lastChange time.Duration // firstChange 0: none
	lastIssue, lastRefresh  time.Duration
	lastPoll                time.Duration
	bereaved                time.Duration // 0: no dead owner's partitions wait
	reports                 []*ring.Report
	started                 time.Duration
	inOffice                bool
	electedAt               time.Duration // since when this member takes itself for the coordinator; 0: it does not
	unread                  map[ring.Version]*foreignTable
	splitSince              time.Duration // 0: no split
	wantRefresh             bool
	busy, again             bool
	timer                   uint64
	standstills, noted      int // of the process, and as of the last step
	met                     map[string]bool
	strangers               time.Duration // since when the table names nodes never met; 0: it does not
	searching, searched     bool          // join addresses were asked; all have answered or failed
	searchedBefore          bool          // the present step
	few                     bool          // there are too few nodes for the table
}

type foreignTable struct {
	table *ring.Table
	tries int
	next  time.Duration
}

func newSteering() steering {
	return steering{met: make(map[string]bool), unread: make(map[ring.Version]*foreignTable), lastPoll: -time.Hour, lastIssue: -time.Hour, lastRefresh: -time.Hour}
}

// wake has the agent look around.
func (a *agent) wake() { a.sleep(100 * time.Microsecond) }

// sleep has the agent look around after d, unless it is woken before.
func (a *agent) sleep(d time.Duration) {
	if a.busy {
		a.again = true
		return
	}
	a.timer++
	turn := a.timer
	a.w.after(a.p, d, func() {
		if a.timer == turn && !a.busy {
			a.step()
		}
	})
}

func (a *agent) step() {
	s := &a.steering
	s.busy = true
	if s.noted != s.standstills && !a.w.officeAsleep {
		s.resign()
	}
	s.noted = s.standstills
	s.searchedBefore = s.searched
	members := a.alive()
	a.noteMembers(members)
	a.noteMinority(members)
	a.meet(members)
	wait := idle
	then := func(d time.Duration, next func()) { wait = min(wait, d); next() }
	a.refresh(members, func(d time.Duration) {
		then(d, func() {
			a.catchUp(members, func(d time.Duration) {
				then(d, func() {
					a.holdOffice(members, func(d time.Duration) {
						then(d, func() {
							s.busy = false
							if s.again {
								s.again = false
								wait = 100 * time.Microsecond
							}
							a.sleep(wait)
						})
					})
				})
			})
		})
	})
}

func (a *agent) noteMembers(members []ring.Member) {
	same := slices.EqualFunc(a.members, members, func(x, y ring.Member) bool {
		x.Epoch, x.Issuer, y.Epoch, y.Issuer = 0, "", 0, ""
		return x == y
	})
	if same {
		return
	}
	a.lastChange = a.w.now
	if a.firstChange == 0 {
		a.firstChange = a.lastChange
	}
	a.members = members
	if a.p.proxy != nil {
		a.p.proxy.setAlive(members)
	}
}

// refreshSoon says that somebody seems to have a newer table.
func (a *agent) refreshSoon() {
	a.wantRefresh = true
	a.wake()
}

func (a *agent) refresh(members []ring.Member, done func(time.Duration)) {
	if !a.wantRefresh {
		done(idle)
		return
	}
	if wait := a.lastRefresh + refreshInterval - a.w.now; wait > 0 {
		done(wait)
		return
	}
	a.wantRefresh = false
	nodes := a.shuffled(members)
	nodes = nodes[:min(2, len(nodes))]
	if c, ok := ring.Coordinator(members); ok && c.Name() != a.p.name {
		nodes = append(nodes, c)
	}
	a.fetchEach(nodes, fetchTimeout, func(tables []*ring.Table) {
		a.adoptNewest(tables)
		a.lastRefresh = a.w.now
		done(idle)
	})
}

func (a *agent) shuffled(members []ring.Member) []ring.Member {
	nodes := a.otherNodes(members)
	a.w.rng.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

func (a *agent) catchUp(members []ring.Member, done func(time.Duration)) {
	a.updateUnread(members)
	var holders []ring.Member
	asked := make(map[ring.Version]bool)
	for _, m := range a.shuffled(members) {
		f := a.unread[m.Version()]
		if f == nil || f.table != nil || asked[m.Version()] || a.w.now < f.next {
			continue
		}
		asked[m.Version()] = true
		f.tries++
		f.next = a.w.now + retryInterval
		holders = append(holders, m)
	}
	finish := func(tables []*ring.Table) {
		a.adoptNewest(tables)
		for _, v := range a.unreadVersions() {
			if t := a.unread[v].table; t != nil {
				a.adopt(t)
			}
		}
		a.updateUnread(members)
		for _, f := range a.unread {
			if f.table == nil {
				done(retryInterval)
				return
			}
		}
		done(idle)
	}
	if len(holders) == 0 {
		finish(nil)
		return
	}
	a.fetchEach(holders, fetchTimeout, finish)
}

func (a *agent) unreadVersions() []ring.Version {
	versions := make([]ring.Version, 0, len(a.unread))
	for v := range a.unread {
		versions = append(versions, v)
	}
	slices.SortFunc(versions, ring.CompareVersions)
	return versions
}

func (a *agent) updateUnread(members []ring.Member) {
	unread := make(map[ring.Version]*foreignTable)
	for _, m := range members {
		v := m.Version()
		if v.IsZero() || a.table != nil && (v == a.table.Version() || a.table.Descends(v)) {
			continue
		}
		if unread[v] = a.unread[v]; unread[v] == nil {
			unread[v] = &foreignTable{}
		}
	}
	a.unread = unread
	if len(unread) == 0 {
		a.splitSince = 0
	} else if a.splitSince == 0 {
		a.splitSince = a.w.now
	}
}

func (a *agent) adoptNewest(tables []*ring.Table) {
	for _, t := range tables {
		if a.adopt(t) {
			continue
		}
		f := a.unread[t.Version()]
		if f == nil || f.table != nil {
			continue
		}
		f.table = t
		if a.table != nil && t.Outlives(a.table) && a.p.node != nil {
			a.p.node.fence("the other side of a split will win")
		}
	}
}

// adopt makes t the table of this member, if it is newer along its lineage.
func (a *agent) adopt(t *ring.Table) bool {
	if t == nil || !a.w.newer(t, a.table) {
		return false
	}
	a.table = t
	a.member.Epoch, a.member.Issuer = t.Epoch, t.Issuer
	a.announce()
	a.wake()
	switch {
	case a.p.node != nil:
		a.w.after(a.p, a.w.between(0, time.Millisecond), func() { a.p.node.setTable(t, func() {}) })
	case a.p.proxy != nil:
		a.w.after(a.p, a.w.between(0, time.Millisecond), func() { a.p.proxy.install(t) })
	}
	return true
}

func (w *world) newer(t, than *ring.Table) bool {
	if w.adoptForeign {
		return than == nil || t.Epoch > than.Epoch
	}
	return t.Newer(than)
}

// fetchEach reads the tables of nodes, all at once and each address once, from the newest down.
func (a *agent) fetchEach(nodes []ring.Member, timeout time.Duration, done func([]*ring.Table)) {
	each(a, nodes, timeout, func(at *proc) *ring.Table {
		if at.node == nil {
			return nil
		}
		return at.node.view.Table
	}, func(tables []*ring.Table) {
		slices.SortFunc(tables, func(x, y *ring.Table) int { return ring.CompareVersions(y.Version(), x.Version()) })
		done(tables)
	})
}

// each asks nodes, all at once and each address once, and collects the answers that are not nil.
func each[T any](a *agent, nodes []ring.Member, timeout time.Duration, ask func(*proc) *T, done func([]*T)) {
	asked := make(map[string]bool)
	var addrs []string
	for _, m := range nodes {
		if !asked[m.Addr] {
			asked[m.Addr] = true
			addrs = append(addrs, m.Addr)
		}
	}
	if len(addrs) == 0 {
		done(nil)
		return
	}
	var answers []*T
	missing := len(addrs)
	for _, addr := range addrs {
		a.w.call(a.p, addr, timeout, func(at *proc, reply func(any)) { reply(ask(at)) }, func(answer any) {
			if t, ok := answer.(*T); ok && t != nil {
				answers = append(answers, t)
			}
			if missing--; missing == 0 {
				done(answers)
			}
		})
	}
}
