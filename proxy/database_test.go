package proxy

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

// databases is a cluster whose clients may select one.
func databases(t testing.TB, nodes int, change ...func(*Config)) *rig {
	c := newCluster(t, nodes, change...)
	c.level = ring.Level
	c.route(func(p int) int { return p % nodes })
	return c
}

// TestSelect: each request names the database that its session has selected, in the order of the commands.
func TestSelect(t *testing.T) {
	c := databases(t, 2, oneLoop(t))
	a, b := key(0, 2), key(1, 2)
	cl, other := c.dial(), c.dial()
	cl.send("SET "+a+" 0", "SELECT 3", "SET "+a+" 3", "SELECT 10", "MSET "+a+" 10 "+b+" x", "SELECT 3", "GET "+a,
		"SELECT 0", "GET "+a, "SELECT 10", "MGET "+a+" "+b, "SELECT 16", "DEL "+a+" "+b)
	cl.want("+OK", "+OK", "+OK", "+OK", "+OK", "+OK", "$1 3", "+OK", "$1 0", "+OK", "*2 $2 10 $1 x",
		"-ERR DB index is out of range", ":2")
	other.send("GET "+a, "GET "+b, "SELECT 3", "GET "+a, "CLIENT INFO")
	other.want("$1 0", "$-1", "+OK", "$1 3")
	if info := other.reply(); !strings.Contains(info, " db=3 ") {
		t.Errorf("CLIENT INFO says %s", info)
	}
	other.send("HELLO 3")
	other.reply()
	other.send("GET "+a, "RESET", "GET "+a)
	other.want("$1 3", "+RESET", "$1 0")
	want := []string{"SET " + a + " 0", "#3 SET " + a + " 3", "#10 MSET " + a + " 10", "#3 GET " + a, "GET " + a}
	if got := c.nodes[0].executed(); !slices.Equal(got[:5], want) {
		t.Errorf("the node executed %q, want %q", got[:5], want)
	}
}

// TestDatabaseIsKept: a request keeps its database however often it is sent again, and whatever its session has
// selected since.
func TestDatabaseIsKept(t *testing.T) {
	c := databases(t, 2, oneLoop(t))
	a, b := key(0, 2), key(1, 2)
	cl := c.dial()
	tries := 0
	c.nodes[0].set(func(n *fakeNode) {
		n.refuse = func(string) string {
			if tries++; tries%3 != 0 {
				return "-DUNLINWAIT\r\n"
			}
			return ""
		}
	})
	cl.send("SELECT 5", "SET "+a+" refused", "SELECT 6", "GET "+a, "SELECT 5", "GET "+a)
	cl.want("+OK", "+OK", "+OK", "$-1", "+OK", "$7 refused")

	to := c.nodes[1].member().Addr
	c.nodes[0].set(func(n *fakeNode) {
		n.refuse = func(k string) string { return fmt.Sprintf("-MOVED %d %s\r\n", ring.Slot([]byte(k)), to) }
	})
	cl.send("SET "+a+" moved", "SELECT 6", "MSET "+a+" six "+b+" six", "MGET "+b+" "+a, "SELECT 5", "GET "+a)
	cl.want("+OK", "+OK", "+OK", "*2 $3 six $3 six", "+OK", "$5 moved")

	breaks := 1
	c.nodes[1].set(func(n *fakeNode) {
		n.answer = func(args []string) (string, bool) {
			if args[0] == "GET" && breaks > 0 {
				breaks--
				return "", true
			}
			return "", false
		}
	})
	cl.send("SELECT 6", "GET "+a, "SELECT 5", "GET "+a, "SELECT 0", "GET "+a)
	cl.want("+OK", "$3 six", "+OK", "$5 moved", "+OK", "$-1")
	if breaks != 0 {
		t.Error("no pipe was broken")
	}
}

// TestDatabaseOfDividedRequest: a split command whose keys have other owners when it is sent again stays in its
// database.
func TestDatabaseOfDividedRequest(t *testing.T) {
	c := databases(t, 2, oneLoop(t))
	c.route(func(int) int { return 0 })
	a, b := key(0, 2), key(1, 2)
	refused := make(chan bool, 1)
	c.nodes[0].set(func(n *fakeNode) {
		n.answer = func(args []string) (reply string, ok bool) { // b is the other node's by the next table
			if !slices.Contains(args, b) {
				return "", false
			}
			select {
			case refused <- true:
			default:
			}
			return "-DUNLINWAIT\r\n", true
		}
	})
	cl := c.dial()
	cl.send("SELECT 4", "MSET "+a+" 1 "+b+" 2", "SELECT 0", "MGET "+a+" "+b)
	came(t, "a refusal", refused)
	c.route(func(p int) int { return p % 2 })
	cl.want("+OK", "+OK", "+OK", "*2 $-1 $-1")
	cl.send("SELECT 4", "MGET "+a+" "+b)
	cl.want("+OK", "*2 $1 1 $1 2")
}

// TestHugeRequestOfDatabase: a request that is not copied has its database written before it.
func TestHugeRequestOfDatabase(t *testing.T) {
	c := databases(t, 2, oneLoop(t))
	cl := c.dial()
	k, value := key(0, 2), hugeValue(3<<20)
	cl.send("SET "+k+" before", "SELECT 13", "SET "+k+" "+value, "GET "+key(1, 2), "SET "+k+":after 1", "GET "+k,
		"SELECT 0", "GET "+k)
	cl.want("+OK", "+OK", "+OK", "$-1", "+OK")
	if got := cl.reply(); got != fmt.Sprintf("$%d %s", len(value), value) {
		t.Fatalf("%d bytes came back as %d others", len(value), len(got))
	}
	cl.want("+OK", "$6 before")

	// It comes back, too.
	tries := 0
	c.nodes[0].set(func(n *fakeNode) {
		n.refuse = func(string) string {
			if tries++; tries < 3 {
				return "-DUNLINWAIT\r\n"
			}
			return ""
		}
	})
	value = hugeValue(2 << 20)
	cl.send("SELECT 10", "SET "+k+" "+value, "GET "+k, "SELECT 0", "GET "+k)
	cl.want("+OK", "+OK")
	if got := cl.reply(); got != fmt.Sprintf("$%d %s", len(value), value) {
		t.Fatalf("%d bytes came back as %d others", len(value), len(got))
	}
	cl.want("+OK", "$6 before")
	c.wantNothingKept()
}

// TestSelectInTransaction: EXEC selects, if it is executed, and nobody knows before its reply.
func TestSelectInTransaction(t *testing.T) {
	c := databases(t, 2, oneLoop(t))
	k := key(0, 2)
	cl, other := c.dial(), c.dial()
	cl.send("SELECT 1", "MULTI", "SET "+k+" one", "SELECT 2", "SET "+k+" two", "SELECT 16", "SELECT 2", "PING", "EXEC",
		"GET "+k)
	cl.want("+OK", "+OK", "+QUEUED", "+QUEUED", "+QUEUED", "+QUEUED", "+QUEUED", "+QUEUED",
		"*6 +OK +OK +OK -ERR DB index is out of range +OK +PONG", "$3 two")
	cl.send("SELECT 1", "GET "+k)
	cl.want("+OK", "$3 one")

	// A watched key changes: nothing is selected. Each key is watched in its own database.
	for _, changes := range []bool{false, true} {
		cl.send("SELECT 1", "WATCH "+k, "SELECT 2", "WATCH "+k, "MULTI", "SELECT 3", "SET "+k+" three")
		cl.want("+OK", "+OK", "+OK", "+OK", "+OK", "+QUEUED", "+QUEUED")
		other.send("SET "+k+" zero", "SELECT 1")
		other.want("+OK", "+OK")
		if changes {
			other.send("SET " + k + " uno")
			other.want("+OK")
		}
		other.send("SELECT 0")
		other.want("+OK")
		cl.send("EXEC", "GET "+k)
		if changes {
			cl.want("*-1", "$3 two")
		} else {
			cl.want("*2 +OK +OK", "$5 three")
		}
	}

	// Behind such an EXEC the session sends nothing, even to another node.
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	before := len(c.nodes[1].executed())
	cl.send("MULTI", "SELECT 7", "GET "+k, "EXEC", "SET "+key(1, 2)+" seven",
		"SELECT 0", "MULTI", "SELECT 0", "GET "+k, "EXEC")
	cl.want("+OK", "+QUEUED", "+QUEUED")
	other.send("SET "+key(1, 2)+" x", "PING")
	other.want("+OK", "+PONG")
	if got := c.nodes[1].executed()[before:]; len(got) != 1 {
		t.Errorf("behind an EXEC without a reply the other node executed %q", got)
	}
	close(gate)
	cl.want("*2 +OK $-1", "+OK", "+OK", "+OK", "+QUEUED", "+QUEUED", "*2 +OK $4 zero")
	if got := c.nodes[1].executed(); got[len(got)-1] != "#7 SET "+key(1, 2)+" seven" {
		t.Errorf("behind it, the other node executed %q", got[len(got)-1])
	}

	// What fails selects nothing.
	c.nodes[0].set(func(n *fakeNode) {
		n.gate = nil
		n.answer = func(args []string) (string, bool) { return "-ERR no\r\n", args[0] == "DUNLIN" }
	})
	cl.send("MULTI", "SELECT 9", "GET "+k, "EXEC", "SET "+key(1, 2)+" 0", "CLIENT INFO")
	cl.want("+OK", "+QUEUED", "+QUEUED", "-ERR no", "+OK")
	if info := cl.reply(); !strings.Contains(info, " db=0 ") {
		t.Errorf("CLIENT INFO says %s", info)
	}
	cl.send("MULTI", "SELECT 9", "NOSUCH", "EXEC", "MULTI", "SELECT 9", "DISCARD", "CLIENT INFO")
	cl.want("+OK", "+QUEUED")
	cl.reply()
	cl.want("-EXECABORT Transaction discarded because of previous errors.", "+OK", "+QUEUED", "+OK")
	if info := cl.reply(); !strings.Contains(info, " db=0 ") {
		t.Errorf("CLIENT INFO says %s", info)
	}
}

// TestSelectWithLargeReply: a reply that the node keeps says that EXEC was executed, and so does one that is muted.
func TestSelectWithLargeReply(t *testing.T) {
	c := databases(t, 1, oneLoop(t))
	c.nodes[0].set(func(n *fakeNode) { n.tickets = map[string]string{} })
	cl, large := c.dial(), strings.Repeat("v", 2*ticketFrom)
	cl.send("SET k "+large, "MULTI", "GET k", "SELECT 4", "EXEC", "SET k four", "GET k")
	cl.want("+OK", "+OK", "+QUEUED", "+QUEUED", "*2 $2000 "+large+" +OK", "+OK", "$4 four")
	cl.send("SELECT 0", "GET k")
	cl.want("+OK", "$2000 "+large)
	cl.send("CLIENT REPLY OFF", "MULTI", "GET k", "SELECT 5", "EXEC", "SET k five", "MULTI", "SELECT 6", "EXEC",
		"SET k six", "CLIENT REPLY ON", "GET k", "SELECT 5", "GET k")
	cl.want("+OK", "$3 six", "+OK", "$4 five")
}

// TestSelectInRelaxedTransaction: each slot's part executes its commands in the databases in which they were queued.
func TestSelectInRelaxedTransaction(t *testing.T) {
	c := databases(t, 2, oneLoop(t), relaxed)
	a, b := key(0, 2), key(1, 2)
	cl := c.dial()
	cl.send("MULTI", "SET "+a+" 0", "SELECT 1", "SET "+b+" 1", "CLIENT INFO", "SELECT 2", "MSET "+a+" 2 "+b+" 2",
		"SELECT 2", "EXEC")
	cl.want("+OK")
	for range 7 {
		cl.want("+QUEUED")
	}
	got := cl.reply()
	const begins, ends = "*7 +OK +OK +OK $", " +OK +OK +OK"
	if !strings.HasPrefix(got, begins) || !strings.Contains(got, " db=1 ") || !strings.HasSuffix(got, ends) {
		t.Errorf("EXEC answers %q", got)
	}
	cl.send("MGET "+a+" "+b, "SELECT 1", "MGET "+a+" "+b, "SELECT 0", "MGET "+a+" "+b)
	cl.want("*2 $1 2 $1 2", "+OK", "*2 $-1 $1 1", "+OK", "*2 $1 0 $-1")
}

// TestSelectWithoutReply: a transaction that was executed has selected its database, although its
// reply is an error.
func TestSelectWithoutReply(t *testing.T) {
	a, b := key(0, 2), key(1, 2)
	const full = "-ERR executed, but the replies of the transaction would be too large"
	for _, f := range []struct {
		answer, want string
		database     int
	}{
		{"*2\r\n+OK\r\n+OK\r\n", strings.TrimSpace(string(errMerge)), 1}, // one reply too many
		{full + "\r\n", full, 1},
		{"-ERR no\r\n", "-ERR no", 0},
	} {
		c := databases(t, 2, oneLoop(t), relaxed)
		cl := c.dial()
		for _, others := range [][]string{{"SET " + a + " 0"}, nil} { // the transaction has two parts, or one
			c.nodes[1].set(func(n *fakeNode) {
				n.answer = func(args []string) (string, bool) { return f.answer, len(args) > 1 && args[1] == "EXEC" }
			})
			commands := append(others, "SELECT 1", "SET "+b+" 1")
			cl.send("SELECT 0", "MULTI")
			cl.send(commands...)
			cl.send("EXEC", "CLIENT INFO")
			cl.want("+OK", "+OK")
			for range commands {
				cl.want("+QUEUED")
			}
			if others == nil && f.want != full && f.database == 1 {
				cl.want("*2 +OK +OK")
			} else {
				cl.want(f.want)
			}
			if info, want := cl.reply(), fmt.Sprintf(" db=%d ", f.database); !strings.Contains(info, want) {
				t.Errorf("%d commands of which a node answers %q: CLIENT INFO says %s, want%s", len(commands), f.answer, info, want)
			}
		}
	}
}

// TestSelectInLongTransaction: a transaction that is divided in turns selects as a short one does.
func TestSelectInLongTransaction(t *testing.T) {
	c := databases(t, 1, oneLoop(t))
	cl := c.dial()
	cl.send("MULTI")
	cl.want("+OK")
	const n = 3 * maxKeys
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf("SELECT %d", 1+i%2), "INCR {k}")
	}
	cl.send(lines...)
	for range lines {
		cl.want("+QUEUED")
	}
	cl.send("EXEC", "GET {k}", "SELECT 1", "GET {k}", "SELECT 0", "GET {k}")
	if got := cl.reply(); !strings.HasPrefix(got, fmt.Sprintf("*%d +OK :1 +OK :1 +OK :2 ", 2*n)) {
		t.Errorf("EXEC answers %.80q", got)
	}
	count := fmt.Sprint(n / 2)
	want := fmt.Sprintf("$%d %s", len(count), count)
	cl.want(want, "+OK", want, "+OK", "$-1")
}

// TestWideOfDatabase: commands over all keys are about the database that is selected, and no others.
func TestWideOfDatabase(t *testing.T) {
	c := databases(t, 2, oneLoop(t))
	a, b := key(0, 2), key(1, 2)
	cl := c.dial()
	cl.send("SET "+a+" 0", "SELECT 8", "SET "+a+" 8", "SET "+b+" 8", "DBSIZE", "SELECT 0", "DBSIZE", "KEYS *", "RANDOMKEY")
	keyOf := func(k string) string { return fmt.Sprintf("$%d %s", len(k), k) }
	cl.want("+OK", "+OK", "+OK", "+OK", ":2", "+OK", ":1", "*1 "+keyOf(a), keyOf(a))
	slot := fmt.Sprint("CLUSTER COUNTKEYSINSLOT ", ring.Slot([]byte(b)))
	cl.send("SCAN 0", slot, "SELECT 8", slot, "FLUSHDB", "DBSIZE", "SELECT 0", "DBSIZE",
		"SELECT 8", "SET "+a+" 8", "FLUSHALL", "DBSIZE", "SELECT 0", "DBSIZE")
	cl.want("*2 $1 0 *1 "+keyOf(a), ":0", "+OK", ":1", "+OK", ":0", "+OK", ":1", "+OK", "+OK", "+OK", ":0", "+OK", ":0")
}

// TestClaimsOfDatabase: a blocking command waits for keys of its database.
func TestClaimsOfDatabase(t *testing.T) {
	c, k := claimCluster(t, 2)
	a, b, cl := c.nodes[0], c.nodes[1], c.dial()
	database := func(n *fakeNode) uint8 {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.pending[0].database
	}
	cl.send("SELECT 10", "BLPOP "+k[0]+" "+k[1]+" 0")
	cl.want("+OK")
	a.newestWants(1, "DUNLIN CLAIM l "+k[0])
	b.newestWants(1, "DUNLIN CLAIM l "+k[1])
	if x, y := database(a), database(b); x != 10 || y != 10 {
		t.Errorf("keys of database %d and %d are claimed", x, y)
	}
	a.complete(0, "-DUNLINWAIT 1\r\n")
	a.newestWants(1, "DUNLIN CLAIM l "+k[0])
	b.complete(0, "*2\r\n:0\r\n:5\r\n")
	b.newestWants(1, "BLPOP "+k[1]+" 0.001")
	b.told("#10 PASS l 5 " + k[1])
	if x, y := database(a), database(b); x != 10 || y != 10 {
		t.Errorf("a key of database %d is claimed again, and one of %d popped from", x, y)
	}
	b.complete(0, "*2\r\n"+bulk(k[1])+bulk("e"))
	cl.want(fmt.Sprintf("*2 $%d %s $1 e", len(k[1]), k[1]))
}

// TestReturnsToDatabase: what was popped for a client that has gone goes back into its database.
func TestReturnsToDatabase(t *testing.T) {
	c, n := blockingCluster(t)
	n.set(func(n *fakeNode) { n.answer = nil })
	cl := c.dial()
	cl.send("SELECT 2", "BLPOP k 0")
	cl.want("+OK")
	n.waiting(1)
	c.leave(cl)
	n.told("CANCEL 1")
	n.complete(0, "*2\r\n$1\r\nk\r\n$1\r\ne\r\n")
	n.told("#2 LPUSH k e")
}

// TestPinningEndsClaims: when keys lie elsewhere, the blocking commands that have claimed them end, a few in a turn of
// their loop. Those of other databases wait on.
func TestPinningEndsClaims(t *testing.T) {
	c, k := claimCluster(t, 2)
	const sessions = 3 * misplacedSteps / (endSteps + 2)
	blpop := "BLPOP " + k[0] + " " + k[1] + " 0"
	other := c.dial()
	other.send("SELECT 7", blpop)
	other.want("+OK")
	var all []*conn
	for range sessions {
		cl := c.dial()
		cl.send("SELECT 8", blpop)
		cl.want("+OK")
		all = append(all, cl)
	}
	for _, n := range c.nodes {
		n.waiting(sessions + 1)
	}
	s, err := (*ring.Settings)(nil).With(1, map[string]string{ring.PinnedSetting: "8"})
	if err != nil {
		t.Fatal(err)
	}
	w, waiting := c.proxy.workers[0], make(chan int, 1)
	w.loop.Post(func() {
		w.place(ring.PlacementOf(s), 1)
		n := 0
		for _, s := range w.clients {
			if s.claims != nil {
				n++
			}
		}
		waiting <- n
	})
	if n := came(t, "a turn", waiting); n <= sessions/2 || n > sessions {
		t.Errorf("behind the first turn %d of %d wait", n, sessions+1)
	}
	for _, cl := range all {
		cl.want(strings.TrimSpace(string(errUnblocked)))
	}
	first := c.nodes[0]
	completed := func(word, reply string) {
		t.Helper()
		at := -1
		eventually(t, "the node is asked "+word, func() bool {
			first.mu.Lock()
			defer first.mu.Unlock()
			at = slices.IndexFunc(first.pending, func(d pending) bool { return d.database == 7 && d.args[0] == word })
			return at >= 0
		})
		first.complete(at, reply)
	}
	completed("DUNLIN", "*2\r\n:0\r\n:1\r\n")
	completed("BLPOP", "*2\r\n"+bulk(k[0])+bulk("e"))
	other.want(fmt.Sprintf("*2 $%d %s $1 e", len(k[0]), k[0]))
}

// TestEventsOfDatabase: notifications of every database are heard from all nodes.
func TestEventsOfDatabase(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	var mu sync.Mutex
	var said []string
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) {
			n.listen = func(args []string) member.Heard {
				mu.Lock()
				defer mu.Unlock()
				said = append(said, n.name+" "+args[2])
				return member.Noted
			}
		})
	}
	heard := func(of ...string) bool {
		mu.Lock()
		defer mu.Unlock()
		return !slices.ContainsFunc(of, func(line string) bool { return !slices.Contains(said, line) })
	}
	c.level = ring.DatabasesLevel - 1
	c.route(func(int) int { return 0 })
	s := c.dial()
	s.send("SUBSCRIBE __keyspace@0__:k __keyevent@5__:set")
	s.want("*3 $9 subscribe $16 __keyspace@0__:k :1", "*3 $9 subscribe $18 __keyevent@5__:set :2")
	if !heard("n1 __keyspace@0__:k", "n2 __keyspace@0__:k") || heard("n2 __keyevent@5__:set") {
		t.Errorf("below the level, %q is said", said)
	}
	c.level = ring.DatabasesLevel
	c.route(func(int) int { return 0 })
	eventually(t, "all nodes are told", func() bool { return heard("n1 __keyevent@5__:set", "n2 __keyevent@5__:set") })
}

// TestMonitorShowsTheDatabase: a SELECT is shown with the database that it selects, as by Redis 7.
func TestMonitorShowsTheDatabase(t *testing.T) {
	c := databases(t, 1, oneLoop(t))
	watcher, cl := c.dial(), c.dial()
	watcher.send("MONITOR")
	watcher.want("+OK")
	cl.send("GET k", "SELECT 12", "GET k", "SELECT x")
	cl.want("$-1", "+OK", "$-1", "-ERR value is not an integer or out of range")
	for _, want := range []string{`[0 `, `[12 `, `[12 `, `[12 `} {
		if line := watcher.reply(); !strings.Contains(line, " "+want) {
			t.Errorf("the line is %s, want %s", line, want)
		}
	}
}

// TestPinningMovesRequests: a request that was refused while its database was being pinned follows its key, and what
// the session sends behind it comes behind it.
func TestPinningMovesRequests(t *testing.T) {
	c := databases(t, 2, oneLoop(t))
	c.route(func(p int) int {
		if p == int(ring.PinnedPartition(8)) {
			return 0
		}
		return 1
	})
	var settled atomic.Bool
	first := c.nodes[0].member().Addr
	refused := make(chan bool, 100)
	c.nodes[1].set(func(n *fakeNode) {
		n.refuse = func(string) string {
			if settled.Load() {
				return fmt.Sprintf("-MOVED %d %s\r\n", 4*ring.PinnedPartition(8), first)
			}
			refused <- true
			return "-DUNLINWAIT\r\n"
		}
	})
	cl := c.dial()
	cl.send("SELECT 8", "SET a 1", "SET a 12", "MGET a b c")
	came(t, "a refusal", refused)
	s, err := (*ring.Settings)(nil).With(1, map[string]string{ring.PinnedSetting: "8"})
	if err != nil {
		t.Fatal(err)
	}
	c.proxy.ApplySettings(s)
	settled.Store(true)
	cl.send("SET b 3", "MGET a b c")
	cl.want("+OK", "+OK", "+OK", "*3 $2 12 $-1 $-1", "+OK", "*3 $2 12 $1 3 $-1")
	for _, line := range c.nodes[1].executed() {
		if strings.Contains(line, "SET") {
			t.Errorf("node 2 executed %q", line)
		}
	}
}

// TestUnpinningMovesRequests: a command of several keys that was refused while its database was being unpinned goes to
// the owner of its first key, who says that they share no slot any more.
func TestUnpinningMovesRequests(t *testing.T) {
	c := databases(t, 2, oneLoop(t))
	c.route(func(p int) int {
		if p == int(ring.PinnedPartition(8)) {
			return 0
		}
		return 1
	})
	refused := make(chan bool, 100)
	c.nodes[0].set(func(n *fakeNode) {
		n.refuse = func(string) string {
			refused <- true
			return "-DUNLINWAIT\r\n"
		}
	})
	c.nodes[1].set(func(n *fakeNode) { n.refuse = func(string) string { return string(errCrossSlot) } })
	place := func(databases string, version uint64) {
		t.Helper()
		s, err := (*ring.Settings)(nil).With(version, map[string]string{ring.PinnedSetting: databases})
		if err != nil {
			t.Fatal(err)
		}
		c.proxy.ApplySettings(s)
	}
	place("8", 1)
	cl := c.dial()
	cl.send("SELECT 8", "SUNIONSTORE a b c")
	came(t, "a refusal", refused)
	place("", 2)
	cl.want("+OK", strings.TrimSpace(string(errCrossSlot)))
}
