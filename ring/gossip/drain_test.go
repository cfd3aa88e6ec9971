package gossip

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/memberlist"

	"github.com/dunlin-cache/dunlin/ring"
)

// TestDrain: a drained node owns nothing and stays a member, until it is told to serve
// again.
func TestDrain(t *testing.T) {
	w := newWorld(t)
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

// TestPauseOutlivesTheCoordinator: what an operator has paused stays so under the next
// coordinator.
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

// TestDuplicateIDs: of two processes with one id only the newer is in the table, and
// the older knows that it is not, however long both live.
func TestDuplicateIDs(t *testing.T) {
	w := newWorld(t)
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

// TestStrangersAreRefused: a member that places keys differently is kept out, counted,
// and complained about once.
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
