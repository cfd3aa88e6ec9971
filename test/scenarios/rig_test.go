package scenarios

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/chaos"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// scenarioFull runs the scenarios in the full form that a release needs; otherwise each runs in a
// short form. -chaos.rounds is the number of rounds (make scenarios).
var scenarioFull = flag.Bool("scenario.full", false, "run the scenarios at full length and load")

// scenario is a cluster under load, to which a test applies the same steps in several rounds. Each
// step prints its figures, and finish prints their distribution.
type scenario struct {
	*chaos.Rig
	archive *archive
	nodes   []string // ids in the table, after the last step
	steps   []step
	counted int // commands until the end of the last step
}

// step is one change of the cluster, with its figures.
type step struct {
	chaos.Figures
	name         string        // without the victim
	lost         int           // acknowledged writes
	oldest       time.Duration // the highest age of a lost write at the death
	wrong        int           // violations
	moved, asked int           // partitions whose owner changed, and whose owner the target changes
	anew         int           // partitions whose data began anew
	between      int           // commands since the step before
	view         time.Duration // until all showed one table
	calm         time.Duration // p99 before
	ttlOff       time.Duration // the most that a remaining time to live was wrong
}

const (
	// calmTime is how long the figures before a step are measured, for comparison.
	calmTime      = time.Second
	shortCalmTime = 200 * time.Millisecond
	// ttlLimit is how much longer a key of the archive may live: it is longer whenever the
	// key is copied, as long as that is on its way.
	ttlLimit = 30 * time.Second
)

func startScenario(t *testing.T, o chaos.Options) *scenario {
	t.Helper()
	harness.SkipUnderRace(t)
	if testing.Short() {
		t.Skip("takes seconds, and loads the machine")
	}
	o.Deletes = true
	archived := 4000
	o.Mixers, o.Batch, o.Rest = 2, 24, max(o.Rest, 8*time.Millisecond)
	if *scenarioFull {
		archived = 30_000
		o.Mixers, o.Batch, o.Rest = 5, 48, max(o.Rest, 16*time.Millisecond) // 20,000 commands a second
	}
	s := &scenario{Rig: chaos.StartWith(t, o)}
	s.archive = newArchive(s.Rig, archived)
	for _, p := range s.C.ByRole("proxy") {
		s.Running.Go(s.archive.newReader(p).run)
	}
	if *scenarioFull {
		s.AwaitCollections()
	}
	s.Announce()
	s.Settle("the start")
	s.nodes, s.counted = s.RunningNodes(), s.CountReplies()
	return s
}

// rounds repeats a round until there is a violation.
func (s *scenario) rounds(round func(i int)) {
	s.T.Helper()
	s.T.Logf("seed %d", s.Seed)
	for i := range *chaos.Rounds {
		if round(i); s.FailedAlready() {
			break
		}
	}
	s.Finish()
	s.summary()
}

// leaves runs a step in which nodes join and leave in order: nothing may be lost, and no command
// may fail.
func (s *scenario) leaves(name string, victim *harness.Member, do func()) {
	s.T.Helper()
	s.KeepsAll.Store(true)
	st := s.step(name, victim, do)
	s.AllHeard(false)
	if st.Stood >= chaos.MachineLimit { // a member that did not run may have been taken for dead
		return
	}
	if st.Failed > 0 {
		s.Violate("%s: %d commands failed", name, st.Failed)
	}
	if st.anew > 0 {
		s.Violate("%s: the data of %d partitions began anew", name, st.anew)
	}
	if st.moved*100 > st.asked*105 {
		s.Violate("%s: %d partitions changed their owner, the ring asks for %d", name, st.moved, st.asked)
	}
}

// breaks runs a step in which a node breaks. If all its partitions have copies, only its last
// writes may be lost.
func (s *scenario) breaks(name string, victim *harness.Member, copied bool, do func()) {
	s.T.Helper()
	s.KeepsAll.Store(copied)
	s.step(name, victim, do)
}

func (s *scenario) step(name string, victim *harness.Member, do func()) step {
	s.T.Helper()
	calmly := shortCalmTime
	if *scenarioFull {
		calmly = calmTime
	}
	time.Sleep(calmly) // a measurement, not a wait
	begin := time.Now()
	var calm []chaos.Timing
	for _, p := range s.Probers {
		calm = append(calm, p.Between(begin.Add(-calmly), begin)...)
	}
	wrong := s.CountViolations()
	st := step{name: name}
	st.calm, _ = chaos.Latencies(calm)
	what := name
	if victim != nil {
		what += " " + victim.ID
	}
	st.Figures = s.Observe(what, victim, do, func() { st.view = s.Settle(what) })
	before := s.nodes
	s.nodes = s.RunningNodes()
	if !s.Divided.Load() { // each side has its own tables
		st.asked = asked(before, s.nodes)
		st.moved = s.Tables.Moved(st.Begin, st.End)
	}
	st.anew = s.Tables.BegunAnew(st.Begin, st.End)
	if st.ttlOff = s.archive.check(); st.ttlOff > ttlLimit {
		s.Violate("%s: times to live are wrong by %v", what, st.ttlOff)
	}
	s.JudgeAbsences(time.Now())
	st.lost, st.oldest = s.TakeLosses()
	st.wrong = s.CountViolations() - wrong
	st.between, s.counted = s.CountReplies()-s.counted, s.CountReplies()
	s.archive.fill()
	s.T.Log(st)
	s.steps = append(s.steps, st)
	return st
}

// String returns the figures in one line.
func (s step) String() string {
	return fmt.Sprintf("%-34s one view after %4d ms, settled after %5d ms, keys out %4d ms; %d commands failed, of %d meanwhile and %d since the step before; lost %d writes, the oldest %d ms before; wrong %d; "+
		"p99 %d ms, worst %d ms, before %d ms; moved %d, asked %d, anew %d; TTL off %d ms; machine stood still %d ms",
		s.What, s.view.Milliseconds(), s.Whole.Milliseconds(), s.Outage.Milliseconds(), s.Failed, s.Commands, s.between, s.lost, s.oldest.Milliseconds(), s.wrong,
		s.P99.Milliseconds(), s.Worst.Milliseconds(), s.calm.Milliseconds(), s.moved, s.asked, s.anew, s.ttlOff.Milliseconds(), s.Stood.Milliseconds())
}

// summary prints the distribution of the figures for each kind of step.
func (s *scenario) summary() {
	var names []string
	byName := map[string][]step{}
	for _, st := range s.steps {
		if byName[st.name] == nil {
			names = append(names, st.name)
		}
		byName[st.name] = append(byName[st.name], st)
	}
	for _, name := range names {
		all := byName[name]
		failed, commands, lost, wrong := 0, 0, 0, 0
		for _, st := range all {
			failed, commands, lost, wrong = failed+st.Failed, commands+st.between, lost+st.lost, wrong+st.wrong
		}
		millis := func(f func(step) time.Duration) string {
			return distribution(all, func(st step) float64 { return float64(f(st)) / 1e6 })
		}
		s.T.Logf("SUMMARY %s, %d times; median/p99/worst: one view %s ms, settled %s ms, keys out %s ms, p99 of the others %s ms (%s before), oldest loss %s ms, moved/asked %s; "+
			"failed %d of %d commands (%.4f %%), lost writes %d, wrong %d",
			name, len(all), millis(func(st step) time.Duration { return st.view }), millis(func(st step) time.Duration { return st.Whole }), millis(func(st step) time.Duration { return st.Outage }),
			millis(func(st step) time.Duration { return st.P99 }), millis(func(st step) time.Duration { return st.calm }),
			millis(func(st step) time.Duration { return st.oldest }),
			distribution(all, func(st step) float64 { return 100 * float64(st.moved) / float64(max(st.asked, 1)) })+" %",
			failed, commands, 100*float64(failed)/float64(max(commands, 1)), lost, wrong)
	}
}

// distribution returns the median, the 99th percentile and the worst of a figure.
func distribution[T any](all []T, of func(T) float64) string {
	values := make([]float64, len(all))
	for i, v := range all {
		values[i] = of(v)
	}
	slices.Sort(values)
	n := len(values)
	return fmt.Sprintf("%.0f/%.0f/%.0f", values[n/2], values[min(n-1, n*99/100)], values[n-1])
}

// asked returns how many partitions have another owner in the new target.
func asked(before, after []string) (n int) {
	old, new_ := chaos.MustTarget(before), chaos.MustTarget(after)
	for p := range old {
		if before[old[p]] != after[new_[p]] {
			n++
		}
	}
	return n
}
