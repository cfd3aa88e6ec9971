package node

import (
	"bytes"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/crew"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// laterPipe opens a pipe of a proxy to which the node answers later.
func laterPipe(t testing.TB, n *Node, kind string, generation int) *client {
	t.Helper()
	c := dial(t, n.Addr())
	if got := c.do(fmt.Sprintf("%s %d", pipeLine(1, 0, kind, generation, 2), ring.LaterLevel)); got != "OK later" {
		t.Fatalf("cannot open pipe: %s", got)
	}
	return c
}

// raw sends a line and compares the bytes of the reply, without the line end.
func (c *client) raw(line, want string) {
	c.t.Helper()
	c.send(line)
	c.frame(line, want)
}

// frame compares the next frame.
func (c *client) frame(what, want string) {
	c.t.Helper()
	if got := strings.TrimSuffix(string(c.read()), "\r\n"); got != want {
		c.t.Errorf("%s: %.100q, want %q", what, got, want)
	}
}

func push(token int, reply string) string {
	return strings.TrimSuffix(string(member.AppendCompletion(nil, uint64(token))), "\r\n") + "\r\n" + reply
}

// occupy takes all places of the node's crew, so that its work waits until free is called.
func occupy(t testing.TB, n *Node) (free func()) { return occupyPlaces(t, n).free }

// takenPlaces are those of a node's crew that the test has taken.
type takenPlaces struct {
	free    func() // all of them
	queue   crew.Queue
	begun   chan bool
	release chan bool // frees one
}

// occupyPlaces takes all places of the node's crew.
func occupyPlaces(t testing.TB, n *Node) *takenPlaces {
	p := &takenPlaces{begun: make(chan bool), release: make(chan bool)}
	p.free = sync.OnceFunc(func() { close(p.release) })
	t.Cleanup(p.free)
	for range max(1, runtime.NumCPU()/2) {
		p.take(n)
		came(t, "a piece of work begins", p.begun)
	}
	return p
}

// take takes a place when it is the turn of the test's queue.
func (p *takenPlaces) take(n *Node) {
	n.crew.Go(&p.queue, netip.Addr{}, 0, func() time.Duration { p.begun <- true; <-p.release; return 0 })
}

const million = 1_000_000

// set stores a long string, past the commands.
func setLong(t testing.TB, n *Node, keys ...string) {
	t.Helper()
	for _, k := range keys {
		if err := put(n, k, strings.Repeat("a", million), engine.TypeString); err != nil {
			t.Fatal(err)
		}
	}
}

// A pipe goes on while goroutines work for commands of it, and each is completed by a push. What a
// command reads is what it was in its turn.
func TestPipeGoesOn(t *testing.T) {
	n := startNode(t)
	setLong(t, n, "{t}a", "{t}b", "c")
	free := occupy(t, n)
	p := laterPipe(t, n, "common", 1)
	p.raw("BITCOUNT c", "-DUNLINLATER 1")
	p.raw("BITOP NOT {t}x {t}a", "-DUNLINLATER 2")
	p.raw("PING", "+PONG")
	p.raw("SET c short", "+OK")
	p.raw("GET c", "$5\r\nshort")
	free()
	p.frame("BITCOUNT", push(1, ":3000000"))
	p.frame("BITOP", push(2, ":1000000"))
	p.raw("STRLEN {t}x", ":1000000")

	p.raw("SET {t}c "+strings.Repeat("a", 100), "+OK")
	p.raw("LCS {t}a {t}c", "-DUNLINLATER 3")
	p.frame("LCS", push(3, "$100\r\n"+strings.Repeat("a", 100)))
	p.raw("BITCOUNT c", ":22") // short enough at once
	p.raw("BITCOUNT nothing", ":0")
}

// What a proxy's clients ask of one key does not hold up what others ask of another one.
func TestPipeTakesTurns(t *testing.T) {
	n := startNode(t)
	setLong(t, n, "much", "little")
	free := occupy(t, n)
	p := laterPipe(t, n, "common", 1)
	last := 4*runtime.NumCPU() + 1
	for token := range last {
		p.raw("BITCOUNT much", fmt.Sprint("-DUNLINLATER ", token+1))
	}
	p.raw("BITCOUNT little", fmt.Sprint("-DUNLINLATER ", last+1))
	free()
	for range last {
		if got := strings.TrimSuffix(string(p.read()), "\r\n"); got == push(last+1, ":3000000") {
			return
		}
	}
	t.Error("the key that one client asked for came last")
}

// A write whose source has changed begins anew ahead of what other clients of the proxy want.
func TestBeginsAnewAheadOfOthers(t *testing.T) {
	n := startNode(t)
	setLong(t, n, "changes", "other")
	all := occupyPlaces(t, n)
	p := laterPipe(t, n, "common", 1)
	p.raw("SETRANGE changes 2000000 x", "-DUNLINLATER 1")
	p.raw("BITCOUNT other", "-DUNLINLATER 2")
	setLong(t, n, "changes")
	all.take(n)
	all.release <- true
	came(t, "the new value was made in vain", all.begun)
	eventually(t, "it begins anew", func() bool { return n.pressing.Load() == 1 })
	p.raw("PING", "+PONG") // now it waits
	all.take(n)
	all.release <- true
	came(t, "it was made again", all.begun)
	p.frame("SETRANGE", push(1, ":2000001"))
	all.free()
	p.frame("BITCOUNT", push(2, ":3000000"))
}

// A proxy may say behind its greeting that it understands what is answered later.
func TestLevelBehindTheGreeting(t *testing.T) {
	n := startNode(t)
	setLong(t, n, "c")
	p := openPipeTo(t, n, 1, 0, "common", 1, 2)
	p.raw("BITCOUNT c", ":3000000")
	p.raw(fmt.Sprintf("DUNLIN LEVEL %d", ring.Level), "+OK later")
	p.raw("BITCOUNT c", "-DUNLINLATER 1")
	p.frame("BITCOUNT", push(1, ":3000000"))
	p.raw("DUNLIN LEVEL 256", "-"+errBadPipe)
	dial(t, n.Addr()).raw("DUNLIN LEVEL 4", "-"+errBadPipe)
}

// A write that is executed later keeps its place: what follows on its partition is refused, behind
// RETRY too, until the proxy has said RETRY after its completion.
func TestWriteLaterKeepsItsPlace(t *testing.T) {
	n := startNode(t)
	free := occupy(t, n)
	p, client := laterPipe(t, n, "common", 1), dial(t, n.Addr())
	p.raw("SETRANGE k 1000000 x", "-DUNLINLATER 1")
	p.raw("STRLEN k", "-DUNLINWAIT 1")
	p.raw("SET other 1", "+OK")
	p.raw("MSET other 2 k 2", "-DUNLINWAIT 1")
	p.raw("GET other", "-DUNLINWAIT 1")
	p.raw("DUNLIN RETRY 1", "+OK")
	p.raw("GET other", "$1\r\n1")
	p.raw("STRLEN k", "-DUNLINWAIT 1")
	client.want("STRLEN k", "(integer) 0") // of others it is nobody's business
	free()
	p.frame("SETRANGE", push(1, ":1000001"))
	p.raw("STRLEN k", "-DUNLINWAIT 1")
	p.raw("DUNLIN RETRY 1", "+OK")
	p.raw("STRLEN k", ":1000001")

	free = occupy(t, n)
	p.raw("COPY k {k}2", "-DUNLINLATER 2")
	setLong(t, n, "k") // its source changes meanwhile: it begins anew
	free()
	p.frame("COPY", push(2, ":1"))
	client.want("STRLEN {k}2", "(integer) 1000000")
}

// A write that is executed later may be refused in the end, and is then ahead of what was refused
// because of it.
func TestWriteLaterIsRefused(t *testing.T) {
	n := startNode(t)
	free := occupy(t, n)
	p := laterPipe(t, n, "common", 1)
	p.raw("SETRANGE k 1000000 x", "-DUNLINLATER 1")
	p.raw("STRLEN k", "-DUNLINWAIT 1")
	n.fenced.Store(true)
	free()
	p.frame("SETRANGE", push(1, "-DUNLINWAIT 1"))
	n.fenced.Store(false)
	p.raw("STRLEN k", "-DUNLINWAIT 1")
	p.raw("DUNLIN RETRY 1", "+OK")
	p.raw("STRLEN k", ":0")
}

// A large reply that comes later is a ticket on a common pipe, and comes whole on a large one.
func TestLargeReplyLater(t *testing.T) {
	n := startNode(t)
	setLong(t, n, "k")
	p := laterPipe(t, n, "common", 1)
	p.raw("DUMP k", "-DUNLINLATER 1")
	token, reply, ok := member.ParsePush(p.read())
	ticket, size, large := member.ParseTicket(reply)
	if !ok || token != 1 || !large || size < million {
		t.Fatalf("DUMP is completed by %.50q", reply)
	}
	p.sendRaw(member.AppendFetch(nil, member.Piece{Ticket: ticket, Count: 10}))
	p.frame("FETCH", "$10\r\n"+string(resp.AppendBulkHeader(nil, size-len("$1000016\r\n\r\n"))))
	whole := laterPipe(t, n, "large", 1)
	whole.raw("DUMP k", "-DUNLINLATER 1")
	if _, reply, ok := member.ParsePush(whole.read()); !ok || len(reply) != size {
		t.Errorf("DUMP on a large pipe is completed by %d bytes, want %d", len(reply), size)
	}
}

// The number of commands that a pipe has answered later is bounded. One more is refused, and
// another pipe has a bound of its own.
func TestLaterIsBounded(t *testing.T) {
	n := startNode(t)
	if err := put(n, "k", strings.Repeat("a", 300_000), engine.TypeString); err != nil { // too long for a loop
		t.Fatal(err)
	}
	free := occupy(t, n)
	p := laterPipe(t, n, "common", 1)
	for i := range member.MaxLater {
		p.raw("BITCOUNT k", fmt.Sprintf("-DUNLINLATER %d", i+1))
	}
	p.raw("BITCOUNT k", "-DUNLINWAIT 1")
	p.raw("GET other", "$-1")
	laterPipe(t, n, "large", 1).raw("BITCOUNT k", "-DUNLINLATER 1")
	free()
	for i := range member.MaxLater {
		p.frame("BITCOUNT", push(i+1, ":900000"))
	}
	p.raw("BITCOUNT k", "-DUNLINWAIT 1")
	p.raw("DUNLIN RETRY 1", "+OK")
	p.raw("BITCOUNT k", fmt.Sprintf("-DUNLINLATER %d", member.MaxLater+1))
	p.frame("BITCOUNT", push(member.MaxLater+1, ":900000"))
}

// A newer generation is acknowledged at once, whatever goroutines work on, and nothing of the older
// one is executed any more. The connection's end frees what its work has taken.
func TestSupersedeWaitsForNobody(t *testing.T) {
	n := startNode(t)
	setLong(t, n, "{t}a", "{t}b")
	before, outside := settled(t, n), n.engine.Outside()
	free := occupy(t, n)
	old := laterPipe(t, n, "large", 1)
	pausing := openPipeTo(t, n, 2, 0, "large", 1, 2) // of a proxy that does not know better
	for _, c := range []*client{old, pausing} {
		c.send("BITOP OR {t}x {t}a {t}b")
		c.send("BITCOUNT {t}a")
		c.send("SETRANGE {t}y 1000000 x")
	}
	old.frame("BITOP", "-DUNLINLATER 1")
	newer := laterPipe(t, n, "large", 2)
	openPipeTo(t, n, 2, 0, "large", 2, 2)
	newer.raw("EXISTS {t}x {t}y", ":0")
	free()
	newer.raw("BITCOUNT {t}a", "-DUNLINLATER 1") // behind all that was withdrawn
	newer.frame("BITCOUNT", push(1, ":3000000"))
	newer.raw("EXISTS {t}x {t}y", ":0")
	eventually(t, "all is freed", func() bool { return settled(t, n) == before })
	newer.conn.Close()
	old.conn.Close()
	pausing.conn.Close()
	eventually(t, "all is refunded", func() bool { return n.engine.Outside() <= outside })
}

// A command with keys in several partitions that is executed in parts keeps its place as well, also
// if it only reads.
func TestManyKeysKeepTheirPlace(t *testing.T) {
	n := startNode(t)
	const keys = 1500
	mset, mget := [][]byte{[]byte("MSET")}, [][]byte{[]byte("MGET")}
	want := string(resp.AppendArray(nil, keys))
	for i := range keys {
		key := fmt.Append(nil, "key", i)
		mset, mget = append(mset, key, []byte("old")), append(mget, key)
		want += "$3\r\nold\r\n"
	}
	p := laterPipe(t, n, "common", 1)
	p.sendArgs(mset...)
	p.frame("MSET", "-DUNLINLATER 1")
	p.frame("MSET", push(1, "+OK"))
	p.sendRaw(append(resp.AppendRequest(nil, mget...), "SET key1499 new\r\nSET {key0} new\r\n"...)) // at once
	p.frame("MGET", "-DUNLINLATER 2")
	p.frame("SET of the last key", "-DUNLINWAIT 1")
	p.frame("SET of the first key", "-DUNLINWAIT 1")
	p.frame("MGET", push(2, strings.TrimSuffix(want, "\r\n")))
	p.raw("DUNLIN RETRY 1", "+OK")
	p.raw("SET key1499 new", "+OK")
}

// What holds its partition is deferred like everything else that takes long.
func TestHoldsBesideDeferredCommands(t *testing.T) {
	n := startNode(t)
	setLong(t, n, "c", "{k}c")
	p := laterPipe(t, n, "common", 1)
	mget := [][]byte{[]byte("MGET")}
	nulls := string(resp.AppendArray(nil, 5000))
	for i := range 5000 {
		mget = append(mget, fmt.Append(nil, "{k}", i))
		nulls += "$-1\r\n"
	}
	token := 0
	for round := range 20 {
		p.sendRaw([]byte("BITCOUNT c\r\nCOPY {k}c {k}d REPLACE\r\nPING\r\n"))
		p.sendArgs(mget...)
		p.frame("BITCOUNT", fmt.Sprintf("-DUNLINLATER %d", token+1))
		p.frame("COPY", fmt.Sprintf("-DUNLINLATER %d", token+2))
		copied, refused := push(token+2, ":1")+"\r\n", push(token+2, "-DUNLINWAIT 1")+"\r\n"
		want := map[string]bool{"+PONG\r\n": true, push(token+1, ":3000000") + "\r\n": true, copied: true, refused: true}
		// MGET is behind COPY, which is on its way, or has ended just now.
		mgetLater, mgetRefused := fmt.Sprintf("-DUNLINLATER %d\r\n", token+3), "-DUNLINWAIT 1\r\n"
		want[mgetLater], want[mgetRefused] = true, true
		token += 2
		for left := 4; left > 0; left-- {
			got := string(p.read())
			switch {
			case !want[got]:
				t.Fatalf("round %d: unexpected %.100q", round, got)
			case got == mgetLater:
				token++
				left++
				want[push(token, strings.TrimSuffix(nulls, "\r\n"))+"\r\n"] = true
			}
			delete(want, got)
		}
		p.raw("DUNLIN RETRY 1", "+OK")
	}
	if holds := len(n.engine.Holds()); holds != 0 {
		t.Errorf("%d partitions are held", holds)
	}
}

// longCommand ends the first slice of a transaction.
var longCommand = resp.AppendRequest(nil, []byte("SETRANGE"), []byte("{k}l"), []byte("0"), make([]byte, longBytes))

// Work for which nobody waits ends. What has changed something is executed to its end.
func TestCanceled(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	setLong(t, n, "c", "{t}a", "{k}x", "{k}y")
	free := occupy(t, n)
	p := laterPipe(t, n, "common", 1)
	canceled := "-" + errCanceled
	input := []byte("BITCOUNT c\r\nBITOP NOT {t}x {t}a\r\n")
	input = member.AppendEach(input, &allPartitions, []byte("WAIT"), []byte("9"), []byte("0"))
	for token := 1; token <= 4; token++ {
		input = member.AppendCancel(input, uint64(token))
	}
	p.sendRaw(input) // at once: nothing is complete before it is canceled
	p.frame("BITCOUNT", "-DUNLINLATER 1")
	p.frame("BITOP", "-DUNLINLATER 2")
	p.frame("WAIT", "-DUNLINLATER 3")
	seen := map[string]bool{}
	for range 5 { // WAIT does not wait for the crew
		seen[string(p.read())] = true
	}
	if want := push(3, canceled) + "\r\n"; !seen[want] || len(seen) != 2 {
		t.Errorf("the answers are %v, want %q and OK", seen, want)
	}
	free()
	for range 2 {
		seen[string(p.read())] = true
	}
	if !seen[push(1, canceled)+"\r\n"] || !seen[push(2, canceled)+"\r\n"] {
		t.Errorf("the answers are %v", seen)
	}
	p.raw("EXISTS {t}x", ":0")

	reads := make([]string, 20_000)
	for i := range reads {
		reads[i] = "GET {k}z"
	}
	p.sendRaw(append(resp.AppendRequest(nil, execArgs(t, nil, append(reads, "INCR {k}n")...)...), member.AppendCancel(nil, 4)...))
	p.frame("EXEC", "-DUNLINLATER 4")
	p.frame("CANCEL", "+OK")
	p.frame("EXEC that has only read", push(4, canceled))
	p.raw("GET {k}n", "$-1")
	p.sendRaw(append(resp.AppendRequest(nil, slices.Insert(execArgs(t, nil, "INCR {k}n", "INCR {k}n"), 5, longCommand)...), member.AppendCancel(nil, 5)...))
	p.frame("EXEC", "-DUNLINLATER 5")
	p.frame("CANCEL", "+OK")
	if got := string(p.read()); !strings.HasSuffix(got, ":2\r\n") {
		t.Errorf("EXEC answers %.100q", got)
	}
	if st, err := n.Stats(); err != nil || st.Deferred != 5 {
		t.Errorf("%d commands were deferred, want 5 (%v)", st.Deferred, err)
	}
}

// bulkAfter returns the bulk string behind a prefix of b.
func bulkAfter(b []byte, prefix string) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(b, []byte(prefix))
	if !ok {
		return nil, false
	}
	return resp.DecodeBulk(rest)
}

// What a pipe's transaction has begun is executed to its end. The pipe's next generation has to wait for
// its partition until then, and sees nothing of it halfway.
func TestSupersededTransactionsEnd(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	p := laterPipe(t, n, "common", 1)
	lines := make([]string, 900)
	for i := range lines {
		lines[i] = "INCR {k}a"
	}
	p.sendArgs(slices.Insert(execArgs(t, nil, lines...), 5, longCommand)...)
	p.frame("EXEC", "-DUNLINLATER 1")
	p.conn.Close()
	p = laterPipe(t, n, "common", 2)
	var got string
	eventually(t, "the partition is free", func() bool {
		p.raw("DUNLIN RETRY 1", "+OK")
		p.send("GET {k}a")
		got = strings.TrimSuffix(string(p.read()), "\r\n")
		return got != "-DUNLINWAIT 1"
	})
	if want := "$3\r\n900"; got != want {
		t.Errorf("GET answers %q, want %q", got, want)
	}
}

// The next large value may arrive while a goroutine works with the last one.
func TestUploadBehindADeferredOne(t *testing.T) {
	n := startNode(t)
	setLong(t, n, "k")
	free := occupy(t, n)
	p := laterPipe(t, n, "large", 1)
	piece := []byte(strings.Repeat("b", 400_000))
	p.sendArgs([]byte("APPEND"), []byte("k"), piece)
	p.frame("APPEND", "-DUNLINLATER 1")
	next := resp.AppendRequest(nil, []byte("SET"), []byte("other"), piece)
	p.sendRaw(next[:200_000])
	eventually(t, "the next one arrives", func() bool { return n.engine.Stats().Staged > int64(len(piece)) })
	setLong(t, n, "k") // APPEND begins anew
	free()
	p.frame("APPEND", push(1, ":1400000"))
	p.sendRaw(next[200_000:])
	p.frame("SET", "+OK")
	p.raw("STRLEN other", ":400000")
	p.raw("GETRANGE k 999999 1000000", "$2\r\nab")
	eventually(t, "all is freed", func() bool { return n.engine.Stats().Staged == 0 })
}
