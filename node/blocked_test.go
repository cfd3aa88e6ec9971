package node

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// awaitBlocked waits until so many commands wait for keys.
func awaitBlocked(t testing.TB, n *Node, want int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d commands wait", want), func() bool { return n.waiters.Load() == want })
}

// block returns a client whose command waits, behind those that wait already.
func block(t testing.TB, n *Node, line string) *client {
	t.Helper()
	c, before := dial(t, n.Addr()), n.waiters.Load()
	c.send(line)
	awaitBlocked(t, n, before+1)
	return c
}

// wantNext checks the next reply.
func (c *client) wantNext(want string) {
	c.t.Helper()
	if got := c.next(); got != want {
		c.t.Errorf("got %s, want %s", got, want)
	}
}

// poppedFrom is the reply to a BLPOP.
func poppedFrom(key, element string) string { return fmt.Sprintf("1) %q\n2) %q", key, element) }

// TestBlockedInOrder: who came first is served first, and a push is not answered before the waiters have
// what was pushed.
func TestBlockedInOrder(t *testing.T) {
	n := startLeveled(t)
	var waiting []*client
	for range 5 {
		waiting = append(waiting, block(t, n, "BLPOP q 0"))
	}
	c := dial(t, n.Addr())
	c.send("RPUSH q 0 1 2")
	c.send("LLEN q")
	c.wantNext("(integer) 3")
	c.wantNext("(integer) 0")
	for i := range 3 {
		waiting[i].wantNext(poppedFrom("q", fmt.Sprint(i)))
	}
	c.want("LPUSH q 3 4 5", "(integer) 3")
	waiting[3].wantNext(poppedFrom("q", "5"))
	waiting[4].wantNext(poppedFrom("q", "4"))
	c.want("LRANGE q 0 -1", `1) "3"`)
	awaitBlocked(t, n, 0)
}

// TestBlockedByTransaction: waiters are served behind the whole transaction. A fault that others had is
// that they are served in its middle, or never.
func TestBlockedByTransaction(t *testing.T) {
	n := startLeveled(t)
	w := block(t, n, "BLPOP q 0")
	c := dial(t, n.Addr())
	for _, line := range []string{"MULTI", "RPUSH q 1", "DEL q", "RPUSH q 2", "LLEN q"} {
		c.do(line)
	}
	c.want("EXEC", "1) (integer) 1\n2) (integer) 1\n3) (integer) 1\n4) (integer) 1")
	w.wantNext(poppedFrom("q", "2"))
	c.want("EXISTS q", "(integer) 0")
}

// TestBlockedByHold: a transaction that holds its partition serves those that wait when it ends.
func TestBlockedByHold(t *testing.T) {
	n := startLeveled(t)
	w := block(t, n, "BLPOP {h}q 0")
	c := dial(t, n.Addr())
	c.do("MULTI")
	c.do("RPUSH {h}q 1")
	for range 20_000 {
		c.send("APPEND {h}k 0123456789")
	}
	for range 20_000 {
		c.next()
	}
	if reply := c.do("EXEC"); !strings.HasPrefix(reply, "1) (integer) 1\n") {
		t.Fatalf("EXEC answers %.100s", reply)
	}
	w.wantNext(poppedFrom("{h}q", "1"))
}

// TestBlockedAtSeveralKeys: the order of the command's own keys decides, as in Redis 7.2, and it is served
// once.
func TestBlockedAtSeveralKeys(t *testing.T) {
	n := startLeveled(t)
	w := block(t, n, "BLPOP {k}a {k}b {k}a {k}c 0")
	c := dial(t, n.Addr())
	c.do("MULTI")
	c.do("RPUSH {k}c 1")
	c.do("RPUSH {k}b 2")
	c.do("RPUSH {k}a 3")
	c.do("EXEC")
	w.wantNext(poppedFrom("{k}a", "3"))
	c.want("LLEN {k}a", "(integer) 0")
	c.want("LLEN {k}b", "(integer) 1")
	c.want("RPUSH {k}a 4", "(integer) 1")
	c.want("LLEN {k}a", "(integer) 1")
	awaitBlocked(t, n, 0)
}

// TestBlockedByMove: LMOVE, and a BLMOVE that is served, serve those who wait for their destination.
func TestBlockedByMove(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	w := block(t, n, "BLPOP {m}b 0")
	c.do("RPUSH {m}a 1")
	c.want("LMOVE {m}a {m}b LEFT LEFT", `"1"`)
	w.wantNext(poppedFrom("{m}b", "1"))

	last := block(t, n, "BLPOP {m}d 0")
	second := block(t, n, "BRPOPLPUSH {m}c {m}d 0")
	first := block(t, n, "BLMOVE {m}b {m}c LEFT LEFT 0")
	c.want("RPUSH {m}b 2", "(integer) 1")
	first.wantNext(`"2"`)
	second.wantNext(`"2"`)
	last.wantNext(poppedFrom("{m}d", "2"))
	c.want("EXISTS {m}a {m}b {m}c {m}d", "(integer) 0")

	around := block(t, n, "BLMOVE {m}a {m}a LEFT RIGHT 0")
	c.want("RPUSH {m}a x y", "(integer) 2")
	around.wantNext(`"x"`)
	c.want("LRANGE {m}a 0 -1", "1) \"y\"\n2) \"x\"")
}

// TestBlockedByOthers: whatever makes a list or a sorted set serves those who wait for it, and a value of
// another type does not.
func TestBlockedByOthers(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	for _, setup := range [][]string{
		{"RPUSH {o}from 1", "RENAME {o}from {o}q"},
		{"RPUSH {o}from 1", "COPY {o}from {o}q", "DEL {o}from"},
		{"SADD {o}set 1", "SORT {o}set STORE {o}q", "DEL {o}set"},
		{"SET {o}q string", "DEL {o}q", "RPUSH {o}q 1"},
		{"ZADD {o}q 1 a", "DEL {o}q", "LPUSH {o}q 1"},
	} {
		w := block(t, n, "BLPOP {o}q 0")
		for _, line := range setup {
			c.do(line)
		}
		w.wantNext(poppedFrom("{o}q", "1"))
	}
	z := block(t, n, "BZPOPMIN {o}z 0")
	c.do("ZADD {o}from 1 a")
	c.want("ZUNIONSTORE {o}z 1 {o}from", "(integer) 1")
	z.wantNext("1) \"{o}z\"\n2) \"a\"\n3) \"1\"")
	many := block(t, n, "BZMPOP 0 1 {o}z MAX COUNT 1000")
	c.want("ZADD {o}z 1 a 2 b", "(integer) 2")
	many.wantNext("1) \"{o}z\"\n2) 1) 1) \"b\"\n      2) \"2\"\n   2) 1) \"a\"\n      2) \"1\"")
}

// TestBlockedWrongType: a command that is woken with a destination of the wrong type answers the error,
// and the element stays.
func TestBlockedWrongType(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.do("SET {w}s string")
	w := block(t, n, "BLMOVE {w}a {w}s LEFT LEFT 0")
	next := block(t, n, "BLPOP {w}a 0")
	c.want("RPUSH {w}a 1", "(integer) 1")
	w.wantNext("(error) WRONGTYPE Operation against a key holding the wrong kind of value")
	next.wantNext(poppedFrom("{w}a", "1"))
}

// TestBlockedMany: more waiters than are served under one lock have their elements before anybody else.
func TestBlockedMany(t *testing.T) {
	n := startLeveled(t)
	const clients = 300
	var waiting []*client
	for range clients {
		waiting = append(waiting, block(t, n, "BLPOP q 0"))
	}
	c := dial(t, n.Addr())
	var line strings.Builder
	line.WriteString("RPUSH q")
	for i := range clients + 1 {
		fmt.Fprint(&line, " ", i)
	}
	c.send(line.String())
	c.send("LPOP q")
	c.wantNext(fmt.Sprintf("(integer) %d", clients+1))
	c.wantNext(fmt.Sprintf("%q", fmt.Sprint(clients)))
	for i, w := range waiting {
		w.wantNext(poppedFrom("q", fmt.Sprint(i)))
	}
}

// TestBlockedLongElement: an element that is not copied arrives whole.
func TestBlockedLongElement(t *testing.T) {
	n := startLeveled(t)
	w := block(t, n, "BLPOP q 0")
	long := strings.Repeat("x", 300_000)
	c := dial(t, n.Addr())
	c.sendArgs([]byte("RPUSH"), []byte("q"), []byte(long))
	c.wantNext("(integer) 1")
	w.wantNext(poppedFrom("q", long))
	m := block(t, n, "BLMPOP 0 1 q LEFT COUNT 1000")
	c.do("MULTI")
	for range 10 {
		c.sendArgs([]byte("RPUSH"), []byte("q"), []byte(strings.Repeat("y", 15_000)))
		c.next()
	}
	c.do("EXEC")
	popped := strings.Count(m.next(), "yyy\"")
	if popped == 0 || popped > 5 {
		t.Errorf("%d elements of 15 kB were popped under the lock", popped)
	}
	c.want("LLEN q", fmt.Sprintf("(integer) %d", 10-popped))
}

// TestBlockedTimeout: no wait ends too early, and if the machine has time for the test once, within 10 ms. A value that
// comes later stays. Each wait begins when the one before has ended: if waits ended at the ticks of a clock, all but the
// first would take whole ticks.
func TestBlockedTimeout(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	const limit, most = 11 * time.Millisecond, 10 * time.Millisecond
	c.want("BLPOP q 0.011", "(nil)")
	late := time.Hour
	for try := 0; try < 100 && late > most; try++ {
		begun := time.Now()
		c.want("BLPOP q 0.011", "(nil)")
		took := time.Since(begun)
		if took < limit {
			t.Fatalf("a wait of %v took %v", limit, took)
		}
		late = min(late, took-limit)
	}
	if late > most {
		t.Errorf("waits of %v end %v too late, at best", limit, late)
	}
	c.want("RPUSH q 1", "(integer) 1")
	c.want("LLEN q", "(integer) 1")
}

// TestBlockedTooMany: a command that would be one too many to wait is refused, of a client and of a pipe, and takes
// nothing. The next one waits when one has ended.
func TestBlockedTooMany(t *testing.T) {
	n := startLeveled(t)
	const others = maxBlocked - 1
	n.waiters.Add(others)
	w := block(t, n, "BLPOP q 0")
	c, p := dial(t, n.Addr()), dial(t, n.Addr())
	p.want(fmt.Sprintf("%s %d", pipeLine(7, 0, "common", 1, 3), ring.Level), "OK later")
	for _, line := range []string{"BLPOP q 0", "BLMOVE q {q}r LEFT LEFT 0", "XREAD BLOCK 0 STREAMS s $"} {
		c.want(line, "(error) "+errTooManyWaits)
		p.want(line, "(error) "+errTooManyWaits)
	}
	c.want("RPUSH q 1 2", "(integer) 2")
	w.wantNext(poppedFrom("q", "1"))
	c.want("LRANGE q 0 -1", `1) "2"`)
	awaitBlocked(t, n, others)
	c.want("BLPOP q 0", poppedFrom("q", "2"))
	again := block(t, n, "BLPOP q 0")
	c.want("BLPOP q 0", "(error) "+errTooManyWaits)
	c.want("RPUSH q 3", "(integer) 1")
	again.wantNext(poppedFrom("q", "3"))
	awaitBlocked(t, n, others)
	n.waiters.Add(-others)
}

// TestBlockedManyTimeouts: waits that end at the same time end in turns.
func TestBlockedManyTimeouts(t *testing.T) {
	n := startLeveled(t)
	var waiting []*client
	for range 300 {
		c := dial(t, n.Addr())
		c.send("BLPOP q 0.5")
		waiting = append(waiting, c)
	}
	for _, c := range waiting {
		c.wantNext("(nil)")
	}
	awaitBlocked(t, n, 0)
}

// TestBlockedUnblock: CLIENT UNBLOCK, KILL and LIST know who waits.
func TestBlockedUnblock(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	unblock := func(how, want string) {
		t.Helper()
		w := dial(t, n.Addr())
		id := strings.TrimPrefix(w.do("CLIENT ID"), "(integer) ")
		w.send("BLPOP q 0")
		awaitBlocked(t, n, 1)
		if list := c.do("CLIENT LIST ID " + id); !strings.Contains(list, " flags=b ") || !strings.Contains(list, " cmd=blpop ") {
			t.Errorf("CLIENT LIST has %s", list)
		}
		c.want("CLIENT UNBLOCK "+id+how, "(integer) 1")
		w.wantNext(want)
		c.want("CLIENT UNBLOCK "+id+how, "(integer) 0")
		w.want("PING", "PONG")
		awaitBlocked(t, n, 0)
	}
	unblock("", "(nil)")
	unblock(" TIMEOUT", "(nil)")
	unblock(" ERROR", "(error) UNBLOCKED client unblocked via CLIENT UNBLOCK")

	w := block(t, n, "BLPOP q 0")
	c.do("CLIENT KILL SKIPME YES")
	if _, err := w.conn.Read(make([]byte, 1)); err == nil {
		t.Error("a killed client got a reply")
	}
	awaitBlocked(t, n, 0)
	c.want("RPUSH q 1", "(integer) 1")
	c.want("LLEN q", "(integer) 1")
}

// TestBlockedClientGone: a client that has gone takes nothing.
func TestBlockedClientGone(t *testing.T) {
	n := startLeveled(t)
	gone, stays := block(t, n, "BLPOP q 0"), block(t, n, "BLPOP q 0")
	gone.conn.Close()
	awaitBlocked(t, n, 1)
	c := dial(t, n.Addr())
	c.want("RPUSH q 1 2", "(integer) 2")
	stays.wantNext(poppedFrom("q", "1"))
	c.want("LRANGE q 0 -1", `1) "2"`)
}

// TestBlockedMoves: a command whose partition goes to another node is told where, and what comes later
// stays for others.
func TestBlockedMoves(t *testing.T) {
	n := startLeveled(t)
	w, stays := block(t, n, "BLPOP q 0"), block(t, n, "BLPOP other 0")
	giveAway(n, ring.PartitionOf([]byte("q")))
	w.wantNext(fmt.Sprintf("(error) MOVED %d 127.0.0.1:1", ring.Slot([]byte("q"))))
	awaitBlocked(t, n, 1)
	c := dial(t, n.Addr())
	c.want("RPUSH other 1", "(integer) 1")
	stays.wantNext(poppedFrom("other", "1"))
}

// TestBlockedBehind: what a client sends behind a command that waits is executed when that is answered.
func TestBlockedBehind(t *testing.T) {
	n := startLeveled(t)
	w := dial(t, n.Addr())
	w.send("BLPOP q 0")
	w.send("SET k 1")
	awaitBlocked(t, n, 1)
	c := dial(t, n.Addr())
	c.want("GET k", "(nil)")
	c.want("RPUSH q 1", "(integer) 1")
	w.wantNext(poppedFrom("q", "1"))
	w.wantNext("OK")
	c.want("GET k", `"1"`)
}

// TestBlockedTooMuch: a command names few keys, and not very long ones.
func TestBlockedTooMuch(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	keys := strings.Repeat(" {k}", 257)
	c.want("BLPOP"+keys+" 0", "(error) ERR a blocking command can name at most 256 keys")
	c.sendArgs([]byte("BLPOP"), []byte(strings.Repeat("k", 70_000)), []byte("0.1"))
	c.wantNext("(error) ERR the arguments of a command that waits can have at most 65536 bytes")
}

// TestBlockedFull: to wait takes no memory that a full node does not have.
func TestBlockedFull(t *testing.T) {
	n := startLeveled(t, func(cfg *Config) { cfg.Eviction, cfg.Memory = "noeviction", 16<<20 })
	c := dial(t, n.Addr())
	for i := 0; !strings.HasPrefix(c.do(fmt.Sprintf("SET %d %s", i, strings.Repeat("x", 10_000))), "(error) OOM"); i++ {
	}
	for i, full := 0, false; !full; i += 100 {
		for j := range 100 {
			c.send(fmt.Sprintf("SET small%d x", i+j))
		}
		for range 100 {
			full = strings.HasPrefix(c.next(), "(error) OOM")
		}
	}
	w := block(t, n, "BLPOP q 0")
	c.do("DEL 1 2 3 4 5")
	c.want("RPUSH q 1", "(integer) 1")
	w.wantNext(poppedFrom("q", "1"))
}

// TestBlockedOOM: a command for whose wait there is no memory is refused, and its client stays. Arguments are
// charged.
func TestBlockedOOM(t *testing.T) {
	n := startLeveled(t, func(cfg *Config) { cfg.Memory = 16 << 20 })
	w := dial(t, n.Addr())
	w.sendArgs([]byte("BLPOP"), []byte(strings.Repeat("k", 10_000)), []byte("0"))
	awaitBlocked(t, n, 1)
	var charged atomic.Int64
	for _, worker := range n.workers {
		worker.loop.Post(func() {
			if w, ok := worker.blocked.clients.Last(); ok {
				charged.Store(int64(w.conn.blockedCharge))
			}
		})
	}
	eventually(t, "the key is charged", func() bool { return charged.Load() > 10_000 })

	const clients = 40
	var all []*client
	for range clients {
		c := dial(t, n.Addr())
		c.want("PING", "PONG")
		all = append(all, c)
	}
	taken := int64(0)
	for size := int64(1 << 20); size > 0; size /= 2 {
		for n.Charge(size) {
			taken += size
		}
	}
	n.Refund(64 << 10) // for buffers
	taken -= 64 << 10
	refused := int64(0)
	for i, c := range all {
		c.send("BLPOP" + strings.Repeat(" {k}", 250) + " 0")
		eventually(t, "it waits or is refused", func() bool {
			stats, err := n.Stats()
			refused = int64(stats.Errors)
			return err == nil && n.waiters.Load()-1+refused == int64(i+1)
		})
	}
	n.Refund(taken)
	if refused < clients/2 || n.clients.Load() != clients+1 {
		t.Errorf("%d are refused, and %d of %d are left", refused, n.clients.Load(), clients+1)
	}
}

// TestBlockedFenced: the end of a hold serves nobody while the node is fenced, since others may serve the
// partition. Those who wait get what has come when the fence is lifted.
func TestBlockedFenced(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Group = newGroup(t, 1) })
	n.holdPatience = 20 * time.Millisecond
	tellLoops(t, n)
	w := block(t, n, "BLPOP {k}q 0")
	c := dial(t, n.Addr())
	for _, k := range []string{"x", "y"} {
		if err := put(n, "{k}"+k, strings.Repeat("abcdefgh", 1400), engine.TypeString); err != nil {
			t.Fatal(err)
		}
	}
	c.do("MULTI")
	c.do("RPUSH {k}q 1")
	for range 30 {
		c.do("LCS {k}x {k}y LEN")
	}
	c.send("EXEC")
	eventually(t, "the transaction holds its partition", func() bool { return len(n.engine.Holds()) == 1 })
	n.fenced.Store(true)
	if got := c.next(); !strings.Contains(got, errNotReached) {
		t.Fatalf("EXEC answers %.200s", got)
	}
	eventually(t, "the hold has ended", func() bool { return len(n.engine.Holds()) == 0 })
	if n.engine.Count(partitionOf("{k}q")) != 3 {
		t.Error("a fenced node serves those who wait")
	}
	n.fenced.Store(false)
	n.Fence("test") // and it is lifted
	w.wantNext(poppedFrom("{k}q", "1"))
	c.want("EXISTS {k}q", "(integer) 0")
}

// TestBlockedByAge: commands that have waited elsewhere stand in front of those that came later,
// whoever sends them, and an age is that of one command only.
func TestBlockedByAge(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	first := block(t, n, "BLPOP q 0")
	pop := resp.AppendRequest(nil, []byte("BLPOP"), []byte("q"), []byte("0"))
	aged := func(d time.Duration) []byte { return append(member.AppendWaited(nil, d), pop...) }
	c.do("RPUSH q 0") // to first
	first.wantNext(poppedFrom("q", "0"))

	block(t, n, "BLPOP other 0")
	direct := block(t, n, "BLPOP q 0")
	p.sendRaw(aged(time.Minute))
	p.wantRaw(later(1))
	p.sendRaw(pop)
	p.wantRaw(later(2))
	in := aged(time.Hour)
	p.sendRaw(in[:3])
	c.want("PING", "PONG")
	p.sendRaw(in[3:])
	p.wantRaw(later(3))
	p.sendRaw(append(append(append(aged(time.Second), "#\x03"...), aged(time.Hour)...), aged(59*time.Second)...))
	for _, token := range []int{4, 5, 6} { // token 5 is in another database
		p.wantRaw(later(token))
	}
	awaitBlocked(t, n, 8)
	c.want("RPUSH q a b c d e f", "(integer) 6")
	for i, token := range []uint64{3, 1, 6, 4, 2} {
		element := string("abcdf"[i])
		p.popped()
		p.wantRaw(string(member.AppendCompletion(nil, token)) + "*2\r\n$1\r\nq\r\n$1\r\n" + element + "\r\n")
	}
	direct.wantNext(poppedFrom("q", "e"))
}
