package chaos

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// The checker's clients use deep pipelines and unusual commands while nodes are slowed, frozen and
// killed. The seed determines the commands and the faults, but not their timing.
//
//	go test -run 'Check$' ./test/chaos -check.time 10m -check.seed 7
var (
	checkTime = flag.Duration("check.time", 40*time.Second, "how long the checker runs")
	checkSeed = flag.Uint64("check.seed", 0, "seed of the checker, 0 for a new one")
)

const (
	diversPerProxy = 4
	// For one part in calmPart of the time there are no faults.
	calmPart = 4
)

// TestCheck proves for every session: a reply to each command, in order; its own writes read back,
// unless an error said that the outcome is unknown, a table says that the key's data was lost, or a
// pipe broke and the read was sent again; never an older value, one that was refused, or another
// key's; nothing from the middle of a transaction, and none that was executed though a key that it
// watched had changed.
func TestCheck(t *testing.T) {
	seed, length := *checkSeed, *checkTime
	if seed == 0 {
		seed = rand.Uint64()
	}
	if testing.Short() {
		length = min(length, 8*time.Second)
	}
	t.Logf("seed %d", seed)
	x := newRig(t, seed, Options{Copies: 1, relayed: true, Rest: time.Millisecond, Batch: 1})
	divers := x.startDivers()
	x.Announce()
	begin := time.Now()
	time.Sleep(length / calmPart) // the clients work without faults
	x.AllHeard(true)
	x.judgeCalm(t, begin)
	rng := rand.New(rand.NewPCG(seed, 0))
	faults := map[string]int{}
	var next []int // the faults to come: each once, then all again in another order
	for begin := time.Now(); time.Since(begin) < length-length/calmPart && !x.FailedAlready(); {
		if len(next) == 0 {
			next = rng.Perm(len(checkFaults))
		}
		victim, fault := x.C.Node(rng.IntN(3)), checkFaults[next[0]]
		next = next[1:]
		faults[fault.name]++
		x.strikes(victim, func() { fault.do(x, victim, rng) })
		x.C.Converge(harness.ReadyTimeout)
		x.JudgeAbsences(time.Now().Add(-watchLag))
		harness.SleepUpTo(time.Second, rng)
	}
	x.endSessions()
	x.readAll()
	x.JudgeAbsences(time.Now())
	x.report()
	t.Logf("pipelines of up to %d commands; faults %v", deepest(divers), faults)
}

func (x *Rig) startDivers() (divers []*diver) {
	for i, p := range x.C.ByRole("proxy") {
		for j := range diversPerProxy {
			name := fmt.Sprintf("dive%d%d", i, j)
			if j >= diversPerProxy/2 {
				name += inDatabase1
			}
			divers = append(divers, x.newDiver(p, name, j%2 == 1))
		}
	}
	x.T.Cleanup(x.endSessions)
	for _, d := range divers {
		if !d.rude {
			x.Keys = append(x.Keys, d.own...)
			x.share(d.mixer)
		}
	}
	for _, d := range divers {
		x.Running.Go(d.run)
	}
	x.startFeeds()
	x.startJournals()
	x.startChannels()
	x.visit(x.C.Node(int(x.Seed % 3)))
	x.startCaches()
	x.startLines()
	harness.Eventually(x.T, harness.ReadyTimeout, "a table is seen", func() bool { return x.Tables.Table() != nil })
	return divers
}

// judgeCalm notes a violation for each effect of broken pipes or dead nodes, if no pipe has broken
// and the machine has not stood still since begin.
func (x *Rig) judgeCalm(t *testing.T, begin time.Time) {
	t.Helper()
	x.Mu.Lock()
	var odd []string
	for _, a := range x.Absences {
		odd = append(odd, a.String())
	}
	for _, m := range x.miscounts {
		odd = append(odd, m.name+" finds "+m.what)
	}
	odd = append(odd, x.tooLate...)
	for class, n := range x.tolerated {
		odd = append(odd, fmt.Sprintf("%d errors %s", n, class))
	}
	replies := x.replies
	x.Mu.Unlock()
	if d := x.caching.worst(); d > copyTime {
		odd = append(odd, fmt.Sprintf("a copy has outlived a write for %v", d))
	}
	broken := 0.0
	for _, p := range x.C.ByRole("proxy") {
		n, _ := harness.Scrape(t, p.Admin).Sum("dunlin_proxy_broken_pipes_total{")
		broken += n
	}
	stood := x.Pulse.Missed(begin, time.Now())
	t.Logf("without a fault: %d replies, %v pipes broke, %d oddities; the machine stood still for %d ms",
		replies, broken, len(odd), stood.Milliseconds())
	if broken == 0 && stood < MachineLimit && !x.stumblesSince(begin) {
		for _, o := range odd[:min(shownFaults, len(odd))] {
			x.Violate("without a fault: %s", o)
		}
	}
}

// checkFaults are the kinds of faults that the checker injects.
var checkFaults = slices.Concat(randomFaults, []fault{
	// A slow node is never silent for long enough for proxies to give it up.
	{"is slow", func(_ *Rig, m *harness.Member, rng *rand.Rand) {
		for range 15 {
			m.Stop()
			harness.SleepUpTo(150*time.Millisecond, rng)
			m.Cont()
			harness.SleepUpTo(20*time.Millisecond, rng)
		}
	}},
	{"its replies come slowly", func(_ *Rig, m *harness.Member, rng *rand.Rand) {
		m.Relay.Slow.Store(true)
		harness.SleepUpTo(time.Second, rng)
		m.Relay.Slow.Store(false)
	}},
	{"its replies are lost", func(_ *Rig, m *harness.Member, rng *rand.Rand) {
		for range 5 {
			m.Relay.LoseReplies(rng)
			harness.SleepUpTo(200*time.Millisecond, rng)
		}
	}},
})
