package node

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// manyKeys is a request for many keys, the first of which lies in the partition of {first}.
func manyKeys(verb string, keys int, value func(i int) []byte) (args [][]byte) {
	args = append(args, []byte(verb))
	for i := range keys {
		key := fmt.Appendf(nil, "many:%d", i)
		if i == 0 {
			key = []byte("{first}")
		}
		if args = append(args, key); value != nil {
			args = append(args, value(i))
		}
	}
	return args
}

// TestListingTakesTurns counts what a loop does in a turn for a request of many arguments.
func TestListingTakesTurns(t *testing.T) {
	const n = 10_000
	few := func(words ...string) (args [][]byte) {
		for _, word := range words {
			args = append(args, []byte(word))
		}
		return args
	}
	value := func(i int) []byte { return fmt.Append(nil, i) }
	for _, f := range []struct {
		args       [][]byte
		keys       int
		argTurns   int
		keyedTurns int
	}{
		{manyKeys("DEL", n, nil), n, 3, 10},
		{manyKeys("MSET", n, value), n, 5, 10},
		{append(few("BITOP", "AND", "to"), manyKeys("DEL", n, nil)[1:]...), n + 1, 3, 10},
		{append(few("MSETEX", "2"), manyKeys("MSET", n, value)[1:]...), 2, 5, 1},
		{append(few("ZINTER", "many"), manyKeys("DEL", n, nil)[1:]...), 0, 3, 0},
		{append(few("PFADD", "key"), manyKeys("DEL", n, nil)[1:]...), 0, 3, 0}, // the only one, which is found at once
	} {
		cmd := command.Lookup(f.args[0])
		raw := resp.AppendRequest(nil, f.args...)
		l := &listing{cmd: cmd, raw: raw, left: len(f.args), several: keyPlanOf(cmd) != oneKey}
		l.next = bytes.IndexByte(raw, '\n') + 1
		argTurns, keyedTurns := 0, 0
		for ; l.left > 0; argTurns++ {
			before := len(l.args)
			if l.list(); len(l.args)-before > argsAtOnce {
				t.Errorf("%s: %d arguments in a turn", cmd.Name, len(l.args)-before)
			}
		}
		for ; len(l.runs) > 0; keyedTurns++ {
			before := len(l.keys)
			if l.place(); len(l.keys)-before > keysAtOnce {
				t.Errorf("%s: %d keys in a turn", cmd.Name, len(l.keys)-before)
			}
		}
		if argTurns != f.argTurns || keyedTurns != f.keyedTurns || l.next != len(raw) || len(l.keys) != f.keys {
			t.Errorf("%s: %d and %d turns, want %d and %d; %d keys, want %d",
				cmd.Name, argTurns, keyedTurns, f.argTurns, f.keyedTurns, len(l.keys), f.keys)
		}
		if !slices.EqualFunc(l.args, f.args, bytes.Equal) {
			t.Errorf("%s: %d other arguments", cmd.Name, len(l.args))
		}
		if want, _ := cmd.AppendKeys(nil, f.args); l.several && !slices.Equal(l.keys, want) {
			t.Errorf("%s: the keys are elsewhere", cmd.Name)
		}
	}
}

// turnsOf returns in how many iterations of the node's only loop something waits for its turn,
// while the client sends a request and waits for its reply.
func turnsOf(t *testing.T, n *Node, c *client, want string, args ...[]byte) int {
	t.Helper()
	w := n.workers[0]
	turns, ready := 0, make(chan struct{})
	w.loop.Post(func() {
		w.loop.OnIterationEnd(func() {
			if len(w.turns.waiting) > 0 {
				turns++
			}
		})
		close(ready)
	})
	<-ready
	c.sendArgs(args...)
	if got := c.next(); got != want {
		t.Errorf("%s answers %.100s, want %s", args[0], got, want)
	}
	taken := make(chan int)
	w.loop.Post(func() { taken <- turns })
	return <-taken
}

// TestLongRequestsTakeTurns: a request of many keys is listed in turns, and executed in turns, also
// one whose keys must lie in one slot, and one with a large value among the first.
func TestLongRequestsTakeTurns(t *testing.T) {
	const keys = 20 * keysAtOnce
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	c, pipe := dial(t, n.Addr()), openPipeTo(t, n, 7, 0, "large", 1, 2)
	ofSlot := func(verb string, end ...string) [][]byte {
		args := [][]byte{[]byte(verb)}
		for i := range keys {
			args = append(args, fmt.Appendf(nil, "{k}%d", i))
		}
		for _, word := range end {
			args = append(args, []byte(word))
		}
		return args
	}
	largeFirst := func(i int) []byte { return bytes.Repeat([]byte{'v'}, max(1, (1-i)*100_000)) }
	crossing := "(error) CROSSSLOT Keys in request don't hash to the same slot"
	for _, f := range []struct {
		c     *client
		args  [][]byte
		want  string
		turns int // to list it, and to execute it: those behind which another one waits
	}{
		{c, manyKeys("MSET", keys, largeFirst), "OK", 19 + 19},
		{pipe, manyKeys("MSET", keys, largeFirst), "OK", 19 + 19},
		{c, ofSlot("WATCH"), "OK", 19 + 19},
		{c, ofSlot("WATCH", "far"), crossing, 19},
		{pipe, ofSlot("PFCOUNT", "far"), crossing, 19},
		{c, ofSlot("PFMERGE", "far"), crossing, 19},
		{c, append([][]byte{[]byte("BITOP"), []byte("OR")}, ofSlot("BITOP")[1:]...), "(integer) 0", 4 + 19 + 19},
		{pipe, ofSlot("MSETNX"), "(integer) 1", 9 + 19},
		{c, append([][]byte{[]byte("PFADD"), []byte("{k}sketch")}, ofSlot("PFADD")[1:]...), "(integer) 1", 4 + 5},
	} {
		if got := turnsOf(t, n, f.c, f.want, f.args...); got < f.turns {
			t.Errorf("%s takes %d turns, want %d", f.args[0], got, f.turns)
		}
	}
	c.want("STRLEN {first}", "(integer) 100000")
	c.want("MULTI", "OK")
	c.want("SET {k}0 changed", "QUEUED")
	c.want("EXEC", "(nil)") // MSETNX has made the watched keys
}

// TestParserListsLittle: the parser keeps the first arguments of what is listed in turns. A transaction
// queues all.
func TestParserListsLittle(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	cn := &conn{node: n}
	cn.State = n.session.NewState("", "", 1)
	for verb, want := range map[string]int{
		"MSET": listFrom, "del": listFrom, "MGET": listFrom, "BITOP": listFrom, "PFADD": listFrom, "msetex": listFrom,
		"SORT": math.MaxInt, "GET": 3, // whose keys are looked for; that has no more
	} {
		if got := cn.wordsOf([]byte(verb), nil); got != want {
			t.Errorf("%s keeps %d words, want %d", verb, got, want)
		}
	}
	cn.State.Multi = true
	if got := cn.wordsOf([]byte("MSET"), nil); got <= listFrom {
		t.Errorf("in a transaction MSET keeps %d words", got)
	}
}

// TestListedRequests: a request of many keys waits for a hold like others, is refused like others, and
// may have large values.
func TestListedRequests(t *testing.T) {
	const keys = 3 * keysAtOnce
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	value := func(i int) []byte {
		if i%1500 == 1499 || i == 1 { // the parser would list only the first keys, but for a large value among them
			return bytes.Repeat([]byte{'v'}, 100_000)
		}
		return fmt.Append(nil, i)
	}
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	pipe := openPipeTo(t, n, 7, 0, "large", 1, 2)
	for name, c := range map[string]*client{"client": c, "pipe": pipe} {
		h := holdPartition(n, "{first}")
		c.sendArgs(manyKeys("MSET", keys, value)...)
		c.send("STRLEN many:2999")
		c.send("STRLEN many:1")
		if name == "pipe" { // it is refused, and so is what follows
			if got := c.next(); !strings.HasPrefix(got, "(error) DUNLINWAIT") {
				t.Errorf("a pipe's MSET answers %s", got)
			}
			if got := c.next(); !strings.HasPrefix(got, "(error) DUNLINWAIT") {
				t.Errorf("a pipe's STRLEN answers %s", got)
			}
			c.next() // the last one is refused if it belongs to the same partition
			h.End()
			c.want("DUNLIN RETRY 1", "OK")
			c.sendArgs(manyKeys("MSET", keys, value)...)
			c.send("STRLEN many:2999")
			c.send("STRLEN many:1")
		} else {
			for range 50 { // nothing shows that it waits for the hold, and not for a turn
				other.want("GET {j}", "(nil)")
			}
			h.End()
		}
		for _, want := range []string{"OK", "(integer) 100000", "(integer) 100000"} {
			if got := c.next(); got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
		c.sendArgs(manyKeys("EXISTS", keys, nil)...)
		if got := c.next(); got != fmt.Sprintf("(integer) %d", keys) {
			t.Errorf("%s: EXISTS answers %s", name, got)
		}
		c.sendArgs(manyKeys("DEL", keys, nil)...)
		if got := c.next(); got != fmt.Sprintf("(integer) %d", keys) {
			t.Errorf("%s: DEL answers %s", name, got)
		}
	}
	c.sendArgs(append(manyKeys("MSET", keys, value), []byte("odd"))...)
	if got := c.next(); !strings.HasPrefix(got, "(error) ERR wrong number") {
		t.Errorf("an odd MSET answers %s", got)
	}

	setView(n, sharedView(n, "{first}"))
	c.sendArgs(manyKeys("MSET", keys, value)...)
	if got := c.next(); !strings.HasPrefix(got, "(error) CROSSSLOT") {
		t.Errorf("a client's MSET answers %s", got)
	}
	pipe.sendArgs(manyKeys("MSET", keys, value)...)
	if got := pipe.next(); !strings.HasPrefix(got, "(error) MOVED") {
		t.Errorf("a pipe's MSET answers %s", got)
	}
	pipe.want("SET many:5 x", "(error) DUNLINWAIT 1") // latched
	setView(n, sharedView(n))
	pipe.want("DUNLIN RETRY 1", "OK")
	pipe.want("SET many:5 x", "OK")

	gone := dial(t, n.Addr())
	gone.sendArgs(manyKeys("MGET", keys, nil)...)
	gone.conn.Close()
	other.want("GET many:5", `"x"`)
}

// TestUnlistedRequestKeepsItsInput: a request of many keys for which there is no memory is refused,
// and those behind it in its input are executed.
func TestUnlistedRequestKeepsItsInput(t *testing.T) {
	forOneClient(t)
	const keys = 50_000
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 24<<20, newGroup(t, 1) })
	input := resp.AppendRequest(nil, manyKeys("DEL", keys, func(i int) []byte { return fmt.Appendf(nil, "longer:%d", i) })...)
	input = append(input, "SET k v\r\nGET k\r\n"...)
	refused := 0
	for room := int64(1 << 20); room < 8<<20; room += 1 << 20 {
		budget := connBudget{n}
		taken := int64(0)
		for step := int64(16 << 20); step >= 64<<10; step /= 2 {
			for budget.Charge(step) {
				taken += step
			}
		}
		budget.Refund(min(room, taken))
		c := dial(t, n.Addr())
		go c.conn.Write(input) // fails if the node closes
		first, second := c.next(), ""
		if first != "(closed)" {
			second = c.next()
		}
		switch {
		case first == oomReply && second == "OK":
			refused++
			fallthrough
		case first == "(integer) 0" && second == "OK":
			if got := c.next(); got != `"v"` {
				t.Errorf("GET answers %s", got)
			}
		case second != "(closed)" && first != "(closed)": // the input found no memory
			t.Errorf("DEL answers %s, and SET %s", first, second)
		}
		c.conn.Close()
		budget.Refund(taken - min(room, taken))
		eventually(t, "the connection ends", func() bool {
			s, err := n.Stats()
			return err == nil && s.Clients == 0
		})
	}
	if refused == 0 {
		t.Error("DEL was never refused")
	}
}
