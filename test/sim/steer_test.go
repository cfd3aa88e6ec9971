package sim

import (
	"time"

	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/ring/office"
)

// Package ring/office itself decides for a member. This file asks its questions over the simulated
// network and carries out its actions.

const (
	standstill    = time.Second
	bootstrapWait = 5 * time.Second
)

type steering struct {
	mind        *office.Machine
	decide      office.Config
	busy, again bool // within a step; to be woken when it is over
	timer       uint64
	searched    bool // join addresses have answered or failed
	standstills uint64
}

func newSteering(a *agent) steering {
	w := a.w
	decide := office.Config{
		Self: a.member, Copies: w.copies, MinMembers: w.atLeast, Searches: true, BootstrapWait: bootstrapWait,
		Seed: w.rng.Uint64, Shuffle: w.rng.Shuffle, Broken: w.office,
	}
	return steering{decide: decide, mind: office.New(decide, host{a}, w.clock())}
}

// clock is the time as a machine counts it: above 0.
func (w *world) clock() time.Duration { return w.now + time.Second }

// host is an agent as its machine sees it.
type host struct{ a *agent }

func (h host) Alive() []ring.Member     { return h.a.alive() }
func (h host) Table() *ring.Table       { return h.a.table }
func (h host) Proposed() *ring.Settings { return nil }

func (h host) Adopt(t *ring.Table, _ *ring.Settings) bool { return h.a.adopt(t) }

func (h host) Standstills() uint64 { return h.a.standstills }

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
			a.busy = true
			a.goOn(a.mind.Begin(a.w.clock(), office.Event{Searched: a.searched}))
		}
	})
}

// goOn obeys the machine, and answers its question when the answers are there.
func (a *agent) goOn(q *office.Question) {
	for _, action := range a.mind.Actions() {
		a.obey(action)
	}
	if q != nil {
		a.ask(q, func(answer office.Answer) { a.goOn(a.mind.Answered(a.w.clock(), answer)) })
		return
	}
	wait := a.mind.Wait()
	if a.busy = false; a.again {
		a.again = false
		wait = 100 * time.Microsecond
	}
	a.sleep(wait)
}

func (a *agent) obey(action office.Action) {
	switch do := action.(type) {
	case office.Changed:
		if a.p.proxy != nil {
			a.p.proxy.setAlive(do.Alive)
		}
	case office.TooFew:
		if a.p.node != nil {
			a.p.node.fence("there are too few nodes")
		}
	case office.Superseded:
		if a.p.node != nil {
			a.p.node.fence("the other side of a split will win")
		}
	case office.Search:
		a.search()
	case office.Issued:
		a.w.issued[do.Table.Version()] = do.Table
		a.w.noteIssued(a.p, do.Table, do.Sides > 1)
	}
}

func (a *agent) ask(q *office.Question, done func(office.Answer)) {
	switch q.What {
	case office.Tables:
		a.fetchEach(q.Nodes, office.FetchTimeout, func(tables []*ring.Table) { done(office.Answer{Tables: tables}) })
	case office.Reports:
		each(a, q.Nodes, office.FetchTimeout, func(_ ring.Member, at *proc) *ring.Report {
			if at.node == nil {
				return nil
			}
			return at.node.report()
		}, func(reports []*ring.Report) { done(office.Answer{Reports: reports}) })
	case office.Signs:
		each(a, q.Nodes, office.FetchTimeout, func(_ ring.Member, at *proc) *node { return at.node }, func(answers []*node) {
			done(office.Answer{Signs: len(answers)})
		})
	}
}

// refreshSoon says that somebody seems to have a newer table.
func (a *agent) refreshSoon() {
	a.mind.Refresh()
	a.wake()
}

// adopt makes t the table of this member, if it is newer along its lineage.
func (a *agent) adopt(t *ring.Table) bool {
	if t == nil || !a.w.newer(t, a.table) {
		return false
	}
	a.table = t
	a.member.Epoch, a.member.Issuer, a.member.TableLevel = t.Epoch, t.Issuer, t.Level
	a.w.adopted(a, t)
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

// confirm hears the current table from the other nodes, as gossip's Confirm does. done gets whether
// that worked, and whether nobody is left who knows.
func (a *agent) confirm(doubted *ring.Table, begun time.Duration, done func(ok, alone bool)) {
	a.tellEach(a.decide.Witnesses(host{a}), suspicionTime, func(told []*office.Told) {
		all := make([]office.Told, 0, len(told))
		for _, t := range told {
			all = append(all, *t)
		}
		_, err := a.decide.Confirm(host{a}, doubted, all)
		switch {
		case err == nil:
			done(true, false)
		case a.decide.Alone(host{a}, doubted, all) && a.w.now-begun >= suspicionTime:
			done(true, true)
		case a.w.now-begun > 5*time.Second:
			done(false, false)
		default:
			a.wake()
			a.w.after(a.p, 100*time.Millisecond, func() { a.confirm(doubted, begun, done) })
		}
	})
}

// tellEach is fetchEach with who has answered, and asks by name if all members know that question.
func (a *agent) tellEach(nodes []ring.Member, timeout time.Duration, done func([]*office.Told)) {
	named := office.NamesWitnesses(a.table)
	each(a, nodes, timeout, func(m ring.Member, at *proc) *office.Told {
		if at.node == nil || at.node.view.Table == nil || named && (at.id != m.ID || at.boot != m.Boot) {
			return nil
		}
		return &office.Told{By: m, Table: at.node.view.Table}
	}, done)
}

// fetchEach reads the tables of nodes, all at once and each address once.
func (a *agent) fetchEach(nodes []ring.Member, timeout time.Duration, done func([]*ring.Table)) {
	each(a, nodes, timeout, func(_ ring.Member, at *proc) *ring.Table {
		if at.node == nil {
			return nil
		}
		return at.node.view.Table
	}, done)
}

// each asks nodes, all at once and each address once, and collects the answers that are not nil. ask has the first of
// the nodes at an address, and the process that listens there.
func each[T any](
	a *agent, nodes []ring.Member, timeout time.Duration, ask func(ring.Member, *proc) *T, done func([]*T),
) {
	asked := make(map[string]bool)
	var first []ring.Member
	for _, m := range nodes {
		if !asked[m.Addr] {
			asked[m.Addr] = true
			first = append(first, m)
		}
	}
	if len(first) == 0 {
		done(nil)
		return
	}
	var answers []*T
	missing := len(first)
	for _, m := range first {
		a.w.call(a.p, m.Addr, timeout, func(at *proc, reply func(any)) { reply(ask(m, at)) }, func(answer any) {
			if t, ok := answer.(*T); ok && t != nil {
				answers = append(answers, t)
			}
			if missing--; missing == 0 {
				done(answers)
			}
		})
	}
}
