package test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// chaos is a cluster under test with clients at work:
//
//	mixers   pipeline all sorts of commands on keys of all nodes; they judge what is right
//	probers  do one command at a time on keys of one node; they measure who is disturbed
//	readers  read the mixers' keys at one node, which must not know what others own
//
// A test calls during for each fault, and finish at the end.
type chaos struct {
	t      testing.TB
	c      *cluster
	tables *tableWatch

	keys     []*history // of all mixers, read by every one of them
	probers  []*prober
	stop     chan struct{}
	running  sync.WaitGroup
	pulse    *pulse
	outage   time.Duration // the longest that keys of a node were out
	stumbled time.Duration // for so long nodes stood still again and again
	lost     int           // reads of keys that a table says were lost

	chaosOptions
	seed     uint64
	sessions atomic.Uint64 // opened so far
	// keepsAll: nothing that happens now lets the data of a partition begin anew.
	keepsAll atomic.Bool
	// The clients' view of a cluster in two parts (scenario_division_test.go).
	divided atomic.Bool
	era     atomic.Uint64 // how often divided has changed
	pause   sync.RWMutex  // held by every exchange for reading

	mu         sync.Mutex
	deaths     []death
	losses     map[string]int // acknowledged writes by key
	oldestLoss time.Duration
	violations []string
	absences   []absence
	fewer      []fewer
	tooLate    []string       // reads that show a later write of their own session
	tolerated  map[string]int // errors that clients must expect
	slowest    time.Duration  // from a batch's sending to a reply of it
	slowestIs  string
	replies    int
}

const (
	mixersPerProxy = 3
	keysPerMixer   = 16
	// epochTime is for all members to show one epoch. It takes 3 s at most on a
	// machine that has nothing else to do.
	epochTime = 5 * time.Second
	// disturbedLimit bounds what clients of other nodes may notice of a fault: the
	// 99th percentile of their commands. It is not judged when the machine stood
	// still for machineLimit meanwhile.
	disturbedLimit = 300 * time.Millisecond
	machineLimit   = 100 * time.Millisecond
	shownFaults    = 20 // violations
)

// chaosOptions are the differences between the clusters and their load.
type chaosOptions struct {
	copies  int
	mixers  int           // per proxy
	batch   int           // most commands that a mixer sends at once, about
	rest    time.Duration // of a mixer between two batches, at most
	deletes bool          // mixers delete keys, too
	network *network      // nil: all on the loopback interface
	relayed bool
	flags   []string        // for nodes
	clocks  []time.Duration // see startOptions
}

func startChaos(t testing.TB) *chaos {
	t.Helper()
	return startChaosWith(t, chaosOptions{copies: 1, mixers: mixersPerProxy, batch: 24, rest: 4 * time.Millisecond})
}

func startChaosWith(t testing.TB, o chaosOptions) *chaos {
	t.Helper()
	x := newChaos(t, rand.Uint64(), o)
	c := x.c
	x.pulse = newPulse()
	t.Cleanup(x.pulse.close)
	var mixers []*mixer
	for i, p := range x.c.byRole("proxy") {
		for j := range o.mixers {
			mixers = append(mixers, x.newMixer(p, fmt.Sprintf("mix%d%d", i, j)))
		}
		for _, n := range x.c.byRole("node") {
			x.probers = append(x.probers, x.newProber(p, n.id))
		}
	}
	t.Cleanup(x.endSessions)
	for _, m := range mixers {
		x.keys = append(x.keys, m.own...)
	}
	for _, m := range mixers {
		x.running.Go(m.run)
	}
	for _, p := range x.probers {
		x.running.Go(p.run)
	}
	for _, n := range c.byRole("node") {
		x.running.Go((&direct{x, n}).run)
	}
	x.servedAgain("before the first fault")
	eventually(t, readyTimeout, "a table is seen", func() bool { return x.tables.table() != nil })
	return x
}

// newChaos starts the cluster, without clients.
func newChaos(t testing.TB, seed uint64, o chaosOptions) *chaos {
	t.Helper()
	c := startClusterWith(t, startOptions{
		nodes: 3, proxies: 2, relayed: o.relayed, network: o.network, clocks: o.clocks,
		nodeFlags: append([]string{"--copies", strconv.Itoa(o.copies)}, o.flags...),
	})
	x := &chaos{t: t, c: c, chaosOptions: o, seed: seed, stop: make(chan struct{}), tolerated: map[string]int{}, losses: map[string]int{}}
	x.tables = watchTables(x.c.byRole("node")...)
	t.Cleanup(x.tables.close)
	return x
}

func (x *chaos) newSession(proxy *member, name string) *session {
	l, err := dialLink(proxy.addr)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { l.conn.Close() })
	return &session{x: x, name: name, link: l, rng: rand.New(rand.NewPCG(x.seed, x.sessions.Add(1)))}
}

// during does something to a member and waits until the cluster is whole again:
// all show one epoch, all keys are served. Clients of other nodes must not notice.
// do must return right after the last thing that it does. The result is how many
// errors clients got meanwhile.
func (x *chaos) during(what string, victim *member, do func()) (failed int) {
	x.t.Helper()
	f := x.observe(what, victim, do, func() { x.converge(what) })
	x.t.Logf("%-30s one epoch after %4d ms, its keys out for %4d ms, %2d errors; others' commands: p99 %3d ms, worst %3d ms; the machine stood still for %d ms",
		what, f.whole.Milliseconds(), f.outage.Milliseconds(), f.failed, f.p99.Milliseconds(), f.worst.Milliseconds(), f.stood.Milliseconds())
	if f.p99 > disturbedLimit && f.stood < machineLimit {
		x.violate("%s: commands on other nodes took %v in the 99th percentile, want at most %v", what, f.p99, disturbedLimit)
	}
	return f.failed
}

// figures are what clients noticed of a fault.
type figures struct {
	what             string
	begin, end       time.Time
	whole            time.Duration // until the cluster was whole again
	outage           time.Duration // of the victim's keys
	commands, failed int
	p99, worst       time.Duration // of the commands of other nodes, or of all if there is no victim
	stood            time.Duration // the machine
}

// observe does something to a member, nil for all of them, waits until the cluster is
// whole again, and until all keys are served.
func (x *chaos) observe(what string, victim *member, do, whole func()) figures {
	x.t.Helper()
	failed, commands := x.countTolerated(), x.countReplies()
	f := figures{what: what, begin: time.Now()}
	do()
	done := time.Now()
	whole()
	f.whole = time.Since(done)
	x.servedAgain(what)
	f.end = time.Now()
	f.failed, f.commands = x.countTolerated()-failed, x.countReplies()-commands

	var others, all []timing
	for _, p := range x.probers {
		all = append(all, p.between(f.begin, f.end)...)
		if victim == nil || p.node == victim.id {
			f.outage = max(f.outage, p.outage(f.begin, f.end))
		} else {
			others = append(others, p.between(f.begin, f.end)...)
		}
	}
	x.outage = max(x.outage, f.outage)
	if strings.HasPrefix(what, "stumbles") {
		x.stumbled += f.end.Sub(f.begin) // a command may meet the victim standing still every time
	}
	f.p99, f.worst = latencies(others)
	if victim == nil {
		f.p99, f.worst = latencies(all)
	}
	f.stood = x.pulse.missed(f.begin, f.end)
	if i := slices.IndexFunc(others, func(s timing) bool { return s.failed }); i >= 0 && f.stood < machineLimit {
		x.violate("%s: a command on another node failed, %s", what, clock(others[i].begin))
	}
	return f
}

// converge waits until all members show one epoch.
func (x *chaos) converge(what string) {
	x.t.Helper()
	begin := time.Now()
	for {
		_, why := x.c.agreed()
		took := time.Since(begin)
		if why == "" {
			return
		}
		// What the machine did not run, nobody could do.
		if took > epochTime+2*x.pulse.missed(begin, time.Now()) {
			x.t.Fatalf("%s: no agreement after %v; last: %s; %s", what, took, why, x.shown())
		}
		time.Sleep(pollInterval)
	}
}

// servedAgain waits until every prober has had a success that began from now on.
func (x *chaos) servedAgain(what string) {
	x.t.Helper()
	begin := time.Now()
	eventually(x.t, answerTime, "all keys are served, "+what, func() bool {
		return !slices.ContainsFunc(x.probers, func(p *prober) bool { return !p.succeeded(begin) })
	}, x.shown)
}

// finish ends the clients, reads everything once more through both proxies, and
// fails the test for what was wrong.
func (x *chaos) finish() {
	x.t.Helper()
	x.endSessions()
	x.readAll()
	x.judgeAbsences(time.Now())
	if n := x.tolerated["TRYAGAIN"]; n > 0 && x.outage+x.stumbled < holdTime-time.Second {
		x.violate("%d commands were held for %v, though all keys were served again after %v", n, holdTime, x.outage)
	}
	x.report()
}

// readAll reads everything once more through both proxies.
func (x *chaos) readAll() {
	for _, p := range x.c.byRole("proxy") {
		s := x.newSession(p, "last reader at "+p.id)
		for _, h := range x.keys {
			s.get(h, false)
		}
		s.exchange()
	}
}

// judgeAbsences finds what is missing though no table explains it, if that is so since the
// time: of what happened just now the table may not have been seen yet.
func (x *chaos) judgeAbsences(before time.Time) {
	x.mu.Lock()
	absences, fewer := x.absences, x.fewer
	x.absences, x.fewer = nil, nil
	x.mu.Unlock()
	for _, a := range absences {
		if a.to.After(before) {
			x.judged("", &a, nil)
			continue
		}
		x.lost++
		if err := x.judge(a); err != nil {
			x.violate("%v", err)
		}
	}
	for _, f := range fewer {
		if f.expected[0].to.After(before) {
			x.lacks(f)
		} else if err := f.judge(x.tables); err != nil {
			x.violate("%v", err)
		}
	}
}

// report fails the test for what was wrong.
func (x *chaos) report() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.t.Logf("%d replies, the slowest after %d ms (%s); %d reads of lost keys; errors %v",
		x.replies, x.slowest.Milliseconds(), x.slowestIs, x.lost, x.tolerated)
	for i, v := range x.violations {
		if i == shownFaults {
			x.t.Errorf("and %d more", len(x.violations)-i)
			break
		}
		x.t.Error(v)
	}
	if len(x.violations) > 0 {
		x.t.Log(x.tables.sightings())
	}
}

func (x *chaos) endSessions() {
	select {
	case <-x.stop:
	default:
		close(x.stop)
	}
	x.running.Wait()
}

func (x *chaos) stopped() bool {
	select {
	case <-x.stop:
		return true
	default:
		return false
	}
}

// unpaused lets a client do something that begins and ends outside of a pause.
func (x *chaos) unpaused(do func() bool) bool {
	x.pause.RLock()
	defer x.pause.RUnlock()
	return do()
}

func (x *chaos) violate(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.violations = append(x.violations, clock(time.Now())+" "+fmt.Sprintf(format, args...))
}

// shown is for a test that fails before finish.
func (x *chaos) shown() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return fmt.Sprintf("violations so far: %q", x.violations[:min(shownFaults, len(x.violations))])
}

func (x *chaos) failedAlready() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.violations) > 0
}

// judged takes the verdict on a read.
func (x *chaos) judged(session string, lost *absence, err error) {
	if err != nil {
		x.violate("%s: %v", session, err)
	}
	if lost != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.absences = append(x.absences, *lost)
	}
}

// early notes a read that was executed too late, which only a broken pipe explains.
func (x *chaos) early(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.tooLate) < shownFaults {
		x.tooLate = append(x.tooLate, text)
	}
}

// lacks notes a count of keys that is too low.
func (x *chaos) lacks(f fewer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fewer = append(x.fewer, f)
}

func (x *chaos) tolerate(class string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tolerated[class]++
}

func (x *chaos) countTolerated() (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, count := range maps.All(x.tolerated) {
		n += count
	}
	return n
}

func (x *chaos) countReplies() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.replies
}

// tookReply keeps the slowest reply, and what it was.
func (x *chaos) tookReply(d time.Duration, what func() string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.replies++
	if d > x.slowest {
		x.slowest, x.slowestIs = d, what()
	}
}

// divide has clients believe what they see, until unite.
func (x *chaos) divide() {
	x.pause.Lock()
	defer x.pause.Unlock()
	x.divided.Store(true)
	x.era.Add(1)
}

// chaosRounds repeats what is a matter of luck: go test -run Chaos ./test -chaos.rounds 20
var chaosRounds = flag.Int("chaos.rounds", 1, "how often the chaos tests repeat what is a matter of luck")

// coordinator is the node that issues tables: of those but one that started first.
func (x *chaos) coordinator(but string) *member {
	var oldest ring.Member
	for _, m := range x.tables.table().Nodes {
		if m.ID != but && (oldest.ID == "" || m.Boot < oldest.Boot) {
			oldest = m
		}
	}
	for _, m := range x.c.byRole("node") {
		if m.id == oldest.ID {
			return m
		}
	}
	x.t.Fatalf("the coordinator %q is no node of the test", oldest.ID)
	return nil
}
