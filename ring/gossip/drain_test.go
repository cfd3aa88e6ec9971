package gossip

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/memberlist"

	"github.com/dunlin-cache/dunlin/ring"
)

// TestDrain: a drained node owns nothing and stays a member, until it is told to serve again.
func TestDrain(t *testing.T) {
	w := newPatientWorld(t)
	a := w.start("a", nil)
	if err := a.Drain(true); err == nil {
		t.Error("the only node was drained")
	}
	w.settled(a)
	epoch := a.Table().Epoch
	b := w.start("b", []*testAgent{a})
	w.settled(a, b)
	drained := func(who *testAgent) {
		t.Helper()
		w.eventually(3*converged, func() string {
			for _, x := range []*testAgent{a, b} {
				if x.Table().NodeIndex(who.cfg.Self.ID, who.cfg.Self.Boot) >= 0 {
					return "it is in the table"
				}
				if len(x.Members()) != 2 {
					return "it is no member any more"
				}
			}
			return ""
		})
	}
	for _, who := range []*testAgent{a, b} { // a is the coordinator
		if err := who.Drain(true); err != nil {
			t.Error(err)
		}
		drained(who)
		if err := who.Drain(false); err != nil {
			t.Error(err)
		}
		w.settled(a, b)
	}
	if n := begunAnew(a.Table(), epoch); n > 0 {
		t.Errorf("%d partitions lost their data", n)
	}
}

// TestPauseOutlivesTheCoordinator: what an operator has paused stays so under the next coordinator.
func TestPauseOutlivesTheCoordinator(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", nil, twoCopies)
	w.settled(a)
	b := w.start("b", []*testAgent{a}, twoCopies)
	w.settled(a, b)
	if err := b.PauseRebalance(true); err == nil {
		t.Error("somebody else than the coordinator paused")
	}
	paused := func(want bool, agents ...*testAgent) {
		t.Helper()
		w.eventually(3*converged, func() string {
			for _, x := range agents {
				if x.Table().Paused != want {
					return x.name + " does not know"
				}
			}
			return ""
		})
	}
	if err := a.PauseRebalance(true); err != nil {
		t.Error(err)
	}
	paused(true, a, b)
	before := b.Table()
	c := w.start("c", []*testAgent{a}, twoCopies)
	w.settled(a, b, c)
	if c.Table().Owner != before.Owner {
		t.Error("partitions moved while rebalancing was paused")
	}
	w.crash(a)
	w.settled(b, c)
	paused(true, b, c)
	if err := b.PauseRebalance(false); err != nil {
		t.Error(err)
	}
	paused(false, b, c)
	w.settled(b, c)
	if n := b.Table().Counts(); n[0] == 0 || n[1] == 0 {
		t.Errorf("resumed, and the nodes own %d", n)
	}
}

// TestPauseWaitsForATable: an order stands while no table can be issued, but no longer than the
// coordinator is in office.
func TestPauseWaitsForATable(t *testing.T) {
	w := newWorld(t)
	log := &lines{}
	two := func(c *Config) {
		c.MinMembers = 2
		c.Log = slog.New(slog.NewTextHandler(log, nil))
	}
	a := w.start("a", nil, two)
	b := w.start("b", []*testAgent{a}, two)
	w.settled(a, b)
	inVain := 0
	pauseInVain := func(paused bool) {
		t.Helper()
		b.deaf.Store(true)
		if err := a.PauseRebalance(paused); err != nil {
			t.Fatal(err)
		}
		inVain++
		w.eventually(3*converged, func() string {
			if n := log.count("too few nodes answer"); n < inVain {
				return fmt.Sprintf("a has begun %d times to wait for answers, want %d", n, inVain)
			}
			return ""
		})
	}

	pauseInVain(true)
	b.deaf.Store(false)
	w.eventually(3*converged, func() string {
		if !b.Table().Paused {
			return "the order is lost"
		}
		return ""
	})

	pauseInVain(false)
	elder := w.start("elder", []*testAgent{a}, two, func(c *Config) { c.Self.Boot = 1 })
	w.eventually(converged, func() string {
		if _, elected, _ := a.Coordinator(); elected {
			return "a is still the coordinator"
		}
		return ""
	})
	b.deaf.Store(false)
	w.settled(a, b, elder)
	w.crash(elder)
	w.settled(a, b)
	if !a.Table().Paused {
		t.Error("in office again, a obeys an order of long ago")
	}
}

// TestDuplicateIDs: of two processes with one id only the newer is in the table, and the older
// knows that it is not, however long both live.
func TestDuplicateIDs(t *testing.T) {
	w := newPatientWorld(t)
	a := w.start("a", nil, twoCopies)
	w.settled(a)
	older := w.start("twin", []*testAgent{a}, twoCopies)
	w.settled(a, older)
	epoch := a.Table().Epoch
	newer := w.start("twin", []*testAgent{a}, twoCopies)
	w.eventually(3*converged, func() string {
		for _, x := range []*testAgent{a, older, newer} {
			table := x.Table()
			switch {
			case table == nil || table.NodeIndex("twin", newer.cfg.Self.Boot) < 0:
				return "the newer one is not in the table of " + x.name
			case table.NodeIndex("twin", older.cfg.Self.Boot) >= 0:
				return "the older one is in the table of " + x.name
			case !table.Settled(x.Members(), 2):
				return "partitions have yet to move"
			}
		}
		return ""
	})
	if n := begunAnew(a.Table(), epoch); n > 0 {
		t.Errorf("%d partitions of the older one, with followers, lost their data", n)
	}
}

// lines collects a log.
type lines struct {
	sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.Write(b)
}

func (l *lines) count(text string) int {
	l.Lock()
	defer l.Unlock()
	return strings.Count(l.String(), text)
}

// TestStrangersAreRefused: a member that places keys differently is kept out, counted, and
// complained about once.
func TestStrangersAreRefused(t *testing.T) {
	w := newWorld(t)
	var log lines
	a := w.start("a", nil, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	stranger := ring.Member{ID: "s", Boot: 1, Addr: "s:6380", Fingerprint: ring.Fingerprint() + 1}
	for range 3 {
		n := &memberlist.Node{Name: stranger.Name(), Meta: announcement{seq: 1, Member: stranger}.encode()}
		if (delegate{a.Agent}).NotifyAlive(n) == nil {
			t.Fatal("a member that places keys differently was accepted")
		}
	}
	if got := a.Stats().Rejected; got != 3 {
		t.Errorf("%d members were refused, want 3", got)
	}
	log.Lock()
	defer log.Unlock()
	if n := strings.Count(log.String(), "fingerprint"); n != 1 {
		t.Errorf("the log has %d lines about fingerprints, want 1:\n%s", n, &log.Buffer)
	}
}
