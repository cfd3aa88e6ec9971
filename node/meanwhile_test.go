package node

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestPauseBesideARewrite: a command whose new value a goroutine makes is executed, whoever pauses
// its client meanwhile.
func TestPauseBesideARewrite(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	setLong(t, n, "k")
	free := occupy(t, n)
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	c.sendLines("SETRANGE k 3000000 x", "PING")
	for range 20 { // the loop reads both: it has seen the request
		other.want("GET j", "(nil)")
	}
	other.want("CLIENT PAUSE 60000 WRITE", "OK")
	free()
	for _, want := range []string{"(integer) 3000001", "PONG"} {
		if got := c.next(); got != want {
			t.Errorf("the reply is %s, want %s", got, want)
		}
	}
}

// TestUnwantedReplyOfSlowTransaction: a client that wants no reply gets nothing of EXEC, however many
// slices that takes.
func TestUnwantedReplyOfSlowTransaction(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c := dial(t, n.Addr())
	for _, key := range []string{"{k}x", "{k}y"} {
		if err := put(n, key, strings.Repeat(key, 2800), engine.TypeString); err != nil {
			t.Fatal(err)
		}
	}
	held := n.engine.Stats().Holds
	c.sendLines("CLIENT REPLY OFF", "MULTI", "INCR {k}a")
	for range 10 {
		c.send("LCS {k}x {k}y LEN")
	}
	c.sendLines("INCR {k}b", "EXEC", "CLIENT REPLY ON", "GET {k}b")
	for _, want := range []string{"OK", `"1"`} {
		if got := c.next(); got != want {
			t.Errorf("behind EXEC: %.100s, want %s", got, want)
		}
	}
	if n.engine.Stats().Holds == held {
		t.Error("the transaction never held its partition")
	}
}

// TestRewriteMeetsAHold: a command whose new value a goroutine has made waits for those who hold its
// partition by then.
func TestRewriteMeetsAHold(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	large := bigValue(300_000, 1)
	for _, test := range []struct {
		name string
		send func(c *client)
		want string
	}{
		{"short", func(c *client) { c.send("SETRANGE {k} 3000000 x") }, "(integer) 3000001"},
		{"uploaded", func(c *client) { c.sendRaw(bigRequest(t, "SETRANGE {k} 3000000 BIG", large)) }, "(integer) 3300000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			setLong(t, n, "{k}")
			free := occupy(t, n)
			c, other := dial(t, n.Addr()), dial(t, n.Addr())
			test.send(c)
			c.send("PING")
			for range 20 {
				other.want("GET {j}", "(nil)")
			}
			release, held := holdLoops(t, n), make(chan *engine.Hold, 1)
			n.workers[0].loop.Post(func() { held <- holdPartition(n, "{k}") })
			free()
			occupy(t, n)() // the value is made
			for range 1000 {
				runtime.Gosched() // and the loop was told
			}
			release()
			h := came(t, "the hold", held)
			for range 20 {
				other.want("GET {j}", "(nil)")
			}
			h.End()
			for _, want := range []string{test.want, "PONG"} {
				if got := c.next(); got != want {
					t.Errorf("the reply is %.100s, want %s", got, want)
				}
			}
		})
	}
}

// TestListedCommandMeetsAHold: so does a command of so many keys that they are listed in turns.
func TestListedCommandMeetsAHold(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	keys := strings.Repeat(" {k}b", 3*keysAtOnce)
	for _, line := range []string{"SUNION", "MGET", "WATCH", "DEL", "PFCOUNT", "SDIFFSTORE", "PFMERGE"} {
		t.Run(line, func(t *testing.T) {
			h := holdPartition(n, "{k}")
			c, other := dial(t, n.Addr()), dial(t, n.Addr())
			c.send(line + keys)
			c.send("PING")
			for range 40 {
				other.want("GET {j}", "(nil)")
			}
			h.End()
			first := c.next()
			if strings.Contains(first, "error") {
				t.Errorf("it answers %.100s", first)
			}
			if got := c.next(); got != "PONG" {
				t.Errorf("behind it: %.100s", got)
			}
		})
	}
}

// TestErrorsOfLateCommands: an error is counted for the command that answers it, whatever its loop has
// executed meanwhile.
func TestErrorsOfLateCommands(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	c.want("SET {k}string x", "OK")
	union := "SUNION {k}string"
	for i := range 100 {
		union += fmt.Sprintf(" {k}%d", i)
	}
	release := holdLoops(t, n)
	c.send(union)
	other.send("GET {j}")
	release()
	other.next()
	if got := c.next(); !strings.Contains(got, "WRONGTYPE") {
		t.Errorf("SUNION answers %.100s", got)
	}
	for _, line := range strings.Split(c.do("INFO commandstats"), `\x0d\x0a`) {
		name, failed, _ := strings.Cut(line, ":")
		if want := strings.HasPrefix(name, "cmdstat_sunion"); strings.Contains(failed, "failed_calls=1") != want {
			t.Error(line)
		}
	}
}

// TestWritesOfGoneClient: a transaction that has changed something is executed whole when its client
// is gone, also what would answer much.
func TestWritesOfGoneClient(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	for _, over := range []string{"client", "pipe"} {
		t.Run(over, func(t *testing.T) {
			beside := dial(t, n.Addr())
			for _, line := range []string{
				"DEL {k}b {k}n", "RPUSH {k}l 1 2", "RPUSH {k}m 1 2", "SADD {k}s 1", "ZADD {k}z 1 1", "ZADD {k}u 1 1",
				"HSET {k}h f v", "SET {k}v v", "SET {k}w " + strings.Repeat("w", 30_000), "RPUSH {k}o 1",
			} {
				beside.do(line)
			}
			writes := []string{
				"LPOP {k}l 2", "LMPOP 1 {k}m LEFT COUNT 2", "SPOP {k}s 1", "ZPOPMIN {k}z 1", "ZMPOP 1 {k}u MIN",
				"HGETDEL {k}h FIELDS 1 f", "GETDEL {k}v", "GETDEL {k}w", "LMOVE {k}o {k}n LEFT LEFT", "INCR {k}b",
			}
			c := dial(t, n.Addr())
			slowTransaction(c, n, 300, writes...)
			if over == "client" {
				c.send("EXEC")
			} else {
				c = dial(t, n.Addr())
				c.want(fmt.Sprintf("%s %d", pipeLine(7, 0, "large", 1, 2), ring.Level), "OK later")
				args := words(t, fmt.Sprintf("DUNLIN EXEC %d 0", ring.Slot([]byte("{k}"))))
				for _, line := range append(slices.Repeat([]string{"INCR {k}a", "LCS {k}x {k}y LEN"}, 300), writes...) {
					args = append(args, resp.AppendRequest(nil, words(t, line)...))
				}
				c.sendArgs(args...)
			}
			eventually(t, "the transaction holds its partition", func() bool { return len(n.engine.Holds()) == 1 })
			c.conn.Close()
			beside.want("GET {k}b", `"1"`)
			for _, key := range strings.Fields("l m s z u h v w o") {
				beside.want("EXISTS {k}"+key, "(integer) 0")
			}
		})
	}
}

// TestMonitorShowsOnce: MONITOR shows a command once, however many turns it takes.
func TestMonitorShowsOnce(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	setLong(t, n, "{k}long")
	watcher, c := dial(t, n.Addr()), dial(t, n.Addr())
	watcher.want("MONITOR", "OK")
	keys := strings.Repeat(" {k}", 1500)
	lines := []string{"MGET" + keys, "DEL" + keys, "WATCH" + keys, "SETRANGE {k}long 3000000 x", "HSET {k}h" + strings.Repeat(" f v", 600), "GET {j}"}
	for _, line := range lines[:len(lines)-1] {
		if got := c.do(line); strings.Contains(got, "error") {
			t.Errorf("%.20s answers %.100s", line, got)
		}
	}
	h := holdPartition(n, "{k}")
	c.send("GET {k}")
	eventually(t, "it waits", func() bool { return waitingFor(t, n, h) == 1 })
	h.End()
	c.next()
	h = holdPartition(n, "{k}")
	c.sendRaw(bigRequest(t, "SETEX {k} 100 BIG", bigValue(300_000, 1)))
	eventually(t, "it waits", func() bool { return waitingFor(t, n, h) == 1 })
	h.End()
	c.next()
	c.do("GET {j}")
	for _, line := range append(lines[:len(lines)-1:len(lines)-1], "GET {k}", "SETEX {k}", "GET {j}") {
		name, _, _ := strings.Cut(line, " ")
		if got := watcher.next(); !strings.Contains(got, fmt.Sprintf("] \"%s\"", name)) {
			t.Errorf("MONITOR shows %.100s, want %s", got, name)
		}
	}
}

// TestSlowLogOfSeveralTurns: the slow log counts all turns of a command, and what goroutines do for it.
func TestSlowLogOfSeveralTurns(t *testing.T) {
	const long = 1 * time.Millisecond
	spin := func() {
		for begun := time.Now(); time.Since(begun) < long; {
		}
	}
	for _, id := range []command.ID{command.MGet, command.Del, command.SetRange} {
		plan := &plans[id]
		kept := *plan
		t.Cleanup(func() { *plan = kept }) // after the loops have ended
		plan.handler = func(r *exec.Request) {
			if r.Rest == nil && r.Rewrite == nil {
				spin() // in the first turn
			}
			kept.handler(r)
		}
	}
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	setLong(t, n, "client", "pipe")
	watcher := dial(t, n.Addr())
	watcher.want("CONFIG SET slowlog-log-slower-than 999", "OK")
	for name, c := range map[string]*client{"client": dial(t, n.Addr()), "pipe": laterPipe(t, n, "large", 1)} {
		for _, line := range []string{
			"MGET" + strings.Repeat(" {k}a", 1500), "DEL" + strings.Repeat(" {j}a {k}a", 750),
			"DEL" + strings.Repeat(" {k}a", 3000), "SETRANGE " + name + " 3000000 x",
		} {
			watcher.want("SLOWLOG RESET", "OK")
			c.send(line)
			if c.next(); name == "pipe" { // that was a token
				c.next()
			}
			if log := watcher.do("SLOWLOG GET"); !strings.Contains(log, fmt.Sprintf("%q", strings.Fields(line)[0])) {
				t.Errorf("%s: %.20s is not in the slow log", name, line)
			}
		}
	}
}

// TestRepliesOfClosedConnections: what a write of a transaction answers to nobody is charged.
func TestRepliesOfClosedConnections(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	dial(t, n.Addr()).want("PING", "PONG")
	if err := n.cfg.Group.Each(func(*netloop.Loop) {
		w := n.workers[0]
		for cn := range w.conns {
			cn.Socket.Close(nil)
			r := w.begin(cn)
			before := n.lists.Load()
			r.Cmd, r.InTransaction = command.ByID(command.Set), true
			if !r.Room(100_000) || n.lists.Load() < before+100_000 {
				t.Errorf("a reply of 100000 bytes is charged with %d", n.lists.Load()-before)
			}
			r.InTransaction = false
			if r.Finish(); n.lists.Load() != before {
				t.Errorf("%d bytes stay charged", n.lists.Load()-before)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// TestPanicInALaterTurn: when a handler panics in a command that goes on, its connection closes, and
// the next command of the loop is not taken for that one.
func TestPanicInALaterTurn(t *testing.T) {
	for _, id := range []command.ID{command.MGet, command.Del, command.SetRange} {
		plan := &plans[id]
		kept := *plan
		t.Cleanup(func() { *plan = kept }) // after the loops have ended
		plan.handler = func(r *exec.Request) {
			if r.Rest != nil || r.Rewrite != nil {
				panic("as asked")
			}
			kept.handler(r)
		}
	}
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	setLong(t, n, "k")
	for name, dialed := range map[string]func(generation int) *client{
		"client": func(int) *client { return dial(t, n.Addr()) },
		"pipe":   func(generation int) *client { return laterPipe(t, n, "large", generation) },
	} {
		for i, line := range []string{
			"MGET" + strings.Repeat(" {k}", 1500), "MGET" + strings.Repeat(" {k}a {j}a", 750), "SETRANGE k 3000000 x", "DEL" + strings.Repeat(" {k}a {j}a", 1500),
		} {
			t.Run(fmt.Sprintf("%s %.25s", name, line), func(t *testing.T) {
				c := dialed(i + 1)
				c.send(line)
				for c.read() != nil {
				}
				c = dial(t, n.Addr())
				for range 2 {
					c.wantLines("MGET {i} {j}", "1) (nil)\n2) (nil)", "SETRANGE {i} 0 v", "(integer) 1", "APPEND {i} w", "(integer) 2", "DEL {i} {j}", "(integer) 1")
				}
			})
		}
	}
	if holds := n.engine.Holds(); len(holds) != 0 {
		t.Errorf("%d partitions are held", len(holds))
	}
}

// TestBigValuesOnAFullPipe: a pipe that has as many commands answered later as it may have refuses one
// that has pinned a big value.
func TestBigValuesOnAFullPipe(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	setLong(t, n, "k")
	c := dial(t, n.Addr())
	for from := 0; from < 12_000; from += 1000 {
		hash, list, set, sorted := "HSET h", "RPUSH l", "SADD s", "ZADD z"
		for i := from; i < from+1000; i++ {
			hash, list = hash+fmt.Sprintf(" f%d v", i), list+fmt.Sprintf(" e%d", i)
			set, sorted = set+fmt.Sprintf(" m%d", i), sorted+fmt.Sprintf(" %d m%d", i, i)
		}
		for _, line := range []string{hash, list, set, sorted} {
			c.want(line, fmt.Sprintf("(integer) %d", map[bool]int{true: from + 1000, false: 1000}[strings.HasPrefix(line, "RPUSH")]))
		}
	}
	occupy(t, n)
	p := dial(t, n.Addr())
	p.want(fmt.Sprintf("%s %d", pipeLine(7, 0, "large", 1, 2), ring.Level), "OK later")
	for i := range member.MaxLater {
		p.raw("BITCOUNT k", fmt.Sprintf("-DUNLINLATER %d", i+1))
	}
	for _, line := range []string{
		"BITCOUNT k", "SETRANGE k 3000000 x", "LCS k k", "DUMP k", "COPY k {k}b",
		"HGETALL h", "LRANGE l 0 -1", "SMEMBERS s", "ZRANGE z 0 -1", "DUMP h", "SORT l ALPHA", "LPOS l none COUNT 0 MAXLEN 0",
		"HRANDFIELD h 11000", "SRANDMEMBER s 11000", "SPOP s 11000",
	} {
		p.patience = 1
		p.raw(line, "-DUNLINWAIT 1")
	}
}
