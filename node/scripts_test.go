package node

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/script"
	"github.com/dunlin-cache/dunlin/ring"
)

// startScripts starts a node whose scripts are busy soon.
func startScripts(t *testing.T) *Node {
	t.Helper()
	n := startLeveled(t)
	n.holdPatience = 50 * time.Millisecond
	tellLoops(t, n)
	return n
}

// tellLoops has the loops see what the test has set.
func tellLoops(t testing.TB, n *Node) {
	t.Helper()
	if err := n.cfg.Group.Each(func(*netloop.Loop) {}); err != nil {
		t.Fatal(err)
	}
}

// wantEnded waits until no script runs and no partition is held.
func wantEnded(t *testing.T, n *Node) {
	t.Helper()
	eventually(t, "the script has ended", func() bool {
		return runningScripts(n) == 0 && len(n.engine.Holds()) == 0
	})
}

// wantWritten waits until the only script that runs has written.
func wantWritten(t *testing.T, n *Node) {
	t.Helper()
	eventually(t, "the script has written", func() bool {
		n.scripts.mu.Lock()
		defer n.scripts.mu.Unlock()
		for w := range n.scripts.running {
			return w.hasWritten()
		}
		return false
	})
}

func runningScripts(n *Node) int {
	n.scripts.mu.Lock()
	defer n.scripts.mu.Unlock()
	return len(n.scripts.running)
}

// reset closes a client's connection at once. One that is only finished may belong to a client that reads on.
func reset(t *testing.T, c *client) {
	t.Helper()
	if err := c.conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	c.conn.Close()
}

// TestBusySoonEnough: those behind a script are told before a proxy gives up what has waited for as long as they may.
func TestBusySoonEnough(t *testing.T) {
	n := &Node{holdPatience: time.Hour}
	for past, want := range map[time.Duration]bool{50 * time.Minute: false, 58 * time.Minute: true} {
		if w := (&scriptRun{node: n, begun: time.Now().Add(-past)}); w.isBusy() != want {
			t.Errorf("after %v others are told: %t, want %t", past, !want, want)
		}
	}
}

// TestScriptKill: others are told that a script takes long, and SCRIPT KILL ends one that has changed nothing. One
// that has written ends when its partition is lost, and not before.
func TestScriptKill(t *testing.T) {
	n := startScripts(t)
	c, beside := dial(t, n.Addr()), dial(t, n.Addr())
	beside.want("SCRIPT KILL", "(error) "+errNotBusy)
	c.send(`EVAL "while true do end" 1 {k}`)
	eventually(t, "others are told", func() bool { return beside.do("GET {k}") == "(error) "+errBusyScript })
	beside.want("SET {other} 1", "OK")
	beside.want("SCRIPT KILL", "OK")
	if got := c.next(); !strings.HasPrefix(got, "(error) "+errKilled+" script: ") || !strings.HasSuffix(got, ", on @user_script:1.") {
		t.Errorf("the script answers %s", got)
	}
	wantEnded(t, n)
	beside.want("GET {k}", "(nil)")

	c.send(`EVAL "redis.call('SET', KEYS[1], 1) while true do pcall(function() while true do end end) end" 1 {k}`)
	eventually(t, "it cannot be killed", func() bool { return beside.do("SCRIPT KILL") == "(error) "+errUnkillable })
	giveAway(n, partitionOf("{k}"))
	if got := c.next(); !strings.HasPrefix(got, "(error) ERR ") {
		t.Errorf("the script answers %s", got)
	}
	wantEnded(t, n)
}

// TestScriptOfGoneClient: a script that has changed nothing ends with its client; one that has goes on to its end.
func TestScriptOfGoneClient(t *testing.T) {
	n := startLeveled(t)
	beside := dial(t, n.Addr())
	for _, line := range []string{`EVAL "while true do redis.call('GET', KEYS[1]) end" 1 {k}`, `EVAL "while true do end" 0`} {
		c := dial(t, n.Addr())
		c.send(line)
		eventually(t, "the script runs", func() bool { return runningScripts(n) == 1 })
		reset(t, c)
		wantEnded(t, n)
	}
	c := dial(t, n.Addr())
	c.send(`EVAL "redis.call('SET', KEYS[1], 1) for i = 1, 3000000 do end redis.call('SADD', KEYS[2], 1, 2) redis.call('SUNIONSTORE', KEYS[3], KEYS[2]) redis.call('SET', KEYS[1], 2)" 3 {k} {k}s {k}t`)
	wantWritten(t, n)
	reset(t, c)
	wantEnded(t, n)
	beside.want("GET {k}", `"2"`)
	beside.want("SCARD {k}t", "(integer) 2")
}

// TestScriptMoves: a script that has changed nothing does not keep its partition from moving, and is sent again.
func TestScriptMoves(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.send(`EVAL "while true do redis.call('GET', KEYS[1]) end" 1 {k}`)
	eventually(t, "the script holds its partition", func() bool { return len(n.engine.Holds()) == 1 })
	giveAway(n, partitionOf("{k}"))
	if got := c.next(); !strings.HasPrefix(got, "(error) MOVED ") {
		t.Errorf("the script answers %s", got)
	}
	wantEnded(t, n)

	n = startLeveled(t)
	p := scriptPipe(t, n, 1)
	p.send(`EVAL "while true do redis.call('GET', KEYS[1]) end" 1 {k}`)
	p.frame("EVAL", "-DUNLINLATER 1")
	eventually(t, "the script holds its partition", func() bool { return len(n.engine.Holds()) == 1 })
	giveAway(n, partitionOf("{k}"))
	if got := string(p.read()); !strings.Contains(got, "-DUNLINWAIT ") { // behind RETRY it is told where
		t.Errorf("the script answers %q", got)
	}
}

// TestScriptReachesTheFollowerWhole: a follower that takes over in the middle of a script has nothing of it, or
// everything if it still ends.
func TestScriptReachesTheFollowerWhole(t *testing.T) {
	for i := range 4 {
		ends, tried := i%2 == 1, i > 1
		nodes, table, key := startTrio(t)
		p := partitionOf(key)
		table = altered(table, func(next *ring.Table) { next.Follower[p], next.Level = 1, ring.Level })
		install(t, table, nodes[:]...)
		eventually(t, "the copy is in sync", inSync(nodes[1], p))
		a, b := fmt.Sprintf("{%s}a", key), fmt.Sprintf("{%s}b", key)
		c := dial(t, nodes[0].Addr())
		c.want("MSET "+a+" 100 "+b+" 100", "OK")
		body := "redis.call('DECRBY', KEYS[1], 30) for i = 1, 200 do redis.call('SET', KEYS[1] .. i, i) end"
		if !ends {
			body += " while true do end"
		}
		if body += " redis.call('INCRBY', KEYS[2], 30) return 1"; tried { // on the loop first
			c.do(`SCRIPT LOAD "` + body + `"`)
		}
		c.send(fmt.Sprintf(`EVAL "%s" 2 %s %s`, body, a, b))
		if ends {
			c.next()
		} else {
			eventually(t, "the script has written", func() bool { return nodes[0].engine.Count(p) > 200 })
		}
		want := map[bool]string{false: "1) \"100\"\n2) \"100\"", true: "1) \"70\"\n2) \"130\""}[ends]
		succeed(t, nodes, table)
		dial(t, nodes[1].Addr()).want("MGET "+a+" "+b, want)
		if got := nodes[1].engine.Count(p); !ends && got != 2 {
			t.Errorf("%d keys at the follower, want 2", got)
		}
	}
}

// scriptPipe opens a pipe of a proxy of this build.
func scriptPipe(t *testing.T, n *Node, generation int) *client {
	t.Helper()
	p := dial(t, n.Addr())
	p.want(fmt.Sprintf("%s %d", pipeLine(1, 0, "common", generation, 2), ring.Level), "OK later")
	return p
}

// hostileScripts must end with an error, and leave the node well.
var hostileScripts = []string{
	"local t = {} for i = 1, 1e9 do t[i] = {} end",
	"local t = {} t[67e6] = 1 for i = 1, 67e6 do t[i] = i end",
	"local s = 'x' while true do s = s .. s end",
	"return #string.rep('x', 1e12)",
	"local function f() return 1 + f() end return f()",
	"local function f() f() end f()",
	"local t = {} while true do t[#t + 1] = redis.call('GET', KEYS[1]) .. 'x' end",
	"local s = string.rep('x', 3e7) return {s, s, s, s}",
	"local t = {} for i = 1, 40 do t = {t, t} end return t",
	"local s = string.rep('a', 1e5) return string.find(s, string.rep('a-', 100) .. 'b') .. 'x'",
	"return cjson.decode(string.rep('[', 1e6))",
	"return setmetatable({}, {__index = function(t, k) return t[k] end}).x",
	"for i = 1, 100 do redis.call('SET', KEYS[1] .. i, string.rep('x', 1e6)) end local t = {} for i = 1, 1e8 do t[i] = KEYS[1] .. i end",
	"return load(function() return 'x = x ' end)",
	"coroutine.wrap(function() error('x') end)()",
	"return redis.call(unpack({'MGET', unpack(ARGV)}, 1, 1e8))",
}

// TestHostileScripts: a script that takes all memory that it can get ends with an error, and gives it back.
func TestHostileScripts(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory = 192 << 20 })
	n.scripts.maxRun = 2 * time.Second
	tellLoops(t, n)
	c, beside := dial(t, n.Addr()), dial(t, n.Addr())
	c.patience = 2 * time.Minute
	c.want("SET {k} "+strings.Repeat("v", 1000), "OK")
	for _, body := range hostileScripts {
		if got := c.do(`EVAL "` + body + `" 1 {k}`); !strings.Contains(got, "error)") {
			t.Errorf("%s answers %.200s", body, got)
		}
		beside.want("PING", "PONG")
	}
	wantEnded(t, n)
	n.scripts.library.Flush()
	eventually(t, "all memory is given back", func() bool { return n.lists.Load() == 0 })
	c.want(`EVAL "return 1" 1 {k}`, "(integer) 1")
}

// TestPipesOpenBesideScripts: a script that has written goes on for a minute, also if its pipe breaks. The next generation
// of the pipe opens at once: whoever wants the partition of the script waits, and nobody else does.
func TestPipesOpenBesideScripts(t *testing.T) {
	for _, lines := range [][]string{
		{`EVAL "redis.call('SET', KEYS[1], 'v') while true do end" 1 {k}`},
		{"MULTI", `EVAL "redis.call('SET', KEYS[1], 'v') while true do end" 1 {k}`, "SET {k} w", "EXEC"},
		{"MULTI", `EVAL "redis.call('PUBLISH', 'c', 'm') while true do end" 0`, "EXEC"},
	} {
		n := startLeveled(t)
		p := scriptPipe(t, n, 1)
		for _, line := range lines {
			p.send(line)
		}
		wantWritten(t, n)
		newer := scriptPipe(t, n, 2)
		newer.want("SET other v", "OK")
		if strings.Contains(strings.Join(lines, " "), "{k}") {
			newer.raw("GET {k}", "-DUNLINWAIT 1")
		} else {
			wantEnded(t, n)
		}
	}
}

// TestScriptsOfATransaction: they may run as long as one alone, all together.
func TestScriptsOfATransaction(t *testing.T) {
	n := startLeveled(t)
	n.scripts.maxRun = 100 * time.Millisecond
	tellLoops(t, n)
	c := dial(t, n.Addr())
	c.want("MULTI", "OK")
	for range 3 {
		c.want(`EVAL "redis.call('INCR', KEYS[1]) while true do end" 1 {k}`, "QUEUED")
	}
	replies := strings.Split(c.do("EXEC"), "\n")
	for i, want := range []*script.Error{errScriptLong, errScriptsLong, errScriptsLong} {
		if len(replies) != 3 || !strings.Contains(replies[i], want.Text) {
			t.Errorf("EXEC answers %q, and %q is wanted from script %d", replies, want.Text, i)
		}
	}
}

// TestScriptsAreWhole: nobody sees a script half done, and none is lost, whoever runs beside it.
func TestScriptsAreWhole(t *testing.T) {
	n := startLeveled(t)
	var all sync.WaitGroup
	for i := range 4 {
		c := dial(t, n.Addr())
		all.Go(func() {
			for range 200 {
				if got := c.do(`EVAL "local a = redis.call('INCR', KEYS[1]) return a - redis.call('INCR', KEYS[2])" 2 {k}a {k}b`); got != "(integer) 0" {
					t.Errorf("the script answers %s", got)
				}
				own := fmt.Sprintf("{%d}c", i)
				want := fmt.Sprintf("(integer) %d", 1+lengthOf(c, own))
				c.want(`EVAL "redis.call('APPEND', KEYS[1], 'x') return #redis.call('GET', KEYS[1])" 1 `+own, want)
				got := strings.Fields(c.do("MGET {k}a {k}b"))
				if len(got) != 4 || got[1] != got[3] {
					t.Errorf("half a script: %s", got)
				}
			}
		})
	}
	all.Wait()
	dial(t, n.Addr()).want("GET {k}a", `"800"`)
}

// TestScriptsAnswerLater: a pipe goes on behind a script, but for its partition, as behind a slow EXEC.
func TestScriptsAnswerLater(t *testing.T) {
	n := startLeveled(t)
	p := scriptPipe(t, n, 1)
	input := resp.AppendRequest(nil, words(t, `EVAL "for i = 1, 1000000 do end return redis.call('INCR', KEYS[1])" 1 {k}`)...)
	p.sendRaw(append(input, "INCR {k}\r\nINCR {j}\r\nDUNLIN RETRY 1\r\n"...))
	p.frame("EVAL", "-DUNLINLATER 1")
	p.frame("INCR behind it", "-DUNLINWAIT 1")
	p.frame("INCR of another key", ":1")
	p.frame("RETRY", "+OK")
	if got := string(p.read()); got != push(1, ":1\r\n") {
		t.Errorf("EVAL answers %q", got)
	}
	p.raw("DUNLIN RETRY 1", "+OK")
	p.raw("INCR {k}", ":2")

	lines := execArgs(t, nil, `EVAL "return redis.call('INCR', KEYS[1])" 1 {k}`, "INCR {k}", `EVAL "return 1" 0`)
	p.sendRaw(resp.AppendRequest(nil, lines...))
	p.frame("EXEC", "-DUNLINLATER 2")
	if got := string(p.read()); got != push(2, "*3\r\n:3\r\n:4\r\n:1\r\n") {
		t.Errorf("EXEC answers %q", got)
	}
}

// TestScriptsNeedTheLevel: a cluster with members that know no scripts executes none.
func TestScriptsNeedTheLevel(t *testing.T) {
	n := startBare(t)
	n.SetTable(altered(soleTable(n), func(next *ring.Table) { next.Level = ring.ScriptsLevel - 1 }))
	c := dial(t, n.Addr())
	for _, line := range []string{`EVAL "return 1" 0`, "EVALSHA x 0", `SCRIPT LOAD "return 1"`} {
		c.want(line, "(error) "+errScriptsLevel)
	}
}

// TestScriptsMakeNoRefusals: what a script returns is not taken for what a node says to a proxy.
func TestScriptsMakeNoRefusals(t *testing.T) {
	n := startLeveled(t)
	p := scriptPipe(t, n, 1)
	for i, text := range []string{"MOVED 1 127.0.0.1:1", "DUNLINWAIT 7", "DUNLINLATER 1", "CLUSTERDOWN x"} {
		for j, body := range []string{"return {err='" + text + "'}", "error({err='" + text + "'})"} {
			p.sendArgs([]byte("EVAL"), []byte(body), []byte("0"))
			token := 2*i + j + 1
			p.frame("EVAL", fmt.Sprintf("-DUNLINLATER %d", token))
			if got := string(p.read()); !strings.Contains(got, "-ERR "+text) {
				t.Errorf("%s answers %q", body, got)
			}
		}
	}
}

// TestScriptsWake: a blocking command is served when the script has ended, and WATCH sees what a script changes.
func TestScriptsWake(t *testing.T) {
	n := startLeveled(t)
	c, waits := dial(t, n.Addr()), dial(t, n.Addr())
	for range 2 { // the second time the scripts are known, and tried on the loop
		c.do("DEL {k}q")
		waits.send("BLPOP {k}q 0")
		eventually(t, "it waits", func() bool { return n.waiters.Load() == 1 })
		c.want(`EVAL "redis.call('RPUSH', KEYS[1], 'a', 'b') return redis.call('RPUSH', KEYS[1], 'c')" 1 {k}q`, "(integer) 3")
		if got := waits.next(); got != "1) \"{k}q\"\n2) \"a\"" {
			t.Errorf("BLPOP answers %s", got)
		}
		waits.want("WATCH {k}w", "OK")
		c.want(`EVAL "return redis.call('SET', KEYS[1], 1)" 1 {k}w`, "OK")
		if got := waits.exec("GET {k}w"); got != "(nil)" {
			t.Errorf("EXEC answers %s", got)
		}
	}
}

// TestScriptKeys: a script uses the keys of its partition only, and publishes where its node has the channel.
func TestScriptKeys(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	for _, line := range []string{
		`EVAL "return redis.call('GET', '{other}')" 1 {k}`, `EVAL "return redis.call('GET', '{k}')" 0`,
		`EVAL "return redis.call('MGET', '{k}', '{other}')" 1 {k}`,
		`EVAL "redis.call('GET', KEYS[1]) return redis.call('GET', '')" 1 {k}`,
		`EVAL "redis.call('GET', KEYS[1]) return redis.call('GET', '{other}')" 1 {k}`,
		`EVAL "redis.call('GET', KEYS[1]) for i = 1, 1e6 do end return redis.call('GET', '{other}')" 1 {k}`,
	} {
		if got := c.do(line); !strings.HasPrefix(got, "(error) "+errNotLocal) {
			t.Errorf("%s answers %s", line, got)
		}
	}
	for _, line := range []string{
		"FLUSHALL", "SUBSCRIBE x", "CONFIG GET *", "SCAN 0", "WAIT 0 0", "DUNLIN TABLE",
		"KEYS *", "KEYS k*", "KEYS {other}*", "KEYS {other}", "KEYS *{k}", "KEYS {k*}", "KEYS {}{k}*", "KEYS [{k}]", "KEYS {k?}*",
	} {
		call := "'" + strings.Join(strings.Fields(line), "','") + "'"
		if got := c.do(`EVAL "return redis.call(` + call + `)" 1 {k}`); !strings.HasPrefix(got, "(error) "+errNoScripts) && !strings.HasPrefix(got, "(error) "+errUnknown) {
			t.Errorf("%s answers %s", line, got)
		}
	}
	const many = `for i = 1, 5000 do redis.call('SET', '{k}' .. i, i) end return #redis.call('KEYS', '{k}*')`
	c.do("SET {other}k 1")
	c.want(`EVAL "`+many+`" 1 {k}`, "(integer) 5000")
	c.do("MULTI")
	c.do(`EVAL "return #redis.call('KEYS', '{k}?')" 1 {k}`)
	c.want("EXEC", "1) (integer) 9")
	sub := dial(t, n.Addr())
	sub.do("SUBSCRIBE ch")
	c.want(`EVAL "return redis.call('PUBLISH', 'ch', 'hello')" 0`, "(integer) 1")
	if got := sub.next(); got != "1) \"message\"\n2) \"ch\"\n3) \"hello\"" {
		t.Errorf("the message is %s", got)
	}
}

func lengthOf(c *client, key string) (n int) {
	fmt.Sscanf(c.do("STRLEN "+key), "(integer) %d", &n)
	return n
}

// failingHeap panics when a reply becomes long.
type failingHeap struct{ exec.Heap }

func (failingHeap) StageReply(int) (engine.Staged, error) { panic("no reply") }

// failingWork panics, and notes that it has ended.
type failingWork struct{ ended bool }

func (*failingWork) Run(context.Context) { panic("no work") }
func (*failingWork) Reply(*exec.Request) {}
func (w *failingWork) End()              { w.ended = true }

// TestScriptPanics: whatever panics in a script, or in a command of it, keeps no memory.
func TestScriptPanics(t *testing.T) {
	n := startLeveled(t)
	s, err := script.Compile("local t = {} for i = 1, 1e5 do t[i] = 'x' .. i end return t")
	if err != nil {
		t.Fatal(err)
	}
	w := &scriptRun{node: n, script: s, args: make([][]byte, 3), heap: failingHeap{heapBudget{n}}, places: &n.scripts.keyless}
	free := n.scripts.keyless.free
	w.setBegun()
	w.Run(context.Background())
	if w.text != errInternal || n.lists.Load() != 0 {
		t.Errorf("it answers %q, and %d bytes are charged", w.text, n.lists.Load())
	}
	if n.scripts.keyless.free != free || runningScripts(n) != 0 {
		t.Error("it keeps its place")
	}

	x := n.newRunner().(*runner)
	x.run = &scriptRun{node: n, ctx: context.Background()}
	work := &failingWork{}
	x.later = work
	func() {
		defer func() { _ = recover() }()
		x.goOn(context.Background())
	}()
	if !work.ended {
		t.Error("what a command has left keeps what it has")
	}
}

// TestScriptKilledOrWrites: a script that was told to be killed writes nothing, and one that has written is not killed.
func TestScriptKilledOrWrites(t *testing.T) {
	for range 1000 {
		var w scriptRun
		var killed, written bool
		var both sync.WaitGroup
		both.Go(func() { killed = w.kill() })
		both.Go(func() { written = w.write() })
		both.Wait()
		if killed == written {
			t.Fatalf("killed: %t, written: %t", killed, written)
		}
	}
}

// A script that runs for long gives way while loops are strained.
func TestLongScriptsRest(t *testing.T) {
	n := startScripts(t)
	n.holdPatience = time.Minute
	asked := strain(t, n)
	c := dial(t, n.Addr())
	c.patience = 2 * time.Minute // with the race detector
	c.want("EVAL 'return 1' 1 k", "(integer) 1")
	if asked.Load() > 0 {
		t.Error("a short script rests")
	}
	c.want("EVAL 'for i = 1, 4e6 do end' 1 k", "(nil)")
	if asked.Load() == 0 {
		t.Error("a long script does not rest")
	}
}

// All scripts together leave most of the memory to values.
func TestScriptsShareMemory(t *testing.T) {
	n := startScripts(t)
	c := dial(t, n.Addr())
	if got := c.do(`EVAL "local t = {} while true do t[#t + 1] = {} end" 0`); !strings.Contains(got, "more memory") {
		t.Errorf("a script without a bound answers %s", got)
	}
	n.scripts.granted.Store(n.cfg.Memory / grantedShare) // others have taken all
	if got := c.do(`EVAL "return #string.rep('x', 1000000)" 0`); !strings.Contains(got, "more memory") {
		t.Errorf("a script that finds none left answers %s", got)
	}
	n.scripts.granted.Store(0)
	c.want(`EVAL "return #string.rep('x', 1000000)" 0`, "(integer) 1000000")
	if left := n.scripts.granted.Load(); left != 0 {
		t.Errorf("%d bytes are not given back", left)
	}
}

// A script ends when others make room and it holds much of the memory, and goes on if it holds little.
func TestScriptsWithholdLittle(t *testing.T) {
	n := startScripts(t)
	fill := func(key string, keys int64, seconds int) (answer string) {
		t.Helper()
		script := dial(t, n.Addr())
		script.patience = 2 * maxRun
		script.send(fmt.Sprintf(`EVAL "for i = 1, %d do redis.call('SET', KEYS[1] .. i, string.rep('x', 1000)) end `+
			`local from = os.clock() while os.clock() - from < %d do end return 'whole'" 1 %s`, keys, seconds, key))
		ended := make(chan string, 1)
		go func() { ended <- script.next() }()
		c, value := dial(t, n.Addr()), strings.Repeat("x", 1000)
		for i := 0; ; i++ {
			select {
			case answer = <-ended:
				return answer
			default:
			}
			if got := c.do(fmt.Sprintf("SET other:%d %s", i, value)); got != "OK" && !strings.Contains(got, "BUSY") {
				t.Fatalf("SET %d answers %s", i, got)
			}
		}
	}
	if got := fill("{a}", n.cfg.Memory/2000, 50); !strings.Contains(got, errScriptHolds.Text) {
		t.Errorf("a script that holds half of the memory answers %s", got)
	}
	if got := fill("{b}", 1000, 3); got != `"whole"` {
		t.Errorf("a script that holds little answers %s", got)
	}
}
