package gossip

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

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

// TestSettingsSpread: when Configure returns, every member has applied the change, a proxy too; who
// comes later gets it, and so does who comes back.
func TestSettingsSpread(t *testing.T) {
	w := newWorld(t)
	var has [5]applied
	a := w.start("a", nil, speaks(1), has[0].to)
	b := w.start("b", []*testAgent{a}, speaks(1), has[1].to)
	p := w.start("p", []*testAgent{a}, asProxy, speaks(1), has[2].to)
	w.agree([]*testAgent{a, b, p}, "a", "b")
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
		if !c.HasSettings() || has[3].get("x") != "2" {
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
		if !again.HasSettings() || has[4].get("y") != "3" {
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
	if err := a.Configure(t.Context(), map[string]string{"x": "1"}); err != nil {
		t.Fatal(err)
	}
	lost, err := a.Settings(a.hashOf()).With(7, map[string]string{"x": "2"})
	if err != nil {
		t.Fatal(err)
	}
	if !a.adopt(ring.Settle(a.Table(), a.cfg.Self, lost.ID())) {
		t.Fatal("the table was not adopted")
	}
	if a.HasSettings() {
		t.Error("it has what nobody has")
	}
	w.eventually(3*settingsLost, func() string {
		if !a.HasSettings() {
			return "the settings are still missing"
		}
		return ""
	})
	if has.get("x") != "1" || a.Table().Settings.Version <= 7 {
		t.Errorf("x is %q, version %d", has.get("x"), a.Table().Settings.Version)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Configure(ctx, map[string]string{"x": "3"}); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func (a *testAgent) hashOf() []byte {
	id := a.Table().Settings
	return id.Hash[:]
}
