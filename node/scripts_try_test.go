package node

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/script"
)

// startTrials starts a node whose trials have time: the machine may stand still.
func startTrials(t *testing.T) *Node {
	t.Helper()
	n := startLeveled(t)
	n.holdPatience, n.scripts.tryFor = 50*time.Millisecond, time.Hour
	tellLoops(t, n)
	return n
}

// loadBody has the node know a script: one that it does not know is not tried.
func loadBody(c *client, body string) (oneLine string) {
	oneLine = strings.NewReplacer("\n", " ", "\t", " ").Replace(body)
	c.do(`SCRIPT LOAD "` + oneLine + `"`)
	return oneLine
}

// TestScriptsMoveToRunners: a script that turns out to be long on the loop executes each of its commands once, and goes
// on with what they have returned.
func TestScriptsMoveToRunners(t *testing.T) {
	n := startTrials(t)
	c := dial(t, n.Addr())
	big := strings.Repeat("abcdefgh", 40_000)
	for i := range 200 {
		args := [][]byte{[]byte("HSET"), []byte("{k}hash")}
		for j := range 100 {
			args = append(args, fmt.Append(nil, 100*i+j), []byte("v"))
		}
		c.sendArgs(args...)
		c.read()
	}
	for _, test := range []struct{ body, want string }{
		// It has too many steps behind some commands, or too many commands.
		{"for i = 1, 600 do redis.call('INCR', KEYS[1]) end return redis.call('GET', KEYS[1])", `"600"`},
		{"redis.call('INCR', KEYS[1]) for i = 1, 2e5 do end redis.call('INCR', KEYS[1]) return redis.call('GET', KEYS[1])", `"2"`},
		// It takes too much memory.
		{"redis.call('APPEND', KEYS[1], 'x') local s = string.rep('y', 1e6) return redis.call('APPEND', KEYS[1], 'z') + #s", "(integer) 1000002"},
		{"redis.call('INCR', KEYS[1]) local s for i = 1, 30 do s = string.rep('y', 4e3) end return redis.call('INCR', KEYS[1]) + #s", "(integer) 4002"},
		// Its reply is too long.
		{"redis.call('INCR', KEYS[1]) local s = string.rep('y', 4e4) redis.call('INCR', KEYS[1]) return {s, s, s}", ""},
		// It calls a command that takes long to begin with, or whose reply is long, or some that answer much together.
		{"redis.call('INCR', KEYS[1]) return #redis.call('GET', KEYS[2]) + redis.call('INCR', KEYS[1])", "(integer) 320002"},
		{"redis.call('INCR', KEYS[1]) local v = redis.call('MGET', KEYS[2], KEYS[1], KEYS[2]) return #v[1] + #v[3] + v[2]", "(integer) 640001"},
		{"redis.call('APPEND', KEYS[1], string.rep('x', 12000)) local n = 0 for i = 1, 3 do n = n + #redis.call('GET', KEYS[1]) end return n + redis.call('APPEND', KEYS[1], 'x')", "(integer) 48001"},
		{"redis.call('APPEND', KEYS[1], string.rep('x', 17000)) return redis.call('APPEND', KEYS[1], 'x')", "(integer) 17001"},
		// One of its commands leaves something to a goroutine.
		{"redis.call('SET', KEYS[1], 'x') redis.call('SETBIT', KEYS[2], 8e6, 1) return redis.call('STRLEN', KEYS[2]) + #redis.call('GET', KEYS[1])", "(integer) 1000002"},
		{"redis.call('SET', KEYS[1], 'x') return redis.call('SETRANGE', KEYS[2], 900000, 'A') + redis.call('STRLEN', KEYS[1])", "(integer) 900002"},
		{"redis.call('INCR', KEYS[1]) redis.call('COPY', KEYS[3], KEYS[1], 'REPLACE') return redis.call('HLEN', KEYS[1])", "(integer) 20000"},
		{"redis.call('INCR', KEYS[1]) return #redis.call('HGETALL', KEYS[3]) + redis.call('INCR', KEYS[1])", "(integer) 40002"},
		// It asks for what would differ the second time.
		{"redis.call('INCR', KEYS[1]) local t = os.clock() redis.call('INCR', KEYS[1]) if t >= 0 then return redis.call('GET', KEYS[1]) end", `"2"`},
		{"redis.call('INCR', KEYS[1]) redis.log(redis.LOG_DEBUG, 'x') return redis.call('INCR', KEYS[1])", "(integer) 2"},
		{"redis.call('INCR', KEYS[1]) local n = collectgarbage('count') for i = 1, 2e5 do end if n > 0 then return redis.call('INCR', KEYS[1]) end", "(integer) 2"},
		// Errors on both sides.
		{"local ok, e = pcall(redis.call, 'HGET', KEYS[2], 'f') redis.call('SET', KEYS[1], tostring(ok) .. e) for i = 1, 2e5 do end return redis.call('GET', KEYS[1])", `"falseWRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"local ok = pcall(redis.call, 'KEYS', '*') redis.call('SET', KEYS[1], 1) for i = 1, 2e5 do end return redis.call('INCR', KEYS[1])", "(integer) 2"},
		// What it sees the second time is what it saw the first time.
		{`local order, t = {}, {} for i = 1, 30 do t[{}] = i end
			for k, v in pairs(t) do
				order[#order + 1] = v .. tostring(k) .. math.random()
				redis.call('RPUSH', KEYS[1], order[#order])
				if #order == 15 then for i = 1, 2e5 do end end
			end
			local list = redis.call('LRANGE', KEYS[1], 0, -1)
			return table.concat(list, ' ') == table.concat(order, ' ') and #list`, "(integer) 30"},
	} {
		if put(n, "{k}big", big, engine.TypeString) != nil {
			t.Fatal("cannot store")
		}
		c.do("DEL {k}")
		body := loadBody(c, test.body)
		moved := movedScripts(n)
		if got := c.do(`EVAL "` + body + `" 3 {k} {k}big {k}hash`); got != test.want && test.want != "" {
			t.Errorf("%s\n answers %.200s, want %s", test.body, got, test.want)
		}
		if movedScripts(n) == moved {
			t.Errorf("%s\n is not tried, or stays on the loop", test.body)
		}
	}
	wantEnded(t, n)
	if pinnedBytes(n) != 0 {
		t.Errorf("%d bytes are pinned", pinnedBytes(n))
	}
	n.scripts.library.Flush()
	eventually(t, "all memory is given back", func() bool { return n.lists.Load() == 0 && n.scripts.granted.Load() == 0 })
}

// movedScripts is how many scripts have moved from a loop to a runner: so many partitions were held.
func movedScripts(n *Node) (holds int64) { return n.engine.Stats().Holds }

// TestShortScriptsStayOnTheLoop: a short script is answered at once, also on a pipe, and wakes no goroutine.
func TestShortScriptsStayOnTheLoop(t *testing.T) {
	n := startTrials(t)
	p := scriptPipe(t, n, 1)
	c := dial(t, n.Addr())
	body := loadBody(c, "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end")
	p.send("SET {k} v")
	p.read()
	for _, want := range []string{":1", ":0"} {
		p.send(`EVAL "` + body + `" 1 {k} v`)
		p.frame("EVAL", want)
	}
	for body, want := range map[string]string{
		"return redis.call('ZADD', KEYS[1], 1, 'a') + #redis.call('ZRANGE', KEYS[1], 0, -1)": ":2",
		"return redis.call('NO')":                   "-ERR Unknown Redis command called from script script: ",
		"return {redis.call('TIME')[1] > '0', 'x'}": "*2\r\n:1\r\n$1\r\nx",
		"error('x')": "-ERR user_script:1: x script: ",
		"return redis.call('PUBLISH', 'c', ARGV[1])": ":0",
	} {
		p.send(`EVAL "` + loadBody(c, body) + `" 1 {k}z v`)
		if got := string(p.read()); !strings.HasPrefix(got, want) {
			t.Errorf("%s answers %q, want %q", body, got, want)
		}
	}
	if n := movedScripts(n); n != 0 {
		t.Errorf("%d scripts have moved", n)
	}
	if got := n.scripts.granted.Load(); got != trierBytes*int64(len(n.workers)) && got != trierBytes {
		t.Errorf("%d bytes are charged for what tries scripts", got)
	}
	eventually(t, "they are given back", func() bool { return n.scripts.granted.Load() == 0 })
}

// TestLongScriptsAreTriedSeldom: what was too long is not tried for a while, and what has become short is again.
func TestLongScriptsAreTriedSeldom(t *testing.T) {
	s, err := script.Compile("return 1")
	if err != nil {
		t.Fatal(err)
	}
	trials := func(runs int, long bool) (n int) {
		for range runs {
			if s.MayTry() {
				s.NoteTrial(long)
				n++
			}
		}
		return n
	}
	if n := trials(1280, true); n < 10 || n > 20 {
		t.Errorf("%d trials of 1,280 runs that are too long", n)
	}
	if n := trials(256, false); n < 128 {
		t.Errorf("%d trials of 256 runs that are short", n)
	}
	if n := trials(2, true) + trials(2, false); n != 3 {
		t.Errorf("%d trials of 4 runs, of which one is interrupted", n)
	}
	if s, _ = script.Compile("--" + strings.Repeat("x", 20_000)); s.MayTry() {
		t.Error("a long body is tried")
	}
}

// TestScriptThatWroteOnTheLoop: it is neither killed nor sent again, and goes on without its client.
func TestScriptThatWroteOnTheLoop(t *testing.T) {
	n := startTrials(t)
	c, beside := dial(t, n.Addr()), dial(t, n.Addr())
	body := loadBody(c, "redis.call('SET', KEYS[1], 1) if ARGV[1] == 'x' then while true do end end for i = 1, 3e6 do end return redis.call('INCR', KEYS[1])")
	c.send(`EVAL "` + body + `" 1 {k} x`)
	eventually(t, "it cannot be killed", func() bool { return beside.do("SCRIPT KILL") == "(error) "+errUnkillable })
	giveAway(n, partitionOf("{k}"))
	if got := c.next(); !strings.HasPrefix(got, "(error) ERR ") {
		t.Errorf("the script answers %s", got)
	}
	wantEnded(t, n)

	n = startTrials(t)
	taken := takeAll(&n.scripts.holding) // it cannot begin anew yet
	beside, c = dial(t, n.Addr()), dial(t, n.Addr())
	body = loadBody(beside, body)
	c.send(`EVAL "` + body + `" 1 {k} y`)
	eventually(t, "it holds its partition", func() bool { return len(n.engine.Holds()) == 1 })
	reset(t, c)
	for range taken {
		n.scripts.holding.give()
	}
	wantEnded(t, n)
	beside.want("GET {k}", `"2"`)
}

// TestTrialPanics: the client gets an error, and the next script finds everything in order.
func TestTrialPanics(t *testing.T) {
	n := startTrials(t)
	c := dial(t, n.Addr())
	body := loadBody(c, "redis.call('SET', KEYS[1], 1) return redis.call('INCR', KEYS[1])")
	c.want(`EVAL "`+body+`" 1 {k}`, "(integer) 2")
	err := n.cfg.Group.Each(func(l *netloop.Loop) {
		for _, w := range n.workers {
			if w.loop == l && w.trier != nil {
				w.trier.machine = nil // as a mistake might
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c.want(`EVAL "`+body+`" 1 {k}`, "(error) "+errInternal)
	c.want(`EVAL "`+body+`" 1 {k}`, "(integer) 2")
	wantEnded(t, n)
}

// fewCharges is a heap that has memory a few times.
type fewCharges struct {
	exec.Heap
	left *atomic.Int64
}

func (h fewCharges) Charge(n int64) bool { return h.left.Add(-1) >= 0 && h.Heap.Charge(n) }

// TestScriptHasMemoryToMove: whatever memory there is, a script that writes on the loop is executed to its end, and one
// that is told that there is no memory has written nothing.
func TestScriptHasMemoryToMove(t *testing.T) {
	n := startTrials(t)
	c := dial(t, n.Addr())
	body := loadBody(c, "redis.call('RPOP', KEYS[1]) for i = 1, 2e5 do end return redis.call('RPOP', KEYS[1])")
	var left atomic.Int64
	err := n.cfg.Group.Each(func(l *netloop.Loop) {
		for _, w := range n.workers {
			if w.loop == l {
				w.request.Heap = fewCharges{w.request.Heap, &left}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	executed := 0
	for i := range int64(5) {
		s := n.scripts.library.Get([]byte(script.SHA1([]byte(body))))
		for !s.MayTry() { // it was long
		}
		left.Store(10)
		c.do("DEL {k}")
		c.want("RPUSH {k} a b c", "(integer) 3")
		left.Store(i)
		moved := movedScripts(n)
		got := c.do(`EVAL "` + body + `" 1 {k}`)
		if movedScripts(n) == moved {
			t.Fatal("the script does not move")
		}
		left.Store(10)
		switch got {
		case `"b"`:
			c.want("LLEN {k}", "(integer) 1")
			executed++
		case "(error) " + exec.ErrOOM:
			c.want("LLEN {k}", "(integer) 3")
		default:
			t.Errorf("with memory %d times the script answers %s", i, got)
		}
	}
	if executed != 4 {
		t.Errorf("%d of 5 scripts were executed, want all but one that finds no memory at all", executed)
	}
	wantEnded(t, n)
	n.scripts.library.Flush()
	eventually(t, "all memory is given back", func() bool { return n.lists.Load() == 0 })
}

// TestTrialsAreLate: a trial looks at the clock while it makes its reply, too.
func TestTrialsAreLate(t *testing.T) {
	n := &Node{}
	n.scripts.tryFor = time.Millisecond
	for _, test := range []struct {
		replying bool
		late     time.Duration
		want     error
	}{
		{false, time.Millisecond, nil},
		{false, time.Millisecond + 1, script.ErrLong},
		{true, 2 * time.Millisecond, nil},
		{true, 2*time.Millisecond + 1, script.ErrLong},
	} {
		x := &trier{runner: runner{hand: hand{node: n}}, clock: func() time.Duration { return test.late }, replying: test.replying}
		if err := x.Look(); !errors.Is(err, test.want) {
			t.Errorf("replying: %t, after %v: %v, want %v", test.replying, test.late, err, test.want)
		}
	}
}
