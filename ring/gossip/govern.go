package gossip

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// What the coordinator does, all on the steer loop.

const (
	// A change is planned when nothing has changed for settle, so that nodes that start
	// together come into one table; but no later than settleAtMost after the first.
	settle       = 150 * time.Millisecond
	settleAtMost = 600 * time.Millisecond
	// issueInterval allows five epochs a second.
	issueInterval = 200 * time.Millisecond
	// handOverInterval is how often partitions change owners while more of them are on their way.
	handOverInterval = time.Second
	// healWait is how long a heal waits for nodes of the sides' tables that are not
	// alive yet: after a split each of them comes back only when it has refuted its
	// death, and a table without it would drop what it stores.
	healWait = 2 * time.Second
	// maxTries is how often the coordinator tries to fetch a foreign table, about 5 s,
	// before it heals the split without looking at it.
	maxTries = 8
)

// govern issues the next table if one is due, and returns when to look again. Only
// the coordinator calls it.
func (a *Agent) govern(alive []ring.Member) time.Duration {
	s := &a.steering
	now := time.Now()
	current := a.Table()
	if current == nil && !a.mayFound(alive, now) {
		s.inOffice = false // whom it meets meanwhile may have a table that gossip does not know of yet
		return retryInterval
	}
	if a.minority(alive) {
		return idle // to be woken when there are more
	}
	if wait := s.untilDue(now); wait > 0 {
		return wait
	}
	tables, ready := a.foreignTables(alive, current)
	if !ready || s.awaits(tables, alive, now) || s.expects(current, alive, now) {
		return retryInterval
	}
	next, ready := a.plan(tables, current, alive)
	if !ready {
		return heirsRetry
	}
	if next != nil && now.Sub(s.lastIssue) < handOverInterval && ring.Unripe(current, next) {
		return max(a.untilPoll(current, alive), 0)
	}
	if next != nil && !a.hearsEnough(alive) {
		return retryInterval
	}
	if next != nil && !a.mayIssue() {
		s.resign()
		return retryInterval
	}
	s.firstChange = time.Time{}
	// Not adopted if a TAKE brought a newer table this very moment: plan again.
	if next != nil && a.adopt(next) {
		a.announceIssued(next)
		current = next
	}
	if current == nil {
		return idle
	}
	return max(a.untilPoll(current, alive), 0)
}

// plan returns the next table, nil if there is none, and false if it is too early to
// tell.
func (a *Agent) plan(tables []*ring.Table, current *ring.Table, alive []ring.Member) (*ring.Table, bool) {
	self := a.cfg.Self
	if len(a.steering.unread) > 0 {
		return ring.Heal(tables, alive, self, a.cfg.Copies, newSeed), true
	}
	if next := a.pauseWanted(current); next != nil {
		return next, true
	}
	if next := a.levelWanted(current, alive); next != nil {
		return next, true
	}
	if next := a.settingsWanted(current); next != nil {
		return next, true
	}
	reports, ready := a.gatherReports(current, alive)
	if !ready {
		return nil, false
	}
	return ring.Plan(current, alive, reports, self, a.cfg.Copies, newSeed), true
}

// pauseWanted returns the table that an operator has asked for, nil if there is none to
// issue. The order stands until the table is as it says: this one may not come to be issued.
func (a *Agent) pauseWanted(current *ring.Table) *ring.Table {
	paused := a.wantPause.Load()
	if paused == nil || current == nil {
		return nil
	}
	next := ring.Pause(current, a.cfg.Self, *paused)
	if next == nil {
		a.wantPause.CompareAndSwap(paused, nil)
	}
	return next
}

// minority reports whether too few nodes are alive for this member to trust what it
// sees: the others may be many, and on the other side of a split.
func (a *Agent) minority(alive []ring.Member) bool {
	nodes := 0
	for _, m := range alive {
		if m.Role == ring.RoleNode {
			nodes++
		}
	}
	return nodes < a.cfg.MinMembers
}

// hearsEnough reports whether as many nodes answer as it takes to issue a table. The
// other side of a split is declared dead one by one, over a second and more: until the
// last of those that it takes is, the smaller side looks like no minority.
func (a *Agent) hearsEnough(alive []ring.Member) bool {
	want := int64(a.cfg.MinMembers - 1) // others
	if want <= 0 {
		return true
	}
	ctx, enough := context.WithTimeout(a.ctx, fetchTimeout)
	defer enough()
	var answers atomic.Int64
	var fetches sync.WaitGroup
	for _, m := range a.otherNodes(alive) {
		fetches.Go(func() {
			if _, err := a.cfg.Fetch(ctx, m.Addr); err == nil && answers.Add(1) == want {
				enough()
			}
		})
	}
	fetches.Wait()
	heard := answers.Load() >= want
	if !heard && !a.steering.unheard {
		a.cfg.Log.Warn("too few nodes answer to issue a table", "want", a.cfg.MinMembers)
	}
	a.steering.unheard = !heard
	return heard
}

// untilDue returns how long the next table has to wait.
func (s *steering) untilDue(now time.Time) time.Duration {
	settled := s.lastChange.Add(settle)
	if atMost := s.firstChange.Add(settleAtMost); !s.firstChange.IsZero() && atMost.Before(settled) {
		settled = atMost
	}
	return max(settled.Sub(now), s.lastIssue.Add(issueInterval).Sub(now))
}

// foreignTables returns our table and the foreign ones that are to be healed, and
// false while there is hope to read one that is still missing. Versions that only
// proxies hold are not worth waiting for: no data hangs on them.
func (a *Agent) foreignTables(alive []ring.Member, current *ring.Table) ([]*ring.Table, bool) {
	var tables []*ring.Table
	if current != nil {
		tables = append(tables, current)
	}
	for _, f := range a.steering.unread {
		if f.table != nil {
			tables = append(tables, f.table)
		}
	}
	for _, m := range a.otherNodes(alive) {
		f := a.steering.unread[m.Version()]
		if f == nil || f.table != nil {
			continue
		}
		// Without any table of our own we would start the whole cluster anew: never
		// give up then.
		if current == nil || f.tries < maxTries {
			return nil, false
		}
	}
	return tables, true
}

// awaits reports whether a split should not be healed yet because a node of one of
// its tables may be about to come back.
func (s *steering) awaits(tables []*ring.Table, alive []ring.Member, now time.Time) bool {
	if len(s.unread) == 0 || now.Sub(s.splitSince) >= healWait {
		return false
	}
	present := make(map[string]bool, len(alive))
	for _, m := range alive {
		present[m.ID] = true // of any boot: an older one will not come back
	}
	for _, t := range tables {
		for _, m := range t.Nodes {
			if !present[m.ID] {
				return true
			}
		}
	}
	return false
}

func (a *Agent) announceIssued(t *ring.Table) {
	a.steering.lastIssue = time.Now()
	a.issued.Add(1)
	healed := len(a.steering.unread) > 0
	if healed {
		a.healed.Add(1)
	}
	poke(a.metaNow)
	a.cfg.Log.Info("issued table", "epoch", t.Epoch, "nodes", len(t.Nodes), "level", t.Level, "healed", healed)
}

// newSeed returns the hash seed of a new cluster. It is a secret of the cluster: who
// knows it can make keys collide.
func newSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
