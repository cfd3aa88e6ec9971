package gossip

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/freeport"
	"github.com/dunlin-cache/dunlin/ring"
)

func TestThreeNodesStartTogether(t *testing.T) {
	w := newPatientWorld(t)
	a := w.start("a", nil, func(c *Config) { c.Join = []string{"127.0.0.1:1"} })
	b := w.start("b", []*testAgent{a})
	c := w.start("c", []*testAgent{a})
	all := []*testAgent{a, b, c}
	w.agree(all, "a", "b", "c")
}

func TestJoinAndLeave(t *testing.T) {
	w := newPatientWorld(t)
	a := w.start("a", nil)
	b := w.start("b", []*testAgent{a})
	w.agree([]*testAgent{a, b}, "a", "b")

	c := w.start("c", []*testAgent{b}, func(c *Config) { c.Self.State = ring.Joining })
	p := w.start("p", []*testAgent{c}, func(c *Config) { c.Self.Role = ring.RoleProxy })
	all := []*testAgent{a, b, c, p}
	w.agree(all, "a", "b")
	before := a.Table()
	c.SetState(ring.Serving)
	w.agree(all, "a", "b", "c")
	if !a.Table().Descends(before.Version()) {
		t.Errorf("table %v does not descend from %v", a.Table().Version(), before.Version())
	}

	// The coordinator itself leaves.
	begun := time.Now()
	a.Leave(3 * converged)
	if took := time.Since(begun); took >= 3*converged {
		t.Errorf("Leave took %v: it has waited in vain", took)
	}
	if b.Table().NodeIndex("a", a.cfg.Self.Boot) >= 0 {
		t.Errorf("Leave returned while table %v still names the leaver", b.Table().Version())
	}
	w.crash(a)
	w.agree([]*testAgent{b, c, p}, "b", "c")
}

func TestCrash(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", nil)
	b := w.start("b", []*testAgent{a})
	c := w.start("c", []*testAgent{a})
	d := w.start("d", []*testAgent{a})
	w.agree([]*testAgent{a, b, c, d}, "a", "b", "c", "d")
	begun := time.Now()
	w.crash(a) // the coordinator
	w.agree([]*testAgent{b, c, d}, "b", "c", "d")
	t.Logf("crash of the coordinator: agreed after %v", time.Since(begun))
	begun = time.Now()
	w.crash(d)
	w.agree([]*testAgent{b, c}, "b", "c")
	t.Logf("crash: agreed after %v", time.Since(begun))
}

// TestRestartReplacesOlderSelf: that the newer life does not wait for the older one's end is in
// TestDuplicateIDs.
func TestRestartReplacesOlderSelf(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", nil)
	b := w.start("b", []*testAgent{a})
	c := w.start("c", []*testAgent{a})
	w.agree([]*testAgent{a, b, c}, "a", "b", "c")
	old := c.cfg.Self.Boot
	w.crash(c)
	c2 := w.start("c", []*testAgent{a})
	w.eventually(converged, func() string {
		if a.Table().NodeIndex("c", c2.cfg.Self.Boot) < 0 {
			return "the newer boot is not in the table"
		}
		return ""
	})
	for _, m := range a.Members() {
		if m.ID == "c" && m.Boot == old {
			t.Error("the older boot is still listed")
		}
	}
	w.agree([]*testAgent{a, b, c2}, "a", "b", "c")
	for p, o := range a.Table().Owner {
		if a.Table().Nodes[o].ID == "c" && a.Table().Since[p] == 1 {
			t.Fatalf("partition %d kept its data over the restart of its owner", p)
		}
	}
}

func TestClustersDoNotMerge(t *testing.T) {
	w := newPatientWorld(t)
	a := w.start("a", nil, func(c *Config) { c.Secrets = secrets("one") })
	b := w.start("b", []*testAgent{a}, func(c *Config) { c.Secrets = secrets("one") })
	patiently := func(c *Config) { c.BootstrapWait = 2 * time.Second } // an answer may take long
	label := w.start("c", []*testAgent{a}, patiently, func(c *Config) {
		c.Secrets = secrets("one")
		c.Cluster = "another"
	})
	secret := w.start("d", []*testAgent{a}, patiently, func(c *Config) { c.Secrets = secrets("two") })
	plain := w.start("e", []*testAgent{a}, patiently)
	w.agree([]*testAgent{a, b}, "a", "b")

	// Their bootstrap wait is over: they may not found clusters beside the one that answers them.
	for _, x := range []*testAgent{label, secret, plain} {
		w.eventually(3*converged, func() string {
			if n := len(x.Members()); n != 1 {
				t.Fatalf("stranger %s sees %d members", x.name, n)
			}
			if x.Table() != nil {
				t.Fatalf("stranger %s founded a cluster", x.name)
			}
			if n := len(a.Members()); n > 2 {
				t.Fatalf("a sees %d members, want 2", n)
			}
			if x.answered() <= x.cfg.BootstrapWait {
				return "nobody answers stranger " + x.name
			}
			return ""
		})
	}
	if n := a.Stats().Strangers; n < 3 {
		t.Errorf("%d messages of strangers, and each of three has tried to join", n)
	}
}

// answered is how long after its start somebody answered it and refused.
func (a *testAgent) answered() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lastStranger.Sub(a.started)
}

func TestBootstrapWait(t *testing.T) {
	w := newPatientWorld(t)
	port := freePort(t)
	begun := time.Now()
	a := w.start("a", nil, func(c *Config) {
		c.Bind = fmt.Sprintf("127.0.0.1:%d", port)
		// Others shall reach it elsewhere, so that it does not know its own address when it meets
		// it: joining itself does not count as meeting somebody.
		c.Advertise = "127.0.0.2"
		c.Join = []string{c.Bind, "127.0.0.1:1", "no-such-host.invalid"}
	})
	w.eventually(converged, func() string {
		if a.Table() == nil {
			return "no table"
		}
		return ""
	})
	if waited := time.Since(begun); waited < time.Second {
		t.Errorf("founded a cluster after %v, want at least the bootstrap wait", waited)
	}
}

// TestSearchBeforeFounding: of two nodes that start together one knows where a cluster lives, among
// many addresses where nobody does, and does not come to ask there before it has met the other one.
func TestSearchBeforeFounding(t *testing.T) {
	w := newPatientWorld(t)
	old := w.start("old", nil)
	w.settled(old)
	first := old.Table().Version()
	a := w.start("a", []*testAgent{old}, func(c *Config) {
		for i := range 200 {
			c.Join = append(c.Join, fmt.Sprintf("127.0.1.%d:1", 1+i))
		}
		c.BootstrapWait = converged
	})
	b := w.start("b", []*testAgent{a})
	w.settled(old, a, b)
	if n := a.Stats().Issued; n > 0 {
		t.Errorf("a issued %d tables beside %v", n, first)
	}
	if !a.Table().Descends(first) {
		t.Errorf("table %v does not descend from %v", a.Table().Version(), first)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := freeport.Choose()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestColdStart: all members of a cluster start at once, in random order, and know each other's
// addresses only.
func TestColdStart(t *testing.T) {
	w := newPatientWorld(t)
	ids := []string{"a", "b", "c", "d", "e"}
	var binds []string
	for range ids {
		binds = append(binds, fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	}
	var all []*testAgent
	for _, i := range rand.Perm(len(ids)) {
		all = append(all, w.start(ids[i], nil, func(c *Config) {
			c.Bind, c.Join = binds[i], binds
			c.BootstrapWait = converged
		}))
	}
	w.agree(all, ids...)
}

// TestLostNodesAreSought: after a split of which one side has no join address, the addresses of the
// lost nodes bring the sides together.
func TestLostNodesAreSought(t *testing.T) {
	w := newWorld(t)
	seed := w.start("seed", nil)
	a := w.start("a", []*testAgent{seed})
	b := w.start("b", []*testAgent{seed})
	w.agree([]*testAgent{seed, a, b}, "a", "b", "seed")
	w.crash(seed)
	w.split(b)
	w.agree([]*testAgent{a}, "a")
	w.agree([]*testAgent{b}, "b")
	w.heal()
	w.eventually(3*converged, func() string {
		return disagreement([]*testAgent{a, b}, []string{"a", "b"})
	})
}

func TestRefresh(t *testing.T) {
	w := newPatientWorld(t)
	var hidden atomic.Pointer[ring.Table] // which a node holds without gossip knowing
	a := w.start("a", nil)
	b := w.start("b", []*testAgent{a}, func(c *Config) {
		fetch := c.Fetch
		c.Fetch = func(ctx context.Context, addr, name string) (*ring.Table, error) {
			if t := hidden.Load(); t != nil {
				return t, nil
			}
			return fetch(ctx, addr, name)
		}
	})
	w.agree([]*testAgent{a, b}, "a", "b")
	next := ring.Plan(a.Table(), a.Members(), nil, a.cfg.Self, 2, nil)
	hidden.Store(next)
	b.Refresh()
	w.eventually(converged, func() string {
		if b.Table().Version() != next.Version() {
			return "b has not fetched the newer table"
		}
		return ""
	})
}

func TestStartRefusesBadConfig(t *testing.T) {
	check := func(what string, damage func(*Config)) {
		t.Helper()
		cfg := Config{
			Cluster: "test", Self: ring.Member{ID: "a", Boot: 1, Addr: "a:1"}, Bind: "127.0.0.1:0",
			Fetch: func(context.Context, string, string) (*ring.Table, error) { return nil, nil },
		}
		damage(&cfg)
		if a, err := Start(cfg); err == nil {
			a.Close()
			t.Errorf("started with %s", what)
		}
	}
	check("no cluster name", func(c *Config) { c.Cluster = "" })
	check("a cluster name too long", func(c *Config) { c.Cluster = strings.Repeat("c", 256) })
	check("no id", func(c *Config) { c.Self.ID = "" })
	check("an id too long", func(c *Config) { c.Self.ID = strings.Repeat("i", ring.MaxID+1) })
	check("no boot", func(c *Config) { c.Self.Boot = 0 })
	check("no data address", func(c *Config) { c.Self.Addr = "" })
	check("no way to fetch", func(c *Config) { c.Fetch = nil })
	check("a bad port", func(c *Config) { c.Bind = "127.0.0.1:x" })
	check("a port above 65535", func(c *Config) { c.Bind = "127.0.0.1:65536" })
	check("nothing to advertise", func(c *Config) { c.Bind = "[::]:0" })
}

func TestProxiesOutliveAllNodes(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", nil, speaks(1))
	b := w.start("b", []*testAgent{a}, speaks(1))
	p := w.start("p", []*testAgent{a}, speaks(1), asProxy)
	w.agree([]*testAgent{a, b, p}, "a", "b")
	w.atLevel(1, p)
	last := p.Table()
	w.crash(a)
	w.crash(b)
	w.eventually(2*converged, func() string {
		if len(p.Members()) > 1 {
			return "proxy still sees nodes"
		}
		return ""
	})
	// It begins at level 0, and reaches the proxy's at once when they meet.
	a2 := w.start("a", []*testAgent{p}, speaks(1), func(c *Config) { c.LevelSettle = time.Hour })
	w.agree([]*testAgent{a2, p}, "a")
	if got := p.Table(); !got.Newer(last) {
		t.Errorf("table %v is not newer than %v", got.Version(), last.Version())
	}
}

func TestSplitHeals(t *testing.T) {
	w := newWorld(t)
	superseded := make(chan string, 100)
	onSuperseded := func(c *Config) {
		c.OnSuperseded = func() { superseded <- c.Self.ID }
	}
	a := w.start("a", nil, onSuperseded)
	b := w.start("b", []*testAgent{a}, onSuperseded)
	c := w.start("c", []*testAgent{a})
	d := w.start("d", []*testAgent{a})
	p := w.start("p", []*testAgent{a}, func(c *Config) { c.Self.Role = ring.RoleProxy })
	w.agree([]*testAgent{a, b, c, d, p}, "a", "b", "c", "d")
	common := a.Table()

	// The coordinator is on the smaller side, with the only join address.
	w.split(a, p)
	w.agree([]*testAgent{b, c, d}, "b", "c", "d")
	w.agree([]*testAgent{a, p}, "a")
	small, large := a.Table(), b.Table()
	if small.Newer(large) || large.Newer(small) {
		t.Fatalf("tables %v and %v are not foreign to each other", small.Version(), large.Version())
	}
	if a.Adopt(large) || b.Adopt(small) {
		t.Fatal("a foreign table was adopted")
	}

	w.heal()
	w.eventually(3*converged, func() string {
		return disagreement([]*testAgent{a, b, c, d, p}, []string{"a", "b", "c", "d"})
	})
	select {
	case who := <-superseded:
		if who != "a" {
			t.Errorf("%s was told that it is superseded, want a", who)
		}
	case <-time.After(converged):
		t.Error("a does not know that it was superseded")
	}
	healed := a.Table()
	for _, before := range []*ring.Table{common, small, large} {
		if !healed.Newer(before) {
			t.Errorf("healed table %v is not newer than %v", healed.Version(), before.Version())
		}
	}
	for p := range healed.Owner {
		// Its data go on, wherever they have moved meanwhile, or begin anew.
		if since := healed.Since[p]; since != large.Since[p] && since <= large.Epoch {
			t.Fatalf("partition %d of %s has data since %d, on the larger side %d",
				p, healed.OwnerOf(uint16(p)).ID, since, large.Since[p])
		}
	}
}

func TestConfirm(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", nil)
	b := w.start("b", []*testAgent{a})
	w.agree([]*testAgent{a, b}, "a", "b")
	ctx, cancel := context.WithTimeout(context.Background(), 3*converged)
	defer cancel()
	got, err := b.Confirm(ctx, b.Table())
	if err != nil || got.Version() != a.Table().Version() {
		t.Errorf("Confirm = %v, %v, want the table of a", got.Version(), err)
	}

	w.crash(a)
	begun := time.Now()
	got, err = b.Confirm(ctx, b.Table())
	if got != nil || err != nil {
		t.Errorf("Confirm alone = %v, %v, want nothing", got.Version(), err)
	}
	if took := time.Since(begun); took < b.SuspicionTime() {
		t.Errorf("Confirm alone took %v, want at least the suspicion time", took)
	}
}

// TestConfirmNamesWhomItAsks: a node has died, and another one listens at its address before gossip shows that. It
// has the table, and cannot know what the dead one did behind it.
func TestConfirmNamesWhomItAsks(t *testing.T) {
	w := newPatientWorld(t)
	a := w.start("a", nil, speaks(ring.GoneLevel))
	var newcomer atomic.Bool // at the address of a
	b := w.start("b", []*testAgent{a}, speaks(ring.GoneLevel), func(c *Config) {
		fetch := c.Fetch
		c.Fetch = func(ctx context.Context, addr, name string) (*ring.Table, error) {
			if addr == a.cfg.Self.Addr && newcomer.Load() && name != "" {
				return nil, errors.New("another node listens here")
			}
			return fetch(ctx, addr, name)
		}
	})
	w.agree([]*testAgent{a, b}, "a", "b")
	w.atLevel(ring.GoneLevel, a, b)
	newcomer.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if table, err := b.Confirm(ctx, b.Table()); err == nil {
		t.Errorf("Confirm = %v by a newcomer's answer, want an error", table.Version())
	}
}

func TestAdoptAndCallbacks(t *testing.T) {
	w := newPatientWorld(t)
	tables := make(chan *ring.Table, 100)
	a := w.start("a", nil, func(c *Config) { c.OnTable = func(t *ring.Table) { tables <- t } })
	b := w.start("b", []*testAgent{a})
	w.agree([]*testAgent{a, b}, "a", "b")
	t1 := a.Table()
	t2 := ring.Plan(t1, []ring.Member{b.cfg.Self}, nil, b.cfg.Self, 1, nil)
	if !a.Adopt(t2) || a.Adopt(t2) || a.Adopt(t1) || a.Adopt(nil) {
		t.Error("Adopt does not take exactly the newer table")
	}
	// a, alive and coordinator, puts itself back in.
	w.agree([]*testAgent{a, b}, "a", "b")
	var last uint64
	for last < a.Table().Epoch {
		select {
		case got := <-tables:
			if got.Epoch <= last {
				t.Fatalf("OnTable was called with epoch %d after %d", got.Epoch, last)
			}
			last = got.Epoch
		case <-time.After(converged):
			t.Fatalf("OnTable was not called with epoch %d", a.Table().Epoch)
		}
	}
}
