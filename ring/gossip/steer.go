package gossip

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

const (
	// retryInterval is how soon a version that could not be fetched is tried again.
	retryInterval = 200 * time.Millisecond
	// refreshInterval bounds what a storm of MOVED replies can cost.
	refreshInterval = 50 * time.Millisecond
	// idle is how often the steer loop looks around without being woken.
	idle = time.Second
	// officeSettle is how long a member must have been the coordinator in its own eyes before it acts as one: who comes back
	// from a standstill, or hears of a death, is to be seen and told by the others first.
	officeSettle = 300 * time.Millisecond
)

// steering is what the steer loop remembers from one step to the next.
type steering struct {
	members []ring.Member // as last reported to OnMembers
	// firstChange is when the members changed for the first time since the last table
	// was planned, zero if they have not; lastChange is the last time.
	firstChange, lastChange time.Time
	lastIssue               time.Time
	lastRefresh             time.Time
	lastTold                time.Time
	toldSeq                 uint64          // of our announcement that was last told
	standstills             uint64          // of this process, as of the last step
	electedAt               time.Time       // since when this member is the coordinator, zero if it is not
	inOffice                bool            // this member is coordinator and has gathered
	ableSince               time.Time       // since when every member speaks more than the cluster's level, zero if not
	met                     map[string]bool // names of members that were alive here
	strangersSince          time.Time       // since when the table names nodes that are not among those
	minority                bool            // there were too few nodes for the table
	unheard                 bool            // too few of them answered, the last time
	searching               bool            // the search before the first table has begun,
	searched                bool            // and had ended before this step looked who is alive
	// unread are the versions announced by others that do not belong to our lineage as
	// far as we know, and their tables once fetched.
	unread map[ring.Version]*foreign
	// reports are the answers to the last poll, at lastPoll. bereaved is since when a
	// dead owner's partitions have waited for reports, zero if none do.
	reports            []*ring.Report
	lastPoll, bereaved time.Time
	// splitSince is when unread became not empty, zero while it is empty.
	splitSince time.Time
}

type foreign struct {
	table *ring.Table // nil: not fetched yet
	tries int
	next  time.Time // of the next try
}

func newSteering() steering {
	return steering{unread: make(map[ring.Version]*foreign)}
}

// steerLoop is the agent's mind: it looks at members and tables whenever something
// has changed, and brings this member, or as coordinator the cluster, up to date.
func (a *Agent) steerLoop() {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-a.wake:
		case <-timer.C:
		}
		timer.Reset(a.step())
	}
}

// step returns how long the loop may sleep if nothing wakes it.
func (a *Agent) step() time.Duration {
	s := &a.steering
	if n := a.pulse.standstills(); n != s.standstills {
		s.standstills = n
		s.resign()
	}
	s.searched = a.searched.Load()
	alive := a.alive()
	a.noteMembers(alive)
	a.noteMinority(alive)
	a.meet(alive)
	wait := min(a.refresh(alive), a.catchUp(alive), a.holdOffice(alive))
	return min(wait, a.tell(alive))
}

// holdOffice does what is the coordinator's to do, if this member is it.
func (a *Agent) holdOffice(alive []ring.Member) time.Duration {
	s := &a.steering
	if !a.elected(alive) {
		s.resign()
		s.firstChange = time.Time{} // somebody else plans it
		a.wantPause.Store(nil)      // and has to be asked
		a.dropProposal()
		return idle
	}
	if s.electedAt.IsZero() {
		s.electedAt = time.Now()
	}
	if wait := officeSettle - time.Since(s.electedAt); wait > 0 {
		return wait
	}
	if !s.inOffice {
		// The predecessor may have issued a table that only some have heard of.
		a.adoptNewest(a.fetchEach(a.ctx, a.otherNodes(alive), fetchTimeout))
		s.inOffice = true
		alive = a.alive() // time has passed
		if !a.elected(alive) {
			s.resign()
			return 0
		}
		a.updateUnread(alive)
	}
	return a.govern(alive)
}

// elected tells whether this member is the coordinator of those that are alive.
func (a *Agent) elected(alive []ring.Member) bool {
	c, ok := ring.Coordinator(alive)
	return ok && c.Name() == a.name
}

// resign makes this member gather anew before it acts as the coordinator again.
func (s *steering) resign() { s.inOffice, s.electedAt = false, time.Time{} }

// mayIssue tells whether this member is still the coordinator that it was when the step began. Polls and plans take time.
func (a *Agent) mayIssue() bool {
	return a.pulse.standstills() == a.steering.standstills && a.elected(a.alive())
}

// meet notes who was alive here, as far as the present table is about them.
func (a *Agent) meet(alive []ring.Member) {
	s := &a.steering
	met := make(map[string]bool, len(alive))
	for _, m := range alive {
		met[m.Name()] = true
	}
	if t := a.Table(); t != nil {
		for _, m := range t.Nodes {
			met[m.Name()] = met[m.Name()] || s.met[m.Name()]
		}
	}
	s.met = met
}

// expects tells whether the table names nodes that this member has never seen alive, and that may be about to come: it has the
// table from another member and gossip has not brought everybody yet. A plan without them would drop what they have.
func (s *steering) expects(t *ring.Table, alive []ring.Member, now time.Time) bool {
	strange := t != nil && slices.ContainsFunc(t.Nodes, func(m ring.Member) bool {
		return !s.met[m.Name()] && !slices.ContainsFunc(alive, func(a ring.Member) bool { return a.ID == m.ID })
	})
	if !strange {
		s.strangersSince = time.Time{}
		return false
	}
	if s.strangersSince.IsZero() {
		s.strangersSince = now
	}
	return now.Sub(s.strangersSince) < healWait
}

// noteMembers tells the owner about changed members.
func (a *Agent) noteMembers(alive []ring.Member) {
	s := &a.steering
	if sameMembers(s.members, alive) {
		return
	}
	s.lastChange = time.Now()
	if s.firstChange.IsZero() {
		s.firstChange = s.lastChange
	}
	if a.includes(s.members) && !a.includes(alive) {
		a.cfg.Log.Warn("a newer process has taken over this member's id", "id", a.cfg.Self.ID)
	}
	s.members = alive
	a.notify.push(event{members: alive})
}

// noteMinority tells the owner when there are too few nodes for a table that is there.
func (a *Agent) noteMinority(alive []ring.Member) {
	s := &a.steering
	minority := a.Table() != nil && a.minority(alive)
	if minority && !s.minority {
		a.notify.push(event{minority: true})
	}
	s.minority = minority
}

// refresh looks for a newer table if somebody asked to, and returns when to look
// again.
func (a *Agent) refresh(alive []ring.Member) time.Duration {
	s := &a.steering
	if !a.wantRefresh.Load() {
		return idle
	}
	if wait := refreshInterval - time.Since(s.lastRefresh); wait > 0 {
		return wait
	}
	a.wantRefresh.Store(false)
	a.adoptNewest(a.fetchEach(a.ctx, a.someNodes(alive), fetchTimeout))
	s.lastRefresh = time.Now()
	return idle
}

// adoptNewest adopts what can be adopted of tables, and keeps foreign ones.
func (a *Agent) adoptNewest(tables []*ring.Table) {
	for _, t := range tables {
		if a.Adopt(t) {
			continue
		}
		f := a.steering.unread[t.Version()]
		if f == nil || f.table != nil {
			continue
		}
		f.table = t
		if current := a.Table(); current != nil && t.Outlives(current) {
			a.notify.push(event{superseded: true})
		}
	}
}

// catchUp fetches the tables that other members announce and that our lineage does
// not know, and returns when to try again those that it could not get.
func (a *Agent) catchUp(alive []ring.Member) time.Duration {
	a.updateUnread(alive)
	now := time.Now()
	var holders []ring.Member
	asked := make(map[ring.Version]bool)
	for _, m := range a.shuffledNodes(alive) {
		f := a.steering.unread[m.Version()]
		if f == nil || f.table != nil || asked[m.Version()] || now.Before(f.next) {
			continue
		}
		asked[m.Version()] = true
		f.tries++
		f.next = now.Add(retryInterval)
		holders = append(holders, m)
	}
	if len(holders) > 0 {
		a.adoptNewest(a.fetchEach(a.ctx, holders, fetchTimeout))
	}
	for _, f := range a.steering.unread {
		// Foreign when it was fetched, perhaps not any longer.
		if f.table != nil {
			a.Adopt(f.table)
		}
	}
	a.updateUnread(alive)
	for _, f := range a.steering.unread {
		if f.table == nil {
			return retryInterval
		}
	}
	return idle
}

// updateUnread notes the versions that alive members announce and forgets those
// that nobody holds any longer or that our lineage has come to know.
func (a *Agent) updateUnread(alive []ring.Member) {
	unread := make(map[ring.Version]*foreign)
	current := a.Table()
	for _, m := range alive {
		v := m.Version()
		if v.IsZero() || current != nil && (v == current.Version() || current.Descends(v)) {
			continue
		}
		if unread[v] = a.steering.unread[v]; unread[v] == nil {
			unread[v] = &foreign{}
		}
	}
	s := &a.steering
	s.unread = unread
	if len(unread) == 0 {
		s.splitSince = time.Time{}
	} else if s.splitSince.IsZero() {
		s.splitSince = time.Now()
	}
}
