package gossip

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/dunlin-cache/dunlin/ring"
)

func speaks(level uint8) func(*Config) {
	return func(c *Config) { c.Self.Level = level }
}

func asProxy(c *Config) { c.Self.Role = ring.RoleProxy }

func (w *world) atLevel(level uint8, agents ...*testAgent) {
	w.t.Helper()
	w.eventually(3*converged, func() string {
		for _, a := range agents {
			if got := a.level(); got != level {
				return a.name + " has another level"
			}
		}
		return ""
	})
}

// TestLevelRises: the cluster's level is the lowest that a member speaks, a proxy's too, and rises
// when the last one that speaks less is gone.
func TestLevelRises(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", nil) // of level 0, and the coordinator
	b := w.start("b", []*testAgent{a}, speaks(1))
	p := w.start("p", []*testAgent{a}, asProxy)
	w.eventually(converged, func() string { return disagreement([]*testAgent{a, b, p}, []string{"a", "b"}) })
	a.Leave(converged)
	a.Close()
	w.agree([]*testAgent{b, p}, "b")
	q := w.start("p", []*testAgent{b}, asProxy, speaks(1)) // replaces the proxy that spoke less
	c := w.start("c", []*testAgent{b}, speaks(1))
	w.agree([]*testAgent{b, c, q}, "b", "c")
	w.atLevel(1, b, c, q)
	if n := begunAnew(b.Table(), 1); n > 0 {
		t.Logf("%d partitions began anew when the only node left", n)
	}
}

// TestBelowLevel: a process that does not speak the cluster's level does not become a member, which
// the log says, and does nothing to the cluster's table.
func TestBelowLevel(t *testing.T) {
	var log lockedBuffer
	w := newPatientWorld(t)
	a := w.start("a", nil, speaks(1), func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	b := w.start("b", []*testAgent{a}, speaks(1))
	w.agree([]*testAgent{a, b}, "a", "b")
	w.atLevel(1, a, b)
	version := a.Table().Version()
	w.start("old", []*testAgent{a, b})
	w.eventually(3*converged, func() string {
		if !strings.Contains(log.String(), "it speaks protocol level 0, and this cluster needs 1: upgrade it") {
			return "nobody has warned of the member that speaks too little"
		}
		return ""
	})
	if got := a.Table().Version(); got != version || len(a.Members()) != 2 {
		t.Errorf("table %v, %d members; want %v, 2", got, len(a.Members()), version)
	}
}

// TestOutdatedMember: a member that was cut off while the others raised the cluster's level learns
// that it is too old, and does not take itself for ready.
func TestOutdatedMember(t *testing.T) {
	w := newWorld(t)
	outdated := make(chan struct{}, 1)
	a := w.start("a", nil, func(c *Config) { c.OnOutdated = func() { poke(outdated) } }) // the coordinator
	b := w.start("b", []*testAgent{a}, speaks(1))
	c := w.start("c", []*testAgent{a, b}, speaks(1))
	w.agree([]*testAgent{a, b, c}, "a", "b", "c")
	w.split(a)
	w.agree([]*testAgent{b, c}, "b", "c")
	w.atLevel(1, b, c)
	w.agree([]*testAgent{a}, "a")
	w.heal()
	select {
	case <-outdated:
	case <-time.After(converged):
		t.Fatal("it does not learn that it is too old")
	}
	if why := a.NotReady(); !strings.Contains(why, "needs protocol level 1") {
		t.Errorf("it is not ready because %q", why)
	}
	version := a.Table().Version()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := a.Confirm(ctx, a.Table()); err == nil || !strings.Contains(err.Error(), "upgrade it") {
		t.Errorf("it confirms its table: %v", err)
	}
	if got := a.Table().Version(); got != version {
		t.Errorf("it has issued %v", got)
	}
	w.crash(b)
	w.crash(c)
	w.eventually(converged, a.NotReady)
}

// TestSplitOfTwoLevelsHeals: the coordinator cannot read the other side's table, which has a higher
// level, and heals the split all the same.
func TestSplitOfTwoLevelsHeals(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", nil, speaks(1), func(c *Config) { c.LevelSettle = time.Hour }) // the coordinator
	b := w.start("b", []*testAgent{a}, speaks(1))
	c := w.start("c", []*testAgent{a, b}, speaks(1))
	w.agree([]*testAgent{a, b, c}, "a", "b", "c")
	w.split(a)
	w.agree([]*testAgent{b, c}, "b", "c")
	w.atLevel(1, b, c)
	w.agree([]*testAgent{a}, "a")
	b.deaf.Store(true)
	c.deaf.Store(true)
	w.heal()
	w.agree([]*testAgent{a, b, c}, "a", "b", "c")
	w.atLevel(1, a, b, c)
}

// TestBelowTheLevelIsNoMember: a peer from the time before the level was raised counts no longer.
func TestBelowTheLevelIsNoMember(t *testing.T) {
	a := lonely(t, Config{})
	old := announcement{Member: ring.Member{ID: "old", State: ring.Serving, Addr: "old:1"}}
	a.peers = map[string]peer{old.Name(): {announcement: old}}
	first := ring.Plan(nil, a.alive(), nil, a.self.Member, 1, newSeed)
	if a.adopt(first, nil); len(a.alive()) != 2 {
		t.Errorf("%d members at level 0, want 2", len(a.alive()))
	}
	a.adopt(ring.Raise(first, a.self.Member, 1), nil)
	if got := a.alive(); len(got) != 1 || got[0].ID != "a" {
		t.Errorf("at level 1 there are %v", got)
	}
}

// TestAnnouncementsOfLaterLevels: what later builds append is passed over.
func TestAnnouncementsOfLaterLevels(t *testing.T) {
	m := announcement{seq: 7, Member: ring.Member{ID: "a", Boot: 1, Epoch: 3, Issuer: "a@1", TableLevel: 2}, has: settingsMark{3, 1 << 63}}
	got, err := decodeAnnouncement(append(m.encode(), "what they say"...))
	if err != nil || got != m {
		t.Errorf("announcement %+v becomes %+v, %v", m, got, err)
	}
}

// TestAnnouncementsFitIntoGossip: memberlist panics over an announcement that is longer.
func TestAnnouncementsFitIntoGossip(t *testing.T) {
	m := announcement{seq: math.MaxUint64, has: settingsMark{1 << 62, math.MaxUint64}, Member: ring.Member{
		ID: strings.Repeat("i", ring.MaxID), Addr: strings.Repeat("a", ring.MaxAddr), Admin: strings.Repeat("m", ring.MaxAddr),
		Boot: math.MaxInt64, Epoch: 1 << 62, TableLevel: math.MaxUint8,
	}}
	m.Issuer = m.Name()
	if n := len(m.encode()); n > memberlist.MetaMaxSize {
		t.Errorf("the longest announcement takes %d bytes, want at most %d", n, memberlist.MetaMaxSize)
	}
}

// lockedBuffer is a log that tests read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
