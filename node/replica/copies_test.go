package replica

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// trio returns the table of three nodes a, b and c, in which a owns everything.
func trio() *ring.Table {
	t := &ring.Table{Epoch: 3, Issuer: "a@1", Seed: 42}
	for i, id := range []string{"a", "b", "c"} {
		t.Nodes = append(t.Nodes, ring.Member{ID: id, Boot: int64(i + 1)})
		t.Joined = append(t.Joined, 1)
	}
	for p := range t.Owner {
		t.Follower[p], t.Since[p] = ring.NoNode, 1
	}
	return t
}

// seenBy returns t as the node obeys it after a view, or as its first table.
func seenBy(id string, t *ring.Table, before *ownership.View) *ownership.View {
	return before.Next(t, id, int64(id[0]-'a'+1))
}

// after returns the table that follows t, as f changes it.
func after(t *ring.Table, f func(next *ring.Table)) *ring.Table {
	next := *t
	next.Epoch++
	next.Nodes, next.Joined = slices.Clone(t.Nodes), slices.Clone(t.Joined)
	f(&next)
	return &next
}

// copyRig drives the Copies of node b, and keeps what the storage would do.
type copyRig struct {
	*Copies
	t     *testing.T
	admit map[uint16]string
	now   time.Duration
}

func newCopyRig(t *testing.T, v *ownership.View) *copyRig {
	r := &copyRig{Copies: NewCopies(nil), t: t, admit: make(map[uint16]string), now: time.Hour}
	r.Settle(v)
	return r
}

// said runs the actions and returns them in words.
func (r *copyRig) said() string {
	r.t.Helper()
	var words []string
	for _, a := range r.Actions() {
		switch a.Do {
		case CopyAdmit:
			r.admit[a.Partition] = a.Source
			words = append(words, fmt.Sprintf("admit %d %s", a.Partition, a.Source))
		case CopyShut:
			delete(r.admit, a.Partition)
			words = append(words, fmt.Sprint("shut ", a.Partition))
		case CopyForget:
			if r.admit[a.Partition] != "" {
				r.t.Errorf("%d is emptied while %s may add to it", a.Partition, r.admit[a.Partition])
			}
			words = append(words, fmt.Sprint("forget ", a.Partition))
		case CopySpare:
			words = append(words, fmt.Sprintf("spare %d %t", a.Partition, a.Spare))
		case CopyRefuse:
			words = append(words, fmt.Sprintf("refuse %d %s", a.Partition, a.Source))
		case CopyUnseal:
			words = append(words, fmt.Sprintf("unseal %d %d", a.Partition, a.Seal))
		case CopyAccept:
			words = append(words, fmt.Sprintf("take %d %s", a.Partition, a.Source))
		}
	}
	return strings.Join(words, ", ")
}

func (r *copyRig) want(want string) {
	r.t.Helper()
	if got := r.said(); got != want {
		r.t.Fatalf("the actions are %q, want %q", got, want)
	}
}

func (r *copyRig) marked(source string, p uint16, kind uint8, arg uint64) {
	r.Marked(source, p, Mark{kind, arg}, r.now)
}

// synced has the copy of p in sync.
func (r *copyRig) synced(source string, p uint16, since uint64) {
	r.marked(source, p, MarkBegin, since)
	r.marked(source, p, MarkSynced, 0)
	r.said()
}

func always(answer bool) func(string, uint16) bool {
	return func(string, uint16) bool { return answer }
}

// reported reports whether b's copy of p counts as in sync.
func (r *copyRig) reported(p uint16, v *ownership.View, heard time.Duration) bool {
	report := new(ring.Report)
	r.Report(report, v, r.now, func(string) time.Duration { return heard })
	return report.Has(p)
}

func follows(p uint16) *ownership.View {
	t := trio()
	t.Follower[p] = 1
	return seenBy("b", t, ownership.None)
}

func TestCopyFollowsItsMarks(t *testing.T) {
	v := follows(7)
	r := newCopyRig(t, v)
	r.marked("a@1", 7, MarkSynced, 0)
	r.marked("a@1", 8, MarkBegin, 1)
	r.marked("c@3", 7, MarkBegin, 1)
	r.want("refuse 7 a@1, refuse 8 a@1, refuse 7 c@3")
	r.marked("a@1", 7, MarkBegin, 1)
	r.want("forget 7, spare 7 true, take 7 a@1, admit 7 a@1")
	r.marked("a@1", 7, MarkHanded, 5)
	r.want("refuse 7 a@1")
	r.marked("a@1", 7, MarkSynced, 0)
	r.marked("c@3", 7, MarkHanded, 5)
	r.want("refuse 7 c@3")
	r.marked("a@1", 7, MarkBegin, 1) // anew: it is shut before it is emptied
	r.want("shut 7, forget 7, spare 7 true, take 7 a@1, admit 7 a@1")
	r.marked("a@1", 7, MarkSynced, 0)
	r.marked("a@1", 7, MarkHanded, 5)
	r.want("shut 7")
	r.marked("c@3", 7, MarkContinue, 6)
	r.want("refuse 7 c@3")
	r.marked("a@1", 7, MarkContinue, 5)
	r.want("spare 7 true, take 7 a@1, admit 7 a@1")
	r.Void("c@3")
	r.want("")
	r.Void("a@1")
	r.want("shut 7, forget 7")
}

// The next owner's first mark ends what the owner before may add, before the copy is emptied for
// it: an effect of the owner before that arrived between the two would stay in the next owner's
// copy.
func TestCopyIsShutBeforeItIsEmptied(t *testing.T) {
	v := follows(7)
	r := newCopyRig(t, v)
	r.synced("a@1", 7, 1)
	next := seenBy("b", after(v.Table, func(n *ring.Table) { n.Owner[7] = 2 }), v)
	r.Review(next, false, map[string]bool{"a@1": true, "c@3": true}, nil)
	r.Settle(next)
	r.said()
	r.marked("c@3", 7, MarkBegin, 1)
	r.want("shut 7, forget 7, spare 7 true, take 7 c@3, admit 7 c@3")
}

// An owner ends its feed under a table that this node misses, and has the next table begin it again.
// Until then the owner's other partitions keep its stream alive, and the old copy lacks what was
// written meanwhile.
func TestCopyOfAnEndedFeedIsNotInSync(t *testing.T) {
	for _, silent := range []bool{false, true} {
		v := follows(7)
		b := newCopyRig(t, v)
		a := NewSender(1, 1, &Broken{StopInSilence: silent})
		deliver := func() {
			for _, action := range a.Actions() {
				switch action.Do {
				case SendFeed, SendUnfeed, SendMark:
					b.Marked("a@1", action.Partition, action.Mark, b.now)
				}
			}
		}
		a.Sync(7, 1)
		a.Next(b.now)
		a.Filled(0, true)
		if deliver(); !b.reported(7, v, b.now) {
			t.Fatal("the copy is not in sync")
		}
		a.Stop(7)
		next := seenBy("b", after(after(v.Table, func(*ring.Table) {}), func(*ring.Table) {}), v)
		b.Review(next, false, map[string]bool{"a@1": true}, nil)
		b.Settle(next)
		a.Sync(7, 1) // it waits for its turn
		if deliver(); b.reported(7, next, b.now) != silent {
			t.Errorf("the copy is in sync: %t, though its feed has ended; the owner has said so: %t", !silent, !silent)
		}
	}
}

// The owner's first mark shows that it began with other data than was handed over to this node: the
// copy may lack what an owner in between has written.
func TestCopyOfAnotherSealIsDropped(t *testing.T) {
	v := follows(7)
	r := newCopyRig(t, v)
	r.synced("a@1", 7, 1)
	r.marked("a@1", 7, MarkHanded, 5)
	r.said()
	if !r.reported(7, v, Never) {
		t.Fatal("the copy is not in sync")
	}
	r.marked("a@1", 7, MarkContinue, 6)
	r.want("forget 7, refuse 7 a@1")
	if r.reported(7, v, r.now) {
		t.Error("the copy is in sync")
	}
}

// Freshness is judged by the clock that never steps: a copy counts for as long as its owner was
// heard in the last 4 s of that, and one that was never heard does not, however young that clock
// is.
func TestCopyIsFreshByMonotonicTime(t *testing.T) {
	v := follows(7)
	r := newCopyRig(t, v)
	r.now = time.Second
	r.synced("a@1", 7, 1)
	if !r.reported(7, v, 0) {
		t.Error("a copy is not in sync whose owner was heard a second ago")
	}
	if r.reported(7, v, Never) {
		t.Error("a copy is in sync whose owner was never heard")
	}
	r.now = CopyPatience
	if r.reported(7, v, 0) {
		t.Error("a copy is in sync whose owner has been silent too long")
	}
	if !r.reported(7, v, 1) {
		t.Error("a copy is not in sync whose owner was just heard")
	}
	r.marked("a@1", 7, MarkHanded, 5)
	if !r.reported(7, v, Never) {
		t.Error("a copy that was just handed over is not in sync")
	}
	r.now += CopyPatience
	if r.reported(7, v, r.now) {
		t.Error("a copy that was handed over long ago, and never continued, is in sync")
	}
}

func TestCopiesAreClaimed(t *testing.T) {
	base := trio()
	base.Follower[1], base.Follower[2], base.Follower[3], base.Follower[4] = 1, 1, 1, 1
	v := seenBy("b", base, ownership.None)
	r := newCopyRig(t, v)
	for p := range uint16(5) {
		r.synced("a@1", p, 1)
	}
	r.marked("a@1", 1, MarkHanded, 5)
	r.marked("a@1", 3, MarkBegin, 1)
	r.said()
	next := seenBy("b", after(base, func(n *ring.Table) {
		for p := range 5 {
			n.Owner[p], n.Follower[p] = 1, ring.NoNode
		}
		n.Since[4] = n.Epoch // its data begins anew
	}), v)
	r.Settle(next.WithGained())
	claims, lost := r.Claim(next, always(false))
	r.want("forget 0, shut 2, shut 3, forget 3, shut 4, forget 4")
	want := map[uint16]Claim{0: {}, 1: {true, 5}, 2: {true, 0}, 3: {}, 4: {}}
	if fmt.Sprint(claims) != fmt.Sprint(want) || lost != 2 {
		t.Errorf("the claims are %v, %d lost, want %v", claims, lost, want)
	}

	r = newCopyRig(t, v)
	r.synced("a@1", 2, 1)
	if claims, _ := r.Claim(next, always(true)); claims[2].Kept {
		t.Error("a copy is kept whose owner has acknowledged the table, and not handed it over")
	}
}

func TestCopiesAreReviewed(t *testing.T) {
	base := trio()
	for p := range 6 {
		base.Follower[p] = 1
	}
	v := seenBy("b", base, ownership.None)
	present := map[string]bool{"a@1": true, "c@3": true}
	fresh := func() *copyRig {
		r := newCopyRig(t, v)
		for p := range uint16(6) {
			r.synced("a@1", p, 1)
		}
		r.marked("a@1", 5, MarkHanded, 55)
		r.said()
		return r
	}
	next := seenBy("b", after(base, func(n *ring.Table) {
		n.Follower[0] = ring.NoNode
		n.Since[1] = n.Epoch
		n.Owner[2] = 1
		n.Follower[5] = ring.NoNode
	}), v)
	r := fresh()
	r.Review(next, false, present, map[uint64]bool{55: true})
	r.want("shut 0, forget 0, shut 1, forget 1, spare 3 true, spare 4 true")
	r.Ask(next)
	r.want("refuse 1 a@1")
	r = fresh()
	r.Review(next, false, map[string]bool{"c@3": true}, nil) // a has died
	r.want("shut 0, forget 0, shut 1, forget 1, shut 3, forget 3, shut 4, forget 4, forget 5")
	r = fresh()
	r.Review(next, true, present, nil)
	if got := r.said(); strings.Count(got, "forget") != 6 {
		t.Errorf("after an absence %q, want that all are dropped", got)
	}
}

// What this node keeps only to send it does not count as in sync, and goes when that is done.
func TestCopiesAreKeptAfterALoss(t *testing.T) {
	v := follows(7)
	for _, away := range []bool{false, true} {
		r := newCopyRig(t, v)
		h := &HandOver{Lost: []Lost{{Partition: 7, Since: 1, Seal: 5}}, Away: away}
		r.Keep("b@2", h, r.now)
		if got := r.reported(7, v, Never); got == away {
			t.Errorf("after an absence %t, the copy is in sync %t", away, got)
		}
		r.Unkeep(h)
		r.want("spare 7 false, unseal 7 5, forget 7")
		if r.Of(7).State != NoCopy {
			t.Errorf("the copy is still %v", r.Of(7).State)
		}
	}
}

// A node that was away hands over what it had, in vain, while the owner begins to feed it: what it
// has then is not what it has sealed, and must not be sent as that. The owner could take it for its
// own copy, once a table makes the two change places.
func TestCopyIsNotHandedOverOnceItChanges(t *testing.T) {
	v := follows(7)
	s := NewSender(1, 1, nil)
	s.Sync(7, 1)
	s.Hand(7, 5, true)
	for _, change := range []func(r *copyRig){
		func(r *copyRig) { r.marked("a@1", 7, MarkBegin, 1) },
		func(r *copyRig) { r.marked("a@1", 7, MarkContinue, 5) },
		func(r *copyRig) {
			r.Claim(seenBy("b", after(v.Table, func(n *ring.Table) { n.Owner[7] = 1 }), v), always(true))
		},
	} {
		r := newCopyRig(t, v)
		r.Keep("b@2", &HandOver{Lost: []Lost{{Partition: 7, Since: 1, Seal: 5}}}, r.now)
		r.want("spare 7 false")
		change(r)
		if got := r.said(); !strings.HasPrefix(got, "unseal 7 5") {
			t.Errorf("the actions are %q, want that the hand-over ends first", got)
		}
	}
	s.Abandon(7, 6)
	if s.Owed() != 1 {
		t.Error("another hand-over is abandoned")
	}
	s.Abandon(7, 5)
	if s.Owed() != 0 || s.Unfinished() != 0 {
		t.Error("the hand-over is not abandoned")
	}
}
