package ownership

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// rig is a machine of node a@1, and what was asked of it last. It answers Barrier and Claim at
// once, HandOver with heirs.
type rig struct {
	t     *testing.T
	m     *Machine
	now   time.Duration
	heirs []string
	hand  uint64                    // the newest hand-over
	asks  map[string]uint64         // the newest Ask, by the member's name
	ended func(string, uint16) bool // of the newest Claim
	held  ring.PartitionSet         // what is held at a barrier

	claimed int // the newest Claim, once one has left something
}

func newRig(t *testing.T, broken ...Broken) *rig {
	c := Config{ID: "a", Boot: 1, StallLimit: 500 * time.Millisecond}
	if broken != nil {
		c.Broken = broken[0]
	}
	return &rig{t: t, m: New(c), asks: make(map[string]uint64)}
}

// want runs what the machine decides, and compares it: one word an action.
func (r *rig) want(want string) {
	r.t.Helper()
	var got []string
	for actions := r.m.Actions(); len(actions) > 0; actions = r.m.Actions() {
		for _, a := range actions {
			if word := r.run(a); word != "" {
				got = append(got, word)
			}
		}
	}
	if s := strings.Join(got, " "); s != want {
		r.t.Errorf("the machine wants\n  %s\nwant\n  %s", s, want)
	}
}

func (r *rig) run(a Action) string {
	switch a := a.(type) {
	case Obey:
		return fmt.Sprintf("obey:%d/%d+%d", a.View.Epoch(), a.View.Count(Serving), a.View.Count(Gained))
	case Barrier:
		r.m.BarrierPassed(r.now, r.held)
		return "barrier"
	case HandOver:
		r.hand = r.m.HandedTo(r.now, r.heirs)
		return "hand" + away(a.Away)
	case Reset:
		return fmt.Sprintf("reset:%d", a.Seed)
	case Drop:
		return fmt.Sprintf("drop:%d", len(a.Partitions))
	case Review:
		return "review" + away(a.Away)
	case Settle:
		return fmt.Sprintf("settle:%d", a.View.Count(Gained))
	case AskForCopies:
		return ""
	case Refeed:
		return "refeed"
	case Ask:
		r.asks[a.Member.Name()] = a.ID
		return fmt.Sprintf("ask:%s/%d", a.Member.Name(), a.Attempt)
	case CancelAsks:
		return "cancel"
	case Tell:
		return "tell:" + a.Member.Name()
	case Claim:
		r.ended = a.Ended
		gained := r.m.View().Count(Gained)
		r.m.Claimed(r.now)
		if n := a.View.Count(Gained); n < gained || r.claimed > 0 {
			r.claimed = n
			return fmt.Sprintf("claim:%d", n)
		}
		return "claim"
	case Finish:
		return "finish"
	case Reply:
		word := fmt.Sprintf("reply:%d/%d@%d", a.ID, a.Answer, a.Epoch)
		if !a.Held.Empty() {
			word += fmt.Sprint(" held:", listOf(a.Held))
		}
		return word
	}
	panic("BUG: unknown action")
}

func away(away bool) string {
	if away {
		return ":away"
	}
	return ""
}

func (r *rig) install(t *ring.Table) { r.m.Install(r.now, t) }

func (r *rig) obeyed(name string, epoch uint64) {
	r.m.Acknowledged(r.now, r.asks[name], name, epoch, ring.PartitionSet{})
}

// pass lets time pass until the machine is due.
func (r *rig) pass() {
	r.t.Helper()
	due, ok := r.m.Due()
	if !ok {
		r.t.Fatal("the machine waits for no time")
	}
	r.now = max(r.now, due)
	r.m.Tick(r.now)
}

func member(name string) ring.Member {
	var m ring.Member
	m.ID = name[:1]
	if _, err := fmt.Sscanf(name[1:], "@%d", &m.Boot); err != nil {
		panic(err)
	}
	m.Role, m.Addr = ring.RoleNode, "addr-"+m.ID
	return m
}

func members(names ...string) (list []ring.Member) {
	for _, name := range names {
		list = append(list, member(name))
	}
	return list
}

// table is one that follows before, nil: none. Of its nodes the partitions from 0 on belong to the
// first one, as many as share says, and so on.
func table(before *ring.Table, share map[string]int, names ...string) *ring.Table {
	t := &ring.Table{Epoch: 1, Issuer: "a@1", Seed: 7, Nodes: members(names...)}
	if before != nil {
		t.Epoch = before.Epoch + 1
		t.Ancestors = append([]ring.Version{before.Version()}, before.Ancestors...)
	}
	for range names {
		t.Joined = append(t.Joined, 1)
	}
	p := 0
	for i, name := range names {
		for range share[name] {
			t.Owner[p], t.Follower[p], t.Since[p] = uint16(i), ring.NoNode, 1
			p++
		}
	}
	if p != ring.Partitions {
		panic("BUG: not every partition has an owner")
	}
	return t
}

const all = ring.Partitions

// first has the machine serve everything but 1,000 partitions of b.
func (r *rig) first() *ring.Table {
	r.t.Helper()
	t := table(nil, map[string]int{"a@1": all - 1000, "b@2": 1000}, "a@1", "b@2")
	r.install(t)
	r.want("obey:1/0+3096 barrier reset:7 review settle:3096 refeed ask:b@2/0")
	r.obeyed("b@2", 1)
	r.want("settle:0 claim barrier refeed obey:1/3096+0")
	return t
}

func TestFirstTable(t *testing.T) {
	r := newRig(t)
	first := r.first()
	r.install(first)
	r.install(nil)
	r.want("") // neither is newer
	if _, ok := r.m.Due(); ok {
		t.Error("the machine waits for a time though it has everything")
	}
}

func TestAskUntilAcknowledged(t *testing.T) {
	r := newRig(t)
	first := r.first()
	r.install(table(first, map[string]int{"a@1": all - 500, "b@2": 500}, "a@1", "b@2"))
	r.want("obey:2/3096+500 barrier hand review settle:500 refeed ask:b@2/0")
	r.m.Failed(r.now, r.asks["b@2"], true) // it may just be starting
	r.want("")
	r.pass()
	r.want("ask:b@2/1")
	r.obeyed("b@2", 1) // by an older table
	r.want("")
	r.pass()
	r.want("ask:b@2/2")
	r.obeyed("b@2", 2)
	r.want("settle:0 claim barrier refeed obey:2/3596+0")
	if !r.ended("b@2", 3200) {
		t.Error("b acknowledged, and counts as one that cannot say any more")
	}
}

func TestAnotherLifeDoesNotAcknowledge(t *testing.T) {
	for _, broken := range []bool{false, true} {
		r := newRig(t, Broken{AnyoneAcknowledges: broken})
		first := r.first()
		r.install(table(first, map[string]int{"a@1": all - 500, "b@2": 500}, "a@1", "b@2"))
		r.want("obey:2/3096+500 barrier hand review settle:500 refeed ask:b@2/0")
		r.m.Acknowledged(r.now, r.asks["b@2"], "b@3", 2, ring.PartitionSet{})
		r.want("settle:0 claim barrier refeed obey:2/3596+0") // the life that was asked has ended
		if r.ended("b@2", 3200) != broken {
			t.Errorf("broken %v: b@2 has ended in an orderly way: %v", broken, !broken)
		}
	}
}

// TestDropped: a table dropped b as dead, which may just have stood still.
func TestDropped(t *testing.T) {
	drop := func(t *testing.T) *rig {
		r := newRig(t)
		r.install(table(r.first(), map[string]int{"a@1": all}, "a@1"))
		r.want("obey:2/3096+1000 barrier hand review settle:1000 refeed ask:b@2/0")
		return r
	}
	const served = "settle:0 claim barrier refeed obey:2/4096+0"
	t.Run("it acknowledges", func(t *testing.T) {
		r := drop(t)
		r.obeyed("b@2", 2)
		r.want(served)
		if !r.ended("b@2", 3200) {
			t.Error("it acknowledged, and counts as one that cannot say any more")
		}
	})
	t.Run("its process has ended", func(t *testing.T) {
		r := drop(t)
		r.m.Failed(r.now, r.asks["b@2"], true)
		r.want(served)
		if r.ended("b@2", 3200) {
			t.Error("it has died, and counts as one that ended in an orderly way")
		}
	})
	t.Run("it does not answer", func(t *testing.T) {
		r := drop(t)
		r.now += 50 * time.Millisecond
		r.m.Failed(r.now, r.asks["b@2"], false)
		r.want("")
		r.pass()
		r.want("ask:b@2/1")
		r.pass()
		if r.now != 500*time.Millisecond {
			t.Errorf("it is waited for until %v, want the stall limit", r.now)
		}
		r.want(served)
		r.obeyed("b@2", 2) // too late
		r.want("")
	})
}

// TestLeaving: a node outside the table is waited for while it is alive.
func TestLeaving(t *testing.T) {
	r := newRig(t)
	r.m.Members(members("a@1", "b@2", "c@3"))
	r.install(table(nil, map[string]int{"a@1": all}, "a@1"))
	r.want("obey:1/0+4096 barrier reset:7 review settle:4096 refeed ask:b@2/0 ask:c@3/0")
	r.m.Failed(r.now, r.asks["b@2"], false)
	r.obeyed("c@3", 1)
	r.want("")
	r.m.Members(members("a@1", "c@3"))
	r.pass()
	r.want("settle:0 claim barrier refeed obey:1/4096+0")
}

// TestNewerTableEndsTakeOver: what was asked for the older one no longer matters.
func TestNewerTableEndsTakeOver(t *testing.T) {
	r := newRig(t)
	t1 := table(nil, map[string]int{"a@1": 2048, "b@2": 1024, "c@3": 1024}, "a@1", "b@2", "c@3")
	r.install(t1)
	r.want("obey:1/0+2048 barrier reset:7 review settle:2048 refeed ask:b@2/0 ask:c@3/0")
	r.obeyed("c@3", 1)
	r.want("")
	old := r.asks["b@2"]
	t2 := table(t1, map[string]int{"a@1": 2048, "b@2": 1024, "c@3": 1024}, "a@1", "b@2", "c@3")
	r.install(t2) // nothing is gained with it: c need not acknowledge it
	r.want("obey:2/0+2048 barrier hand review settle:2048 refeed cancel ask:b@2/0")
	r.m.Acknowledged(r.now, old, "b@2", 1, ring.PartitionSet{})
	r.want("")
	r.obeyed("b@2", 2)
	r.want("settle:0 claim barrier refeed obey:2/2048+0")
}

func TestDataThatBeginsAnew(t *testing.T) {
	r := newRig(t)
	next := table(r.first(), map[string]int{"a@1": all - 1000, "b@2": 1000}, "a@1", "b@2")
	next.Since[5], next.Since[all-1] = 2, 2
	r.install(next)
	r.want("obey:2/3095+1 barrier hand drop:1 review settle:1 refeed ask:b@2/0")
}

func TestAbsence(t *testing.T) {
	for _, broken := range []bool{false, true} {
		r := newRig(t, Broken{IgnoreAbsence: broken})
		next := table(r.first(), map[string]int{"a@1": 0, "b@2": all}, "a@1", "b@2")
		next.Joined[0] = 2
		r.install(next)
		want := "obey:2/0+0 barrier hand:away review:away settle:0 refeed"
		if broken {
			want = "obey:2/0+0 barrier hand review settle:0 refeed"
		}
		r.want(want)
	}
}

func TestAnotherCluster(t *testing.T) {
	r := newRig(t)
	next := table(r.first(), map[string]int{"a@1": all}, "a@1")
	next.Seed = 8
	r.install(next)
	r.want("obey:2/0+4096 barrier reset:8 review settle:4096 refeed ask:b@2/0")
}

// handOver has b take over everything.
func (r *rig) handOver() *ring.Table {
	r.t.Helper()
	t := table(r.first(), map[string]int{"a@1": 0, "b@2": all}, "a@1", "b@2")
	r.heirs = []string{"b@2"}
	r.install(t)
	r.want("obey:2/0+0 barrier hand tell:b@2 review settle:0 refeed")
	return t
}

func TestTakeWaitsForHeirs(t *testing.T) {
	r := newRig(t)
	v := r.handOver()
	r.m.Take(r.now, 11, v)
	r.m.Release(12)
	r.want("")
	r.m.Flushed(r.hand, "stranger")
	r.m.Flushed(r.hand+1, "b@2")
	r.want("")
	r.m.Flushed(r.hand, "b@2")
	r.want("finish reply:11/0@2 reply:12/0@2")
	r.m.Flushed(r.hand, "b@2")
	r.m.Take(r.now, 13, v)
	r.want("reply:13/0@2")
}

func TestTakeIsAnsweredWhileHeirsWait(t *testing.T) {
	r := newRig(t)
	v := r.handOver()
	r.m.Members(members("a@1", "b@2"))
	r.m.Take(r.now, 11, v)
	r.pass() // b is alive
	r.want("")
	r.pass()
	r.want("reply:11/1@0")
	if r.now != handOverPatience {
		t.Errorf("answered after %v, want %v", r.now, handOverPatience)
	}
	r.m.Release(12)
	r.m.Members(members("a@1"))
	r.pass() // gossip may be wrong about b
	r.want("")
	r.heirs = nil
	r.install(table(v, map[string]int{"a@1": all}, "a@1"))
	r.want("obey:3/0+4096 barrier hand review settle:4096 refeed ask:b@2/0")
	r.pass()
	r.want("finish reply:12/0@3 settle:0 claim barrier refeed obey:3/4096+0")
}

// TestNoGossip: without word of members nobody is given up.
func TestNoGossip(t *testing.T) {
	r := newRig(t)
	r.handOver()
	r.pass()
	r.pass()
	r.want("")
}

func TestForeignTable(t *testing.T) {
	for _, broken := range []bool{false, true} {
		r := newRig(t, Broken{AdoptForeign: broken})
		r.m.Take(r.now, 11, &ring.Table{Epoch: 1, Issuer: "x@9"})
		r.want("reply:11/2@0") // no table at all
		first := r.first()
		r.install(table(first, map[string]int{"a@1": all - 1000, "b@2": 1000}, "a@1", "b@2"))
		r.want("obey:2/3096+0 barrier hand review settle:0 refeed")
		r.m.Take(r.now, 12, &ring.Table{Epoch: 9, Issuer: "x@9"})
		r.m.Take(r.now, 13, first) // the present one follows it
		want := "reply:12/2@0 reply:13/0@2"
		if broken {
			want = "reply:12/0@2 reply:13/0@2"
		}
		r.want(want)
	}
}

// TestEventsDoNotInterleave: a node that answers late has made a mistake.
func TestEventsDoNotInterleave(t *testing.T) {
	m := New(Config{ID: "a", Boot: 1})
	first := table(nil, map[string]int{"a@1": all}, "a@1")
	m.Install(0, first)
	for _, f := range []func(){
		func() { m.Tick(0) },
		func() { m.Install(0, table(first, map[string]int{"a@1": all}, "a@1")) },
		func() { m.Claimed(0) },
		func() { m.HandedTo(0, nil) },
		func() { m.Take(0, 1, first) },
		func() { m.Flushed(1, "b@2") },
		func() { m.Released(0, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("an event came between Barrier and BarrierPassed")
				}
			}()
			f()
		}()
	}
	if got := m.Actions(); len(got) != 2 {
		t.Errorf("%d actions, want Obey and Barrier", len(got))
	}
}

func TestView(t *testing.T) {
	first := table(nil, map[string]int{"a@1": 2, "b@2": 3, "c@3": all - 5}, "a@1", "b@2", "c@3")
	first.Follower[0], first.Follower[2], first.Follower[3] = 1, 0, 2
	first.Moves = []ring.Move{{Partition: 1, From: 0, To: 1}, {Partition: 3, From: 1, To: 0}}
	v := None.Next(first, "a", 1)
	f := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	f("Epoch without table", None.Epoch(), 0)
	f("Owns 1", v.Owns(1), true)
	f("Owns 2", v.Owns(2), false)
	f("Standing", v.Standing[:4], "[1 1 0 0]")
	f("Began", v.Began[:4], "[1 1 0 0]")
	f("Copies, a follower", v.Copies(2), true)
	f("Copies, what moves here", v.Copies(3), true)
	f("Copies, a stranger", v.Copies(4), false)
	f("CopiesFrom its owner", v.CopiesFrom(2, "b@2"), true)
	f("CopiesFrom another life", v.CopiesFrom(2, "b@3"), false)
	f("Receivers of what has a follower", v.Receivers(0), "[1 65535]")
	f("Receivers of what moves", v.Receivers(1), "[65535 1]")
	f("Spares a follower's copy", v.Spares(2), true)
	f("Spares what it gains", v.Spares(0), false)

	served := v.WithGained()
	f("WithGained", served.Count(Serving), 2)
	f("the view before", v.Count(Serving), 0)
	second := *first
	second.Epoch, second.Moves = 2, nil
	second.Owner[3], second.Follower[3] = 0, 1
	next := served.Next(&second, "a", 1)
	f("what it keeps and gains", next.Standing[:4], "[2 2 0 1]")
	f("Newest", next.Newest, 2)
	f("CopiesFrom the owner before", next.CopiesFrom(3, "b@2"), true)
	f("WasAway", next.WasAway(served), false)
	gone := next.Next(&second, "a", 9) // another life
	f("Self", gone.Self, -1)
	f("WasAway, of who is not there any more", gone.WasAway(next), true)
	f("OwnerNames", next.OwnerNames(), "[a@1 b@2 c@3]")
	if !slices.Equal(None.OwnerNames(), nil) {
		t.Error("there are owners without a table")
	}
}

func TestFence(t *testing.T) {
	f := Fence{Limit: time.Second}
	if f.Stalled(time.Second) {
		t.Error("fences at the limit")
	}
	if !f.Stalled(time.Second + 1) {
		t.Error("does not fence beyond the limit")
	}
	f.Confirm()
	if f.Doubt() {
		t.Error("raised a second time")
	}
	if f.Confirmed() {
		t.Error("lifted by what was heard before the last doubt")
	}
	f.Confirm()
	if !f.Confirmed() {
		t.Error("not lifted though nothing casts doubt any more")
	}
	if !f.Doubt() {
		t.Error("does not fence again")
	}
	if f.WasAbsent() {
		t.Error("it was absent though it did not stand still since its table was confirmed")
	}
	f.Absence = 3 * time.Second
	f.Stalled(2 * time.Second)
	if f.WasAbsent() {
		t.Error("it was absent though the others need longer")
	}
	f.Stalled(2 * time.Second)
	if !f.WasAbsent() {
		t.Error("two standstills with a moment between them are no absence")
	}
	if never := (&Fence{Broken: Broken{NeverFence: true}}); never.Stalled(time.Hour) {
		t.Error("fences though that rule is broken")
	}
}
