package node

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// slowTransaction queues commands on c that take far longer than a slice, between an INCR and more
// commands, if there are none another INCR.
func slowTransaction(c *client, n *Node, times int, more ...string) {
	if err := put(n, "{k}x", strings.Repeat("abcdefgh", 1400), engine.TypeString); err != nil {
		c.t.Fatal(err)
	}
	if err := put(n, "{k}y", strings.Repeat("hgfedcba", 1400), engine.TypeString); err != nil {
		c.t.Fatal(err)
	}
	c.send("MULTI")
	c.send("INCR {k}a")
	for range times {
		c.send("LCS {k}x {k}y LEN")
	}
	if len(more) == 0 {
		more = []string{"INCR {k}b"}
	}
	c.sendLines(more...)
	for range 2 + times + len(more) {
		c.next()
	}
}

// TestSlowTransaction: while a slow transaction is executed its loop serves others, and nobody sees
// the transaction half done.
func TestSlowTransaction(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c, beside, reader := dial(t, n.Addr()), dial(t, n.Addr()), dial(t, n.Addr())
	slowTransaction(c, n, 30)
	c.send("EXEC")
	var reading sync.WaitGroup
	reading.Go(func() {
		for range 3 {
			got := reader.do("MGET {k}a {k}b")
			for strings.HasPrefix(got, "(error) BUSY") { // a slow machine takes longer than holdPatience
				got = reader.do("MGET {k}a {k}b")
			}
			if got != "1) (nil)\n2) (nil)" && got != "1) \"1\"\n2) \"1\"" {
				t.Errorf("a reader sees %s", got)
			}
		}
	})
	eventually(t, "the transaction holds its partition", func() bool { return len(n.engine.Holds()) == 1 })
	served := 0
	for ; len(n.engine.Holds()) == 1; served++ {
		beside.want("GET {j}", "(nil)")
	}
	if served < 20 {
		t.Errorf("%d commands of others were served meanwhile", served)
	}
	got := c.next()
	if !strings.HasPrefix(got, "1) (integer) 1\n2) (integer) ") || !strings.HasSuffix(got, "32) (integer) 1") {
		t.Errorf("EXEC answers %s", got)
	}
	reading.Wait()
	if n.fenced.Load() {
		t.Error("the node is fenced")
	}
}

// TestHeldTransactionKeepsItsWords: a long word of a transaction that waits for a hold stays where it was
// read.
func TestHeldTransactionKeepsItsWords(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	h := holdPartition(n, "{k}")
	c := dial(t, n.Addr())
	long := bigValue(8<<20, 1)
	c.want("MULTI", "OK")
	c.wantBig("SET {k} BIG", long, "QUEUED")
	c.send("EXEC")
	eventually(t, "it waits", func() bool { return waitingFor(t, n, h) == 1 })
	for range 8 { // in these turns the memory would be freed
		tellLoops(t, n)
	}
	h.End()
	if got := c.next(); got != "1) OK" {
		t.Errorf("EXEC answers %s", got)
	}
	c.wantBig("GET {k}", long, "BIG")
}

// TestLongTransaction: so many short commands take several slices as well.
func TestLongTransaction(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	for name, c := range map[string]*client{"client": dial(t, n.Addr()), "pipe": openPipeTo(t, n, 7, 0, "large", 1, 2)} {
		const commands = 20_000
		key := "{k}" + name
		incr := resp.AppendRequest(nil, []byte("INCR"), []byte(key))
		held := n.engine.Stats().Holds
		if name == "client" {
			c.want("MULTI", "OK")
			for range commands {
				c.sendRaw(incr)
			}
			for range commands {
				c.next()
			}
			c.send("EXEC")
		} else {
			args := [][]byte{[]byte("DUNLIN"), []byte("EXEC"), fmt.Append(nil, ring.Slot([]byte(key))), []byte("0")}
			for range commands {
				args = append(args, incr)
			}
			c.sendArgs(args...)
		}
		reply := c.read()
		count, _, ok := resp.DecodeArray(reply)
		if !ok || count != commands || !strings.HasSuffix(string(reply), ":20000\r\n") {
			t.Errorf("%s: EXEC answers %d replies, the last of them ...%s", name, count, reply[max(0, len(reply)-20):])
		}
		if n.engine.Stats().Holds == held {
			t.Errorf("%s: the transaction never held its partition", name)
		}
		c.want("GET "+key, `"20000"`)
	}
}

// TestTransactionEndsBeforeTheMove: a partition is not handed over while a transaction holds it.
func TestTransactionEndsBeforeTheMove(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c := dial(t, n.Addr())
	slowTransaction(c, n, 10) // far less than holdPatience, with the race detector too
	c.send("EXEC")
	eventually(t, "the transaction holds its partition", func() bool { return len(n.engine.Holds()) == 1 })
	giveAway(n, partitionOf("{k}"))
	if len(n.engine.Holds()) != 0 {
		t.Error("the node obeys a table that takes a held partition from it")
	}
	if got := c.next(); !strings.HasSuffix(got, "12) (integer) 1") {
		t.Errorf("EXEC answers %s", got)
	}
}

// TestTransactionOfFencedNode: a transaction does not go on, and is not answered, while its node is
// fenced. If that lasts, it is given up.
func TestTransactionOfFencedNode(t *testing.T) {
	for _, lasts := range []bool{false, true} {
		n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
		if lasts {
			n.holdPatience = 20 * time.Millisecond
			tellLoops(t, n)
		}
		c, beside := dial(t, n.Addr()), dial(t, n.Addr())
		slowTransaction(c, n, 30)
		c.send("EXEC")
		eventually(t, "the transaction holds its partition", func() bool { return len(n.engine.Holds()) == 1 })
		n.fenced.Store(true)
		if !lasts {
			for range 100 { // the loop turns
				beside.do("PING")
			}
			if len(n.engine.Holds()) == 0 {
				t.Error("the transaction has ended although the node is fenced")
			}
			n.fenced.Store(false)
		}
		got := c.next()
		gaveUp := strings.Contains(got, errHalfway) && strings.Contains(got, errNotReached)
		if gaveUp != lasts || !strings.HasPrefix(got, "1) (integer) 1\n") {
			t.Errorf("fenced for long: %t, EXEC answers %s", lasts, got)
		}
		n.fenced.Store(false)
		beside.want("DEL {k}a", "(integer) 1")
	}
}

// TestTransactionOfClosingNode: a node that closes ends what a transaction holds, also one that waits for
// the end of the fence.
func TestTransactionOfClosingNode(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
		c, beside := dial(t, n.Addr()), dial(t, n.Addr())
		slowTransaction(c, n, 300)
		c.send("EXEC")
		eventually(t, "the transaction holds its partition", func() bool { return len(n.engine.Holds()) == 1 })
		h := n.engine.Holds()[0]
		n.fenced.Store(fenced)
		for range 20 { // the loop turns
			beside.do("PING")
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-h.Ended():
		default:
			t.Errorf("fenced: %t, the partition is still held", fenced)
		}
	}
}

// TestTransactionOfGoneClient: a transaction that has changed something goes on when its client is
// gone, without what only reads. One that has only read ends.
func TestTransactionOfGoneClient(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c, beside := dial(t, n.Addr()), dial(t, n.Addr())
	slowTransaction(c, n, 3000)
	c.send("EXEC")
	eventually(t, "the transaction holds its partition", func() bool { return len(n.engine.Holds()) == 1 })
	c.conn.Close()
	beside.want("MGET {k}a {k}b", "1) \"1\"\n2) \"1\"")

	c = dial(t, n.Addr())
	c.want("MULTI", "OK")
	for range 3000 {
		c.want("LCS {k}x {k}y LEN", "QUEUED")
	}
	c.want("INCR {k}a", "QUEUED")
	c.send("EXEC")
	eventually(t, "the transaction holds its partition", func() bool { return len(n.engine.Holds()) == 1 })
	c.conn.Close()
	beside.want("MGET {k}a {k}b", "1) \"1\"\n2) \"1\"")
}

// TestTransactionsWaitForEachOther: of two slow transactions on one partition, the second begins
// when the first has ended.
func TestTransactionsWaitForEachOther(t *testing.T) {
	const slow = 8
	n := startNode(t)
	n.holdPatience = time.Hour // the last one waits for the others, however busy the machine is
	tellLoops(t, n)
	var all sync.WaitGroup
	for range 3 {
		c := dial(t, n.Addr())
		slowTransaction(c, n, slow)
		all.Go(func() {
			got := c.do("EXEC")
			first, _, _ := strings.Cut(got, "\n")
			if !strings.HasSuffix(got, fmt.Sprintf("%d) %s", slow+2, strings.TrimPrefix(first, "1) "))) {
				t.Errorf("EXEC answers %s", got)
			}
		})
	}
	all.Wait()
}
