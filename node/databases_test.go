package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/tracking"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// of encodes a line as a request of a pipe that is of a database.
func (c *client) of(database uint8, line string) []byte {
	return resp.AppendRequest(member.AppendDatabase(nil, database), words(c.t, line)...)
}

// wantOf sends a request of a database over a pipe and compares its reply.
func (c *client) wantOf(database uint8, line, want string) {
	c.t.Helper()
	c.sendRaw(c.of(database, line))
	if got := c.next(); got != want {
		c.t.Errorf("%s in database %d answers\n%s\nwant\n%s", line, database, got, want)
	}
}

// patientPipe opens a pipe whose commands are never answered later.
func patientPipe(t *testing.T, n *Node, kind string, generation int) *client {
	t.Helper()
	p := dial(t, n.Addr())
	p.do(fmt.Sprint(pipeLine(1, 0, kind, generation, 2), " ", ring.Level))
	p.want("DUNLIN LEVEL 0", "OK")
	return p
}

// TestPipesNameDatabases: a prefix is of one request, wherever the input is cut.
func TestPipesNameDatabases(t *testing.T) {
	n := startLeveled(t)
	var requests []byte
	var want []string
	add := func(database uint8, line, reply string) {
		requests = append(requests, dial(t, n.Addr()).of(database, line)...)
		want = append(want, reply)
	}
	add(0, "SET k zero", "OK")
	add(10, "SET k ten", "OK") // whose number is a line feed
	add(13, "SET k thirteen", "OK")
	add(15, "SET k fifteen", "OK")
	add(0, "GET k", `"zero"`)
	add(10, "GET k", `"ten"`)
	add(10, "MGET k none k", "1) \"ten\"\n2) (nil)\n3) \"ten\"")
	add(0, "GET k", `"zero"`)
	add(13, "GET k", `"thirteen"`)
	add(15, "MOVE k 1", "(integer) 1")
	add(1, "GET k", `"fifteen"`)
	add(15, "EXISTS k", "(integer) 0")
	add(10, "EVAL 'return redis.call(\"GET\", KEYS[1])' 1 k", `"ten"`)
	add(10, "MSET 1 1 2 2 3 3 4 4 5 5", "OK")
	add(0, "EXISTS 1 2 3 4 5", "(integer) 0")
	add(10, "EXISTS 1 2 3 4 5", "(integer) 5")
	for _, size := range []int{1, 2, 3, 7, 50, len(requests)} {
		c := patientPipe(t, n, "common", size)
		c.want("FLUSHALL", "OK")
		for piece := range slices.Chunk(requests, size) {
			c.sendRaw(piece)
		}
		for i := range want {
			if got := c.next(); got != want[i] {
				t.Errorf("in pieces of %d: reply %d is %s, want %s", size, i, got, want[i])
			}
		}
	}
}

// TestWrongDatabasesOfPipes: a pipe that names no database is out of step, and only pipes have prefixes.
func TestWrongDatabasesOfPipes(t *testing.T) {
	n := startLeveled(t)
	for i, prefix := range []string{"#\x00", "#\x10", "##", "#\xff"} {
		c := patientPipe(t, n, "common", i+1)
		c.sendRaw([]byte(prefix + "*1\r\n$4\r\nPING\r\n"))
		c.wantNext("(error) ERR Protocol error: no such database")
		c.wantNext("(closed)")
	}
	c := dial(t, n.Addr())
	c.sendRaw([]byte("#\x01*1\r\n"))
	if got := c.next(); !strings.HasPrefix(got, "(error) ERR unknown command '#") {
		t.Errorf("a client's prefix is answered %s", got)
	}
}

// TestLongRequestsOfDatabases: uploads and requests that are listed in turns, of a client and of a pipe.
func TestLongRequestsOfDatabases(t *testing.T) {
	n := startLeveled(t)
	c, p := dial(t, n.Addr()), patientPipe(t, n, "common", 1)
	value, longer := bigValue(300_000, 1), bigValue(9<<20, 2)
	c.want("SELECT 3", "OK")
	c.wantBig("SET {k}a BIG", value, "OK")
	for _, v := range [][]byte{value, longer} {
		p.sendRaw(append(member.AppendDatabase(nil, 4), bigRequest(t, "SET {k}a BIG", v)...))
		p.wantNext("OK")
		p.want("GET {k}a", "(nil)")
		p.wantOf(4, "STRLEN {k}a", fmt.Sprint("(integer) ", len(v)))
	}
	p.wantOf(3, "STRLEN {k}a", "(integer) 300000")
	p.sendRaw(append(member.AppendDatabase(nil, 4), bigRequest(t, "MSET {k}b BIG {k}c x", value)...))
	p.wantNext("OK")
	p.wantOf(4, "EXISTS {k}b {k}c", "(integer) 2")
	c.wantBig("APPEND {k}a BIG", longer, fmt.Sprint("(integer) ", len(value)+len(longer)))
	c.want("SELECT 0", "OK")
	c.want("EXISTS {k}a {k}b {k}c", "(integer) 0")

	many := ""
	for i := range listFrom {
		many += fmt.Sprintf(" {k}%d", i)
	}
	c.want("SELECT 5", "OK")
	c.want("MSET"+many+many, "OK")
	c.want("DBSIZE", fmt.Sprint("(integer) ", listFrom))
	p.sendRaw(p.of(6, "MSET"+many+many))
	p.wantNext("OK")
	p.sendRaw(p.of(5, "DEL"+many))
	p.wantNext(fmt.Sprint("(integer) ", listFrom))
	c.want("DBSIZE", "(integer) 0")
	c.want("SELECT 6", "OK")
	c.want("DBSIZE", fmt.Sprint("(integer) ", listFrom))
	c.want("SELECT 0", "OK")
	c.want("DBSIZE", "(integer) 0")
}

// TestEachOfDatabase: commands over all keys are about the database that the prefix names.
func TestEachOfDatabase(t *testing.T) {
	n := startLeveled(t)
	p := patientPipe(t, n, "large", 1)
	p.wantOf(2, "MSET {k}1 1 {k}2 2 other 3", "OK")
	p.want("SET {k}1 0", "OK")
	each := func(database uint8, line string) string {
		p.sendRaw(member.AppendDatabase(nil, database))
		_, inner := p.each(&allPartitions, line)
		return inText(inner)
	}
	slot := ring.Slot([]byte("{k}"))
	for _, x := range []struct {
		database   uint8
		line, want string
	}{
		{0, "DBSIZE", "(integer) 1"},
		{2, "DBSIZE", "(integer) 3"},
		{3, "DBSIZE", "(integer) 0"},
		{2, "KEYS o*", `1) "other"`},
		{0, "KEYS *", `1) "{k}1"`},
		{0, "RANDOMKEY", "1) (integer) 1\n2) \"{k}1\""},
		{3, "RANDOMKEY", "(empty array)"},
		{2, fmt.Sprint("CLUSTER COUNTKEYSINSLOT ", slot), "(integer) 2"},
		{0, fmt.Sprint("CLUSTER GETKEYSINSLOT ", slot, " 10"), `1) "{k}1"`},
		{2, fmt.Sprintf("CLUSTER SLOT-STATS SLOTSRANGE %d %[1]d", slot), fmt.Sprintf("1) (integer) %d\n2) (integer) 3", slot)},
		{2, "FLUSHDB", "OK"},
		{2, "DBSIZE", "(integer) 0"},
		{0, "DBSIZE", "(integer) 1"},
	} {
		if got := each(x.database, x.line); got != x.want {
			t.Errorf("%s of database %d is %s, want %s", x.line, x.database, got, x.want)
		}
	}
	p.wantOf(7, "SET a b", "OK")
	if got := each(3, "FLUSHALL"); got != "OK" || n.engine.Stats().Keys != 0 {
		t.Errorf("FLUSHALL answers %s, and leaves %d keys", got, n.engine.Stats().Keys)
	}
}

// TestTransactionsOfPipesSelect: EXEC of a proxy begins in the database that its prefix names, watched keys have their
// own, and SELECT is of the commands behind it.
func TestTransactionsOfPipesSelect(t *testing.T) {
	n := startLeveled(t)
	p, c := patientPipe(t, n, "common", 1), dial(t, n.Addr())
	version := func(database uint8) []byte {
		p.sendRaw(p.of(database, "DUNLIN WATCH {k}"))
		_, at, _ := resp.DecodeArray([]byte("*1\r\n"))
		text, ok := resp.DecodeBulk(p.read()[at:])
		if !ok {
			t.Fatal("WATCH answers no version")
		}
		return text
	}
	exec := func(database uint8, watched map[uint8][]byte, lines ...string) string {
		request := member.AppendExec(member.AppendDatabase(nil, database), ring.Slot([]byte("{k}")), len(watched), len(lines))
		for of, version := range watched {
			request = member.AppendWatched(request, of, []byte("{k}"), version)
		}
		for _, line := range lines {
			request = member.AppendQueued(request, words(t, line)...)
		}
		p.sendRaw(request)
		return p.next()
	}
	zero, two := version(0), version(2)
	for range 2 {
		if got, want := exec(2, map[uint8][]byte{0: zero, 2: two}, "APPEND {k}x a", "SELECT 3", "APPEND {k}x b", "SELECT 16",
			"APPEND {k}x c", "SELECT 2", "GET {k}x"), "1) (integer) 1\n2) OK\n3) (integer) 1\n"+
			"4) (error) ERR DB index is out of range\n5) (integer) 2\n6) OK\n7) \"a\""; got != want {
			t.Errorf("EXEC answers %s, want %s", got, want)
		}
		p.want("GET {k}x", "(nil)")
		c.want("FLUSHALL", "OK")
		zero, two = version(0), version(2)
	}
	c.want("SET {k} 0", "OK")
	if got := exec(2, map[uint8][]byte{2: two}, "SELECT 0", "GET {k}"); got != "1) OK\n2) \"0\"" {
		t.Errorf("EXEC answers %s though its watched key has not changed", got)
	}
	if got := exec(2, map[uint8][]byte{0: zero, 2: two}, "GET {k}"); got != "(nil)" {
		t.Errorf("EXEC answers %s though a watched key has changed", got)
	}
}

// TestSlowTransactionSelects: a transaction that holds its partition goes on in the database that it has selected.
func TestSlowTransactionSelects(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	hash := "HSET {k}h"
	for i := range 3000 {
		hash += fmt.Sprintf(" f%d v", i)
	}
	c.want("SELECT 1", "OK")
	c.want(hash, "(integer) 3000")
	c.want("SELECT 0", "OK")
	slowTransaction(c, n, 20, "SELECT 1", "INCR {k}b", "COPY {k}h {k}h DB 3", "EVAL 'redis.call(\"SELECT\", 4) for i = 1, 1e6 do end redis.call(\"SELECT\", 5) return redis.call(\"INCR\", KEYS[1])' 1 {k}b",
		"INCR {k}b", "MOVE {k}h 2", "SELECT 2", "HLEN {k}h", "SINTERSTORE {k}none {k}none {k}h")
	if got := c.do("EXEC"); !strings.HasSuffix(got, "22) OK\n23) (integer) 1\n24) (integer) 1\n25) (integer) 1\n26) (integer) 2\n27) (integer) 1\n28) OK\n"+
		"29) (integer) 3000\n30) (error) WRONGTYPE Operation against a key holding the wrong kind of value") {
		t.Errorf("EXEC answers %s", got)
	}
	c.want("EXISTS {k}h", "(integer) 1") // of database 2
	for database, want := range map[int]string{0: "(nil)", 1: `"2"`, 2: "(nil)", 4: "(nil)", 5: `"1"`} {
		c.want(fmt.Sprint("SELECT ", database), "OK")
		c.want("GET {k}b", want)
	}
	c.want("SELECT 3", "OK")
	c.want("HLEN {k}h", "(integer) 3000")
	c.want("SELECT 0", "OK")
	c.want("GET {k}a", `"1"`)
}

// TestBlockedInDatabases: who waits for a key waits for that of its database, and MOVE brings one.
func TestBlockedInDatabases(t *testing.T) {
	n := startLeveled(t)
	real := redistest.Start(t)
	for _, addr := range []string{n.Addr(), real} {
		waiter, c := dial(t, addr), dial(t, addr)
		block := func(line string) {
			waiter.send(line)
			if addr == n.Addr() {
				awaitBlocked(t, n, 1)
				return
			}
			eventually(t, "the command waits", func() bool { return strings.Contains(c.do("INFO clients"), "blocked_clients:1") })
		}
		waiter.want("SELECT 9", "OK")
		for _, steps := range [][]string{
			{"SELECT 0", "RPUSH {k} a", "SELECT 9", "RPUSH {k} b", "SELECT 0", "DEL {k}"},
			{"SELECT 0", "RPUSH {k} b", "SELECT 1", "RPUSH {k} a", "SELECT 0", "MOVE {k} 9"},
			{"SELECT 1", "COPY {k} {k} DB 8", "LSET {k} 0 b", "COPY {k} {k} DB 9"},
			{"MULTI", "RPUSH {k} a", "SELECT 9", "RPUSH {k} b", "SELECT 3", "RPUSH {k} a", "EXEC"},
			{`EVAL "redis.call('RPUSH', KEYS[1], 'a') redis.call('SELECT', 9) redis.call('RPUSH', KEYS[1], 'b')" 1 {k}`},
		} {
			block("BLPOP {k}none {k} 0")
			for _, line := range steps {
				c.do(line)
			}
			waiter.wantNext(poppedFrom("{k}", "b"))
			waiter.want("EXISTS {k}", "(integer) 0")
		}
	}
}

// TestClaimsOfDatabases: a claim waits for keys of the database that its prefix names, and its turn is of that.
func TestClaimsOfDatabases(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	for i := range 2 {
		p.sendRaw(p.of(3, "DUNLIN CLAIM 0 l {k}a"))
		p.wantRaw(later(i + 1))
	}
	c.want("RPUSH {k}a 0", "(integer) 1")
	c.want("SELECT 3", "OK")
	begun := time.Now()
	c.want("RPUSH {k}a 1", "(integer) 1")
	p.wantRaw(told(1, member.Ready{Key: 0, Turn: 1}))
	p.want("DUNLIN PASS l 1 {k}a", "OK") // of another database's key
	x := n.engine.Lock(engine.Section(partitionOf("{k}"), 3), 0)
	if !x.HasTurn(engine.TypeList, nil, []byte("{k}a")) && time.Since(begun) < member.ClaimTurn {
		t.Error("the turn at a key of another database has ended")
	}
	x.Unlock()
	p.sendRaw(p.of(3, "DUNLIN PASS l 1 {k}a"))
	for _, got := range []string{p.next(), p.next()} { // in any order: the turn may have ended by itself
		if got != "OK" && !strings.Contains(got, "later") {
			t.Errorf("behind the turn comes %s", got)
		}
	}
	p.wantOf(3, "LPOP {k}a", `"1"`)
	p.want("LPOP {k}a", `"0"`)
}

// TestTrackingOfDatabases: whoever reads a key is told when the key of that database has changed, by name alone.
func TestTrackingOfDatabases(t *testing.T) {
	n := startLeveled(t)
	p, c, w := openTracking(t, n), dial(t, n.Addr()), dial(t, n.Addr())
	c.do("HELLO 3")
	c.want("CLIENT TRACKING ON", "OK")
	told := string(tracking.AppendInvalidate(nil, 3, "{k}", false))
	w.do("SELECT 4")
	read := func(line string) {
		t.Helper()
		c.do("SELECT 4")
		c.do(line)
		p.sendRaw(p.of(4, "GET {k}"))
		p.read()
		c.do("SELECT 0")
	}
	tell := func(line string) {
		t.Helper()
		w.do(line)
		p.wantGone("{k}", 0)
		if got := string(c.read()); got != told {
			t.Errorf("%s: told %q, want %q", line, got, told)
		}
	}
	read("GET {k}")
	p.want("SET {k} other", "OK")
	p.wantOf(5, "SET {k} other", "OK")
	tell("SET {k} x")
	read("GET {k}")
	tell("MOVE {k} 6")
	c.do("MULTI")
	for _, line := range []string{"GET {k}", "SELECT 4", "GET {k}", "SELECT 0"} {
		c.do(line)
	}
	c.do("EXEC")
	p.sendRaw(p.of(4, "GET {k}"))
	p.read()
	tell("SET {k} y")
}

// TestHotKeysOfDatabases: keys of one name in two databases are two keys.
func TestHotKeysOfDatabases(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	value := strings.Repeat("x", 5000)
	c.want("SET big "+value, "OK")
	c.want("SELECT 7", "OK")
	c.want("SET big "+value+"x", "OK")
	want := "1) 1) \"key\"\n   2) \"big\"\n   3) \"db\"\n   4) (integer) 7\n   5) \"bytes\"\n   6) (integer) 5004\n" +
		"2) 1) \"key\"\n   2) \"big\"\n   3) \"db\"\n   4) (integer) 0\n   5) \"bytes\"\n   6) (integer) 5003"
	eventually(t, "the big keys are found", func() bool { return c.do("HOTKEYS BIG") == want })
}

// TestMonitorOfPipes: MONITOR shows the database that a request of a pipe names, also of commands in a transaction.
func TestMonitorOfPipes(t *testing.T) {
	n := startLeveled(t)
	m, p := dial(t, n.Addr()), patientPipe(t, n, "common", 1)
	m.want("MONITOR", "OK")
	p.want("DUNLIN LEVEL 0", "OK") // not shown; the pipe's loop knows then that somebody watches
	p.wantOf(9, "SET k v", "OK")
	p.want("GET k", "(nil)")
	p.wantOf(15, "MGET k other", "1) (nil)\n2) (nil)")
	request := member.AppendExec(member.AppendDatabase(nil, 9), ring.Slot([]byte("k")), 0, 3)
	for _, line := range []string{"GET k", "SELECT 4", "DEL k"} {
		request = member.AppendQueued(request, words(t, line)...)
	}
	p.sendRaw(request)
	if got, want := p.next(), "1) \"v\"\n2) OK\n3) (integer) 0"; got != want {
		t.Errorf("EXEC answers %s, want %s", got, want)
	}
	var got []string
	for last := ""; !strings.Contains(last, "DEL"); {
		last = m.next()
		_, shown, _ := strings.Cut(last, "[")
		database, rest, _ := strings.Cut(shown, " ")
		_, command, _ := strings.Cut(rest, "] ")
		got = append(got, database+" "+command)
	}
	want := []string{`9 "SET" "k" "v"`, `0 "GET" "k"`, `15 "MGET" "k" "other"`, `9 "GET" "k"`, `9 "SELECT" "4"`, `4 "DEL" "k"`}
	if !slices.Equal(got, want) {
		t.Errorf("MONITOR shows %q, want %q", got, want)
	}
}

// TestScriptsSelect: a script that moves to a goroutine goes on in the database that it has selected on the loop.
func TestScriptsSelect(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	turns := "1e7" // of a loop that takes longer than a script has on an event loop
	if raceDetector {
		turns = "1e6"
	}
	c.want("SELECT 2", "OK")
	c.want(`EVAL "redis.call('SET', KEYS[1], 2) redis.call('SELECT', 3) redis.call('SET', KEYS[1], 3) for i = 1, `+turns+` do end `+
		`local three = redis.call('INCR', KEYS[1]) redis.call('SELECT', 2) return {three, redis.call('INCR', KEYS[1])}" 1 {k}`,
		"1) (integer) 4\n2) (integer) 3")
	c.want("GET {k}", `"3"`)
	c.want("SELECT 3", "OK")
	c.want("GET {k}", `"4"`)
	c.want(`EVAL "redis.call('SELECT', 1)" 0`, "(nil)")
	c.want("GET {k}", `"4"`)
}

// TestDatabasesNeedTheirLevel: while members do not know databases, nothing comes into one but database 0.
func TestDatabasesNeedTheirLevel(t *testing.T) {
	n := startBare(t)
	table := soleTable(n)
	table.Level = ring.DatabasesLevel - 1
	n.SetTable(table)
	c := dial(t, n.Addr())
	c.want("SET {k} v", "OK")
	for _, line := range []string{"SELECT 1", "MOVE {k} 1", "COPY {k} {k} DB 1", "EVAL 'return redis.call(\"SELECT\", 1)' 1 {k}"} {
		if got := c.do(line); !strings.HasPrefix(got, "(error) ERR databases other than 0 need protocol level 17, and this cluster speaks 16") {
			t.Errorf("%s answers %s", line, got)
		}
	}
	c.want("SELECT 0", "OK")
	c.want("COPY {k} {k}2 DB 0", "(integer) 1")
}

// TestCopiesHaveAllDatabases: a follower gets the keys of all databases, in a snapshot and as they change, and serves
// them when the owner is gone.
func TestCopiesHaveAllDatabases(t *testing.T) {
	nodes, table, key := startLeveledTrio(t)
	p := partitionOf(key)
	a, b := dial(t, nodes[0].Addr()), dial(t, nodes[1].Addr())
	large := bigValue(exec.RewriteFrom+5000, 3)
	fill := func(c *client, tag string) {
		for i, database := range []int{1, 0, 15} {
			c.want(fmt.Sprint("SELECT ", database), "OK")
			fillTagged(t, c, key, 10+i)
			c.wantBig(fmt.Sprintf("SET {%s}large%s BIG", key, tag), large[i:], "OK")
			for f := range 500 {
				c.do(fmt.Sprintf("HSET {%s}hash%s f%d v%d", key, tag, f, database))
			}
			c.do(fmt.Sprintf("RPUSH {%s}list%s %d", key, tag, database))
		}
	}
	fill(a, "before")
	following := altered(table, func(next *ring.Table) { next.Follower[p] = 1 })
	install(t, following, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	fill(a, "after")
	a.want("SELECT 15", "OK")
	a.want(fmt.Sprintf("MOVE {%s}hashbefore 14", key), "(integer) 1")
	a.want(fmt.Sprintf("MOVE {%s}largebefore 14", key), "(integer) 1")
	a.want(fmt.Sprintf("COPY {%s}hashafter {%[1]s}hashcopy DB 14", key), "(integer) 1")
	a.want("SELECT 14", "OK")
	a.do(fmt.Sprintf("HSET {%s}hashbefore f0 moved", key))
	succeed(t, nodes, following)
	for i, database := range []int{1, 0, 15} {
		b.want(fmt.Sprint("SELECT ", database), "OK")
		wantFilled(t, b, key, 10+i)
		b.want(fmt.Sprintf("EXISTS {%s}%d", key, 10+i), "(integer) 0")
		for _, tag := range []string{"before", "after"} {
			if database == 15 && tag == "before" {
				b.want(fmt.Sprintf("EXISTS {%s}hashbefore {%[1]s}largebefore", key), "(integer) 0")
				continue
			}
			b.wantBig(fmt.Sprintf("GET {%s}large%s", key, tag), large[i:], "BIG")
			b.want(fmt.Sprintf("HLEN {%s}hash%s", key, tag), "(integer) 500")
			b.want(fmt.Sprintf("HGET {%s}hash%s f7", key, tag), fmt.Sprintf("\"v%d\"", database))
			b.want(fmt.Sprintf("LRANGE {%s}list%s 0 -1", key, tag), fmt.Sprintf("1) \"%d\"", database))
		}
	}
	b.want("SELECT 14", "OK")
	b.want(fmt.Sprintf("HMGET {%s}hashbefore f0 f1", key), "1) \"moved\"\n2) \"v15\"")
	b.want(fmt.Sprintf("HLEN {%s}hashcopy", key), "(integer) 500")
	b.wantBig(fmt.Sprintf("GET {%s}largebefore", key), large[2:], "BIG")
	if got := nodes[1].engine.CountSection(engine.Section(p, 14)); got != 3 {
		t.Errorf("the follower has %d keys of database 14, want 3", got)
	}
}
