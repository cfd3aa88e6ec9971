package test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"
)

// scenarioFull asks for the scenarios as a release is judged by; without it each is
// run in a short form. -chaos.rounds says how often (make scenarios).
var scenarioFull = flag.Bool("scenario.full", false, "run the scenarios at full length and load")

// scenario is a cluster with clients at work, to which the same things are done again
// and again. Each step prints what it cost, and finish their distribution.
type scenario struct {
	*chaos
	archive *archive
	nodes   []string // ids in the table, after the last step
	steps   []step
	counted int // commands until the end of the last step
}

// step is something done to the cluster, and what came of it.
type step struct {
	figures
	name         string        // without the victim
	lost         int           // acknowledged writes
	oldest       time.Duration // of them: how long before the death it was acknowledged
	wrong        int           // violations
	moved, asked int           // partitions that changed their owner, and that the ring says should
	anew         int           // partitions whose data began anew
	between      int           // commands since the step before
	view         time.Duration // until all showed one table
	calm         time.Duration // p99 before
	ttlOff       time.Duration // the most that a remaining time to live was wrong
}

const (
	// calmTime is how long before a step its figures are measured, to compare with.
	calmTime      = time.Second
	shortCalmTime = 200 * time.Millisecond
	// ttlLimit is how much longer a key of the archive may live: it is longer whenever the
	// key is copied, as long as that is on its way.
	ttlLimit = 30 * time.Second
)

func startScenario(t *testing.T, o chaosOptions) *scenario {
	t.Helper()
	skipUnderRace(t)
	if testing.Short() {
		t.Skip("takes seconds, and loads the machine")
	}
	o.deletes = true
	archived := 4000
	o.mixers, o.batch, o.rest = 2, 24, 8*time.Millisecond
	if *scenarioFull {
		archived = 30_000
		o.mixers, o.batch, o.rest = 5, 48, 16*time.Millisecond // 20,000 commands a second
	}
	s := &scenario{chaos: startChaosWith(t, o)}
	s.archive = newArchive(s.chaos, archived)
	for _, p := range s.c.byRole("proxy") {
		s.running.Go(s.archive.newReader(p).run)
	}
	s.settle("the start")
	s.nodes, s.counted = s.runningNodes(), s.countReplies()
	return s
}

// rounds repeats a round, until something is wrong.
func (s *scenario) rounds(round func(i int)) {
	s.t.Helper()
	s.t.Logf("seed %d", s.seed)
	for i := range *chaosRounds {
		if round(i); s.failedAlready() {
			break
		}
	}
	s.finish()
	s.summary()
}

// leaves is a step in which nodes come and go in order: nothing is lost, nothing fails.
func (s *scenario) leaves(name string, victim *member, do func()) {
	s.t.Helper()
	s.keepsAll.Store(true)
	st := s.step(name, victim, do)
	if st.stood >= machineLimit { // whom nobody ran may have been taken for dead
		return
	}
	if st.failed > 0 {
		s.violate("%s: %d commands failed", name, st.failed)
	}
	if st.anew > 0 {
		s.violate("%s: the data of %d partitions began anew", name, st.anew)
	}
	if st.moved*100 > st.asked*105 {
		s.violate("%s: %d partitions changed their owner, the ring asks for %d", name, st.moved, st.asked)
	}
}

// breaks is a step in which a node breaks. With copies of all that it owns, nothing but
// its last writes is lost.
func (s *scenario) breaks(name string, victim *member, copied bool, do func()) {
	s.t.Helper()
	s.keepsAll.Store(copied)
	s.step(name, victim, do)
}

func (s *scenario) step(name string, victim *member, do func()) step {
	s.t.Helper()
	calmly := shortCalmTime
	if *scenarioFull {
		calmly = calmTime
	}
	time.Sleep(calmly) // a measurement, not a wait
	begin := time.Now()
	var calm []timing
	for _, p := range s.probers {
		calm = append(calm, p.between(begin.Add(-calmly), begin)...)
	}
	wrong := s.countViolations()
	st := step{name: name}
	st.calm, _ = latencies(calm)
	what := name
	if victim != nil {
		what += " " + victim.id
	}
	st.figures = s.observe(what, victim, do, func() { st.view = s.settle(what) })
	before := s.nodes
	s.nodes = s.runningNodes()
	if !s.divided.Load() { // each side has its own tables
		st.asked = asked(before, s.nodes)
		st.moved = s.tables.moved(st.begin, st.end)
	}
	st.anew = s.tables.begunAnew(st.begin, st.end)
	if st.ttlOff = s.archive.check(); st.ttlOff > ttlLimit {
		s.violate("%s: times to live are wrong by %v", what, st.ttlOff)
	}
	s.judgeAbsences(time.Now())
	st.lost, st.oldest = s.takeLosses()
	st.wrong = s.countViolations() - wrong
	st.between, s.counted = s.countReplies()-s.counted, s.countReplies()
	s.archive.fill()
	s.t.Log(st)
	s.steps = append(s.steps, st)
	return st
}

// String is one line of figures.
func (s step) String() string {
	return fmt.Sprintf("%-34s one view after %4d ms, settled after %5d ms, keys out %4d ms; %d commands failed, of %d meanwhile and %d since the step before; lost %d writes, the oldest %d ms before; wrong %d; "+
		"p99 %d ms, worst %d ms, before %d ms; moved %d, asked %d, anew %d; TTL off %d ms; machine stood still %d ms",
		s.what, s.view.Milliseconds(), s.whole.Milliseconds(), s.outage.Milliseconds(), s.failed, s.commands, s.between, s.lost, s.oldest.Milliseconds(), s.wrong,
		s.p99.Milliseconds(), s.worst.Milliseconds(), s.calm.Milliseconds(), s.moved, s.asked, s.anew, s.ttlOff.Milliseconds(), s.stood.Milliseconds())
}

// summary prints for each kind of step the distribution of its figures.
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
			failed, commands, lost, wrong = failed+st.failed, commands+st.between, lost+st.lost, wrong+st.wrong
		}
		millis := func(f func(step) time.Duration) string {
			return distribution(all, func(st step) float64 { return float64(f(st)) / 1e6 })
		}
		s.t.Logf("SUMMARY %s, %d times; median/p99/worst: one view %s ms, settled %s ms, keys out %s ms, p99 of the others %s ms (%s before), oldest loss %s ms, moved/asked %s; "+
			"failed %d of %d commands (%.4f %%), lost writes %d, wrong %d",
			name, len(all), millis(func(st step) time.Duration { return st.view }), millis(func(st step) time.Duration { return st.whole }), millis(func(st step) time.Duration { return st.outage }),
			millis(func(st step) time.Duration { return st.p99 }), millis(func(st step) time.Duration { return st.calm }),
			millis(func(st step) time.Duration { return st.oldest }),
			distribution(all, func(st step) float64 { return 100 * float64(st.moved) / float64(max(st.asked, 1)) })+" %",
			failed, commands, 100*float64(failed)/float64(max(commands, 1)), lost, wrong)
	}
}

// distribution is a figure's median, 99th percentile and worst.
func distribution[T any](all []T, of func(T) float64) string {
	values := make([]float64, len(all))
	for i, v := range all {
		values[i] = of(v)
	}
	slices.Sort(values)
	n := len(values)
	return fmt.Sprintf("%.0f/%.0f/%.0f", values[n/2], values[min(n-1, n*99/100)], values[n-1])
}

// asked counts the partitions that the ring gives to another node.
func asked(before, after []string) (n int) {
	old, new_ := mustTarget(before), mustTarget(after)
	for p := range old {
		if before[old[p]] != after[new_[p]] {
			n++
		}
	}
	return n
}
