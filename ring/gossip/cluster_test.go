package gossip

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/dunlin-cache/dunlin/ring"
)

// The tests wait for clocks and not for processors, so that many may run at once.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// converged is how soon every member must have heard of any change, on a machine that has twenty
// other things to do.
const converged = 30 * time.Second

// world holds the agents of one test. Gossip is real, on 127.0.0.1; data ports are a map, through
// which tables pass encoded.
type world struct {
	t *testing.T

	mu     sync.Mutex
	boots  int64
	agents map[string]*testAgent // by data address
	sides  map[string]int        // by gossip address: who is on which side of a split
	// gossipToTheDead is short by default: otherwise it would heal what the periodic rejoin should.
	gossipToTheDead time.Duration
	// patient: nobody dies here, so nobody is to be taken for dead because the machine is busy.
	patient bool
}

// newPatientWorld is for tests in which nobody dies, and nobody is cut off.
func newPatientWorld(t *testing.T) *world {
	w := newWorld(t)
	w.patient = true
	return w
}

type testAgent struct {
	*Agent
	addr   string
	behind atomic.Bool // its copies do not get in sync
	deaf   atomic.Bool // its data port does not answer
}

func newWorld(t *testing.T) *world {
	t.Parallel()
	return &world{
		t:      t,
		boots:  time.Now().UnixNano(),
		agents: make(map[string]*testAgent),
		sides:  make(map[string]int),

		gossipToTheDead: time.Millisecond,
	}
}

// start starts an agent named id, serving at once, that joins others.
func (w *world) start(id string, join []*testAgent, adapt ...func(*Config)) *testAgent {
	w.t.Helper()
	w.mu.Lock()
	w.boots++
	boot := w.boots
	w.mu.Unlock()
	addr := fmt.Sprintf("%s.%d:6380", id, boot)
	cfg := Config{
		// A member that looks for a dead one may find another test's member at its port.
		Cluster: w.t.Name(),
		Self:    ring.Member{ID: id, Boot: boot, State: ring.Serving, Addr: addr},
		Bind:    "127.0.0.1:0",
		Copies:  1,
		Fetch: func(ctx context.Context, to, name string) (*ring.Table, error) {
			return w.fetch(ctx, addr, to, name)
		},
		FetchReport: func(ctx context.Context, to string) (*ring.Report, error) {
			return w.fetchReport(ctx, addr, to)
		},
		FetchSettings: func(_ context.Context, to string, id ring.SettingsID) (*ring.Settings, error) {
			target, err := w.reach(addr, to)
			if err != nil {
				return nil, err
			}
			s := target.Settings(id.Hash[:])
			if s == nil {
				return nil, nil
			}
			return ring.DecodeSettings(slices.Concat(slices.Collect(s.Parts())...)) // as it would come from there
		},
		BootstrapWait: time.Second,
		LevelSettle:   300 * time.Millisecond,
	}
	if os.Getenv("GOSSIP_LOG") != "" {
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("me", id)
	}
	for _, j := range join {
		cfg.Join = append(cfg.Join, j.Addr())
	}
	for _, f := range adapt {
		f(&cfg)
	}
	a, err := start(cfg, func(a *Agent, m *memberlist.Config) {
		a.rejoin = time.Second
		m.GossipToTheDeadTime = w.gossipToTheDead
		if w.patient {
			m.SuspicionMult *= 20
		}
		m.Transport = w.transport(m)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(a.Close)
	ta := &testAgent{Agent: a, addr: addr}
	w.mu.Lock()
	w.agents[addr] = ta
	w.mu.Unlock()
	return ta
}

// crash ends an agent without a word.
func (w *world) crash(a *testAgent) {
	w.mu.Lock()
	delete(w.agents, a.addr)
	w.mu.Unlock()
	a.Close()
}

func (w *world) fetch(_ context.Context, from, to, name string) (*ring.Table, error) {
	target, err := w.reach(from, to)
	if err != nil {
		return nil, err
	}
	if name != "" && name != target.cfg.Self.Name() {
		return nil, errors.New("another node listens here")
	}
	t := target.Table()
	if t == nil {
		return nil, nil
	}
	return ring.DecodeTable(t.Encode())
}

// fetchReport reports every copy that the table asks for as in sync, and what the node owns as
// served, unless it is behind.
func (w *world) fetchReport(_ context.Context, from, to string) (*ring.Report, error) {
	target, err := w.reach(from, to)
	if err != nil {
		return nil, err
	}
	t := target.Table()
	r := &ring.Report{Version: t.Version()}
	self := -1
	if t != nil && !target.behind.Load() {
		self = t.NodeIndex(target.cfg.Self.ID, target.cfg.Self.Boot)
	}
	if self >= 0 {
		for p, f := range t.Follower {
			if int(f) == self || int(t.Owner[p]) == self {
				r.Add(uint16(p))
			}
		}
		for _, m := range t.Moves {
			if int(m.To) == self {
				r.Add(m.Partition)
			}
		}
	}
	return r, nil
}

// reach returns the agent whose data address is to.
func (w *world) reach(from, to string) (*testAgent, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	source, target := w.agents[from], w.agents[to]
	cut := source != nil && target != nil && w.sides[source.Addr()] != w.sides[target.Addr()]
	if target == nil || cut || target.deaf.Load() {
		return nil, errors.New("connection refused")
	}
	return target, nil
}

// split puts agents on a side of the network of their own; heal undoes it.
func (w *world) split(agents ...*testAgent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range agents {
		w.sides[a.Addr()] = 1
	}
}

func (w *world) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.sides)
}

func (w *world) connected(a, b string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sides[a] == w.sides[b]
}

// eventually polls for f, which returns "" or what is still wrong.
func (w *world) eventually(within time.Duration, f func() string) {
	w.t.Helper()
	deadline := time.Now().Add(within)
	for {
		wrong := f()
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("after %v: %s", within, wrong)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// agree waits until all agents have the same table, over exactly the nodes with ids, and the same
// members.
func (w *world) agree(agents []*testAgent, ids ...string) {
	w.t.Helper()
	w.eventually(converged, func() string { return disagreement(agents, ids) })
}

func disagreement(agents []*testAgent, ids []string) string {
	var wrong []string
	first := agents[0].Table().Version()
	for _, a := range agents {
		t := a.Table()
		if t == nil {
			wrong = append(wrong, a.name+" has no table")
			continue
		}
		if got := nodeIDs(t.Nodes); !slices.Equal(got, ids) {
			wrong = append(wrong, fmt.Sprintf("%s: table %v has nodes %v, want %v", a.name, t.Version(), got, ids))
		}
		if t.Version() != first {
			wrong = append(wrong, fmt.Sprintf("%s has table %v, first has %v", a.name, t.Version(), first))
		}
		if got := len(a.Members()); got != len(agents) {
			wrong = append(wrong, fmt.Sprintf("%s sees %d members, want %d", a.name, got, len(agents)))
		}
	}
	return strings.Join(wrong, "; ")
}

func nodeIDs(nodes []ring.Member) []string {
	var ids []string
	for _, m := range nodes {
		ids = append(ids, m.ID)
	}
	return ids
}

// gatedTransport is the real transport, with cables that the world can cut.
type gatedTransport struct {
	*transport
	w    *world
	addr string
}

func (w *world) transport(m *memberlist.Config) memberlist.Transport {
	t, err := listen(m.BindAddr, m.BindPort, m.Logger)
	if err != nil {
		w.t.Fatal(err)
	}
	ip, port, err := t.FinalAdvertiseAddr("", 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return &gatedTransport{transport: t, w: w, addr: fmt.Sprintf("%s:%d", ip, port)}
}

func (g *gatedTransport) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	if !g.w.connected(g.addr, to.Addr) {
		return time.Now(), nil // lost on the way
	}
	return g.transport.WriteToAddress(b, to)
}

func (g *gatedTransport) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if !g.w.connected(g.addr, to.Addr) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("no route to host")}
	}
	return g.transport.DialAddressTimeout(to, timeout)
}
