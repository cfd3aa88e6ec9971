package chaos

import (
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestChaosFeeds lets a node join and leave in order, and then kills and freezes others, while
// clients wait for what others push, read streams as consumers of a group, and listen to what
// others publish and change. While nodes leave in order, nothing may be lost.
func TestChaosFeeds(t *testing.T) {
	x := startRig(t)
	x.KeepsAll.Store(true)
	x.awaitFeeds()
	x.Announce()
	fourth := harness.NewMember(t, "node", "n4")
	fourth.Flags = x.C.Node(0).Flags
	x.C.Members = append(x.C.Members, fourth)
	begin := time.Now()
	failed := x.during("join of n4", fourth, fourth.Launch)
	failed += x.during("end of n4 by SIGTERM", fourth, func() { x.leaves(fourth) })
	if failed > 0 && !x.disturbed(begin) {
		x.Violate("a node that joins and leaves in order caused %d errors", failed)
	}
	x.AllHeard(true)
	x.KeepsAll.Store(false)
	victim := x.C.Node(1)
	x.during("SIGKILL "+victim.ID, victim, func() { x.Kill(victim) })
	x.during("restart "+victim.ID, victim, victim.Launch)
	victim = x.C.Node(0)
	x.during("SIGSTOP "+victim.ID, victim, func() { x.Freeze(victim) })
	x.during("SIGCONT "+victim.ID, victim, victim.Cont)
	x.Finish()
}

// awaitFeeds waits until clients work on feeds and journals.
func (x *Rig) awaitFeeds() {
	x.T.Helper()
	harness.Eventually(x.T, harness.ReadyTimeout, "the cluster's level allows feeds and streams", func() bool { return x.Tables.atLevel(ring.StreamsLevel) })
	harness.Eventually(x.T, harness.AnswerTime, "items are taken", func() bool {
		x.feeding.mu.Lock()
		defer x.feeding.mu.Unlock()
		return x.feeding.taken > 100
	}, x.Shown)
	harness.Eventually(x.T, harness.AnswerTime, "entries of streams are delivered", func() bool {
		x.journaling.mu.Lock()
		defer x.journaling.mu.Unlock()
		return x.journaling.delivered > 100
	}, x.Shown)
}

// TestChaosFeedsNotice checks what is noticed of a feed.
func TestChaosFeedsNotice(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	f := newFeed("k")
	numbers, texts := f.several(4)
	f.pushed(numbers[:2], Executed)
	f.pushed(numbers[2:3], notExecuted)
	took := func(text, wrong string, revived bool) {
		t.Helper()
		_, lost, err := take([]*Feed{f}, "k", text, at(1), at(2))
		if wrong != "" && (err == nil || err.Error() != wrong) || wrong == "" && err != nil || (lost != nil) != revived {
			t.Errorf("item %q is taken: %v, %v; want %q", text, lost, err, wrong)
		}
	}
	took(texts[0], "", false)
	took(texts[0], "", true) // to be judged by deaths
	took(texts[2], "k=3 shows, though its command was not executed", false)
	took(texts[3], "", false) // nobody knows yet whether it was pushed
	took("k=5", "k=5 was never sent", false)
	took("other=1", `k has "other=1", which is no item of it`, false)
	if _, _, err := take([]*Feed{f}, "other", texts[1], at(1), at(2)); err == nil {
		t.Error("an item of another key is believed")
	}
	if lost := f.missing(at(3)); len(lost) != 1 || lost[0].what != "k=2 is lost" || f.isFull(feedAhead) {
		t.Errorf("missing: %v", lost)
	}
	f.items[2].left = true
	if lost := f.missing(at(3)); len(lost) > 0 {
		t.Errorf("missing: %v", lost)
	}
	for range keptItems {
		_, texts = f.several(1)
		took(texts[0], "", false)
	}
	if f.forget(time.Now().Add(2 * keptTime)); len(f.items) != 1 {
		t.Errorf("%d items are kept, want the one that nobody has taken", len(f.items))
	}
	took(texts[0], texts[0]+" was over more than 1m0s ago", false)
	took("k=2", "", false)
}
