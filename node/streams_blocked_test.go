package node

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// oneEntry is the reply to an XREAD that finds one entry with one field.
func oneEntry(key, id, field, value string) string {
	return fmt.Sprintf("1) 1) %q\n   2) 1) 1) %q\n         2) 1) %q\n            2) %q", key, id, field, value)
}

const noSuchGroup = "(error) NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option"

// TestStreamWaiters: an entry wakes all that read the stream, and the first of each group.
func TestStreamWaiters(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.do("XGROUP CREATE s g $ MKSTREAM")
	c.do("XGROUP CREATE s h $")
	first := block(t, n, "XREADGROUP GROUP g c1 BLOCK 0 STREAMS s >")
	reads := []*client{block(t, n, "XREAD BLOCK 0 STREAMS s $"), block(t, n, "XREAD BLOCK 0 COUNT 5 STREAMS s 0")}
	second := block(t, n, "XREADGROUP GROUP g c2 BLOCK 0 STREAMS s >")
	other := block(t, n, "XREADGROUP GROUP h c1 BLOCK 0 NOACK STREAMS s >")
	c.want("XADD s 1 f v", `"1-0"`)
	for _, w := range append(reads, first, other) {
		w.wantNext(oneEntry("s", "1-0", "f", "v"))
	}
	awaitBlocked(t, n, 1)
	c.want("XADD s 2 f w", `"2-0"`)
	second.wantNext(oneEntry("s", "2-0", "f", "w"))
	awaitBlocked(t, n, 0)
	if got := c.do("XPENDING s g - + 9 c2"); !strings.HasPrefix(got, `1) 1) "2-0"`) {
		t.Errorf("pending for the second is %s", got)
	}
}

// TestStreamWaitersMeanWhatTheyMeant: $ is the last ID when the wait begins, whatever else happens meanwhile.
func TestStreamWaitersMeanWhatTheyMeant(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.do("XADD {s}a 5 f v")
	w := block(t, n, "XREAD BLOCK 0 STREAMS {s}a {s}none $ $")
	c.do("DEL {s}a")
	c.do("XADD {s}a 3 f v")
	c.do("XADD {s}a 5 f v")
	c.want("XADD {s}none 1 f v", `"1-0"`)
	w.wantNext(oneEntry("{s}none", "1-0", "f", "v"))
	w = block(t, n, "XREAD BLOCK 0 STREAMS {s}a {s}none $ $")
	c.do("DEL {s}none")
	c.do("XADD {s}a 6 f v")
	w.wantNext(oneEntry("{s}a", "6-0", "f", "v"))
}

// TestStreamWaitersAndOtherCommands: commands that add nothing leave waiters alone, and the waiters have the next
// entry.
func TestStreamWaitersAndOtherCommands(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.do("XADD s 1 f v")
	c.do("XGROUP CREATE s g 0")
	c.do("XREADGROUP GROUP g c STREAMS s >")
	waiting := []*client{block(t, n, "XREAD BLOCK 0 STREAMS s 1"), block(t, n, "XREADGROUP GROUP g d BLOCK 0 STREAMS s >")}
	for _, line := range []string{
		"XACK s g 1", "XCLAIM s g c 0 1 FORCE", "XGROUP CREATECONSUMER s g e", "XGROUP DELCONSUMER s g c", "XDEL s 1",
		"XTRIM s MAXLEN 0", "XGROUP CREATE s h 0", "XGROUP DESTROY s h", "XSETID s 7", "XREADGROUP GROUP g c STREAMS s >", "EXPIRE s 1000",
	} {
		c.do(line)
	}
	awaitBlocked(t, n, 2)
	c.want("XADD s 8 f v", `"8-0"`)
	for _, w := range waiting {
		w.wantNext(oneEntry("s", "8-0", "f", "v"))
	}
}

// TestStreamWaitersOfLostGroups: those in a group are told that it has gone, and those that read wait on.
func TestStreamWaitersOfLostGroups(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	for _, f := range []struct{ line, want string }{
		{"XGROUP DESTROY s g", noSuchGroup},
		{"DEL s", noSuchGroup},
		{"UNLINK s", noSuchGroup},
		{"RENAME s {s}t", noSuchGroup},
		{"FLUSHALL", noSuchGroup},
		{"PEXPIRE s 1", noSuchGroup},
		{"SET s string", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
		{`EVAL "redis.call('DEL', KEYS[1]) return redis.call('XADD', KEYS[1], '1', 'f', 'v')" 1 s`, noSuchGroup},
	} {
		c.do("DEL s")
		c.do("XGROUP CREATE s g $ MKSTREAM")
		c.do("XADD s 5 f v")
		c.do("XREADGROUP GROUP g c STREAMS s >")
		first, second := block(t, n, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"), block(t, n, "XREADGROUP GROUP g d BLOCK 0 STREAMS s >")
		reads := block(t, n, "XREAD BLOCK 0 STREAMS s 9")
		c.do(f.line)
		first.wantNext(f.want)
		second.wantNext(f.want)
		awaitBlocked(t, n, 1)
		c.do("DEL s")
		c.do("XADD s 10 f v")
		reads.wantNext(oneEntry("s", "10-0", "f", "v"))
	}
}

// TestStreamWaitersMany: very many readers are all served by one entry, and very many of a group one after the other.
func TestStreamWaitersMany(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.do("XGROUP CREATE s g $ MKSTREAM")
	const clients = 300
	var reads, members []*client
	for i := range clients {
		reads = append(reads, block(t, n, "XREAD BLOCK 0 STREAMS s $"))
		members = append(members, block(t, n, fmt.Sprintf("XREADGROUP GROUP g c%d COUNT 1 BLOCK 0 STREAMS s >", i)))
	}
	c.do("MULTI")
	for i := range clients {
		c.do(fmt.Sprintf("XADD s %d f v", i+1))
	}
	c.do("EXEC")
	for i := range clients {
		members[i].wantNext(oneEntry("s", fmt.Sprintf("%d-0", i+1), "f", "v"))
		if got := reads[i].next(); strings.Count(got, "-0") != wokenAtOnce {
			t.Fatalf("a reader is served with %d entries", strings.Count(got, "-0"))
		}
	}
	awaitBlocked(t, n, 0)
}

// wokenAtOnce is how many entries a command that has waited is served with at most.
const wokenAtOnce = 256

// TestStreamWaitersForHugeEntries: what takes long is read by those who wait for it, not by who has added it. Of a
// group the first has it, and the next one waits on.
func TestStreamWaitersForHugeEntries(t *testing.T) {
	n := startLeveled(t)
	c, p := dial(t, n.Addr()), claimPipe(t, n)
	c.do("XGROUP CREATE {s}a g $ MKSTREAM")
	c.do("XADD {s}b 1 f v")
	first := block(t, n, "XREADGROUP GROUP g c1 BLOCK 0 STREAMS {s}a >")
	reads := []*client{block(t, n, "XREAD BLOCK 0 STREAMS {s}b {s}a $ $"), block(t, n, "XREAD BLOCK 0 STREAMS {s}a $")}
	second := block(t, n, "XREADGROUP GROUP g c2 BLOCK 0 STREAMS {s}a >")
	p.send("XREAD BLOCK 0 STREAMS {s}a $")
	p.wantRaw("-DUNLINLATER 1 0-0\r\n")
	huge := []string{"XADD", "{s}a", "1"}
	for i := range 3000 {
		huge = append(huge, fmt.Sprint("field ", i), "value")
	}
	c.sendWords(huge)
	c.wantNext(`"1-0"`)
	want := "*1\r\n" + readOf("{s}a", c.bytesOf("XRANGE {s}a - +"))
	for _, w := range append(reads, first) {
		sameBytes(t, "who has waited", string(w.read()), want)
	}
	if got := string(p.read()); !strings.HasPrefix(got, string(member.AppendCompletion(nil, 1))+"-DUNLINWAIT") {
		t.Errorf("the proxy gets %.80q", got)
	}
	awaitBlocked(t, n, 1)
	c.do("XADD {s}a 2 f v")
	second.wantNext(oneEntry("{s}a", "2-0", "f", "v"))
	if got := c.do("XPENDING {s}a g"); !strings.HasPrefix(got, "1) (integer) 2\n") {
		t.Errorf("pending is %s", got)
	}
}

// TestStreamWaitersEnd: timeouts, CLIENT UNBLOCK, and clients that leave.
func TestStreamWaitersEnd(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.do("XGROUP CREATE s g $ MKSTREAM")
	begun := time.Now()
	c.want("XREAD BLOCK 100 STREAMS s $", "(nil)")
	if took := time.Since(begun); took < 100*time.Millisecond || took > 10*time.Second {
		t.Errorf("a wait of 100 ms took %v", took)
	}
	c.want("XREADGROUP GROUP g c BLOCK 20 STREAMS s >", "(nil)")
	w := dial(t, n.Addr())
	id := strings.TrimPrefix(w.do("CLIENT ID"), "(integer) ")
	for how, want := range map[string]string{"": "(nil)", " ERROR": "(error) UNBLOCKED client unblocked via CLIENT UNBLOCK"} {
		w.send("XREAD BLOCK 0 STREAMS s $")
		awaitBlocked(t, n, 1)
		c.want("CLIENT UNBLOCK "+id+how, "(integer) 1")
		w.wantNext(want)
	}
	gone, stays := block(t, n, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"), block(t, n, "XREADGROUP GROUP g d BLOCK 0 STREAMS s >")
	gone.conn.Close()
	awaitBlocked(t, n, 1)
	c.do("XADD s 1 f v")
	stays.wantNext(oneEntry("s", "1-0", "f", "v"))
}

// TestStreamWaitersByTime: what becomes idle for long enough is claimed by who waits for that, in whatever place.
func TestStreamWaitersByTime(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.do("XADD s 1 f v")
	c.do("XGROUP CREATE s g 0")
	begun := time.Now() // before the entry is delivered and begins to be idle
	c.do("XREADGROUP GROUP g c STREAMS s >")
	first := block(t, n, "XREADGROUP GROUP g d BLOCK 0 STREAMS s >")
	w := block(t, n, "XREADGROUP GROUP g e BLOCK 60000 CLAIM 150 STREAMS s >")
	got := w.next()
	if took := time.Since(begun); !strings.Contains(got, `"1-0"`) || !strings.HasSuffix(got, "(integer) 1") || took < 100*time.Millisecond {
		t.Errorf("after %v it gets %s", took, got)
	}
	w = block(t, n, "XREADGROUP GROUP g e BLOCK 200 CLAIM 100000 STREAMS s >")
	w.wantNext("(nil)")
	c.do("XCLAIM s g c 0 1 JUSTID")
	w = block(t, n, "XREADGROUP GROUP g e BLOCK 60000 CLAIM 1000 STREAMS s >")
	c.do("XACK s g 1") // so that time comes in vain
	before := looks(t, n)
	eventually(t, "it is looked at", func() bool { return looks(t, n) != before })
	second := block(t, n, "XREADGROUP GROUP g f BLOCK 60000 CLAIM 250 STREAMS s >")
	c.do("XCLAIM s g c 0 1 FORCE JUSTID")
	if got := w.next(); !strings.Contains(got, `"1-0"`) {
		t.Errorf("it gets %s", got)
	}
	if got := second.next(); !strings.Contains(got, `"1-0"`) {
		t.Errorf("the other one gets %s", got)
	}
	c.do("XADD s 2 f v")
	first.wantNext(oneEntry("s", "2-0", "f", "v"))
}

// TestStreamWaitersByTimeRest: who waits for what is idle for no time looks at a group with nothing pending seldom.
func TestStreamWaitersByTimeRest(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.do("XGROUP CREATE s g $ MKSTREAM")
	w := block(t, n, "XREADGROUP GROUP g d BLOCK 60000 CLAIM 0 STREAMS s >")
	var all []time.Duration
	for last := time.Duration(0); len(all) < 3; last = all[len(all)-1] {
		eventually(t, "it is looked at", func() bool { return looks(t, n) > last })
		all = append(all, looks(t, n))
	}
	for i, at := range all[1:] {
		if rest := at - all[i]; rest < 20*time.Millisecond {
			t.Errorf("it is looked at again after %v", rest)
		}
	}
	c.do("XADD s 1 f v")
	if got := w.next(); !strings.Contains(got, `"1-0"`) {
		t.Errorf("it gets %s", got)
	}
}

// looks returns when the last of the commands that wait is executed again, by its loop's clock.
func looks(t *testing.T, n *Node) (at time.Duration) {
	t.Helper()
	var mu sync.Mutex
	err := n.cfg.Group.Each(func(l *netloop.Loop) {
		mu.Lock()
		defer mu.Unlock()
		for _, w := range n.workers {
			for i := 0; w.loop == l && i < len(w.blocked.due); i++ {
				if d := w.blocked.due[i]; d.at != d.ends {
					at = max(at, d.at)
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestStreamWaitersOverPipes: the token says which ID $ is.
func TestStreamWaitersOverPipes(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	c.do("XADD {k}a 5-1 f v")
	p.send("XREAD BLOCK 0 STREAMS {k}a {k}b {k}a $ $ 7")
	p.wantRaw("-DUNLINLATER 1 5-1 0-0\r\n")
	p.send("XREAD BLOCK 0 STREAMS {k}a 7")
	p.wantRaw(later(2))
	c.do("XADD {k}b 1 f v")
	p.wantRaw(string(member.AppendCompletion(nil, 1)) + "*1\r\n*2\r\n$4\r\n{k}b\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n")
}

// TestClaimsOfStreams: a claim is told when there is something behind its ID, or for its group.
func TestClaimsOfStreams(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	c.do("XADD {k}a 5 f v")
	c.do("XGROUP CREATE {k}a g $")
	c.do("SET {k}s v")
	p.send("DUNLIN CLAIM 0 s {k}a {k}b 4 $") // it is there
	p.wantRaw("*3\r\n:0\r\n:0\r\n$3\r\n0-0\r\n")
	p.send("DUNLIN CLAIM 0 s {k}a {k}s 5 0") // the read says what is wrong
	p.wantRaw("*2\r\n:1\r\n:0\r\n")
	p.send("DUNLIN CLAIM 0 s {k}s {k}a $ $")
	p.wantRaw("*3\r\n:0\r\n:0\r\n$7\r\n0-0 5-0\r\n")
	p.send("DUNLIN CLAIM 0 s {k}a x")
	p.wantRaw("*2\r\n:0\r\n:0\r\n")
	p.send("DUNLIN CLAIM 0 g h -1 {k}a") // no such group
	p.wantRaw("*2\r\n:0\r\n:0\r\n")
	p.send("DUNLIN CLAIM 0 s {k}b {k}a $ $")
	p.wantRaw("-DUNLINLATER 1 0-0 5-0\r\n")
	p.send("DUNLIN CLAIM 0 s {k}a +")
	p.wantRaw("*2\r\n:0\r\n:0\r\n")
	p.send("DUNLIN CLAIM 0 g g -1 {k}a")
	p.wantRaw(later(2))
	behind := block(t, n, "XREADGROUP GROUP g c BLOCK 0 STREAMS {k}a >")
	reads := block(t, n, "XREAD BLOCK 0 STREAMS {k}a $")
	c.want("XADD {k}a 6 f v", `"6-0"`)
	reads.wantNext(oneEntry("{k}a", "6-0", "f", "v"))
	p.wantRaw(told(1, member.Ready{Key: 1}))
	p.wantRaw(told(2, member.Ready{Turn: 1}))
	p.want("DUNLIN PASS g 1 {k}a g", "OK")
	behind.wantNext(oneEntry("{k}a", "6-0", "f", "v"))
	p.send("DUNLIN CLAIM 0 g g 100 {k}a")
	p.wantRaw(later(3))
	p.wantRaw(told(3, member.Ready{})) // what c has is idle for long enough
	awaitBlocked(t, n, 0)
}

// TestStreamWaiterTracks: a client that has waited and read is told to forget that, since its mark may have gone.
func TestStreamWaiterTracks(t *testing.T) {
	n := startLeveled(t)
	w, c := dial(t, n.Addr()), dial(t, n.Addr())
	w.do("HELLO 3")
	w.do("CLIENT TRACKING ON")
	w.send("XREAD BLOCK 0 STREAMS s $")
	awaitBlocked(t, n, 1)
	c.do("XADD s 1 f v")
	var got []string
	for range 3 {
		got = append(got, string(w.read()))
	}
	const forget = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\ns\r\n"
	if got[2] != forget || got[0] != forget && got[1] != forget {
		t.Errorf("the client gets %q", got)
	}
	w.do("XREAD BLOCK 0 STREAMS s 0")
	c.do("XADD s 2 f v")
	w.wantRaw(forget)
}

// TestStreamWaiterPositions: the engine is told how far a waiter has seen.
func TestStreamWaiterPositions(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.do("XADD s 5-2 f v")
	txn := n.engine.Lock(partitionOf("s"), time.Now().UnixMilli())
	item, found := txn.Find([]byte("s"))
	if end := endOf(txn, item); !found || end != (engine.Position{Hi: 5, Lo: 2}) {
		t.Errorf("the stream ends at %v", end)
	}
	txn.Unlock()
}

// TestClaimBehindATurn: a claim that comes while another one has its turn is told of what that leaves.
func TestClaimBehindATurn(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	c.do("XGROUP CREATE {k}a g $ MKSTREAM")
	p.send("DUNLIN CLAIM 0 g g -1 {k}a")
	p.wantRaw(later(1))
	second := block(t, n, "XREADGROUP GROUP g c COUNT 1 BLOCK 0 STREAMS {k}a >")
	p.sendLines("XADD {k}a 1 f v", "XADD {k}a 2 f v", "DUNLIN CLAIM 0 g g -1 {k}a") // before the turn ends by itself
	for _, want := range []string{"$3\r\n1-0\r\n", "$3\r\n2-0\r\n", later(2), told(1, member.Ready{Turn: 1})} {
		p.wantRaw(want)
	}
	p.want("DUNLIN PASS g 1 {k}a g", "OK")
	second.wantNext(oneEntry("{k}a", "1-0", "f", "v"))
	p.wantRaw(told(2, member.Ready{}))
	awaitBlocked(t, n, 0)
}

// TestClaimBehindATurnLooksSoon: a claim that comes while another one has its turn, and finds nothing left, is still
// told of what is pending.
func TestClaimBehindATurnLooksSoon(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	c.do("XADD {k}a 1 f v")
	c.do("XGROUP CREATE {k}a g 0")
	c.do("XREADGROUP GROUP g c STREAMS {k}a >")
	p.send("DUNLIN CLAIM 0 g g -1 {k}a")
	p.wantRaw(later(1))
	block(t, n, "XREADGROUP GROUP g d BLOCK 0 STREAMS {k}a >")
	p.sendLines("XADD {k}a 2 f v", "DUNLIN CLAIM 0 g g 1 {k}a", "XREADGROUP GROUP g c NOACK STREAMS {k}a >")
	p.wantRaw("$3\r\n2-0\r\n")
	p.wantRaw(later(2))
	p.read()
	p.wantRaw(told(1, member.Ready{Turn: 1}))
	p.want("DUNLIN PASS g 1 {k}a g", "OK")
	p.wantRaw(told(2, member.Ready{Turn: 2})) // 1-0 is idle for long enough
}

// TestClaimOfManyPending: a claim of a group with very many pending entries, of which one may be idle for long enough,
// is told to read them, and waits when it has done that in vain. If none can be, it waits at once.
func TestClaimOfManyPending(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	addEntries(t, c, "{k}a", 1, 3000, "f v")
	c.do("XGROUP CREATE {k}a g 0")
	c.bytesOf("XREADGROUP GROUP g c STREAMS {k}a >")
	c.do("XCLAIM {k}a g c 0 2999 TIME 1 JUSTID")
	c.want("XACK {k}a g 2999", "(integer) 1")
	p.send("DUNLIN CLAIM 0 g g 1000000 {k}a")
	p.wantRaw("*2\r\n:0\r\n:0\r\n")
	begun := time.Now()
	p.send("DUNLIN CLAIM 1 g g 1000000 {k}a")
	p.wantRaw(later(1))
	p.wantRaw(told(1, member.Ready{}))
	if took := time.Since(begun); took < time.Second {
		t.Errorf("it is told to read again after %v", took)
	}
	c.do("XCLAIM {k}a g c 0 7 TIME 1 JUSTID")
	p.send("DUNLIN CLAIM 1 g g 1000000 {k}a")
	p.wantRaw("*2\r\n:0\r\n:0\r\n")
	c.want("XACK {k}a g 7", "(integer) 1")
	c.want("XREADGROUP GROUP g c CLAIM 1000000 STREAMS {k}a >", "(nil)")
	p.send("DUNLIN CLAIM 0 g g 1000000 {k}a")
	p.wantRaw(later(2))
}
