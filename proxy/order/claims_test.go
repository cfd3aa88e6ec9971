package order

import (
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

// claimed is a session with claims of lists in several partitions, and what they want done. All
// keys belong to one node, on whose pipe nothing is written before take.
type claimed struct {
	*shell
	s      *Session
	c      *Claims
	p      *Pipe
	done   []ActionKind
	end    Action
	tokens uint64
}

// claims begins the claims of two lists.
func claims(t *testing.T, limit time.Duration) *claimed {
	h := newShell(t)
	h.opened(common)
	k := &claimed{shell: h, s: &Session{Owner: noOwner{}}, p: h.Owner(0).Pipe(common)}
	k.c = h.NewClaims(k.s, 1, 0, ring.PartitionOf, member.Claim{Kind: member.List, Keys: [][]byte{[]byte("a"), []byte("b")}}, limit)
	if k.c.Len() != 2 {
		t.Fatal("a and b are in one partition")
	}
	k.c.Begin(common, h.now)
	k.act()
	return k
}

// act does what the Machine asks for, and notes what the claims want.
func (k *claimed) act() {
	for k.HasActions() {
		for _, a := range k.Actions() {
			switch {
			case a.Claims == nil && a.Kind == Write:
				a.Pipe.Wrote(len(a.Pipe.Queued()))
			case a.Claims != nil && a.Kind != ClaimArm:
				if k.done = append(k.done, a.Kind); a.Kind == ClaimEnd {
					k.end = a
				}
			}
		}
	}
}

// waits has the oldest claim wait.
func (k *claimed) waits() (token uint64) {
	k.t.Helper()
	k.tokens++
	if !k.Later(k.p, k.tokens, nil) {
		k.t.Fatal("the claim does not wait")
	}
	k.act()
	return k.tokens
}

// ready says that a claim that waits has a turn.
func (k *claimed) ready(token, turn uint64) {
	k.t.Helper()
	r, ok := k.Completed(k.p, token)
	if !ok {
		k.t.Fatal("no claim waits")
	}
	r.Part.Done(r.ID, member.AppendReady(nil, member.Ready{Turn: turn}))
	k.act()
}

// pass has time pass.
func (k *claimed) pass(d time.Duration) {
	k.now += d
	k.c.Tick(k.now)
	k.act()
}

func (k *claimed) wants(kinds ...ActionKind) {
	k.t.Helper()
	got := k.done
	if k.done = nil; len(got) == 0 || got[len(got)-1] != kinds[len(kinds)-1] {
		k.t.Fatalf("the claims want %v, want %v in the end", got, kinds)
	}
}

// pop submits a pop, and returns what else is written.
func (k *claimed) pop() (behind string) {
	k.t.Helper()
	k.c.Pop(common)
	places := k.c.AppendPopped(nil)
	key := k.c.want.Keys[places[0]]
	raw := request("BLPOP", string(key), "0.001")
	k.s.Block(1, time.Millisecond, k.now)
	r := Request{Session: k.s, Seq: 1, Origin: Origin{Partition: ring.PartitionOf(key)}}
	if _, ok := k.Submit(k.s, r, raw, k.now); !ok {
		k.t.Fatal("the pipe is full")
	}
	k.c.Popped()
	behind = strings.Replace(string(k.p.Queued()), string(raw), "", 1)
	k.p.Wrote(len(k.p.Queued()))
	k.act()
	return behind
}

// TestTurnsEndBehindThePop: a pop that is parked has nothing behind it, so its turn ends by
// itself. When the turn ended at once, those behind the claim took what it was told of.
func TestTurnsEndBehindThePop(t *testing.T) {
	for _, parked := range []bool{false, true} {
		k := claims(t, 0)
		k.waits()
		second := k.waits()
		k.wants(ClaimWait)
		if parked {
			k.p.latch.on = true
			k.p.latch.partitions.Add(ring.PartitionOf([]byte("b")))
		}
		k.ready(second, 7)
		k.wants(ClaimPop)
		if behind := k.pop(); parked != (behind == "") {
			t.Errorf("parked %v: %q is behind the pop", parked, behind)
		}
		if parked != (len(k.s.parked) == 1) {
			t.Errorf("%d requests are parked", len(k.s.parked))
		}
	}
}

// TestTheTimeOfClaims: when its time is up, a command pops once from what is ready, also if
// another owner has not answered yet. It does not pop again when that finds nothing, however often
// keys become ready.
func TestTheTimeOfClaims(t *testing.T) {
	k := claims(t, FirstClaims/2)
	first := k.waits()
	k.ready(first, 0)
	k.pass(FirstClaims / 2)
	k.wants(ClaimPop)
	k.pop()
	late := *k.p.Front()
	k.p.Pop()
	late.Part.Done(late.ID, member.AppendReady(nil, member.Ready{}))
	k.p.Pop() // the pop
	k.c.GoOn(common, k.now)
	k.act()
	k.wants(ClaimEnd)
	if k.end.Reply != nil || k.end.Err != nil || k.s.Outstanding() != 0 {
		t.Errorf("the end is %q, %v, with %d outstanding", k.end.Reply, k.end.Err, k.s.Outstanding())
	}
}
