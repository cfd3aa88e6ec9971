package replica

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

func feedWords(f *Feeding) string {
	var words []string
	for _, a := range f.Actions() {
		switch a.Do {
		case FeedOpen:
			words = append(words, "open "+a.Member.Name())
		case FeedClose:
			words = append(words, "close "+a.To)
		case FeedSync:
			words = append(words, fmt.Sprintf("sync %d %s %d", a.Partition, a.To, a.Since))
		case FeedResume:
			words = append(words, fmt.Sprintf("resume %d %s %d/%d", a.Partition, a.To, a.Since, a.Seal))
		case FeedStop:
			words = append(words, fmt.Sprintf("stop %d %s", a.Partition, a.To))
		case FeedHand:
			words = append(words, fmt.Sprintf("hand %d %s %d %t", a.Partition, a.To, a.Seal, a.Heir))
		case FeedRest:
			words = append(words, fmt.Sprint("rest ", a.Partition))
		case FeedForget:
			words = append(words, fmt.Sprint("forget ", a.Partition))
		case FeedKeep:
			words = append(words, fmt.Sprintf("keep %v for %v", a.HandOver.Lost, a.HandOver.Heirs))
		case FeedUnkeep:
			words = append(words, fmt.Sprintf("unkeep %v", a.HandOver.Lost))
		case FeedReview:
			words = append(words, "review")
		}
	}
	return strings.Join(words, ", ")
}

// served returns the view of node a that serves the partitions of t that it owns.
func served(t *ring.Table, before *ownership.View) *ownership.View {
	return seenBy("a", t, before).WithGained()
}

// owned returns a table in which a owns so many partitions and c all others.
func owned(count int) *ring.Table {
	t := trio()
	for p := count; p < ring.Partitions; p++ {
		t.Owner[p] = 2
	}
	return t
}

func TestFeedingFollowsTheTable(t *testing.T) {
	f := NewFeeding(nil)
	want := func(want string) {
		t.Helper()
		if got := feedWords(f); got != want {
			t.Fatalf("the actions are %q, want %q", got, want)
		}
	}
	base := owned(3)
	base.Follower[0], base.Follower[1] = 1, 2
	v := served(base, ownership.None)
	f.Refeed(v, map[uint16]Claim{0: {Kept: true, Seal: 5}, 1: {Kept: true}, 2: {}}, nil)
	want("open b@2, resume 0 b@2 1/5, open c@3, sync 1 c@3 1")
	f.Refeed(v, nil, nil)
	want("")
	moving := after(base, func(n *ring.Table) {
		n.Follower[1] = ring.NoNode
		n.Moves = []ring.Move{{Partition: 2, From: 0, To: 1}, {Partition: 1, From: 0, To: 1}}
	})
	v = seenBy("a", moving, v)
	f.Refeed(v, nil, func(list []uint16) { list[0], list[1] = list[1], list[0] })
	want("stop 1 c@3, sync 2 b@2 1, sync 1 b@2 1")
	gone := after(moving, func(n *ring.Table) {
		n.Nodes, n.Joined, n.Moves = n.Nodes[:1], n.Joined[:1], nil
		n.Follower[0] = ring.NoNode
		for p := range n.Owner {
			n.Owner[p] = 0
		}
	})
	f.Refeed(served(gone, v), nil, nil)
	want("stop 0 b@2, stop 1 b@2, stop 2 b@2, close b@2, close c@3")
}

func TestFeedingHandsOver(t *testing.T) {
	f := NewFeeding(nil)
	base := owned(4)
	base.Follower[0], base.Follower[1], base.Follower[2] = 1, 2, 1
	v := served(base, ownership.None)
	f.Refeed(v, nil, nil)
	feedWords(f)
	next := seenBy("a", after(base, func(n *ring.Table) {
		n.Owner[0] = 1 // to the node that was fed it
		n.Owner[1] = 1 // to another one than that
		n.Owner[2], n.Since[2] = 1, n.Epoch
		n.Owner[3] = 1 // nobody was fed it
	}), v)
	seals := uint64(70)
	f.HandOver(v, next, false, func() uint64 { seals++; return seals })
	if got, want := feedWords(f), "rest 0, hand 0 b@2 71 true, rest 1, hand 1 c@3 72 false, forget 1, rest 2, stop 2 b@2, forget 2, rest 3, forget 3, keep [{0 1 71}] for [b@2]"; got != want {
		t.Fatalf("the actions are %q, want %q", got, want)
	}
	if !f.Spared()[71] || len(f.Spared()) != 1 || len(f.Pending()) != 1 {
		t.Errorf("spared are %v of %d hand-overs", f.Spared(), len(f.Pending()))
	}
	// The heir leaves the table: its stream stays until it has what was handed over.
	left := after(next.Table, func(n *ring.Table) {
		n.Nodes, n.Joined = n.Nodes[:1], n.Joined[:1]
		for p := range n.Owner {
			n.Owner[p], n.Follower[p] = 0, ring.NoNode
		}
	})
	v = seenBy("a", left, next)
	f.Refeed(v, nil, nil)
	if got := feedWords(f); got != "close c@3" {
		t.Fatalf("the actions are %q, want that only c's stream closes", got)
	}
	f.Ended(f.Pending()[0], v)
	if got := feedWords(f); got != "review, close b@2" {
		t.Errorf("the actions are %q", got)
	}
}

// What is held is fed on, whatever tables say, until its hold has ended.
func TestFeedingOfWhatIsHeld(t *testing.T) {
	base := owned(2)
	base.Follower[0], base.Follower[1] = 1, 1
	hand := func(next *ownership.View, away bool, want string) {
		t.Helper()
		f := NewFeeding(nil)
		v := served(base, ownership.None)
		f.Refeed(v, nil, nil)
		lost := *seenBy("a", after(base, func(n *ring.Table) { n.Owner[0], n.Owner[1] = 1, 1 }), v)
		lost.Held.Add(0)
		rest := *v
		rest.Standing[0] = ownership.Foreign
		seals := uint64(70)
		seal := func() uint64 { seals++; return seals }
		f.HandOver(&rest, &lost, false, seal)
		f.Ended(f.Pending()[0], &lost)
		feedWords(f)
		f.Refeed(&lost, nil, nil)
		if got := feedWords(f); got != "" {
			t.Errorf("while it is held: %q", got)
		}
		rest.Standing[0], rest.Standing[1] = ownership.Serving, ownership.Foreign
		f.HandOver(&rest, next, away, seal)
		if got := feedWords(f); got != want {
			t.Errorf("the actions are %q, want %q", got, want)
		}
		if len(f.Spared()) != len(f.Pending()) {
			t.Errorf("%d seals are spared for %d hand-overs", len(f.Spared()), len(f.Pending()))
		}
	}
	v := served(base, ownership.None)
	next := seenBy("a", after(base, func(n *ring.Table) { n.Owner[0], n.Owner[1] = 1, 1 }), v)
	hand(next, false, "rest 0, hand 0 b@2 72 true, keep [{0 1 72}] for [b@2]")
	back := seenBy("a", after(next.Table, func(n *ring.Table) { n.Owner[0] = 0 }), next)
	hand(back, false, "rest 0, hand 0 b@2 72 false, keep [{0 1 72}] for []")
	hand(back, true, "rest 0, stop 0 b@2, forget 0")
	anew := seenBy("a", after(next.Table, func(n *ring.Table) { n.Owner[0], n.Since[0] = 0, n.Epoch }), next)
	hand(anew, false, "rest 0, stop 0 b@2, forget 0")
}

// Of another cluster's table nothing is handed over; after an absence what is handed over goes
// then.
func TestFeedingHandsOverAfterAnAbsence(t *testing.T) {
	for _, seed := range []uint64{42, 43} {
		f := NewFeeding(nil)
		base := owned(1)
		base.Follower[0] = 1
		v := served(base, ownership.None)
		f.Refeed(v, nil, nil)
		feedWords(f)
		next := seenBy("a", after(base, func(n *ring.Table) { n.Owner[0], n.Seed = 1, seed }), v)
		f.HandOver(v, next, true, func() uint64 { return 9 })
		got := feedWords(f)
		if seed != 42 {
			if got != "" {
				t.Errorf("to another cluster: %q", got)
			}
			f.Clear()
			if got := feedWords(f); got != "close b@2" {
				t.Errorf("the streams are ended by %q", got)
			}
			continue
		}
		f.Ended(f.Pending()[0], next)
		if got := feedWords(f); !strings.HasPrefix(got, "unkeep [{0 1 9}], review") {
			t.Errorf("the actions are %q", got)
		}
	}
}
