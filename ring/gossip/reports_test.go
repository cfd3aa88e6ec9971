package gossip

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

func twoCopies(c *Config) { c.Copies = 2 }

// settled waits until the agents, which are all nodes, have a table that is what the ring asks for.
func (w *world) settled(agents ...*testAgent) {
	w.t.Helper()
	w.eventually(3*converged, func() string {
		var ids []string
		for _, a := range agents {
			ids = append(ids, a.cfg.Self.ID)
		}
		slices.Sort(ids)
		if wrong := disagreement(agents, ids); wrong != "" {
			return wrong
		}
		first := agents[0]
		if !first.Table().Settled(first.Members(), first.cfg.Copies) {
			return "the table is not what the ring asks for"
		}
		return ""
	})
}

// begunAnew counts the partitions whose data are younger than epoch.
func begunAnew(t *ring.Table, epoch uint64) (n int) {
	for _, since := range t.Since {
		if since > epoch {
			n++
		}
	}
	return n
}

func TestJoinAndLeaveMoveData(t *testing.T) {
	w := newPatientWorld(t)
	a := w.start("a", nil, twoCopies)
	w.settled(a)
	first := a.Table().Epoch
	b := w.start("b", []*testAgent{a}, twoCopies)
	c := w.start("c", []*testAgent{a}, twoCopies)
	w.settled(a, b, c)
	if n := begunAnew(a.Table(), first); n > 0 {
		t.Errorf("two nodes joined, and %d partitions lost their data", n)
	}
	a.Leave(3 * converged) // the coordinator
	if b.Table().NodeIndex("a", a.cfg.Self.Boot) >= 0 {
		t.Error("Leave returned while the table still names the leaver")
	}
	w.crash(a)
	w.settled(b, c)
	if n := begunAnew(b.Table(), first); n > 0 {
		t.Errorf("a node left, and %d partitions lost their data", n)
	}
}

// TestLeaverSaysGoodbyeLast: what a leaver does when the table has let it go, it does as a member.
func TestLeaverSaysGoodbyeLast(t *testing.T) {
	w := newPatientWorld(t)
	a := w.start("a", nil)
	w.settled(a)
	left := make(chan string, 1)
	b := w.start("b", []*testAgent{a}, func(c *Config) {
		c.OnLeave = func(_ context.Context, without *ring.Table) {
			switch {
			case without.NodeIndex("b", c.Self.Boot) >= 0:
				left <- "the table still names b"
			case len(a.Members()) != 2:
				left <- "b has said goodbye already"
			default:
				left <- ""
			}
		}
	})
	w.settled(a, b)
	b.Leave(3 * converged)
	select {
	case wrong := <-left:
		if wrong != "" {
			t.Error(wrong)
		}
	default:
		t.Error("b left without a word to its owner")
	}
}

// TestLeaveIsBounded: a node whose data nobody takes over in time goes without them.
func TestLeaveIsBounded(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", nil)
	w.settled(a)
	b := w.start("b", []*testAgent{a})
	w.settled(a, b)
	epoch := a.Table().Epoch
	a.behind.Store(true)
	begun := time.Now()
	b.Leave(time.Second)
	if took := time.Since(begun); took < time.Second || took > converged {
		t.Errorf("Leave took %v, want about 1 s", took)
	}
	w.crash(b)
	w.settled(a)
	if begunAnew(a.Table(), epoch) == 0 {
		t.Error("the data that were left behind are there")
	}
}

func TestCrashPromotesFollowers(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", nil, twoCopies)
	b := w.start("b", []*testAgent{a}, twoCopies)
	c := w.start("c", []*testAgent{a}, twoCopies)
	d := w.start("d", []*testAgent{a}, twoCopies)
	w.settled(a, b, c, d)
	epoch := b.Table().Epoch
	w.crash(a) // the coordinator: its successor has to ask first
	w.settled(b, c, d)
	if n := begunAnew(b.Table(), epoch); n > 0 {
		t.Errorf("a node died, and %d partitions with a follower lost their data", n)
	}
	epoch = b.Table().Epoch
	b.behind.Store(true)
	followed := 0
	for p, f := range b.Table().Follower {
		if b.Table().OwnerOf(uint16(p)).ID == "d" && b.Table().Nodes[f].ID == "b" {
			followed++
		}
	}
	w.crash(d)
	w.settled(b, c)
	if n := begunAnew(b.Table(), epoch); n != followed || n == 0 {
		t.Errorf("%d partitions lost their data, want the %d whose follower was behind", n, followed)
	}
}

// TestLateHeirIsWaitedFor: a follower that has not heard of the present table when its owner is
// found dead still inherits.
func TestLateHeirIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	var late, asked atomic.Int32
	adapt := func(c *Config) {
		c.Copies = 2
		fetch := c.FetchReport
		c.FetchReport = func(ctx context.Context, addr string) (*ring.Report, error) {
			r, err := fetch(ctx, addr)
			if err == nil && late.Add(-1) >= 0 {
				asked.Add(1)
				r.Version.Epoch--
			}
			return r, err
		}
	}
	a := w.start("a", nil, adapt)
	b := w.start("b", []*testAgent{a}, adapt)
	c := w.start("c", []*testAgent{a}, adapt)
	w.settled(a, b, c)
	epoch := a.Table().Epoch
	late.Store(4) // the first two polls of two nodes each
	w.crash(c)
	w.settled(a, b)
	if n := begunAnew(a.Table(), epoch); n > 0 || asked.Load() != 4 {
		t.Errorf("%d partitions lost their data after %d late reports", n, asked.Load())
	}
}

// TestSilentHeirIsNotWaitedForLong: the partitions of a dead owner are served again although one
// who may have copies never says so.
func TestSilentHeirIsNotWaitedForLong(t *testing.T) {
	w := newWorld(t)
	none := func(c *Config) {
		c.Copies = 2
		c.FetchReport = func(context.Context, string) (*ring.Report, error) { return nil, context.DeadlineExceeded }
	}
	a := w.start("a", nil, none)
	b := w.start("b", []*testAgent{a}, none)
	w.agree([]*testAgent{a, b}, "a", "b")
	epoch := a.Table().Epoch
	w.crash(a)
	w.settled(b)
	if n := begunAnew(b.Table(), epoch); n == 0 {
		t.Error("nobody reported a copy, and nothing began anew")
	}
}

// TestSuccessorGoesOnMoving: the coordinator dies in the middle of moves that it has planned; the
// next coordinator completes them.
func TestSuccessorGoesOnMoving(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", nil, twoCopies)
	b := w.start("b", []*testAgent{a}, twoCopies)
	c := w.start("c", []*testAgent{a}, twoCopies)
	w.settled(a, b, c)
	epoch := a.Table().Epoch
	d := w.start("d", []*testAgent{a}, twoCopies, func(c *Config) { c.Self.State = ring.Joining })
	d.behind.Store(true)
	d.SetState(ring.Serving) // nobody has asked it for copies before
	w.agree([]*testAgent{a, b, c, d}, "a", "b", "c", "d")
	if len(a.Table().Moves) == 0 {
		t.Fatal("nothing moves to the node that has joined")
	}
	w.crash(a)
	w.agree([]*testAgent{b, c, d}, "b", "c", "d")
	d.behind.Store(false)
	w.settled(b, c, d)
	if n := begunAnew(b.Table(), epoch); n > 0 {
		t.Errorf("%d partitions lost their data", n)
	}
}

// TestSettledClusterIsNotPolled: reports are asked for while there is something to move, and not
// after.
func TestSettledClusterIsNotPolled(t *testing.T) {
	w := newPatientWorld(t)
	var polls atomic.Int32
	counted := func(c *Config) {
		c.Copies = 2
		fetch := c.FetchReport
		c.FetchReport = func(ctx context.Context, addr string) (*ring.Report, error) {
			polls.Add(1)
			return fetch(ctx, addr)
		}
	}
	a := w.start("a", nil, counted)
	w.settled(a)
	b := w.start("b", []*testAgent{a}, counted)
	w.settled(a, b)
	if polls.Load() == 0 {
		t.Error("nobody was asked while data moved")
	}
	before := polls.Load()
	for range 20 { // wakes of the coordinator
		b.SetState(ring.Serving)
		w.eventually(converged, func() string {
			if a.heardSeq(b) != b.ownAnnouncement().seq {
				return "a has not heard from b"
			}
			return ""
		})
	}
	if n := polls.Load() - before; n > 0 {
		t.Errorf("%d polls in a settled cluster", n)
	}
}

// heardSeq returns how new what a knows of b is.
func (a *testAgent) heardSeq(b *testAgent) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.peers[b.name].seq
}

// TestHandOversComeTogether: what moves little by little changes owners a few times, since commands
// wait each time, and at the end at once.
func TestHandOversComeTogether(t *testing.T) {
	w := newWorld(t)
	var polls atomic.Int32
	const all = 8 // polls until everything has moved, 250 ms apart
	a := w.start("a", nil, func(c *Config) {
		fetch := c.FetchReport
		c.FetchReport = func(ctx context.Context, addr string) (*ring.Report, error) {
			r, err := fetch(ctx, addr)
			if err != nil || !strings.HasPrefix(addr, "b.") {
				return r, err
			}
			if n := polls.Add(1); n < all {
				for i := range r.Synced {
					if i%all >= int(n) {
						r.Synced[i] = 0
					}
				}
			}
			return r, nil
		}
	})
	w.settled(a)
	before := a.issued.Load()
	w.settled(a, w.start("b", []*testAgent{a}))
	if n := a.issued.Load() - before; n >= all {
		t.Errorf("%d tables for moves that took %d polls, want a few", n, all)
	}
}
