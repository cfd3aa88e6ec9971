package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

const (
	// epochTime is how long members may take to show one epoch. On an idle machine they take at
	// most 3 s.
	epochTime = 5 * time.Second
	// disturbedLimit bounds the 99th percentile of commands on other nodes during a fault.
	disturbedLimit = 300 * time.Millisecond
	MachineLimit   = 100 * time.Millisecond
)

// during runs a fault on a member and waits until the cluster is whole again: all members show one
// epoch and all keys are served. Clients of other nodes must not notice. do must return right after
// the last thing that it does, because the time that the cluster takes is counted from there.
// during returns how many errors clients got meanwhile.
func (x *Rig) during(what string, victim *harness.Member, do func()) (failed int) {
	x.T.Helper()
	f := x.Observe(what, victim, do, func() { x.converge(what, victim) })
	x.T.Logf("%-30s one epoch after %4d ms, its keys out for %4d ms, %2d errors; others' commands: p99 %3d ms, worst %3d ms; the machine stood still for %d ms",
		what, f.Whole.Milliseconds(), f.Outage.Milliseconds(), f.Failed, f.P99.Milliseconds(), f.Worst.Milliseconds(), f.Stood.Milliseconds())
	if f.P99 > disturbedLimit && f.judgesOthers() && !x.gaveUpSince(f.Begin, victim) {
		x.Violate("%s: commands on other nodes took %v in the 99th percentile, want at most %v", what, f.P99, disturbedLimit)
	}
	return f.Failed
}

// Figures are what clients noticed of a fault.
type Figures struct {
	What             string
	Begin, End       time.Time
	Whole            time.Duration // until the cluster was whole again
	Outage           time.Duration // of the victim's keys
	Commands, Failed int
	P99, Worst       time.Duration // of commands on other nodes; on all nodes if there is no victim
	Stood            time.Duration // for how long the machine stood still
	astray           bool          // when it began, partitions still had to move: the victim might own those of others
}

// judgesOthers reports whether the fault was no reason for commands on other nodes to wait or fail.
func (f *Figures) judgesOthers() bool { return !f.astray && f.Stood < MachineLimit }

// Observe runs a fault on a member, or on all members if victim is nil. It calls whole, which waits
// until the cluster is whole again, waits until all keys are served, and returns what clients
// noticed.
func (x *Rig) Observe(what string, victim *harness.Member, do, whole func()) Figures {
	x.T.Helper()
	failed, commands := x.countTolerated(), x.CountReplies()
	t := x.Tables.Table()
	f := Figures{What: what, Begin: time.Now(), astray: t == nil || x.offTarget(t) != ""}
	x.strikes(victim, func() {
		do()
		done := time.Now()
		whole()
		f.Whole = time.Since(done)
		x.servedAgain(what)
	})
	f.End = time.Now()
	f.Failed, f.Commands = x.countTolerated()-failed, x.CountReplies()-commands

	var others, all []Timing
	for _, p := range x.Probers {
		all = append(all, p.Between(f.Begin, f.End)...)
		if victim == nil || p.node == victim.ID {
			f.Outage = max(f.Outage, p.outage(f.Begin, f.End))
		} else {
			others = append(others, p.Between(f.Begin, f.End)...)
		}
	}
	x.Outage = max(x.Outage, f.Outage)
	if strings.HasPrefix(what, "stumbles") {
		x.stumbled += f.End.Sub(f.Begin) // a command may meet the victim standing still every time
	}
	f.P99, f.Worst = Latencies(others)
	if victim == nil {
		f.P99, f.Worst = Latencies(all)
	}
	f.Stood = x.Pulse.Missed(f.Begin, f.End)
	i := slices.IndexFunc(others, func(s Timing) bool { return s.failed })
	if i >= 0 && f.judgesOthers() && !x.gaveUpSince(f.Begin, victim) {
		x.Violate("%s: a command on another node failed, %s", what, Clock(others[i].begin))
	}
	return f
}

// converge waits until all members show one epoch. Members have that much time again when one but
// the victim was given up, or notices that it stood still: it may have left the cluster, and joins.
func (x *Rig) converge(what string, victim *harness.Member) {
	x.T.Helper()
	begin := time.Now()
	from := begin
	for {
		_, why := x.C.Agreed()
		took := time.Since(begin)
		if why == "" {
			return
		}
		// Members could not work while the machine stood still.
		late := func() bool { return time.Since(from) > epochTime+2*x.Pulse.Missed(from, time.Now()) }
		if late() && took < SettleTime {
			if at := x.gaveUpLast(victim); at.After(from) {
				from = at
			}
		}
		if late() {
			x.T.Fatalf("%s: no agreement after %v; last: %s; %s", what, took, why, x.Shown())
		}
		time.Sleep(harness.PollInterval)
	}
}

// eventually waits until a condition holds, and fails the test if it does not within the time given.
// Time in which the machine stood still does not count.
func (x *Rig) eventually(within time.Duration, what string, holds func() bool, why ...func() string) {
	x.T.Helper()
	begin := time.Now()
	for !holds() && time.Since(begin) < within+x.Pulse.Missed(begin, time.Now()) {
		time.Sleep(harness.PollInterval)
	}
	harness.Eventually(x.T, 0, what+fmt.Sprintf(", after %v", time.Since(begin)), holds, why...)
}

// leaves ends a member by SIGTERM, and returns how long that took.
func (x *Rig) leaves(m *harness.Member) time.Duration {
	x.T.Helper()
	begin := time.Now()
	took := m.Term(harness.ReadyTimeout)
	if most := epochTime + 2*x.Pulse.Missed(begin, time.Now()); took > most && !x.gaveUpSince(begin, m) {
		x.Violate("%s ended %v after SIGTERM, want at most %v", m.ID, took, most)
	}
	return took
}

// servedAgain waits until a command that begins from now on has succeeded at every prober.
func (x *Rig) servedAgain(what string) {
	x.T.Helper()
	begin := time.Now()
	harness.Eventually(x.T, harness.AnswerTime, "all keys are served, "+what, func() bool {
		return !slices.ContainsFunc(x.Probers, func(p *prober) bool { return !p.succeeded(begin) })
	}, x.Shown)
}
