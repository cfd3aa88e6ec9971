package node

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// crossRig has two nodes with pipes, and names of keys that lie in several partitions: in upper case those of the first
// node, in lower case those of the second.
type crossRig struct {
	t       *testing.T
	nodes   [2]*Node
	table   *ring.Table
	clients [2]*client
	pipes   [2]*client
	names   map[string]string
}

func startCrossRig(t *testing.T, change ...func(*Config)) *crossRig {
	t.Helper()
	g := &crossRig{t: t, names: make(map[string]string)}
	g.nodes[0], g.nodes[1] = startPair(t, change...)
	g.table = altered(tableOf(nil, memberOf(g.nodes[0]), memberOf(g.nodes[1])), func(next *ring.Table) { next.Level = ring.Level })
	install(t, g.table, g.nodes[:]...)
	for i, n := range g.nodes {
		g.clients[i], g.pipes[i] = dial(t, n.Addr()), claimPipe(t, n)
	}
	taken := make(map[uint16]bool)
	for owner, letters := range []string{"ABCDEFGHX", "abcdefghx"} {
		next := 0
		for i := 0; next < len(letters); i++ {
			key := fmt.Sprintf("%s%d", letters[next:next+1], i)
			if p := partitionOf(key); int(g.table.Owner[p]) == owner && !taken[p] {
				g.names[letters[next:next+1]] = key
				taken[p] = true
				next++
			}
		}
	}
	return g
}

// words replaces the names of keys, by the real ones or by those that lie in one slot.
func (g *crossRig) words(line string, tagged bool) string {
	words := strings.Fields(line)
	for i, w := range words {
		if name, ok := g.names[w]; ok && tagged {
			words[i] = "{" + g.names["A"] + "}" + w
		} else if ok {
			words[i] = name
		}
	}
	return strings.Join(words, " ")
}

// at returns the index of the owner of the key that a line names first.
func (g *crossRig) at(line string) int {
	for _, w := range strings.Fields(line) {
		if name, ok := g.names[w]; ok {
			return int(g.table.Owner[partitionOf(name)])
		}
	}
	return 0
}

// plain executes a command on the keys, and on those of one slot.
func (g *crossRig) plain(line string) {
	g.t.Helper()
	real, tagged := g.clients[g.at(line)].do(g.words(line, false)), g.clients[0].do(g.words(line, true))
	if real != tagged {
		g.t.Errorf("%s answers %s, and in one slot %s", line, real, tagged)
	}
}

// gather executes a command whose keys lie in several slots at a node, and returns its reply.
func (g *crossRig) gather(home int, line string) string {
	g.t.Helper()
	p := g.pipes[home]
	p.send("DUNLIN GATHER " + g.words(line, false))
	return p.completed()
}

// completed returns the reply that a push brings, or what came in place of the token.
func (c *client) completed() string {
	c.t.Helper()
	first := c.read()
	if _, _, ok := member.ParseLater(first); !ok {
		return conversation.Text(first)
	}
	push := c.read()
	lines := bytes.SplitN(push, []byte("\r\n"), 4)
	if len(lines) < 4 || string(lines[1]) != "+later" {
		c.t.Fatalf("%q is no completion", push)
	}
	return conversation.Text(lines[3])
}

// compare executes a command gathered, and on keys in one slot; then it compares what a reading command answers.
func (g *crossRig) compare(home int, line, reads string) {
	g.t.Helper()
	if got, want := g.gather(home, line), g.clients[0].do(g.words(line, true)); got != want {
		g.t.Errorf("%s answers\n%s\nwant\n%s", line, got, want)
	}
	if reads != "" {
		g.plain(reads)
	}
}

// TestGather: every command answers and stores what it does with keys of one slot.
func TestGather(t *testing.T) {
	g := startCrossRig(t)
	for _, line := range []string{
		"SADD A p y z 1 2", "SADD b y z 3 2", "SADD C 1 2 3 4 5", "SADD d 3 4 5 6",
		"ZADD E 1 v 2 y 3 z", "ZADD f 10 y 20 z 30 w",
		"SET G ohmytext", "SET h mynewtext", "RPUSH e 3 1 2", "GEOADD g 13.361389 38.115556 p 15.087269 37.502669 q",
		"PFADD a one two three", "PFADD B two three four five",
	} {
		g.plain(line)
	}
	for _, f := range []struct {
		home  int
		line  string
		reads string
	}{
		{0, "SINTERCARD 2 A b", ""}, {0, "SINTERCARD 2 A b LIMIT 1", ""}, {1, "SINTER d C", ""}, {1, "SUNION d C", ""}, {0, "SDIFF C d", ""},
		{0, "SINTERSTORE D A b", "SORT D ALPHA"}, {1, "SUNIONSTORE c A b", "SORT c ALPHA"}, {0, "SDIFFSTORE D A b", "SORT D ALPHA"},
		{0, "SINTERSTORE D A x", "EXISTS D"}, {0, "SUNIONSTORE D D b d", "SORT D ALPHA"}, {1, "SUNIONSTORE c c c A", "SORT c ALPHA"},
		{0, "ZUNION 2 E f WITHSCORES", ""}, {0, "ZINTER 2 E f WEIGHTS 2 3 AGGREGATE MAX WITHSCORES", ""}, {0, "ZDIFF 2 E f", ""},
		{0, "ZINTERCARD 2 E f", ""}, {0, "ZUNION 2 A f WITHSCORES", ""},
		{1, "ZUNIONSTORE c 2 E f", "ZRANGE c 0 -1 WITHSCORES"}, {0, "ZINTERSTORE D 2 E f AGGREGATE MIN", "ZRANGE D 0 -1 WITHSCORES"},
		{0, "ZDIFFSTORE D 2 E f", "ZRANGE D 0 -1 WITHSCORES"}, {1, "ZRANGESTORE c E 0 1", "ZRANGE c 0 -1 WITHSCORES"},
		{1, "ZRANGESTORE c E 5 9", "EXISTS c"},
		{0, "GEOSEARCHSTORE D g FROMLONLAT 15 37 BYRADIUS 100 km STOREDIST", "ZRANGE D 0 -1"},
		{0, "GEORADIUS g 15 37 200 km STORE D", "ZRANGE D 0 -1 WITHSCORES"}, {0, "GEORADIUSBYMEMBER g p 300 km STORE D", "ZRANGE D 0 -1"},
		{1, "PFCOUNT a B", ""}, {0, "PFMERGE D a B", "EXISTS D"}, {0, "LCS G h", ""}, {0, "LCS G h IDX", ""},
		{1, "BITOP AND c G h", "GET c"}, {0, "BITOP NOT D h", "GET D"},
		{0, "SORT e STORE D", "LRANGE D 0 -1"}, {0, "SORT e BY nosort GET # DESC STORE D", "LRANGE D 0 -1"},
		// Errors are those that one node has.
		{0, "SINTER A G", ""}, {0, "SUNIONSTORE D A G", "EXISTS D"}, {0, "LCS A h", ""}, {0, "ZUNION 2 E f WEIGHTS 1", ""},
		{0, "BITOP AND D G A", ""}, {0, "PFMERGE A a", ""}, {0, "SINTERCARD 2 A b LIMIT x", ""},
		{1, "COPY A c", ""}, {1, "COPY A c REPLACE", "SORT c ALPHA"}, {1, "COPY X c REPLACE", ""}, {1, "COPY A c DB 1", ""}, {1, "COPY A c BAD", ""},
		{1, "RENAME X c", ""}, {1, "RENAMENX A c", "EXISTS c"}, {1, "RENAME A c", "SORT c ALPHA"}, {0, "RENAMENX c A", "SORT A ALPHA"},
		{0, "RENAMENX c A", "EXISTS c"},
		// All or none.
		{0, "MSETNX B 1 A 2 d 3", "EXISTS B"}, {1, "MSETNX c 1 H 2 x", ""},
		// Elements.
		{1, "SMOVE C d 1", "SORT C ALPHA"}, {1, "SMOVE C d 4", "SORT d ALPHA"}, {0, "SMOVE d C none", ""}, {1, "SMOVE X d 1", ""},
		{1, "SMOVE X e 1", ""}, {1, "SMOVE C e none", ""}, {1, "SMOVE C e 2", "SORT C ALPHA"}, {1, "SMOVE G d 1", ""}, {0, "SMOVE d F 3", "SORT F ALPHA"},
		{0, "LMOVE e H LEFT RIGHT", "LRANGE H 0 -1"}, {0, "LMOVE e H RIGHT LEFT", "LRANGE e 0 -1"}, {1, "RPOPLPUSH H e", "LRANGE e 0 -1"},
		{1, "LMOVE H e left left", "LRANGE e 0 -1"}, {1, "LMOVE H e LEFT LEFT", "EXISTS H"}, {1, "LMOVE X e LEFT RIGHT", ""}, {1, "LMOVE X h LEFT RIGHT", ""},
		{0, "LMOVE e G LEFT RIGHT", "LRANGE e 0 -1"}, {0, "LMOVE h X LEFT RIGHT", "EXISTS X"}, {0, "LMOVE e H UP RIGHT", ""}, {0, "LMOVE e H LEFT DOWN", ""},
		{0, "RPOPLPUSH e H", "LRANGE H 0 -1"}, {0, "RPOPLPUSH e H", "LRANGE H 0 -1"}, {0, "RPOPLPUSH e H", "EXISTS e"}, {0, "RPOPLPUSH e H", ""},
	} {
		if strings.HasPrefix(f.line, "PFMERGE D") {
			g.plain("DEL D")
		}
		g.compare(f.home, f.line, f.reads)
	}
	g.wantNothingLeft()
}

// wantNothingLeft checks that what gathered commands have taken was given back.
func (g *crossRig) wantNothingLeft() {
	g.t.Helper()
	for _, n := range g.nodes {
		eventually(g.t, "nothing is charged", func() bool { return n.lists.Load() == 0 })
		if holds := len(n.engine.Holds()); holds > 0 {
			g.t.Errorf("%d holds are left", holds)
		}
	}
}

// TestGatherRefusals: what cannot be gathered is refused, and a home that is elsewhere is named.
func TestGatherRefusals(t *testing.T) {
	g := startCrossRig(t)
	for line, want := range map[string]string{
		"MSETEX 2 A 1 b 2":        errBadGather,
		"SORT A BY w_* STORE b":   errBadGather,
		"NOSUCH A b":              "ERR unknown command 'NOSUCH', with args beginning with: ",
		"SINTERCARD 1":            "ERR wrong number of arguments for 'sintercard' command",
		"SINTERSTORE b A":         "MOVED ",
		"DUNLIN LEND 0 A 1":       "ERR unknown command 'DUNLIN'",
		"GEORADIUS A 1 2 3 m BAD": "ERR",
	} {
		if got := g.gather(0, line); !strings.HasPrefix(got, "(error) "+want) {
			t.Errorf("%s answers %s, want %s", line, got, want)
		}
	}
	g.clients[0].want("DUNLIN GATHER SINTER "+g.names["A"]+" "+g.names["b"], "(error) "+errBadGather)
}

// TestEnterWhenItIsTooLate: a command whose time is up gets no place, also if there is one, so it stores nothing.
func TestEnterWhenItIsTooLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	places := make(chan struct{}, 100)
	for range cap(places) {
		if _, err := enter(ctx, places); err == nil {
			t.Fatal("it gets a place")
		}
	}
}

// TestGatherLongMember: SMOVE may name a member that is longer than any in a set, which no loop is to copy.
func TestGatherLongMember(t *testing.T) {
	g := startCrossRig(t)
	for _, f := range []struct {
		size int
		want string
	}{{engine.MaxKeyLen, "(integer) 1"}, {maxElement + 1, "(error) " + errLong}} {
		member := bytes.Repeat([]byte("m"), f.size)
		g.clients[1].sendArgs([]byte("SADD"), []byte(g.names["b"]), member)
		g.clients[1].next()
		g.pipes[0].sendArgs([]byte("DUNLIN"), []byte("GATHER"), []byte("SMOVE"), []byte(g.names["b"]), []byte(g.names["D"]), member)
		if got := g.pipes[0].completed(); got != f.want {
			t.Errorf("%d bytes: it answers %.100s, want %s", f.size, got, f.want)
		}
	}
	g.wantNothingLeft()
}

// TestGatherKeepsExpiry: a copy and a renamed key expire when the first one does, and what is merged stays as it was.
func TestGatherKeepsExpiry(t *testing.T) {
	g := startCrossRig(t)
	g.plain("SET A v PX 100000")
	expires := func(line string) {
		t.Helper()
		got := g.clients[g.at(line)].do(g.words(line, false))
		var ms int
		if fmt.Sscanf(got, "(integer) %d", &ms); ms < 50_000 || ms > 100_000 {
			t.Errorf("%s answers %s", line, got)
		}
	}
	if got := g.gather(1, "COPY A b"); got != "(integer) 1" {
		t.Fatal(got)
	}
	expires("PTTL b")
	if got := g.gather(1, "RENAME A c"); got != "OK" {
		t.Fatal(got)
	}
	expires("PTTL c")
	g.plain("PFADD D x")
	g.plain("PFADD e y")
	g.plain("PEXPIRE D 100000")
	g.compare(0, "PFMERGE D e", "PFCOUNT D")
	expires("PTTL D")
	g.plain("SADD F x")
	g.plain("PEXPIRE F 100000")
	g.plain("SADD g x")
	g.compare(0, "SUNIONSTORE F g", "PTTL F")
}

// TestGatherLarge: values of thousands of elements and of megabytes are lent, and too large ones are not.
func TestGatherLarge(t *testing.T) {
	g := startCrossRig(t, func(c *Config) { c.Memory = 512 << 20 })
	for i := range 20 {
		for _, key := range []string{"A", "b"} {
			var line strings.Builder
			fmt.Fprintf(&line, "SADD %s", key)
			for j := range 500 {
				fmt.Fprintf(&line, " m%s%d", key[:j%2], i*500+j)
			}
			g.clients[g.at(key)].do(g.words(line.String(), false))
		}
	}
	if got := g.gather(0, "SUNIONSTORE D A b"); got != "(integer) 15000" {
		t.Errorf("the union has %s", got)
	}
	g.clients[0].want("SCARD "+g.names["D"], "(integer) 15000")
	if got := g.gather(0, "SINTERCARD 2 A b"); got != "(integer) 5000" {
		t.Errorf("the intersection has %s", got)
	}
	if got := g.gather(1, "RENAME D e"); got != "OK" {
		t.Errorf("RENAME answers %s", got)
	}
	g.clients[1].want("SCARD "+g.names["e"], "(integer) 15000")
	size := 20 << 20
	if testing.Short() {
		size = 2 << 20 // a command has 5 s, and the race detector is slow
	}
	for _, key := range []string{"F", "g"} {
		g.clients[g.at(key)].sendArgs([]byte("SET"), []byte(g.names[key]), bytes.Repeat([]byte(key), size))
		g.clients[g.at(key)].next()
	}
	stored := fmt.Sprint("(integer) ", size)
	if got := g.gather(0, "BITOP OR H F g"); got != stored {
		t.Errorf("BITOP answers %s", got)
	}
	g.clients[0].want(fmt.Sprintf("GETRANGE %s %d -1", g.names["H"], size-2), `"gg"`)
	g.clients[0].want("APPEND "+g.names["F"]+" x", fmt.Sprint("(integer) ", size+1))
	g.clients[0].want("SETRANGE "+g.names["F"]+" 70000000 x", "(integer) 70000001")
	if got := g.gather(0, "BITOP OR H F g"); got != "(error) "+string(errLent) {
		t.Errorf("more than 64 MiB are lent: %.100s", got)
	}
	g.clients[0].want("STRLEN "+g.names["H"], stored)
	g.wantNothingLeft()
}

// TestGatherWaitsAndGivesUp: the owner of a source that does not answer is asked for 5 s at most, and a client that has
// gone ends the wait.
func TestGatherWaitsAndGivesUp(t *testing.T) {
	g := startCrossRig(t)
	g.plain("SADD A x")
	g.nodes[1].fenced.Store(true) // it answers TRYAGAIN
	p := g.pipes[0]
	p.send("DUNLIN GATHER " + g.words("SINTER A b", false))
	token, _, ok := member.ParseLater(p.read())
	if !ok {
		t.Fatal("it is not answered later")
	}
	p.want(fmt.Sprintf("DUNLIN CANCEL %d", token), "OK")
	if push := string(p.read()); !strings.Contains(push, "-"+member.Canceled) {
		t.Errorf("it is completed by %q", push)
	}
	begun := time.Now()
	got := g.gather(0, "SUNIONSTORE D A b")
	if took := time.Since(begun); got != "(error) "+string(errGatherLate) || took < gatherPatience || took > 2*gatherPatience {
		t.Errorf("it answers %s after %v", got, took)
	}
	g.nodes[1].fenced.Store(false)
	if got := g.gather(0, "SUNIONSTORE D A b"); got != "(integer) 1" {
		t.Errorf("then it answers %s", got)
	}
	g.wantNothingLeft()
}

// TestGatherWaitsForHolds: a command stores at home when the hold there has ended, and not if the partition has gone.
func TestGatherWaitsForHolds(t *testing.T) {
	g := startCrossRig(t)
	g.plain("SADD b x")
	h := holdPartition(g.nodes[0], g.names["D"])
	p := g.pipes[0]
	p.send("DUNLIN GATHER " + g.words("SUNIONSTORE D b", false))
	p.read()
	g.lent(1, 1)
	h.End()
	if push := string(p.read()); !strings.HasSuffix(push, ":1\r\n") {
		t.Errorf("it is completed by %q", push)
	}
	h = holdPartition(g.nodes[0], g.names["D"])
	p.send("DUNLIN GATHER " + g.words("SUNIONSTORE D b", false))
	p.read()
	g.lent(1, 2)
	moved := altered(g.table, func(next *ring.Table) { next.Owner[partitionOf(g.names["D"])] = 1 })
	for _, n := range g.nodes {
		n.SetTable(moved)
	}
	h.End()
	if push := string(p.read()); !strings.Contains(push, "-MOVED ") {
		t.Errorf("it is completed by %q", push)
	}
	g.wantNothingLeft()
}

// lent waits until a node has lent so many values.
func (g *crossRig) lent(node int, times uint64) {
	g.t.Helper()
	eventually(g.t, "the value is lent", func() bool {
		s, err := g.nodes[node].Stats()
		return err == nil && s.Commands[command.DunlinLend] >= times
	})
}

// TestRenameOfAKeyThatChanges: what is added to a key while it is renamed is under the new name.
func TestRenameOfAKeyThatChanges(t *testing.T) {
	g := startCrossRig(t)
	g.plain("SADD A p")
	h := holdPartition(g.nodes[1], g.names["b"])
	g.pipes[1].send("DUNLIN GATHER " + g.words("RENAME A b", false))
	g.lent(0, 1)
	g.clients[0].want("SADD "+g.names["A"]+" q", "(integer) 1")
	h.End()
	if got := g.pipes[1].completed(); got != "OK" {
		t.Errorf("RENAME answers %s", got)
	}
	g.clients[1].want("SCARD "+g.names["b"], "(integer) 2")
	g.clients[0].want("EXISTS "+g.names["A"], "(integer) 0")
	g.wantNothingLeft()
}

// TestRenameOfAKeyThatIsDeleted: a key that is deleted while it is renamed was renamed before.
func TestRenameOfAKeyThatIsDeleted(t *testing.T) {
	g := startCrossRig(t)
	g.plain("SADD A p")
	h := holdPartition(g.nodes[1], g.names["b"])
	g.pipes[1].send("DUNLIN GATHER " + g.words("RENAME A b", false))
	g.lent(0, 1)
	g.clients[0].want("DEL "+g.names["A"], "(integer) 1")
	h.End()
	if got := g.pipes[1].completed(); got != "OK" {
		t.Errorf("RENAME answers %s", got)
	}
	g.clients[1].want("SCARD "+g.names["b"], "(integer) 1")
}

// TestRenameNXOfKeysThatChange: RENAMENX overwrites nothing that others have stored.
func TestRenameNXOfKeysThatChange(t *testing.T) {
	g := startCrossRig(t)
	g.plain("SADD A p")
	home := holdPartition(g.nodes[1], g.names["b"])
	g.pipes[1].send("DUNLIN GATHER " + g.words("RENAMENX A b", false))
	g.lent(0, 1)
	g.clients[0].want("SADD "+g.names["A"]+" q", "(integer) 1")
	away := holdPartition(g.nodes[0], g.names["A"])
	home.End()
	eventually(t, "the value is stored", func() bool { return g.clients[1].do("EXISTS "+g.names["b"]) == "(integer) 1" })
	g.clients[1].want("SADD "+g.names["b"]+" other", "(integer) 1")
	away.End()
	if got := g.pipes[1].completed(); got != "(error) "+string(errBothKeys) {
		t.Errorf("RENAMENX answers %s", got)
	}
	g.clients[1].want("SCARD "+g.names["b"], "(integer) 2")
	g.clients[0].want("SCARD "+g.names["A"], "(integer) 2")
}

// TestRenameHalfway: when the old name cannot be deleted, the reply says that there are two.
func TestRenameHalfway(t *testing.T) {
	g := startCrossRig(t)
	g.plain("SADD A p")
	h := holdPartition(g.nodes[1], g.names["b"])
	g.pipes[1].send("DUNLIN GATHER " + g.words("RENAME A b", false))
	g.lent(0, 1)
	g.nodes[0].fenced.Store(true)
	h.End()
	if got := g.pipes[1].completed(); got != "(error) "+string(errBothNames) {
		t.Errorf("RENAME answers %s", got)
	}
	g.nodes[0].fenced.Store(false)
	g.clients[1].want("SCARD "+g.names["b"], "(integer) 1")
	g.clients[0].want("SCARD "+g.names["A"], "(integer) 1")
}

// TestMergeIntoAKeyThatChanges: what is added to the destination of PFMERGE meanwhile is not lost.
func TestMergeIntoAKeyThatChanges(t *testing.T) {
	g := startCrossRig(t)
	g.plain("PFADD D one")
	g.plain("PFADD a two")
	h := holdPartition(g.nodes[1], g.names["a"])
	g.pipes[0].send("DUNLIN GATHER " + g.words("PFMERGE D a", false))
	eventually(t, "what comes behind it is waited for", func() bool { return waitingFor(t, g.nodes[1], h) == 1 })
	g.clients[0].want("PFADD "+g.names["D"]+" three", "(integer) 1")
	h.End()
	if got := g.pipes[0].completed(); got != "OK" {
		t.Errorf("PFMERGE answers %s", got)
	}
	g.clients[0].want("PFCOUNT "+g.names["D"], "(integer) 3")
}

// TestStoreUnderAKeyThatIsRead: what is added meanwhile to a key that a command reads, and stores
// under, is not lost. The key does not expire any more, as in one slot.
func TestStoreUnderAKeyThatIsRead(t *testing.T) {
	for _, f := range []struct{ line, want string }{
		{"SUNIONSTORE D a D", "(integer) 3"}, {"SUNIONSTORE D D a D", "(integer) 3"}, {"ZUNIONSTORE D 2 a D", "(integer) 3"},
	} {
		g := startCrossRig(t)
		g.plain("SADD D one")
		g.plain("PEXPIRE D 100000")
		g.plain("SADD a two")
		h := holdPartition(g.nodes[1], g.names["a"])
		g.pipes[0].send("DUNLIN GATHER " + g.words(f.line, false))
		eventually(t, "what comes behind it is waited for", func() bool { return waitingFor(t, g.nodes[1], h) == 1 })
		g.clients[0].want("SADD "+g.names["D"]+" three", "(integer) 1")
		h.End()
		if got := g.pipes[0].completed(); got != f.want {
			t.Errorf("%s answers %s, want %s", f.line, got, f.want)
		}
		g.clients[0].want("TTL "+g.names["D"], "(integer) -1")
		g.wantNothingLeft()
	}
}

// TestGatherIsSeenByNobody: what is lent is no key of the node that executes the command, and its follower gets the
// result only.
func TestGatherIsSeenByNobody(t *testing.T) {
	g := startCrossRig(t)
	p := partitionOf(g.names["D"])
	g.table = altered(g.table, func(next *ring.Table) { next.Follower[p] = 1 })
	install(t, g.table, g.nodes[:]...)
	eventually(t, "b has the copy", inSync(g.nodes[1], p))
	g.clients[1].want("SADD "+g.names["b"]+" p q", "(integer) 2")
	before := g.clients[0].do("DBSIZE")
	stop, most := make(chan struct{}), make(chan string, 1)
	go func() { // looks all the time
		c := dial(t, g.nodes[0].Addr())
		for seen := before; ; {
			select {
			case <-stop:
				most <- seen
				return
			default:
				seen = max(seen, c.do("DBSIZE"))
			}
		}
	}()
	for range 20 {
		if got := g.gather(0, "SUNIONSTORE D b"); got != "(integer) 2" {
			t.Errorf("SUNIONSTORE answers %s", got)
		}
		g.clients[0].want("DEL "+g.names["D"], "(integer) 1")
	}
	close(stop)
	if seen := <-most; before != "(integer) 0" || seen > "(integer) 1" {
		t.Errorf("there are %s keys, and before %s", seen, before)
	}
	g.gather(0, "SUNIONSTORE D b")
	eventually(t, "b has the result", func() bool { return g.nodes[1].engine.Count(p) == 1 })
}
