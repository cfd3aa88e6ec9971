package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// claimPipe opens a pipe over which commands are answered later.
func claimPipe(t *testing.T, n *Node) *client {
	t.Helper()
	c := dial(t, n.Addr())
	line := fmt.Sprintf(`DUNLIN PIPE 1 0 common 1 2 "" %d`, ring.Level)
	if got := c.do(line); got != "OK later" {
		t.Fatalf("cannot open pipe: %s", got)
	}
	return c
}

// wantRaw checks the bytes of what comes next.
func (c *client) wantRaw(want string) {
	c.t.Helper()
	if got := string(c.read()); got != want {
		c.t.Errorf("got %q, want %q", got, want)
	}
}

func later(token int) string { return fmt.Sprintf("-DUNLINLATER %d\r\n", token) }

// told is the completion of a claim.
func told(token int, r member.Ready) string {
	return string(member.AppendReady(member.AppendCompletion(nil, uint64(token)), r))
}

// TestWokenLeavesATurn: a command that is woken for one of its keys takes nothing from another one
// where a claim has its turn.
func TestWokenLeavesATurn(t *testing.T) {
	for _, x := range [...]struct{ claim, wait, first, second, gets string }{
		{"l {k}a", "BLPOP {k}a {k}b 0", "RPUSH {k}a x", "RPUSH {k}b y", "1) \"{k}b\"\n2) \"y\""},
		{"l {k}a", "BLMPOP 0 2 {k}a {k}b LEFT", "RPUSH {k}a x", "RPUSH {k}b y", "1) \"{k}b\"\n2) 1) \"y\""},
		{"z {k}a", "BZPOPMIN {k}a {k}b 0", "ZADD {k}a 1 x", "ZADD {k}b 2 y", "1) \"{k}b\"\n2) \"y\"\n3) \"2\""},
		{"z {k}a", "BZMPOP 0 2 {k}a {k}b MIN", "ZADD {k}a 1 x", "ZADD {k}b 2 y", "1) \"{k}b\"\n2) 1) 1) \"y\"\n      2) \"2\""},
		{"g g -1 {k}a", "XREADGROUP GROUP g c BLOCK 0 STREAMS {k}a {k}b > >", "XADD {k}a 1 f v", "XADD {k}b 1 f v",
			oneEntry("{k}b", "1-0", "f", "v")},
	} {
		t.Run(x.wait, func(t *testing.T) {
			n := startLeveled(t)
			p, c := claimPipe(t, n), dial(t, n.Addr())
			if strings.HasPrefix(x.wait, "X") {
				c.do("XGROUP CREATE {k}a g $ MKSTREAM")
				c.do("XGROUP CREATE {k}b g $ MKSTREAM")
			}
			p.send("DUNLIN CLAIM 0 " + x.claim)
			p.wantRaw(later(1))
			w := block(t, n, x.wait)
			p.sendLines(x.first, x.second)
			w.wantNext(x.gets)
			p.read()
			p.read()
			p.wantRaw(told(1, member.Ready{Turn: 1}))
		})
	}
}

// TestClaim: a claim is told of a value and does not pop it; who waits behind it waits until the turn ends.
func TestClaim(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	p.send("DUNLIN CLAIM 0 l {k}a {k}b")
	p.wantRaw(later(1))
	p.send("DUNLIN CLAIM 0 z {k}b")
	p.wantRaw(later(2))
	behind := block(t, n, "BLPOP {k}b 0")
	if s, err := n.Stats(); err != nil || s.Blocked != 3 {
		t.Errorf("%d commands count as blocked, and %v; want 3", s.Blocked, err)
	}
	c.want("RPUSH {k}b 1", "(integer) 1")
	p.wantRaw(told(1, member.Ready{Key: 1, Turn: 1}))
	c.want("LRANGE {k}b 0 -1", `1) "1"`)
	p.send("DUNLIN CLAIM 0 l {k}b") // behind those that came first
	p.wantRaw(later(3))
	p.want("DUNLIN PASS l 1 {k}b", "OK")
	behind.wantNext(poppedFrom("{k}b", "1"))
	c.want("RPUSH {k}b 2", "(integer) 1")
	p.wantRaw(told(3, member.Ready{}))
	p.send("DUNLIN CLAIM 0 l {k}x {k}b") // which is there
	p.wantRaw("*2\r\n:1\r\n:0\r\n")
	p.send("DUNLIN CLAIM 0 z {k}b") // the pop says what is wrong
	p.wantRaw("*2\r\n:0\r\n:0\r\n")
	p.send("DUNLIN CANCEL 2")
	p.wantRaw("+OK\r\n")
	p.wantRaw(string(member.AppendCompletion(nil, 2)) + "-" + member.Canceled + "\r\n")
	awaitBlocked(t, n, 0)
}

// TestClaimsOfAGroup: who claims for a group is not told of an entry that those in front have got, and so does not lose
// its place to those behind.
func TestClaimsOfAGroup(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	c.want("XGROUP CREATE {k}s g $ MKSTREAM", "OK")
	c.want("XGROUP CREATE {k}t g $ MKSTREAM", "OK")
	for i := range 2 {
		p.send("DUNLIN CLAIM 0 g g -1 {k}t {k}s")
		p.wantRaw(later(i + 1))
	}
	behind := block(t, n, "XREADGROUP GROUP g last BLOCK 0 STREAMS {k}s >")
	c.want("XADD {k}s 1-0 f v", `"1-0"`)
	p.wantRaw(told(1, member.Ready{Key: 1, Turn: 1}))
	c.do("XREADGROUP GROUP g first STREAMS {k}s >")
	p.want("DUNLIN PASS g 1 {k}s g", "OK")
	p.want("PING", "PONG") // nothing was told before
	c.want("XADD {k}s 2-0 f v", `"2-0"`)
	p.wantRaw(told(2, member.Ready{Key: 1, Turn: 2}))
	c.do("XREADGROUP GROUP g second STREAMS {k}s >")
	p.want("DUNLIN PASS g 2 {k}s g", "OK")
	c.want("XADD {k}s 3-0 f v", `"3-0"`)
	if got := behind.next(); !strings.Contains(got, "3-0") {
		t.Errorf("the last one gets %s", got)
	}
}

// TestClaimTurnEnds: a turn of which no use is made ends, whether its pipe lives or not.
func TestClaimTurnEnds(t *testing.T) {
	for _, gone := range []bool{false, true} {
		n := startLeveled(t)
		p, c := claimPipe(t, n), dial(t, n.Addr())
		p.send("DUNLIN CLAIM 0 l k")
		p.wantRaw(later(1))
		behind := block(t, n, "BLPOP k 0")
		begun := time.Now()
		c.want("RPUSH k 1", "(integer) 1")
		if gone {
			p.conn.Close()
		} else {
			p.wantRaw(told(1, member.Ready{Turn: 1}))
		}
		behind.wantNext(poppedFrom("k", "1"))
		if waited := time.Since(begun); !gone && waited < member.ClaimTurn {
			t.Errorf("the turn ended after %v, want %v", waited, member.ClaimTurn)
		}
	}
}

// TestClaimOfAPipeThatHasGone: who waits behind it is served.
func TestClaimOfAPipeThatHasGone(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	p.send("DUNLIN CLAIM 0 l k")
	p.wantRaw(later(1))
	behind := block(t, n, "BLPOP k 0")
	p.conn.Close()
	c.want("RPUSH k 1", "(integer) 1")
	behind.wantNext(poppedFrom("k", "1"))
	awaitBlocked(t, n, 0)
}

// TestClaimErrors: what a proxy does not send.
func TestClaimErrors(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	for _, line := range []string{"DUNLIN CLAIM x l k", "DUNLIN CLAIM 0 q k", "DUNLIN PASS l x k", "DUNLIN PASS q 1 k"} {
		p.want(line, "(error) "+errBadClaim)
	}
	p.want("DUNLIN PASS l 1 k", "OK")
	c.want("DUNLIN CLAIM 0 l k", "(error) "+errBadClaim)
	p.want("DUNLIN CLAIM 0 l a b c d e f g", "(error) "+errCrossSlot)
}

// TestReviewByAnOlderView: a command that waits for a partition that was away and is back is refused. Its time is not
// up.
func TestReviewByAnOlderView(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	p.send("BLPOP q 100")
	p.wantRaw(later(1))
	c.send("BLPOP q 100")
	awaitBlocked(t, n, 2)
	away := *n.view.Load()
	away.Standing[ring.PartitionOf([]byte("q"))] = ownership.Foreign
	err := n.cfg.Group.Each(func(l *netloop.Loop) {
		ws := &n.workers[l.Index()].blocked
		for len(ws.lists) > 0 {
			w, _ := ws.lists[0].Last()
			ws.look(w, &away)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(p.read()); !strings.HasPrefix(got, string(member.AppendCompletion(nil, 1))+"-DUNLINWAIT") {
		t.Errorf("a proxy gets %q, want a refusal", got)
	}
	c.wantNext("(error) " + errTakingOver)
}

// TestClaimMoves: a claim whose partition goes to another node comes back.
func TestClaimMoves(t *testing.T) {
	n := startLeveled(t)
	p := claimPipe(t, n)
	p.send("DUNLIN CLAIM 0 l q")
	p.wantRaw(later(1))
	giveAway(n, ring.PartitionOf([]byte("q")))
	if got := string(p.read()); !strings.HasPrefix(got, string(member.AppendCompletion(nil, 1))+"-DUNLINWAIT") {
		t.Errorf("got %q, want a refusal", got)
	}
	awaitBlocked(t, n, 0)
}

// TestReviewGoesRound: what makes all waits worth another look while a review is on has all of them looked at once
// more, and those that begin meanwhile do not prolong a review.
func TestReviewGoesRound(t *testing.T) {
	var ws allBlocked
	var a, b waitList
	ws.lists = []*waitList{&a, &b}
	for token := range uint64(3) {
		a.Add(&blocked{token: 1 + token})
		b.Add(&blocked{token: 11 + token})
	}
	want := func(tokens ...uint64) {
		t.Helper()
		for _, token := range tokens {
			if w := ws.nextToReview(); w == nil || w.token != token {
				t.Fatalf("%+v is looked at, want %d", w, token)
			}
		}
	}
	ws.review.again = true
	want(1, 2)
	a.Add(&blocked{token: 4})
	want(3, 11)
	ws.review.again = true
	b.Remove(12)
	want(13, 1, 2, 3, 4, 11, 13)
	if w := ws.nextToReview(); w != nil {
		t.Errorf("a review goes on with %d", w.token)
	}
}
