package gossip

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// What the coordinator does to learn which copies are in sync, on the steer loop.
//
// While the table is not what the ring asks for, it polls all nodes, and each Plan
// takes what it learned a step further. When an owner has died, a copy that it does
// not hear of is lost: so it waits a little for those who may have one. In between,
// which is nearly always, it asks nobody.

const (
	pollInterval = 250 * time.Millisecond
	// heirsWait is how long the partitions of a dead owner wait for the reports of those
	// who may have copies of them: they may be about to adopt the present table.
	heirsWait  = time.Second
	heirsRetry = 50 * time.Millisecond
)

// gatherReports returns what is known of copies under the present table, and false
// while more should be known before the next table is planned.
func (a *Agent) gatherReports(current *ring.Table, alive []ring.Member) ([]*ring.Report, bool) {
	s := &a.steering
	if a.cfg.FetchReport == nil || current == nil {
		return nil, true
	}
	heirs := current.Heirs(alive)
	if len(heirs) == 0 {
		s.bereaved = time.Time{}
		if a.untilPoll(current, alive) <= 0 {
			a.poll(current.Nodes, alive)
		}
		return s.reports, true
	}
	// What was reported before the death may not be so any more.
	if s.bereaved.IsZero() {
		s.bereaved = time.Now()
	}
	a.poll(current.Nodes, alive)
	missing := slices.ContainsFunc(heirs, func(m ring.Member) bool {
		return !slices.ContainsFunc(s.reports, func(r *ring.Report) bool {
			return r.Node == m.Name() && r.Version == current.Version()
		})
	})
	return s.reports, !missing || time.Since(s.bereaved) >= heirsWait
}

// untilPoll returns when the next poll is due; idle if there is no need for one.
func (a *Agent) untilPoll(current *ring.Table, alive []ring.Member) time.Duration {
	if a.cfg.FetchReport == nil || current.Settled(alive, a.cfg.Copies) {
		return idle
	}
	return pollInterval - time.Since(a.steering.lastPoll)
}

// poll replaces the reports by those of the nodes that are alive, all asked at once.
func (a *Agent) poll(nodes, alive []ring.Member) {
	ctx, cancel := context.WithTimeout(a.ctx, fetchTimeout)
	defer cancel()
	var mu sync.Mutex
	var reports []*ring.Report
	var fetches sync.WaitGroup
	for _, m := range alive {
		inTable := slices.ContainsFunc(nodes, func(n ring.Member) bool { return n.Name() == m.Name() })
		if !inTable {
			continue
		}
		fetches.Go(func() {
			r, err := a.cfg.FetchReport(ctx, m.Addr)
			if err != nil || r == nil {
				a.cfg.Log.Debug("cannot fetch report", "addr", m.Addr, "error", err)
				return
			}
			r.Node = m.Name()
			mu.Lock()
			reports = append(reports, r)
			mu.Unlock()
		})
	}
	fetches.Wait()
	a.steering.reports, a.steering.lastPoll = reports, time.Now()
}
