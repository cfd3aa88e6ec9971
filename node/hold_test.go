package node

import (
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// holdPartition holds the key's partition until the test says End.
func holdPartition(n *Node, key string) *engine.Hold {
	t := n.engine.Lock(partitionOf(key), time.Now().UnixMilli())
	defer t.Unlock()
	return t.Hold()
}

// waitingFor returns how many requests wait for the hold at the node's loops, -1 if one of these stands still.
func waitingFor(t *testing.T, n *Node, h *engine.Hold) (count int) {
	t.Helper()
	var all atomic.Int32
	if err := n.cfg.Group.Each(func(l *netloop.Loop) {
		if queue := n.workers[l.Index()].holdQueues[h]; queue != nil {
			all.Add(int32(queue.Len()))
		}
	}); err != nil {
		return -1 // a loop stands still
	}
	return int(all.Load())
}

// TestClientsWaitForHolds: requests of clients for a held partition wait, in their order, and what
// is for other partitions is answered at once.
func TestClientsWaitForHolds(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	large := bigValue(300_000, 1)
	for _, test := range []struct {
		name  string
		send  func(c *client)
		wants []string
	}{
		{"a pipeline", func(c *client) { c.sendLines("SET {k}a 1", "INCR {k}a", "GET {j}") }, []string{"OK", "(integer) 2", "(nil)"}},
		{"a transaction", func(c *client) { c.sendLines("MULTI", "INCR {k}b", "EXEC") }, []string{"OK", "QUEUED", "1) (integer) 1"}},
		{"a large value", func(c *client) { c.sendRaw(bigRequest(t, "SET {k}c BIG", large)); c.send("STRLEN {k}c") }, []string{"OK", "(integer) 300000"}},
		{"several keys", func(c *client) { c.sendLines("MSET {j}1 x {k}d y {i} z", "MGET {k}d {j}1", "DEL {i} {j}1 {k}d none") },
			[]string{"OK", "1) \"y\"\n2) \"x\"", "(integer) 3"}},
		{"a watch", func(c *client) { c.sendLines("WATCH {k}e", "GET {k}e") }, []string{"OK", "(nil)"}},
		{"no reply", func(c *client) { c.sendLines("CLIENT REPLY SKIP", "SET {k}f 1", "GET {k}f") }, []string{`"1"`}},
		{"everything", func(c *client) { c.sendLines("FLUSHALL", "DBSIZE") }, []string{"OK", "(integer) 0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := holdPartition(n, "{k}")
			c, other := dial(t, n.Addr()), dial(t, n.Addr())
			test.send(c)
			for range 20 { // the loop reads both: it has seen the request
				other.want("GET {j}0", "(nil)")
			}
			h.End()
			for i, want := range test.wants {
				if got := c.next(); got != want {
					t.Errorf("reply %d is %s, want %s", i, got, want)
				}
			}
		})
	}
}

// TestManyWaitForAHold: they go on in their order, and in turns, not all in one.
func TestManyWaitForAHold(t *testing.T) {
	const many = 300
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	h := holdPartition(n, "k")
	var clients []*client
	for i := range many {
		c := dial(t, n.Addr())
		c.send("INCR k")
		clients = append(clients, c)
		eventually(t, "it waits", func() bool { return waitingFor(t, n, h) == i+1 })
	}
	most := 0
	onItsLoop(t, n, func(w *worker) {
		queue, left := w.holdQueues[h], many
		w.loop.OnIterationEnd(func() {
			now := queue.Len()
			most, left = max(most, left-now), now
		})
	})
	h.End()
	for i, c := range clients {
		if got, want := c.next(), fmt.Sprintf("(integer) %d", i+1); got != want {
			t.Fatalf("reply %d is %s, want %s", i, got, want)
		}
	}
	onItsLoop(t, n, func(*worker) {
		if most > passAtOnce {
			t.Errorf("of %d requests, %d go on in one turn", many, most)
		}
	})
}

// TestPauseBehindAHold: CLIENT PAUSE lets a command go on that has begun, whatever it waits for.
func TestPauseBehindAHold(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	h := holdPartition(n, "{k}")
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	c.sendLines("MSET {j}1 x {k}d y {i} z", "PING", "MGET {j}1 {k}d {i}")
	eventually(t, "the command has begun", func() bool { return other.do("EXISTS {j}1") == "(integer) 1" })
	other.want("CLIENT PAUSE 60000 WRITE", "OK")
	h.End()
	for _, want := range []string{"OK", "PONG", "1) \"x\"\n2) \"y\"\n3) \"z\""} {
		if got := c.next(); got != want {
			t.Errorf("the reply is %s, want %s", got, want)
		}
	}
}

// TestHoldsHaveAnEnd: a client that has waited for a hold for too long gets -BUSY, and nothing was
// executed.
func TestHoldsHaveAnEnd(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	n.holdPatience = 10 * time.Millisecond
	tellLoops(t, n)
	h := holdPartition(n, "{k}")
	c := dial(t, n.Addr())
	c.want("INCR {k}", "(error) "+exec.ErrHeld)
	c.wantBig("SET {k} BIG", bigValue(300_000, 1), "(error) "+exec.ErrHeld)
	c.want("MULTI", "OK")
	c.want("INCR {k}", "QUEUED")
	c.want("EXEC", "(error) "+exec.ErrHeld)
	c.want("GET j", "(nil)")
	h.End()
	c.want("GET {k}", "(nil)")
	if st := n.engine.Stats(); st.Staged != 0 {
		t.Errorf("%d bytes are staged", st.Staged)
	}
}

// TestBegunCommandsWaitForHolds: so does a command that has begun. What it changed before stays.
func TestBegunCommandsWaitForHolds(t *testing.T) {
	const partly = "(error) ERR executed for some of the keys only: " +
		"a transaction has held the partition of another one for too long"
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	n.holdPatience = 10 * time.Millisecond
	tellLoops(t, n)
	setLong(t, n, "{k}long")
	free := occupy(t, n)
	c, rewrites := dial(t, n.Addr()), dial(t, n.Addr())
	rewrites.send("SETRANGE {k}long 3000000 x") // waits for a goroutine
	p := laterPipe(t, n, "large", 1)
	p.send("SETRANGE {k}long 3000000 x")
	p.next()
	c.want("GET {j}", "(nil)")
	h := holdPartition(n, "{k}")
	free()
	if got := rewrites.next(); got != "(error) "+exec.ErrHeld {
		t.Errorf("SETRANGE answers %s", got)
	}
	p.frame("SETRANGE", push(1, "-"+exec.ErrHeld))
	c.want("DEL"+strings.Repeat(" {k}a", 3000), "(error) "+exec.ErrHeld)
	c.want("MSET {j} x {k} y", partly)
	c.want("MGET {j} {k}", "(error) "+exec.ErrHeld)
	c.want("STRLEN {j}", "(integer) 1")
	h.End()
	c.want("MGET {j} {k}", "1) \"x\"\n2) (nil)")
	c.want("STRLEN {k}long", "(integer) 1000000")
}

// TestManyClientsWaitForAHold: they take no goroutine each, those who leave are forgotten at once, and
// the others go on in their order.
func TestManyClientsWaitForAHold(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	h := holdPartition(n, "{k}")
	waiting := func() int { return waitingFor(t, n, h) }
	const clients = 26
	before := runtime.NumGoroutine()
	all := make([]*client, clients)
	for i := range all {
		all[i] = dial(t, n.Addr())
		all[i].send(fmt.Sprintf("APPEND {k} %c", 'A'+i))
		eventually(t, "it waits", func() bool { return waiting() == i+1 })
	}
	if more := runtime.NumGoroutine() - before; more > clients/2 {
		t.Errorf("%d clients that wait take %d goroutines", clients, more)
	}
	want := ""
	for i, c := range all {
		if i%2 == 0 {
			if err := c.conn.(*net.TCPConn).SetLinger(0); err != nil { // so that the node notices
				t.Fatal(err)
			}
			c.conn.Close()
		} else {
			want += string(rune('A' + i))
		}
	}
	eventually(t, "half of them have left", func() bool { return waiting() == clients/2 })
	h.End()
	for i := 1; i < clients; i += 2 {
		all[i].next()
	}
	all[1].want("GET {k}", strconv.Quote(want))
}

// TestKeysWaitsForHolds: KEYS, which is in no transaction, shows nothing that one has half done.
func TestKeysWaitsForHolds(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	c.want("SET {j} 1", "OK")
	h := holdPartition(n, "{k}")
	x := h.Lock()
	if err := x.Set([]byte("{k}a"), []byte("1"), engine.TypeString, 0); err != nil {
		t.Fatal(err)
	}
	x.Unlock()
	c.send("KEYS *")
	for range 20 {
		other.want("GET {j}", `"1"`)
	}
	x = h.Lock()
	if err := x.Set([]byte("{k}b"), []byte("1"), engine.TypeString, 0); err != nil {
		t.Fatal(err)
	}
	x.Unlock()
	h.End()
	if got := c.next(); strings.Count(got, "\n") != 2 {
		t.Errorf("KEYS answers %s, want three keys", got)
	}
}

// TestScanStopsBeforeHolds: so does SCAN, which goes on there when the hold has ended.
func TestScanStopsBeforeHolds(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	for i := range 300 {
		c.want(fmt.Sprintf("SET %d 1", i), "OK")
	}
	c.want("SET {k} 1", "OK")
	h := holdPartition(n, "{k}")
	stop := member.CursorAt(int(partitionOf("{k}")), 0)
	scan := func(cursor string) (next string, keys int) {
		reply := strings.Split(c.do("SCAN "+cursor+" COUNT 1000"), "\n")
		return strings.Trim(strings.TrimPrefix(reply[0], "1) "), `"`), len(reply) - 1
	}
	next, before := scan("0")
	if want := string(stop.Append(nil)); next != want {
		t.Fatalf("SCAN stops at %s, want %s", next, want)
	}
	if again, keys := scan(next); again != next || keys > 1 { // one line shows that there is none
		t.Errorf("SCAN goes on at %s with %d keys, want %s", again, keys, next)
	}
	h.End()
	if end, behind := scan(next); end != "0" || before+behind != 301 {
		t.Errorf("SCAN ends at %s with %d and %d keys, want 301", end, before, behind)
	}
}

// keyOfPartition returns a key of the partition.
func keyOfPartition(p uint16) string {
	for i := 0; ; i++ {
		if key := strconv.Itoa(i); partitionOf(key) == p {
			return key
		}
	}
}

// TestScanStopsAtTheStart: it stops before partition 0 as well, though 0 would be the end. In a cluster
// of a lower level nobody would understand the cursor.
func TestScanStopsAtTheStart(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	key := keyOfPartition(0)
	c.want("SET "+key+" 1", "OK")
	h := holdPartition(n, key)
	c.want("SCAN 0 COUNT 100000", fmt.Sprintf("1) \"0\"\n2) 1) %q", key))
	n.SetTable(altered(n.view.Load().Table, func(next *ring.Table) { next.Level = ring.HoldLevel }))
	start := string(member.StopAt(0, 0).Append(nil))
	c.want("SCAN 0 COUNT 100000", fmt.Sprintf("1) %q\n2) (empty array)", start))
	c.want("SCAN "+start+" COUNT 100000", fmt.Sprintf("1) %q\n2) (empty array)", start))
	h.End()
	c.want("SCAN "+start+" COUNT 100000", fmt.Sprintf("1) \"0\"\n2) 1) %q", key))
}

// TestRandomKeyPassesOverHolds: RANDOMKEY shows no key of a transaction that is half done.
// If there is no other one it waits, and a proxy asks again.
func TestRandomKeyPassesOverHolds(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	c.want("MSET {j} 1 {k} 1", "OK")
	h := holdPartition(n, "{k}")
	p := openPipeTo(t, n, 7, 0, "large", 1, 2)
	for range 20 {
		c.want("RANDOMKEY", `"{j}"`)
	}
	if covered, reply := p.each(&allPartitions, "RANDOMKEY"); covered != allPartitions || inText(reply) != "1) (integer) 2\n2) \"{j}\"" {
		t.Errorf("a proxy gets %s", inText(reply))
	}
	c.want("DEL {j}", "(integer) 1")
	c.send("RANDOMKEY")
	eventually(t, "RANDOMKEY waits", func() bool { return waitingFor(t, n, h) == 1 })
	covered, reply := p.each(&allPartitions, "RANDOMKEY")
	if covered.Has(partitionOf("{k}")) || !covered.Has(partitionOf("{j}")) || inText(reply) != "(empty array)" {
		t.Errorf("a proxy gets %s", inText(reply))
	}
	other.want("DBSIZE", "(integer) 1") // counts do not wait
	h.End()
	if got := c.next(); got != `"{k}"` {
		t.Errorf("RANDOMKEY answers %s", got)
	}
}

// TestPipesAreRefusedByHolds: a pipe's command on a held partition is refused, and so are those
// behind it until the proxy says RETRY. Commands on other partitions are executed.
func TestPipesAreRefusedByHolds(t *testing.T) {
	n := startNode(t)
	p := openPipeTo(t, n, 7, 0, "common", 1, 2)
	h := holdPartition(n, "{k}")
	refused := strings.TrimSuffix(string(member.AppendWait(nil, n.view.Load().Epoch())), "\r\n")
	refused = "(error) " + strings.TrimPrefix(refused, "-")
	p.want("SET {k}a 1", refused)
	p.want("GET {j}", "(nil)")
	slot := fmt.Sprint(ring.Slot([]byte("{k}")))
	p.sendArgs([]byte("DUNLIN"), []byte("EXEC"), []byte(slot), []byte("0"), resp.AppendRequest(nil, words(t, "INCR {k}")...))
	if got := p.next(); got != refused {
		t.Errorf("EXEC answers %s", got)
	}
	h.End()
	p.want("SET {k}a 2", refused)
	p.want(fmt.Sprintf("DUNLIN RETRY %d", n.view.Load().Epoch()), "OK")
	p.want("GET {k}a", "(nil)")

	h = holdPartition(n, "{k}")
	p.send("MSET {j}1 x {k}a y {j}2 z")
	done := make(chan string)
	go func() { done <- p.next() }()
	c := dial(t, n.Addr())
	eventually(t, "the first key is set", func() bool { return c.do("GET {j}1") == `"x"` })
	h.End()
	if got := came(t, "the reply", done); got != "OK" {
		t.Errorf("MSET answers %s", got)
	}
	p.want("MGET {k}a {j}2", "1) \"y\"\n2) \"z\"")
}

// TestManyKeys: commands of more keys than are visited at once do what they do with few.
func TestManyKeys(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	for name, c := range map[string]*client{"client": dial(t, n.Addr()), "pipe": openPipeTo(t, n, 7, 0, "large", 1, 2)} {
		const keys = 5*1024 + 1
		mset, mget, del := [][]byte{[]byte("MSET")}, [][]byte{[]byte("MGET")}, [][]byte{[]byte("DEL")}
		for i := range keys {
			key := fmt.Append(nil, name, i)
			mset, mget, del = append(mset, key, fmt.Append(nil, i)), append(mget, key), append(del, key)
		}
		if c.sendArgs(mset...); c.next() != "OK" {
			t.Error("MSET fails")
		}
		c.sendArgs(mget...)
		reply := c.read()
		want := resp.AppendArray(nil, keys)
		for i := range keys {
			want = resp.AppendBulk(want, fmt.Append(nil, i))
		}
		if string(reply) != string(want) {
			t.Errorf("%s: MGET answers %d bytes, want %d", name, len(reply), len(want))
		}
		c.sendArgs(del...)
		if got, want := c.next(), fmt.Sprintf("(integer) %d", keys); got != want {
			t.Errorf("%s: DEL answers %s, want %s", name, got, want)
		}
	}
}

// TestManyKeysOfOneSlot: a command of very many keys in one slot is executed in several runs. Others
// of its loop are served in between, but none on its partition: nobody sees it half done.
func TestManyKeysOfOneSlot(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	const keys = 20 * 1024
	names, pairs := make([][]byte, keys), [][]byte(nil)
	for i := range names {
		names[i] = fmt.Appendf(nil, "{k}%d", i)
		pairs = append(pairs, names[i], []byte("1"))
	}
	run := func(c *client, verb string, args [][]byte, want string) {
		t.Helper()
		holds := n.engine.Stats().Holds
		c.sendArgs(append([][]byte{[]byte(verb)}, args...)...)
		if got := c.next(); !strings.HasPrefix(got, want) {
			t.Errorf("%s answers %.100s, want %s", verb, got, want)
		}
		if n.engine.Stats().Holds != holds+1 {
			t.Errorf("%s did not hold its partition", verb)
		}
	}
	first, last := string(names[0]), string(names[keys-1])
	for name, c := range map[string]*client{"client": dial(t, n.Addr()), "pipe": openPipeTo(t, n, 7, 0, "large", 1, 2)} {
		reader, stop := dial(t, n.Addr()), make(chan struct{})
		var reading sync.WaitGroup
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := reader.do("EXISTS " + first + " " + last); got != "(integer) 0" && got != "(integer) 2" {
					t.Errorf("%s: a reader sees %s of two keys", name, got)
				}
			}
		})
		run(c, "MSETNX", pairs, "(integer) 1")
		run(c, "DEL", names, fmt.Sprintf("(integer) %d", keys))
		run(c, "MSET", pairs, "OK")
		run(c, "MGET", names, "1) \"1\"\n2) \"1\"\n")
		run(c, "UNLINK", names, fmt.Sprintf("(integer) %d", keys))
		close(stop)
		reading.Wait()
	}
}

// TestManySketches: so does a PFCOUNT or PFMERGE of many keys, also in a transaction.
func TestManySketches(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c := dial(t, n.Addr())
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("{k}%d", i))
		c.want(fmt.Sprintf("PFADD {k}%d %d", i, i), "(integer) 1")
	}
	all := strings.Join(names, " ")
	count := c.do("PFCOUNT " + all)
	c.want("PFMERGE {k}all "+all, "OK")
	c.want("PFCOUNT {k}all", count)
	if got := c.exec("PFCOUNT "+all, "PFMERGE {k}again "+all, "PFCOUNT {k}again"); got != "1) "+count+"\n2) OK\n3) "+count {
		t.Errorf("EXEC answers %s, want %s", got, count)
	}
	if got := n.engine.Stats().Holds; got != 3 {
		t.Errorf("the partition was held %d times, want 3", got)
	}
}

// TestPartlyExecuted: a command that has set some keys is not refused when the partition of another one
// moves: its proxy would execute it again.
func TestPartlyExecuted(t *testing.T) {
	n := startNode(t)
	p := openPipeTo(t, n, 7, 0, "common", 1, 2)
	p.want("SET {j}1 0", "OK")
	h := holdPartition(n, "{k}")
	c := dial(t, n.Addr())
	p.send("MSET {j}1 x {k}a y")
	eventually(t, "the first key is set", func() bool { return c.do("GET {j}1") == `"x"` })
	setView(n, sharedView(n, "{k}", "{j}"))
	h.End()
	if got := p.next(); got != "(error) "+errPartly {
		t.Errorf("MSET answers %s", got)
	}

	setView(n, sharedView(n))
	h = holdPartition(n, "{k}")
	p.sendLines("MGET {j}1 {k}a", "PING")
	setView(n, sharedView(n, "{k}"))
	h.End()
	if got := p.next(); !strings.HasPrefix(got, "(error) MOVED") {
		t.Errorf("MGET answers %s", got)
	}
}

// TestFlushWaitsForHolds: FLUSHALL over a pipe leaves no partition out.
func TestFlushWaitsForHolds(t *testing.T) {
	n := startNode(t)
	p := openPipeTo(t, n, 7, 0, "large", 1, 2)
	c := dial(t, n.Addr())
	first := 0 // FLUSHALL drops its partition before that of {k}
	for partitionOf(strconv.Itoa(first)) >= partitionOf("{k}") {
		first++
	}
	c.want(fmt.Sprintf("MSET %d 1 {k} 1", first), "OK")
	h := holdPartition(n, "{k}")
	done := make(chan ring.PartitionSet)
	go func() {
		covered, _ := p.each(&allPartitions, "FLUSHALL")
		done <- covered
	}()
	eventually(t, "the first partition is empty", func() bool { return c.do(fmt.Sprintf("EXISTS %d", first)) == "(integer) 0" })
	h.End()
	if covered := came(t, "the reply", done); covered != allPartitions {
		t.Error("FLUSHALL does not cover everything")
	}
	c.want("DBSIZE", "(integer) 0")
}
