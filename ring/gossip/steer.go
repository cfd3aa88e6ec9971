package gossip

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/beat"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/ring/office"
)

// An office.Machine decides for the agent. The steer loop gives it events, asks its questions, and
// carries out its decisions.

// steering belongs to the steer loop.
type steering struct {
	mind    *office.Machine
	tellAt  time.Time // when our announcement is told again
	toldSeq uint64    // of our announcement that was last told
}

// officeConfig returns what the decisions depend on.
func (a *Agent) officeConfig() office.Config {
	return office.Config{
		Self: a.cfg.Self, Copies: a.cfg.Copies, MinMembers: a.cfg.MinMembers,
		Searches: len(a.cfg.Join) > 0, BootstrapWait: a.cfg.BootstrapWait, LevelSettle: a.cfg.LevelSettle,
		NoReports: a.cfg.FetchReport == nil, Seed: newSeed, Shuffle: mathrand.Shuffle,
	}
}

// clock returns a time as the machine counts it: above 0, and monotonic.
func (a *Agent) clock(t time.Time) time.Duration { return t.Sub(a.started) + time.Second }

// host is the part of the Agent that its machine sees.
type host struct{ a *Agent }

func (h host) Alive() []ring.Member     { return h.a.alive() }
func (h host) Table() *ring.Table       { return h.a.Table() }
func (h host) Proposed() *ring.Settings { return h.a.settings.proposed.Load() }
func (h host) Standstills() uint64      { return h.a.pulse.standstills() }

func (h host) Adopt(t *ring.Table, named *ring.Settings) bool {
	adopted := h.a.adopt(t, named)
	if adopted {
		poke(h.a.metaSoon)
	}
	return adopted
}

// steerLoop looks at members and tables whenever something has changed, and brings this member, or
// as coordinator the cluster, up to date.
func (a *Agent) steerLoop() {
	timer := time.NewTimer(office.Idle)
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
	mind := a.steering.mind
	if a.wantRefresh.Swap(false) {
		mind.Refresh()
	}
	q := mind.Begin(a.clock(time.Now()), a.event())
	a.obey(mind.Actions())
	for q != nil && a.ctx.Err() == nil {
		q = mind.Answered(a.clock(time.Now()), a.ask(q))
		a.obey(mind.Actions())
	}
	wait := mind.Wait()
	if wait == office.Idle { // nothing is due
		wait = beat.Until(office.Idle)
	}
	return min(wait, a.tell(a.alive()))
}

// event returns what has happened since the last step.
func (a *Agent) event() office.Event {
	e := office.Event{Searched: a.searched.Load(), Pause: a.wantPause.Load()}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.lastStranger.IsZero() {
		e.Stranger = a.clock(a.lastStranger)
	}
	return e
}

// obey carries out the machine's decisions.
func (a *Agent) obey(actions []office.Action) {
	for _, action := range actions {
		switch do := action.(type) {
		case office.Changed:
			if a.includes(do.Before) && !a.includes(do.Alive) {
				a.cfg.Log.Warn("a newer process has taken over this member's id", "id", a.cfg.Self.ID)
			}
			a.notify.push(event{members: do.Alive})
		case office.TooFew:
			a.notify.push(event{minority: true})
		case office.Outdated:
			a.cfg.Log.Error("this member is too old for its cluster", "error", &ring.LevelError{Need: uint64(do.Need)})
			a.notify.push(event{outdated: true})
		case office.Superseded:
			a.notify.push(event{superseded: true})
		case office.Search:
			a.loops.Go(a.search)
		case office.Unheard:
			a.cfg.Log.Warn("too few nodes answer to issue a table", "want", a.cfg.MinMembers)
		case office.Issued:
			a.announceIssued(do.Table, do.Healed)
		case office.Paused:
			a.wantPause.CompareAndSwap(do.Order, nil)
		case office.NoOffice: // the coordinator must be asked
			a.wantPause.Store(nil)
			a.dropProposal()
		default:
			panic("BUG: unknown action")
		}
	}
}

func (a *Agent) announceIssued(t *ring.Table, healed bool) {
	a.issued.Add(1)
	if healed {
		a.healed.Add(1)
	}
	poke(a.metaNow)
	a.cfg.Log.Info("issued table", "epoch", t.Epoch, "nodes", len(t.Nodes), "level", t.Level, "healed", healed)
}

// ask puts a question to all of its nodes at once.
func (a *Agent) ask(q *office.Question) (answer office.Answer) {
	switch q.What {
	case office.Tables:
		for _, t := range a.fetchEach(a.ctx, q.Nodes, office.FetchTimeout, false) {
			answer.Tables = append(answer.Tables, t.Table)
		}
	case office.Reports:
		answer.Reports = a.fetchReports(q.Nodes)
	case office.Signs:
		answer.Signs = a.countAnswers(q.Nodes, q.Enough)
	}
	return answer
}

// countAnswers returns how many nodes answer; it stops at enough.
func (a *Agent) countAnswers(nodes []ring.Member, enough int) int {
	ctx, done := context.WithTimeout(a.ctx, office.FetchTimeout)
	defer done()
	var answers atomic.Int64
	var fetches sync.WaitGroup
	for _, m := range nodes {
		fetches.Go(func() {
			if _, err := a.cfg.Fetch(ctx, m.Addr, ""); err == nil && answers.Add(1) == int64(enough) {
				done()
			}
		})
	}
	fetches.Wait()
	return int(answers.Load())
}

// fetchReports reads the reports of nodes.
func (a *Agent) fetchReports(nodes []ring.Member) (reports []*ring.Report) {
	ctx, cancel := context.WithTimeout(a.ctx, office.FetchTimeout)
	defer cancel()
	var mu sync.Mutex
	var fetches sync.WaitGroup
	for _, m := range nodes {
		fetches.Go(func() {
			r, err := a.cfg.FetchReport(ctx, m.Addr)
			if err != nil || r == nil {
				a.cfg.Log.Debug("cannot fetch report", "addr", m.Addr, "error", err)
				return
			}
			r.Node = m.Name()
			mu.Lock()
			defer mu.Unlock()
			reports = append(reports, r)
		})
	}
	fetches.Wait()
	return reports
}

// newSeed returns the hash seed of a new cluster. It is a secret of the cluster, because it allows
// to construct keys that collide.
func newSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// includes reports whether this boot of this member is in members.
func (a *Agent) includes(members []ring.Member) bool {
	return slices.ContainsFunc(members, func(m ring.Member) bool { return m.Name() == a.name })
}
