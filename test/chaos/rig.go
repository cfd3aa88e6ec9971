package chaos

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// Rig is a cluster under test with clients at work:
//
//	mixers   pipeline all sorts of commands on keys of all nodes; they judge what is right
//	probers  do one command at a time on keys of one node; they measure who is disturbed
//	readers  read the mixers' keys at one node, which must redirect them for keys of other nodes
//
// A test calls during for each fault, and Finish at the end.
type Rig struct {
	T      testing.TB
	C      *harness.Cluster
	Tables *tableWatch

	Keys        []*History    // of all mixers, read by every one of them
	Collections []*Collection // likewise
	Queues      []*Queue      // likewise
	Bundles     []*Bundle     // likewise
	Transits    []*Transit    // likewise
	feeding     *feeding      // nil: none
	journaling  *journaling   // nil: none
	hearing     *hearing      // nil: none
	caching     *caching      // nil: none
	lines       []*lining
	kinds       []*kind // of collections that the members know
	lists       bool    // likewise
	fades       bool    // fields of hashes can expire
	moves       bool    // elements can be moved between keys
	Probers     []*prober
	stop        chan struct{}
	Running     sync.WaitGroup
	Pulse       *pulse
	Outage      time.Duration // the longest time for which keys of a node were out
	stumbled    time.Duration // time in which nodes stood still again and again
	lost        int           // reads of keys that were lost, as a table explains

	Options
	Seed     uint64
	Sessions atomic.Uint64 // opened so far
	// KeepsAll is set while no fault lets the data of a partition begin anew.
	KeepsAll promise
	// Divided is set while the cluster is in two parts (package scenarios, division_test.go).
	Divided atomic.Bool
	Era     atomic.Uint64 // how often Divided has changed
	Pause   sync.RWMutex  // held by every exchange for reading

	Mu         sync.Mutex
	opened     []*Session
	deaths     []death
	strokes    []*stroke
	losses     map[string]int // acknowledged writes by key
	oldestLoss time.Duration
	violations []string
	Absences   []absence
	miscounts  []miscount
	// Reads that show a write that their own session sent after them.
	tooLate   []string
	tolerated map[string]int // errors that clients must expect
	slowest   time.Duration  // from sending a batch, or its previous reply, to a reply
	slowestIs string
	replies   int
	collected atomic.Uint64 // commands on collections
	switched  atomic.Uint64 // SELECTs
}

const (
	mixersPerProxy = 3
	keysPerMixer   = 16
	shownFaults    = 20 // how many violations a test shows
)

// Options say how a cluster and its load differ from those of other tests.
type Options struct {
	Copies  int
	Mixers  int              // per proxy
	Batch   int              // roughly the most commands that a mixer sends at once
	Rest    time.Duration    // the longest pause of a mixer between two batches
	Deletes bool             // mixers also delete keys
	Network *harness.Network // nil: all on the loopback interface
	relayed bool
	// NodeFlags are for nodes, Flags for every member.
	NodeFlags, Flags []string
	Env              []string      // for every member, added to an environment without DUNLIN_*
	Within           time.Duration // what Settle waits for at most; 0: SettleTime
	// Password and Secret are those of the members; "" for none. Flags must say so, too.
	Password, Secret string
	// Evicts is set if a key may be missing at any time, because nodes are full or others delete it.
	Evicts bool
	Clocks []time.Duration // see harness.StartOptions
	path   string          // binary to run; "": the one under test
}

func startRig(t testing.TB) *Rig {
	t.Helper()
	return StartWith(t, Options{Copies: 1, Mixers: mixersPerProxy, Batch: 24, Rest: 4 * time.Millisecond})
}

// StartWith starts a cluster and its clients, and waits until the clients are served.
func StartWith(t testing.TB, o Options) *Rig {
	t.Helper()
	x := newRig(t, rand.Uint64(), o)
	c := x.C
	var mixers []*mixer
	for i, p := range x.C.ByRole("proxy") {
		for j := range o.Mixers {
			name := fmt.Sprintf("mix%d%d", i, j)
			if j == 1 {
				name += inDatabase1
			}
			mixers = append(mixers, x.newMixer(p, name))
		}
		for _, n := range x.C.ByRole("node") {
			x.Probers = append(x.Probers, x.newProber(p, n.ID))
		}
	}
	t.Cleanup(x.endSessions)
	for _, m := range mixers {
		x.Keys = append(x.Keys, m.own...)
		x.share(m)
	}
	for _, m := range mixers {
		x.Running.Go(m.run)
	}
	for _, p := range x.Probers {
		x.Running.Go(p.run)
	}
	for _, n := range c.ByRole("node") {
		x.Running.Go((&direct{x, n}).run)
	}
	x.startFeeds()
	x.startJournals()
	x.startChannels()
	x.startCaches()
	x.startLines()
	x.servedAgain("before the first fault")
	harness.Eventually(t, harness.ReadyTimeout, "a table is seen", func() bool { return x.Tables.Table() != nil })
	return x
}

// newRig starts the cluster, without clients.
func newRig(t testing.TB, seed uint64, o Options) *Rig {
	t.Helper()
	c := harness.StartClusterWith(t, harness.StartOptions{
		Nodes: 3, Proxies: 2, Relayed: o.relayed, Network: o.Network, Clocks: o.Clocks, Path: o.path, Settles: true,
		Flags: o.Flags, Env: o.Env, NodeFlags: append([]string{"--copies", strconv.Itoa(o.Copies)}, o.NodeFlags...),
	})
	x := &Rig{T: t, C: c, Options: o, Seed: seed, stop: make(chan struct{}), tolerated: map[string]int{}, losses: map[string]int{}}
	x.Pulse = newPulse()
	t.Cleanup(x.Pulse.close)
	x.Tables = watchTables(x.Pulse, []byte(o.Secret), x.C.ByRole("node")...)
	t.Cleanup(x.Tables.close)
	x.askKinds()
	return x
}

// NewSession connects to a proxy. Violations name the session by name.
func (x *Rig) NewSession(proxy *harness.Member, name string) *Session {
	l, err := x.dial(proxy)
	if err != nil {
		x.T.Fatal(err)
	}
	x.T.Cleanup(func() { l.Conn.Close() })
	s := &Session{X: x, name: name, at: proxy, Link: l, Rng: rand.New(rand.NewPCG(x.Seed, x.Sessions.Add(1)))}
	x.Mu.Lock()
	defer x.Mu.Unlock()
	x.opened = append(x.opened, s)
	return s
}

// dial connects to a member, as a client that knows the password.
func (x *Rig) dial(m *harness.Member) (*harness.Link, error) {
	l, err := harness.DialLink(m.Addr)
	if err != nil || x.Password == "" {
		return l, err
	}
	err = l.Send(resp.AppendRequest(nil, []byte("AUTH"), []byte(x.Password)))
	if err == nil {
		_, err = l.Receive(time.Now().Add(harness.AnswerTime))
	}
	if err != nil {
		l.Conn.Close()
	}
	return l, err
}

// Finish ends the clients, reads all keys once more through both proxies, and fails the test if
// there was a violation.
func (x *Rig) Finish() {
	x.T.Helper()
	x.endSessions()
	x.readAll()
	x.JudgeAbsences(time.Now())
	still := x.Pulse.Missed(time.Time{}, time.Now()) // the machine: nobody knows for how long keys were out then
	if n := x.tolerated["TRYAGAIN"]; n > 0 && x.Outage+x.stumbled+still < harness.ParkTime-time.Second {
		x.Violate("%d commands were parked for %v, though all keys were served again after %v", n, harness.ParkTime, x.Outage)
	}
	x.report()
}

// JudgeAbsences notes a violation for each absence that neither a table nor a death explains. It
// keeps absences found after before for a later call: the table that explains them may not have
// been seen yet.
func (x *Rig) JudgeAbsences(before time.Time) {
	x.Mu.Lock()
	absences, miscounts := x.Absences, x.miscounts
	x.Absences, x.miscounts = nil, nil
	x.Mu.Unlock()
	for _, a := range absences {
		if a.to.After(before) {
			x.judged("", &a, nil)
			continue
		}
		x.lost++
		if err := x.judge(a); err != nil {
			x.Violate("%v", err)
		}
	}
	for _, m := range miscounts {
		if len(m.explains) > 0 && m.explains[0].to.After(before) {
			x.miscounted(m)
		} else if err := m.judge(x); err != nil && !x.Evicts {
			x.Violate("%v", err)
		}
	}
}

// report fails the test if there were violations, and logs what clients saw.
func (x *Rig) report() {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	x.T.Logf("%d replies, %d commands on collections, %d SELECTs, the slowest after %d ms (%s); %d reads of lost keys; errors %v",
		x.replies, x.collected.Load(), x.switched.Load(), x.slowest.Milliseconds(), x.slowestIs, x.lost, x.tolerated)
	for i, v := range x.violations {
		if i == shownFaults {
			x.T.Errorf("and %d more", len(x.violations)-i)
			break
		}
		x.T.Error(v)
	}
	if len(x.violations) > 0 {
		x.T.Log(x.Tables.sightings())
	}
}

func (x *Rig) endSessions() {
	select {
	case <-x.stop:
	default:
		close(x.stop)
	}
	x.Running.Wait()
}

// Stopped reports whether the clients have been told to stop.
func (x *Rig) Stopped() bool {
	select {
	case <-x.stop:
		return true
	default:
		return false
	}
}

// Unpaused runs do, which begins and ends outside of a pause, and returns its result.
func (x *Rig) Unpaused(do func() bool) bool {
	x.Pause.RLock()
	defer x.Pause.RUnlock()
	return do()
}

// Violate notes a violation. Finish then fails the test, and shows the first ones.
func (x *Rig) Violate(format string, args ...any) {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	x.violations = append(x.violations, Clock(time.Now())+" "+fmt.Sprintf(format, args...))
}

// Shown returns the violations so far, for a test that fails before Finish.
func (x *Rig) Shown() string {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	return fmt.Sprintf("violations so far: %q", x.violations[:min(shownFaults, len(x.violations))])
}

// FailedAlready reports whether there was a violation.
func (x *Rig) FailedAlready() bool {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	return len(x.violations) > 0
}

// judged notes the verdict on a read of a session: an error is a violation, and an absence is
// judged later.
func (x *Rig) judged(session string, lost *absence, err error) {
	if err != nil {
		x.Violate("%s: %v", session, err)
	}
	if lost != nil {
		x.Mu.Lock()
		defer x.Mu.Unlock()
		x.Absences = append(x.Absences, *lost)
	}
}

// overtaken notes a read that was executed after later writes of its own session. Only a broken
// pipe, after which the proxy sends the read again, explains that.
func (x *Rig) overtaken(text string) {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	if len(x.tooLate) < shownFaults {
		x.tooLate = append(x.tooLate, text)
	}
}

// miscounted notes a count that is off, to be judged later.
func (x *Rig) miscounted(m miscount) {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	x.miscounts = append(x.miscounts, m)
}

func (x *Rig) tolerate(class string) {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	x.tolerated[class]++
}

func (x *Rig) countTolerated() (n int) {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	for _, count := range maps.All(x.tolerated) {
		n += count
	}
	return n
}

// CountReplies returns how many replies have been judged so far.
func (x *Rig) CountReplies() int {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	return x.replies
}

// tookReply counts a reply, and keeps the slowest one and its description.
func (x *Rig) tookReply(d time.Duration, what func() string) {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	x.replies++
	if d > x.slowest {
		x.slowest, x.slowestIs = d, what()
	}
}

// Divide lets clients accept whatever they read, until the tests in package scenarios reunite the
// cluster (division_test.go).
func (x *Rig) Divide() {
	x.Pause.Lock()
	defer x.Pause.Unlock()
	x.Divided.Store(true)
	x.Era.Add(1)
}

// Rounds is how often tests repeat a fault whose outcome depends on chance:
//
//	go test -run Chaos ./test/chaos -chaos.rounds 20
var Rounds = flag.Int("chaos.rounds", 1, "how often the chaos tests repeat a fault whose outcome depends on chance")

// Coordinator returns the node that issues tables, as if the node but were not there: the one that
// started first.
func (x *Rig) Coordinator(but string) *harness.Member {
	var oldest ring.Member
	for _, m := range x.Tables.Table().Nodes {
		if m.ID != but && (oldest.ID == "" || m.Boot < oldest.Boot) {
			oldest = m
		}
	}
	for _, m := range x.C.ByRole("node") {
		if m.ID == oldest.ID {
			return m
		}
	}
	x.T.Fatalf("the coordinator %q is no node of the test", oldest.ID)
	return nil
}
