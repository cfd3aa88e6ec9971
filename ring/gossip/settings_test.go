package gossip

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// applied keeps what OnSettings was called with.
type applied struct {
	mu   sync.Mutex
	last *ring.Settings
}

func (p *applied) to(c *Config) {
	c.OnSettings = func(s *ring.Settings) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.last = s
	}
}

func (p *applied) get(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	value, _ := p.last.Get(name)
	return value
}

// TestSettingsSpread: when Configure returns, every member has applied the change, a proxy too; a
// member that joins later gets it, and so does one that comes back.
func TestSettingsSpread(t *testing.T) {
	w := newWorld(t)
	var has [5]applied
	a := w.start("a", nil, speaks(1), has[0].to)
	b := w.start("b", []*testAgent{a}, speaks(1), has[1].to)
	p := w.start("p", []*testAgent{a}, asProxy, speaks(1), has[2].to)
	w.agree([]*testAgent{a, b, p}, "a", "b")
	w.atLevel(1, a, b, p)
	if err := b.Configure(t.Context(), map[string]string{"x": "0"}); !errors.Is(err, errNotCoordinator) {
		t.Errorf("who is not the coordinator changes settings: %v", err)
	}
	for _, value := range []string{"1", "2", "2"} {
		if err := a.Configure(t.Context(), map[string]string{"x": value}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if got := has[i].get("x"); got != value {
				t.Errorf("member %d has applied %q, want %q", i, got, value)
			}
		}
	}
	if got := a.Table().Settings.Version; got != 2 {
		t.Errorf("two changes made %d documents", got)
	}
	c := w.start("c", []*testAgent{b}, speaks(1), has[3].to)
	w.eventually(3*converged, func() string {
		if c.NotReady() != "" || has[3].get("x") != "2" {
			return "who comes later has no settings"
		}
		return ""
	})
	w.crash(a) // b takes over its office
	w.agree([]*testAgent{b, p, c}, "b", "c")
	if err := b.Configure(t.Context(), map[string]string{"y": "3"}); err != nil {
		t.Fatal(err)
	}
	if has[3].get("x") != "2" || has[3].get("y") != "3" || has[2].get("y") != "3" {
		t.Error("the next coordinator's change is not everywhere, or undid another")
	}
	again := w.start("a", []*testAgent{c}, speaks(1), has[4].to)
	w.eventually(3*converged, func() string {
		if again.NotReady() != "" || has[4].get("y") != "3" {
			return "who comes back has no settings"
		}
		return ""
	})
}

// TestSettingsNeedLevel: below the level that they need, settings are refused, and members announce
// themselves byte for byte as ever.
func TestSettingsNeedLevel(t *testing.T) {
	w := newWorld(t)
	old := w.start("old", nil)
	w.agree([]*testAgent{old}, "old")
	err := old.Configure(t.Context(), map[string]string{"x": "1"})
	if err == nil || !strings.Contains(err.Error(), "every member must be upgraded first") {
		t.Errorf("settings below their level: %v", err)
	}
	own := old.ownAnnouncement()
	if got, want := len(own.encode()), 8+len(ring.AppendMember(nil, own.Member)); got != want {
		t.Errorf("an announcement has %d bytes, want %d", got, want)
	}
}

// TestLostSettings: a document that nobody has does not keep the cluster from settings for ever.
func TestLostSettings(t *testing.T) {
	w := newWorld(t)
	var has applied
	a := w.start("a", nil, speaks(1), has.to)
	w.agree([]*testAgent{a}, "a")
	w.atLevel(1, a)
	if err := a.Configure(t.Context(), map[string]string{"x": "1"}); err != nil {
		t.Fatal(err)
	}
	lost, err := a.Settings(a.hashOf()).With(7, map[string]string{"x": "2"})
	if err != nil {
		t.Fatal(err)
	}
	if !a.adopt(ring.Settle(a.Table(), a.cfg.Self, lost.ID()), nil) {
		t.Fatal("the table was not adopted")
	}
	if why := a.NotReady(); why != "" {
		t.Errorf("a member that has had settings is not ready while newer ones are missing: %s", why)
	}
	w.eventually(3*settingsLost, func() string {
		if a.settings.applied.Load().ID() != a.Table().Settings {
			return "the settings are still missing"
		}
		return ""
	})
	if has.get("x") != "1" || a.Table().Settings.Version <= 7 {
		t.Errorf("x is %q, version %d", has.get("x"), a.Table().Settings.Version)
	}
}

// TestSettingsAreWithdrawn: what Configure gives up does not come later, and the error says so.
func TestSettingsAreWithdrawn(t *testing.T) {
	w := newPatientWorld(t)
	atLeastTwo := func(c *Config) { c.MinMembers = 2 }
	a := w.start("a", nil, speaks(1), atLeastTwo)
	b := w.start("b", []*testAgent{a}, speaks(1), atLeastTwo)
	w.agree([]*testAgent{a, b}, "a", "b")
	w.atLevel(1, a, b)
	b.deaf.Store(true) // so a issues nothing
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := a.Configure(ctx, map[string]string{"x": "1"}); err == nil || !strings.Contains(err.Error(), "nothing has changed") {
		t.Errorf("settings that no table names: %v", err)
	}
	if p := a.settings.proposed.Load(); p != nil {
		t.Errorf("document %d may still come", p.ID().Version)
	}
	b.deaf.Store(false)
	if err := a.Configure(t.Context(), map[string]string{"y": "2"}); err != nil {
		t.Fatal(err)
	}
	got := a.settings.applied.Load()
	if value, set := got.Get("x"); set || got.ID().Version != 1 {
		t.Errorf("x is %q in document %d, which should be the first", value, got.ID().Version)
	}
}

// TestSettingsNotEverywhere: when a member takes long to apply settings, the error says that they
// have changed, and the member stays ready.
func TestSettingsNotEverywhere(t *testing.T) {
	w := newPatientWorld(t)
	applies, proceed := make(chan struct{}, 10), make(chan struct{})
	defer close(proceed) // before the agent, which waits for it, is closed
	a := w.start("a", nil, speaks(1))
	b := w.start("b", []*testAgent{a}, speaks(1), func(c *Config) {
		c.OnSettings = func(*ring.Settings) {
			poke(applies)
			<-proceed
		}
	})
	w.agree([]*testAgent{a, b}, "a", "b")
	w.atLevel(1, a, b)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- a.Configure(ctx, map[string]string{"x": "1"}) }()
	w.eventually(converged, func() string {
		if _, set := a.settings.applied.Load().Get("x"); !set || len(applies) == 0 {
			return "a has not applied them, or b does not begin"
		}
		return ""
	})
	cancel()
	err := <-result
	if err == nil || err.Error() != "the cluster's settings have changed, but are not applied yet by b" {
		t.Errorf("settings that one member has not applied: %v", err)
	}
	if why := b.NotReady(); why != "" {
		t.Errorf("the member that applies them is not ready: %s", why)
	}
}

// lonely is an agent without gossip that knows nobody.
func lonely(t *testing.T, c Config) *Agent {
	c.Log = slog.New(slog.DiscardHandler)
	c.Self = ring.Member{ID: "a", Boot: 1, State: ring.Serving, Addr: "a:1", Level: ring.SettingsLevel, Fingerprint: ring.Fingerprint()}
	a := &Agent{cfg: c, name: c.Self.Name(), self: announcement{Member: c.Self}, ctx: t.Context(), wake: make(chan struct{}, 1),
		metaSoon: make(chan struct{}, 1), settings: settingsState{changing: make(chan struct{}, 1), wake: make(chan struct{}, 1)}}
	a.notify.wake = make(chan struct{}, 1)
	return a
}

// TestSettingsFromOthers: a node that hangs does not keep a member from settings that another one
// has.
func TestSettingsFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want, err := (*ring.Settings)(nil).With(1, nil)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var asked []string
		a := lonely(t, Config{FetchSettings: func(ctx context.Context, addr string, _ ring.SettingsID) (*ring.Settings, error) {
			mu.Lock()
			asked = append(asked, addr)
			mu.Unlock()
			switch addr {
			case "hangs":
				<-ctx.Done()
				return nil, ctx.Err()
			case "fails":
				return nil, errors.New("it fails")
			case "has none":
				return nil, nil
			}
			return want, nil
		}})
		find := func(within time.Duration, want *ring.Settings, addrs ...string) {
			t.Helper()
			var nodes []ring.Member
			for _, addr := range addrs {
				nodes = append(nodes, ring.Member{Addr: addr})
			}
			begun := time.Now()
			asked = nil
			got := a.fetchSettings(nodes, ring.SettingsID{Version: 1})
			if took := time.Since(begun); got != want || took != within {
				t.Errorf("of %q: %v after %v, want %v after %v", addrs, got, took, want, within)
			}
			a.loops.Wait()
		}
		find(0, want, "has it", "hangs")
		if len(asked) != 1 {
			t.Errorf("%q were asked, though the first has it", asked)
		}
		find(0, want, "fails", "has none", "has it")
		find(settingsHedge, want, "hangs", "has it")
		find(2*settingsHedge, want, "hangs", "hangs", "fails", "has it")
		find(settingsTimeout, want, "hangs", "hangs", "hangs", "has it")
		find(0, nil, "fails", "has none")
		find(0, nil)
	})
}

// TestLostSettingsAreCountedApart: a document is given up when it has been missing for as long, not
// when another one has.
func TestLostSettingsAreCountedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := lonely(t, Config{})
		table := ring.Raise(ring.Plan(nil, a.alive(), nil, a.self.Member, 1, newSeed), a.self.Member, ring.SettingsLevel)
		misses := func(version uint64) {
			table = ring.Settle(table, a.self.Member, ring.SettingsID{Version: version})
			if !a.adopt(table, nil) {
				t.Fatal("the table was not adopted")
			}
			a.updateSettings()
		}
		misses(5)
		time.Sleep(settingsLost - time.Millisecond)
		misses(6)
		time.Sleep(settingsLost - time.Millisecond)
		if a.updateSettings(); a.settings.proposed.Load() != nil {
			t.Error("settings are given up before they have been missing for long")
		}
		time.Sleep(time.Millisecond)
		if a.updateSettings(); a.settings.proposed.Load().ID().Version != 7 {
			t.Error("settings that nobody has are not given up")
		}
		if a.NotReady() == "" {
			t.Error("a member that has never had its settings is ready")
		}
	})
}

func (a *testAgent) hashOf() []byte {
	id := a.Table().Settings
	return id.Hash[:]
}

// TestSettingsOfAnotherDocument: a change that was made for a document which does not hold any more is refused.
func TestSettingsOfAnotherDocument(t *testing.T) {
	w := newWorld(t)
	var has applied
	a := w.start("a", nil, speaks(1), has.to)
	w.agree([]*testAgent{a}, "a")
	w.atLevel(1, a)
	if err := a.ConfigureFrom(t.Context(), [32]byte{}, map[string]string{"x": "1"}); err != nil {
		t.Fatal(err)
	}
	err := a.ConfigureFrom(t.Context(), [32]byte{}, map[string]string{"x": "2"})
	if !errors.Is(err, ring.ErrSettingsChanged) || has.get("x") != "1" {
		t.Errorf("a change of the empty document: %v, x is %q", err, has.get("x"))
	}
	if err = a.ConfigureFrom(t.Context(), a.settings.applied.Load().ID().Hash, map[string]string{"x": "3"}); err != nil || has.get("x") != "3" {
		t.Errorf("a change of the present document: %v, x is %q", err, has.get("x"))
	}
}
