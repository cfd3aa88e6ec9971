package gossip

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

func TestPulseCountsAStandstillOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pulse{start: time.Now()}
		time.Sleep(standstill / 2)
		if n := p.standstills(); n != 0 {
			t.Errorf("%d standstills after half of one", n)
		}
		time.Sleep(standstill)
		if n := p.standstills(); n != 1 {
			t.Errorf("%d standstills after one that is not over, want 1", n)
		}
		done := make(chan struct{})
		go p.run(done)
		time.Sleep(5 * beatInterval)
		if n := p.standstills(); n != 1 {
			t.Errorf("%d standstills after one, want 1", n)
		}
		close(done)
		synctest.Wait()
	})
}

// A table that came from another member names nodes that gossip has not brought yet: they are waited for, but not for ever, and
// not when a newer life of theirs is there.
func TestUnmetNodesAreWaitedFor(t *testing.T) {
	s := newSteering()
	met := ring.Member{ID: "n1", Boot: 1}
	unmet := ring.Member{ID: "n2", Boot: 1}
	table := &ring.Table{Nodes: []ring.Member{met, unmet}}
	s.met = map[string]bool{met.Name(): true}
	now := time.Now()
	if !s.expects(table, []ring.Member{met}, now) {
		t.Error("n2 is not waited for")
	}
	if s.expects(table, []ring.Member{met}, now.Add(healWait)) {
		t.Error("n2 is waited for for ever")
	}
	if s.expects(table, []ring.Member{met, {ID: "n2", Boot: 2}}, now) {
		t.Error("an older life of n2 is waited for")
	}
	if s.met[unmet.Name()] = true; s.expects(table, []ring.Member{met}, now) {
		t.Error("n2 is waited for though it died before our eyes")
	}
}

// Nodes that start together come into one table, if they take no longer than a while.
func TestChangesAreCollected(t *testing.T) {
	begin := time.Now()
	f := func(what string, first, last, issued, now, want time.Duration) {
		t.Helper()
		s := newSteering()
		s.firstChange, s.lastChange, s.lastIssue = begin.Add(first), begin.Add(last), begin.Add(issued)
		if got := s.untilDue(begin.Add(now)); got != want {
			t.Errorf("%s: the next table is due in %v, want %v", what, got, want)
		}
	}
	const long, millis = -time.Hour, time.Millisecond
	f("one change", 0, 0, long, 0, settle)
	f("another one soon after", 0, 100*millis, long, 100*millis, settle)
	f("one after another", 0, settleAtMost-50*millis, long, settleAtMost-50*millis, 50*millis)
	f("they do not end", 0, settleAtMost, long, settleAtMost, 0)
	f("a table just before", 0, 0, 0, settle, issueInterval-settle)
}
