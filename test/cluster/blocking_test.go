package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// waiter is a client whose blocking command waits.
func waiter(t *testing.T, s server, admin *harness.Wire, before int, line string) *harness.Wire {
	t.Helper()
	w := harness.DialWire(t, s.addr)
	w.Send([]byte(line + "\r\n"))
	wantBlocked(t, admin, before+1)
	return w
}

// wantStanding waits until commands stand in as many queues of nodes as those with the lines do, and in no others. A
// client counts as blocked before its nodes know of it: a test of the order, or of what comes after a command,
// waits for the nodes.
func (s server) wantStanding(t *testing.T, lines ...string) {
	t.Helper()
	if s.redis {
		return
	}
	want := 0
	for _, line := range lines {
		want += places(line)
	}
	stand := make([]float64, len(s.nodes)) // each node answers at its next look at its figures, so all are asked at once
	errs := make([]error, len(s.nodes))
	harness.Eventually(t, harness.ReadyTimeout, fmt.Sprintf("commands stand in %d queues", want), func() bool {
		var asked sync.WaitGroup
		got := 0
		for i, m := range s.nodes {
			asked.Go(func() { stand[i], errs[i] = m.Figure("dunlin_node_blocked_commands{") })
		}
		asked.Wait()
		for _, n := range stand {
			got += int(n)
		}
		return got == want && errors.Join(errs...) == nil
	}, func() string { return fmt.Sprint(stand, errs) })
}

// places returns in how many queues a blocking command stands: in one of each partition in which it has keys.
func places(line string) int {
	args := bytes.Fields([]byte(line))
	at, _ := command.Row(args).AppendKeys(nil, args)
	partitions := make(map[uint16]bool)
	for _, i := range at {
		partitions[ring.PartitionOf(args[i])] = true
	}
	return len(partitions)
}

func wantNext(t *testing.T, w *harness.Wire, want string) {
	t.Helper()
	if got := string(w.Next()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestBlocking holds blocking commands of several clients with a node, a proxy, and Redis.
func TestBlocking(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		if !s.redis {
			harness.AwaitLevel(t, s.addr)
		}
		for name, f := range map[string]func(*testing.T, server, *harness.Wire){
			"order": blockingOrder, "unblock": blockingUnblock, "gone": blockingGone, "behind": blockingBehind,
			"moves": blockingMoves, "many": blockingMany, "paused": blockingPaused,
		} {
			t.Run(name, func(t *testing.T) {
				admin := harness.DialWire(t, s.addr)
				admin.Want("FLUSHALL", "OK")
				f(t, s, admin)
				wantBlocked(t, admin, 0)
			})
		}
	})
}

// blockingOrder: first come, first served, and behind the whole transaction.
func blockingOrder(t *testing.T, s server, admin *harness.Wire) {
	lines := []string{"BLPOP {q}other {q} 0", "BRPOP {q} 100", "BZPOPMAX {q}z 0"}
	var waiting []*harness.Wire
	for i, line := range lines {
		waiting = append(waiting, waiter(t, s, admin, i, line))
		s.wantStanding(t, lines[:i+1]...)
	}
	a, b, z := waiting[0], waiting[1], waiting[2]
	admin.Send([]byte("RPUSH {q} 1 2 3\r\nLLEN {q}\r\n"))
	wantNext(t, admin, ":3\r\n")
	wantNext(t, admin, ":1\r\n")
	wantNext(t, a, "*2\r\n$3\r\n{q}\r\n$1\r\n1\r\n")
	wantNext(t, b, "*2\r\n$3\r\n{q}\r\n$1\r\n3\r\n")
	admin.Send([]byte("MULTI\r\nZADD {q}z 1 a\r\nZADD {q}z 2.5 b\r\nZCARD {q}z\r\nEXEC\r\nZCARD {q}z\r\n"))
	for _, want := range []string{"+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "*3\r\n:1\r\n:1\r\n:2\r\n", ":1\r\n"} {
		wantNext(t, admin, want)
	}
	wantNext(t, z, "*3\r\n$4\r\n{q}z\r\n$1\r\nb\r\n$3\r\n2.5\r\n")
}

// blockingUnblock: CLIENT UNBLOCK ends a wait, and takes nothing from whoever waits behind it.
func blockingUnblock(t *testing.T, s server, admin *harness.Wire) {
	for option, want := range map[string]string{
		"": "*-1\r\n", " TIMEOUT": "*-1\r\n", " ERROR": "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n",
	} {
		w := harness.DialWire(t, s.addr)
		id := strings.Trim(string(w.Do("CLIENT ID")), ":\r\n")
		w.Send([]byte("BLMOVE {u} {u}2 LEFT LEFT 0\r\nPING\r\n"))
		wantBlocked(t, admin, 1)
		behind := waiter(t, s, admin, 1, "BLPOP {u} 0")
		admin.Want("CLIENT UNBLOCK "+id+option, "(integer) 1")
		wantNext(t, w, want)
		wantNext(t, w, "+PONG\r\n")
		admin.Want("CLIENT UNBLOCK "+id+option, "(integer) 0")
		admin.Want("RPUSH {u} x", "(integer) 1")
		wantNext(t, behind, "*2\r\n$3\r\n{u}\r\n$1\r\nx\r\n")
	}
}

// blockingGone: a client that has gone takes nothing.
func blockingGone(t *testing.T, s server, admin *harness.Wire) {
	gone := waiter(t, s, admin, 0, "BLPOP g 0")
	gone.Conn.Close()
	wantBlocked(t, admin, 0)
	killed := waiter(t, s, admin, 0, "BLPOP g 0")
	admin.Do("CLIENT KILL TYPE normal SKIPME yes")
	if _, err := killed.Read(); err == nil {
		t.Error("a killed client got a reply")
	}
	s.wantStanding(t)
	admin.Want("RPUSH g 1", "(integer) 1")
	admin.Want("LPOP g", `"1"`)
}

// blockingBehind: what a client has sent behind a blocking command is executed behind it.
func blockingBehind(t *testing.T, s server, admin *harness.Wire) {
	w := harness.DialWire(t, s.addr)
	w.Send([]byte("SET b1 1\r\nBLPOP b 0\r\nSET b2 1\r\nBLPOP b 0.05\r\nGET b2\r\n"))
	wantNext(t, w, "+OK\r\n")
	wantBlocked(t, admin, 1)
	admin.Want("EXISTS b2", "(integer) 0")
	admin.Want("RPUSH b x", "(integer) 1")
	wantNext(t, w, "*2\r\n$1\r\nb\r\n$1\r\nx\r\n")
	wantNext(t, w, "+OK\r\n")
	wantNext(t, w, "*-1\r\n")
	wantNext(t, w, "$1\r\n1\r\n")
	w.Send([]byte("RPUSH b y\r\nBLPOP b 0\r\nBLPOP b 0.01\r\nPING\r\n"))
	for _, want := range []string{":1\r\n", "*2\r\n$1\r\nb\r\n$1\r\ny\r\n", "*-1\r\n", "+PONG\r\n"} {
		wantNext(t, w, want)
	}
}

// blockingMoves: elements go from one waiter to the next.
func blockingMoves(t *testing.T, s server, admin *harness.Wire) {
	last := waiter(t, s, admin, 0, "BLMPOP 0 2 {m}x {m}c LEFT COUNT 5")
	second := waiter(t, s, admin, 1, "BRPOPLPUSH {m}b {m}c 0")
	first := waiter(t, s, admin, 2, "BLMOVE {m}a {m}b LEFT RIGHT 0")
	admin.Want("LPUSH {m}a 1", "(integer) 1")
	wantNext(t, first, "$1\r\n1\r\n")
	wantNext(t, second, "$1\r\n1\r\n")
	wantNext(t, last, "*2\r\n$4\r\n{m}c\r\n*1\r\n$1\r\n1\r\n")
	admin.Want("EXISTS {m}a {m}b {m}c", "(integer) 0")
}

// blockingMany: more clients wait than a pipe has other commands on their way.
func blockingMany(t *testing.T, s server, admin *harness.Wire) {
	const clients = 1500
	waiting := make([]*harness.Wire, clients)
	for i := range waiting {
		waiting[i] = harness.DialWire(t, s.addr)
		waiting[i].Send([]byte("BLPOP many 0\r\n"))
	}
	wantBlocked(t, admin, clients)
	s.wantStanding(t, slices.Repeat([]string{"BLPOP many 0"}, clients)...)
	admin.Want("SET k v", "OK")
	admin.Send([]byte("RPUSH many"))
	for i := range clients + 1 {
		admin.Send(fmt.Appendf(nil, " %d", i))
	}
	admin.Send([]byte("\r\nLPOP many\r\n"))
	wantNext(t, admin, fmt.Sprintf(":%d\r\n", clients+1))
	wantNext(t, admin, fmt.Sprintf("$4\r\n%d\r\n", clients))
	got := make(map[string]bool)
	for _, w := range waiting {
		got[string(w.Next())] = true
	}
	if len(got) != clients {
		t.Errorf("%d clients got %d elements", clients, len(got))
	}
}

// blockingPaused: the time of a wait goes on in CLIENT PAUSE, and what would serve it comes when the pause has ended.
func blockingPaused(t *testing.T, s server, admin *harness.Wire) {
	begun := time.Now()
	w := waiter(t, s, admin, 0, "BLPOP p 1")
	admin.Want("CLIENT PAUSE 15000 WRITE", "OK")
	push := harness.DialWire(t, s.addr)
	push.Send([]byte("ECHO read\r\nRPUSH p x\r\n"))
	wantNext(t, push, "$4\r\nread\r\n")
	wantNext(t, w, "*-1\r\n")
	if took := time.Since(begun); took < time.Second {
		t.Errorf("a wait of 1 s took %v", took)
	}
	admin.Want("LLEN p", "(integer) 0")
	admin.Want("CLIENT UNPAUSE", "OK")
	wantNext(t, push, ":1\r\n")
	admin.Want("LRANGE p 0 -1", `1) "x"`)
}

// TestBlockingLeavers: a client that has left before its element was pushed loses it not, although its node
// has not heard of that yet.
func TestBlockingLeavers(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 2, 2)
	here, other := server{addr: c.Proxy(0).Addr, nodes: c.ByRole("node")}, harness.DialWire(t, c.Proxy(1).Addr)
	harness.AwaitLevel(t, here.addr)
	admin := harness.DialWire(t, here.addr)
	const clients = 300
	var waiting []*harness.Wire
	for i := range clients {
		w := harness.DialWire(t, here.addr)
		w.Send(fmt.Appendf(nil, "BLPOP left:%d 0\r\n", i))
		waiting = append(waiting, w)
	}
	wantBlocked(t, admin, clients)
	for i, w := range waiting {
		// Close then returns when the proxy's side of the connection knows of it.
		_ = w.Conn.(*net.TCPConn).SetLinger(int(harness.ReplyTimeout.Seconds()))
		w.Conn.Close()
		other.Want(fmt.Sprintf("RPUSH left:%d x", i), "(integer) 1")
	}
	for i := range clients {
		harness.Eventually(t, harness.ReadyTimeout, "the element is back", func() bool {
			return string(admin.Do(fmt.Sprintf("LLEN left:%d", i))) == ":1\r\n"
		})
	}
}

// startPatient starts a cluster of which all proxies know the level. They give up no node that gets no processor for a
// moment, which would fail a command, or lose what it has taken.
func startPatient(t *testing.T, nodes, proxies int) *harness.Cluster {
	t.Helper()
	c := harness.StartClusterWith(t, harness.StartOptions{
		Nodes: nodes, Proxies: proxies, Env: []string{"DUNLIN_NODE_TIMEOUT=5s"},
	})
	for _, p := range c.ByRole("proxy") {
		harness.AwaitLevel(t, p.Addr)
	}
	return c
}

// wantInTurn serves clients that wait for one key, and checks that each got one of the replies: the first one the
// first. If the machine was so slow that a claim may have lost its turn, they may have them in another order. serve
// has one client served, and returns the reply that it should get.
func wantInTurn(t *testing.T, waiting []*harness.Wire, serve func(i int) (want string)) {
	t.Helper()
	var got, want []string
	slowest := time.Duration(0)
	for i := range waiting {
		begun := time.Now()
		want = append(want, serve(i))
		slowest = max(slowest, time.Since(begun))
	}
	for _, w := range waiting {
		got = append(got, string(w.Next()))
	}
	if slowest >= member.ClaimTurn {
		t.Logf("the order of %d clients does not count: one was served after %v", len(waiting), slowest)
		slices.Sort(got)
		slices.Sort(want)
	}
	if !slices.Equal(got, want) {
		t.Errorf("clients got %q, want %q", got, want)
	}
}

// TestBlockingApart: blocking commands name keys of several nodes.
func TestBlockingApart(t *testing.T) {
	t.Parallel()
	c := startPatient(t, 3, 2)
	s := server{addr: c.Proxy(0).Addr, nodes: c.ByRole("node")}
	admin, other := harness.DialWire(t, s.addr), harness.DialWire(t, c.Proxy(1).Addr)
	for name, f := range map[string]func(*testing.T, server, *harness.Wire, *harness.Wire){
		"served": apartServed, "race": apartRace, "errors": apartErrors, "order": apartOrder, "ends": apartEnds, "many": apartMany,
	} {
		t.Run(name, func(t *testing.T) {
			admin.Want("FLUSHALL", "OK")
			f(t, s, admin, other)
			wantBlocked(t, admin, 0)
		})
	}
	t.Run("moves", func(t *testing.T) { apartMoves(t, c, s, admin) })
}

// apartServed: whichever key gets a value first, and the first of those that have one.
func apartServed(t *testing.T, s server, admin, other *harness.Wire) {
	for i, push := range []string{"RPUSH a1 x", "RPUSH b2 x", "RPUSH c3 x", "RPUSH d4 x"} {
		w := waiter(t, s, admin, 0, "BLPOP a1 b2 c3 d4 0")
		other.Want(push, "(integer) 1")
		wantNext(t, w, "*2\r\n$2\r\n"+push[6:8]+"\r\n$1\r\nx\r\n")
		if n := string(admin.Do("EXISTS a1 b2 c3 d4")); n != ":0\r\n" {
			t.Errorf("round %d: %q keys are left", i, n)
		}
	}
	admin.Want("RPUSH c3 1 2", "(integer) 2")
	admin.Want("RPUSH b2 3", "(integer) 1")
	for _, want := range []string{"$2\r\nb2\r\n$1\r\n3\r\n", "$2\r\nc3\r\n$1\r\n2\r\n", "$2\r\nc3\r\n$1\r\n1\r\n"} {
		if got := string(admin.Do("BRPOP a1 b2 c3 d4 0")); got != "*2\r\n"+want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	z := waiter(t, s, admin, 0, "BZMPOP 0 3 z1 y2 x3 MAX COUNT 2")
	other.Want("ZADD x3 1 a 2 b 3 c", "(integer) 3")
	wantNext(t, z, "*2\r\n$2\r\nx3\r\n*2\r\n*2\r\n$1\r\nc\r\n$1\r\n3\r\n*2\r\n$1\r\nb\r\n$1\r\n2\r\n")
	m := waiter(t, s, admin, 0, "BLMPOP 0 2 a1 b2 RIGHT COUNT 2")
	other.Want("RPUSH b2 1 2 3", "(integer) 3")
	wantNext(t, m, "*2\r\n$2\r\nb2\r\n*2\r\n$1\r\n3\r\n$1\r\n2\r\n")
	big := waiter(t, s, admin, 0, "BLPOP a1 e5 0")
	other.Send([]byte("*3\r\n$5\r\nRPUSH\r\n$2\r\ne5\r\n$400000\r\n" + strings.Repeat("x", 400_000) + "\r\n"))
	wantNext(t, other, ":1\r\n")
	if got := string(big.Next()); len(got) < 400_000 || !strings.HasPrefix(got, "*2\r\n$2\r\ne5\r\n$400000\r\n") {
		t.Errorf("a long element comes in %d bytes", len(got))
	}
	admin.Want("DEL b2 x3", "(integer) 2")
}

// apartRace: of pushes at the same time to keys of several nodes one serves a command that names
// them all, and the others stay.
func apartRace(t *testing.T, s server, admin, other *harness.Wire) {
	w, pushers := harness.DialWire(t, s.addr), []*harness.Wire{admin, other, harness.DialWire(t, s.addr)}
	keys := []string{"a1", "b2", "c3"}
	for round := range 50 {
		w.Send([]byte("BLPOP a1 b2 c3 0\r\n"))
		wantBlocked(t, admin, 1)
		for i, p := range pushers {
			p.Send(fmt.Appendf(nil, "RPUSH %s %d\r\n", keys[i], i))
		}
		for _, p := range pushers {
			wantNext(t, p, ":1\r\n")
		}
		reply := strings.Split(string(w.Next()), "\r\n")
		if len(reply) != 6 || keys[int(reply[4][0]-'0')] != reply[2] {
			t.Fatalf("round %d: BLPOP answers %q", round, reply)
		}
		admin.Want("EXISTS "+reply[2], "(integer) 0")
		admin.Want("DEL a1 b2 c3", "(integer) 2")
	}
}

// apartErrors: errors are those of a command whose keys lie together.
func apartErrors(t *testing.T, _ server, admin, _ *harness.Wire) {
	admin.Want("SET string x", "OK")
	for line, want := range map[string]string{
		"BLPOP a1 string b2 0":                         "-WRONGTYPE",
		"BLPOP a1 b2 -1":                               "-ERR timeout is negative",
		"BLPOP a1 b2 x":                                "-ERR timeout is not a float or out of range",
		"BLMPOP 0 2 a1 b2 UP":                          "-ERR syntax error",
		"BLMPOP 0 2 a1 b2 LEFT COUNT 0":                "-ERR count",
		"BZMPOP 0 2 a1 b2 MIN COUNT 1 x":               "-ERR syntax error",
		"BLMOVE a1 b2 LEFT LEFT 0":                     "-CROSSSLOT",
		"BLPOP" + strings.Repeat(" a1 b2", 129) + " 0": "-ERR a blocking command can name at most 256 keys",
	} {
		if got := string(admin.Do(line)); !strings.HasPrefix(got, want) {
			t.Errorf("%.60s: %q, want %q", line, got, want)
		}
	}
	begun := time.Now()
	if got := string(admin.Do("BLPOP a1 b2 0.2")); got != "*-1\r\n" || time.Since(begun) < 200*time.Millisecond {
		t.Errorf("got %q after %v", got, time.Since(begun))
	}
}

// apartOrder: who claims a key stands in its queue, between those that name only that one.
func apartOrder(t *testing.T, s server, admin, other *harness.Wire) {
	var waiting []*harness.Wire
	var lines []string
	for i := range 12 {
		line := "BLPOP q1 0"
		if i%2 == 0 {
			line = "BLPOP p2 q1 r3 0"
		}
		lines = append(lines, line)
		waiting = append(waiting, waiter(t, s, admin, i, line))
		s.wantStanding(t, lines...)
	}
	wantInTurn(t, waiting, func(i int) (want string) {
		other.Want(fmt.Sprintf("RPUSH q1 %d", i), "(integer) 1")
		wantBlocked(t, admin, len(waiting)-i-1)
		return fmt.Sprintf("*2\r\n$2\r\nq1\r\n$%d\r\n%d\r\n", len(fmt.Sprint(i)), i)
	})
}

// apartEnds: CLIENT UNBLOCK, and clients that leave.
func apartEnds(t *testing.T, s server, admin, other *harness.Wire) {
	for option, want := range map[string]string{"": "*-1\r\n", " ERROR": "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"} {
		w := harness.DialWire(t, s.addr)
		id := strings.Trim(string(w.Do("CLIENT ID")), ":\r\n")
		w.Send([]byte("BLPOP u1 v2 0\r\nPING\r\n"))
		wantBlocked(t, admin, 1)
		admin.Want("CLIENT UNBLOCK "+id+option, "(integer) 1")
		wantNext(t, w, want)
		wantNext(t, w, "+PONG\r\n")
	}
	gone := waiter(t, s, admin, 0, "BLPOP u1 v2 0")
	behind := waiter(t, s, admin, 1, "BLPOP v2 0")
	gone.Conn.Close()
	other.Want("RPUSH v2 x", "(integer) 1")
	wantNext(t, behind, "*2\r\n$2\r\nv2\r\n$1\r\nx\r\n")
}

// apartMany: each element goes to one of many clients, whatever keys they name.
func apartMany(t *testing.T, s server, admin, other *harness.Wire) {
	const clients = 200
	waiting := make([]*harness.Wire, clients)
	for i := range waiting {
		waiting[i] = harness.DialWire(t, s.addr)
		waiting[i].Send([]byte("BLPOP m1 m2 m3 m4 0\r\n"))
	}
	wantBlocked(t, admin, clients)
	for i := range clients {
		other.Send(fmt.Appendf(nil, "RPUSH m%d %d\r\n", i%4+1, i))
	}
	for range clients {
		other.Next()
	}
	got := make(map[string]bool)
	for _, w := range waiting {
		reply := strings.Split(string(w.Next()), "\r\n")
		got[reply[4]] = true
	}
	if len(got) != clients {
		t.Errorf("%d clients got %d elements", clients, len(got))
	}
	admin.Want("EXISTS m1 m2 m3 m4", "(integer) 0")
}

// apartMoves: claims are made again at the next owners, when a node leaves and when one dies.
func apartMoves(t *testing.T, c *harness.Cluster, s server, admin *harness.Wire) {
	const clients = 60
	var waiting []*harness.Wire
	for i := range clients {
		w := harness.DialWire(t, s.addr)
		w.Send(fmt.Appendf(nil, "BLPOP one:%d two:%d three:%d 120\r\n", i, i, i))
		waiting = append(waiting, w)
	}
	wantBlocked(t, admin, clients)
	push := func(key string, from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			admin.Want(fmt.Sprintf("RPUSH %s:%d %d", key, i, i), "(integer) 1")
		}
		for i := from; i < to; i++ {
			name := fmt.Sprintf("%s:%d", key, i)
			wantNext(t, waiting[i], fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%d\r\n", len(name), name, len(fmt.Sprint(i)), i))
			admin.Want("EXISTS "+name, "(integer) 0")
		}
		wantBlocked(t, admin, clients-to)
	}
	c.Node(2).Term(harness.ReadyTimeout)
	push("two", 0, 20)
	c.Node(1).Kill()
	push("three", 20, 40)
	push("one", 40, clients)
}

// TestBlockingMoves: commands that wait go on with the next owner, when a node leaves and when one dies.
func TestBlockingMoves(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 1)
	s := server{addr: c.Proxy(0).Addr, nodes: c.ByRole("node")}
	harness.AwaitLevel(t, s.addr)
	admin := harness.DialWire(t, s.addr)
	const clients = 60
	var waiting []*harness.Wire
	for i := range clients {
		w := harness.DialWire(t, s.addr)
		w.Send(fmt.Appendf(nil, "BLPOP key:%d 120\r\n", i))
		waiting = append(waiting, w)
	}
	wantBlocked(t, admin, clients)
	push := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			admin.Want(fmt.Sprintf("RPUSH key:%d %d", i, i), "(integer) 1")
		}
		for i := from; i < to; i++ {
			key := fmt.Sprintf("key:%d", i)
			wantNext(t, waiting[i], fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%d\r\n", len(key), key, len(fmt.Sprint(i)), i))
			admin.Want("EXISTS "+key, "(integer) 0")
		}
		wantBlocked(t, admin, clients-to)
	}
	c.Node(2).Term(harness.ReadyTimeout)
	push(0, 20)
	c.Node(1).Kill()
	c.Converge(harness.ReadyTimeout)
	push(20, clients)
}

// TestBlockingOrderMoves: clients of two proxies that wait for one key are served first come, first served, also by its
// next owner. The proxy of those who came first stands still while the keys move, so it sends their commands last.
func TestBlockingOrderMoves(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 2, 2)
	nodes := c.ByRole("node")
	const clients, keys = 100, 10 // the node that leaves has some of the keys
	var waves [2][]*harness.Wire
	var lines []string
	for by := range waves {
		p := c.Proxy(by)
		harness.AwaitLevel(t, p.Addr)
		for i := range clients {
			w, line := harness.DialWire(t, p.Addr), fmt.Sprintf("BLPOP line:%d 120", i%keys)
			w.Send([]byte(line + "\r\n"))
			waves[by], lines = append(waves[by], w), append(lines, line)
		}
		server{nodes: nodes}.wantStanding(t, lines...)
	}
	before, err := nodes[0].Figure("dunlin_node_blocked_commands{") // half of them are of each proxy
	if err != nil {
		t.Fatal(err)
	}
	c.Proxy(0).Stop()
	moved := make(chan time.Duration, 1)
	go func() { moved <- nodes[1].Term(harness.ReadyTimeout) }()
	harness.Eventually(t, harness.ReadyTimeout, "the second proxy's clients wait at the next owner", func() bool {
		standing, err := nodes[0].Figure("dunlin_node_blocked_commands{")
		return err == nil && standing == before+clients-before/2
	})
	c.Proxy(0).Cont()
	<-moved
	server{nodes: nodes[:1]}.wantStanding(t, lines...)
	pusher := harness.DialWire(t, c.Proxy(1).Addr)
	for number, wave := range waves {
		for i := range wave {
			pusher.Do(fmt.Sprintf("RPUSH line:%d %d", i%keys, number))
		}
		for i, w := range wave {
			wantNext(t, w, fmt.Sprintf("*2\r\n$6\r\nline:%d\r\n$1\r\n%d\r\n", i%keys, number))
		}
	}
}
