package node

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// mSetRequest is MSET of n values of 1,000 bytes, under other keys for each name.
func mSetRequest(name string, n int) []byte {
	args := [][]byte{[]byte("MSET")}
	value := []byte(strings.Repeat("v", 1000))
	for i := range n {
		args = append(args, fmt.Appendf(nil, "%s:%d", name, i), value)
	}
	return resp.AppendRequest(nil, args...)
}

func mGetRequest(name string, n int) []byte {
	args := [][]byte{[]byte("MGET")}
	for i := range n {
		args = append(args, fmt.Appendf(nil, "%s:%d", name, i))
	}
	return resp.AppendRequest(nil, args...)
}

func (n *Node) awaitStarved(t *testing.T, want uint64) {
	t.Helper()
	eventually(t, "connections closed for want of memory are counted", func() bool {
		s, _ := n.Stats()
		return s.Starved == want
	})
}

// TestBuffersEvict: what a connection sends takes the place of keys before it takes
// memory, and leaves it when the connection ends.
func TestBuffersEvict(t *testing.T) {
	forOneClient(t)
	const limit = 32 << 20
	n := startLimited(t, limit, "allkeys")
	c := dial(t, n.Addr())
	c.fillWith(4000, 10_000)
	full := n.engine.Stats()
	floors := full.Outside

	big := dial(t, n.Addr())
	request := mSetRequest("big", 6_000)
	big.sendRaw(request[:len(request)-10])
	eventually(t, "the request is buffered", func() bool { return n.engine.Outside() > floors/2+int64(len(request))-1000 })
	if st := n.engine.Stats(); st.Used > limit || st.Keys > full.Keys*85/100 {
		t.Errorf("beside a buffered request of %d bytes: %+v, before %+v", len(request), st, full)
	}
	c.want("SET small 1", "OK")
	c.want("GET small", `"1"`)
	big.sendRaw(request[len(request)-10:])
	if got := big.next(); got != "OK" {
		t.Errorf("MSET answers %s", got)
	}
	eventually(t, "the buffer is given back", func() bool { return n.engine.Stats().Outside < floors+1<<20 })
	c.fillWith(4000, 10_000)
	if st := n.engine.Stats(); st.Keys < full.Keys*95/100 || st.Used > limit {
		t.Errorf("afterwards %+v, before %+v", st, full)
	}
}

// TestBuffersLeaveHalf: clients that never end their requests take half of the limit at
// most, and then each other's place.
func TestBuffersLeaveHalf(t *testing.T) {
	const limit = 16 << 20
	n := startLimited(t, limit, "allkeys")
	c := dial(t, n.Addr())
	c.fillWith(4000, 5_000)
	request := mSetRequest("big", 1000)
	for range 20 {
		dial(t, n.Addr()).sendRaw(request[:len(request)-10])
	}
	eventually(t, "there is no memory for some", func() bool {
		s, err := n.Stats()
		return err == nil && s.Starved >= 5
	})
	if st := n.engine.Stats(); st.Outside > limit/2 || st.Values < limit/4 {
		t.Errorf("with 20 requests of %d bytes: %+v", len(request), st)
	}
	c.want("SET small 1", "OK")
}

// TestStarvedInput: a request that cannot be taken in is answered as a write would be,
// behind the replies to those before it.
func TestStarvedInput(t *testing.T) {
	n := startLimited(t, 16<<20, "noeviction")
	c := dial(t, n.Addr())
	c.fillWith(1000, 40_000)
	big := dial(t, n.Addr())
	request := mSetRequest("big", 5000)
	go big.conn.Write(append([]byte("PING\r\n"), request...)) // fails when the node has closed
	if got := big.next(); got != "PONG" {
		t.Errorf("PING answers %s", got)
	}
	if got := big.next(); got != oomReply {
		t.Errorf("a request of %d bytes is answered with %s", len(request), got)
	}
	if got := big.next(); got != "(closed)" {
		t.Errorf("behind the last words comes %s", got)
	}
	c.want("STRLEN fill:0", "(integer) 1000")
	big.conn.Close()
	n.awaitStarved(t, 1)
	if evicted := n.engine.Stats().Evicted; evicted > 0 {
		t.Errorf("%d keys were evicted", evicted)
	}
}

// TestStarvedOutput: a reply that there is no memory for ends its connection, and
// nothing behind that request is executed.
func TestStarvedOutput(t *testing.T) {
	n := startLimited(t, 16<<20, "noeviction")
	c := dial(t, n.Addr())
	stored := c.fillWith(1000, 40_000)
	big := dial(t, n.Addr())
	big.sendRaw(append(mGetRequest("fill", min(stored/2, listFrom-1)), "SET behind 1\r\n"...))
	if got := big.next(); got != "(closed)" {
		t.Errorf("the reply is %.100s", got)
	}
	c.want("EXISTS behind", "(integer) 0")
	c.want("STRLEN fill:0", "(integer) 1000")
	n.awaitStarved(t, 1)
}

// TestFullNodeAnswersMany: under noeviction the data may take all but what connections
// need to be served.
func TestFullNodeAnswersMany(t *testing.T) {
	n := startLimited(t, 32<<20, "noeviction")
	dial(t, n.Addr()).fillWith(1000, 40_000)
	var all []*client
	for range 200 {
		all = append(all, dial(t, n.Addr()))
	}
	for i, c := range all {
		c.sendRaw([]byte(strings.Repeat(fmt.Sprintf("STRLEN fill:%d\r\n", i), 20)))
	}
	for _, c := range all {
		for range 20 {
			if got := c.next(); got != "(integer) 1000" {
				t.Fatalf("STRLEN answers %s", got)
			}
		}
	}
	for i, c := range all {
		c.want(fmt.Sprintf("EXPIRE fill:%d 100", i), "(integer) 1")
		c.want(fmt.Sprintf("DEL fill:%d", i), "(integer) 1")
	}
	n.awaitStarved(t, 0)
}

// TestLongRequestIsCounted: of a request of many keys only the bytes are kept until it has come.
func TestLongRequestIsCounted(t *testing.T) {
	forOneClient(t)
	n := startLimited(t, 64<<20, "allkeys")
	before := n.engine.Stats().Outside
	c := dial(t, n.Addr())
	const keys = 500_000
	request := []byte("*" + fmt.Sprint(keys+1) + "\r\n$6\r\nEXISTS\r\n" + strings.Repeat("$1\r\nk\r\n", keys))
	c.sendRaw(request[:len(request)-5])
	eventually(t, "the request is counted", func() bool {
		counted := n.engine.Stats().Outside - before
		return counted > int64(len(request))-1<<18 && counted < int64(len(request))+1<<18 // accounts take chunks
	})
	c.sendRaw(request[len(request)-5:])
	if got := c.next(); got != "(integer) 0" {
		t.Errorf("EXISTS answers %s", got)
	}
	eventually(t, "they are given back", func() bool { return n.engine.Stats().Outside < before+1<<20 })
}

// TestKeysIsCharged: what KEYS gathers takes memory like anything else.
func TestKeysIsCharged(t *testing.T) {
	forOneClient(t)
	n := startLimited(t, 16<<20, "noeviction")
	c := dial(t, n.Addr())
	long := strings.Repeat("k", 1000)
	stored := 0
	for c.do(fmt.Sprintf("SET %s%d 1", long, stored)) == "OK" {
		stored++
	}
	for i := 2; i < stored/3; i++ { // room for one key, and not for those that are left
		c.want(fmt.Sprintf("DEL %s%d", long, i), "(integer) 1")
	}
	before := n.engine.Stats().Outside
	c.want("KEYS *", oomReply)
	eventually(t, "one key finds the memory that the others had", func() bool {
		return c.do("KEYS *k1") == "1) \""+long+"1\""
	})
	c.want("KEYS nothing", "(empty array)")
	eventually(t, "what was gathered is given back", func() bool { return n.engine.Stats().Outside == before })
}

// TestLongKeys: the limit is inclusive, and named to who goes beyond it.
func TestLongKeys(t *testing.T) {
	c := dial(t, startNode(t).Addr())
	longest := strings.Repeat("k", engine.MaxKeyLen)
	check := func(key, line, want string) {
		t.Helper()
		var args [][]byte
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(strings.ReplaceAll(word, "KEY", key)))
		}
		c.sendArgs(args...)
		if got := c.next(); got != want {
			t.Errorf("%s with a key of %d bytes: %.100s, want %.100s", line, len(key), got, want)
		}
	}
	check(longest, "SET KEY v", "OK")
	check(longest, "GET KEY", `"v"`)
	check(longest, "APPEND KEY w", "(integer) 2")
	check(longest, "EXPIRE KEY 100", "(integer) 1")
	check(longest, "SCAN 0 COUNT 1000", "1) \"0\"\n2) 1) \""+longest+"\"")
	check(longest, "DEL KEY", "(integer) 1")
	longer := longest + "k"
	for _, line := range []string{"SET KEY v", "SETNX KEY v", "GETSET KEY v", "APPEND KEY v", "SETRANGE KEY 1 v", "INCR KEY", "SETEX KEY 10 v", "MSET a 1 KEY v"} {
		check(longer, line, "(error) ERR key exceeds maximum allowed size of 65535 bytes")
	}
	check(longer, "GET KEY", "(nil)")
	check(longer, "DEL KEY", "(integer) 0")
	check(longer, "EXPIRE KEY 10", "(integer) 0")
	c.want("PING", "PONG")
}

// TestGarbageStaysCharged: what commands and connections give back of the Go heap stays charged until
// the runtime has a lower limit, and is used again meanwhile.
func TestGarbageStaysCharged(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	heap := heapBudget{n}
	none := n.engine.Outside()
	outside := func(what string, want int64) {
		t.Helper()
		if got := n.engine.Outside() - none; got != want {
			t.Errorf("%s: %d bytes are charged, want %d", what, got, want)
		}
	}
	if !heap.Charge(1000) {
		t.Fatal("there is no memory")
	}
	before, err := n.Stats()
	if err != nil {
		t.Fatal(err)
	}
	n.KeepHeap(5000)
	outside("the runtime may use more", 5000)
	after, err := n.Stats()
	if err != nil {
		t.Fatal(err)
	}
	classes := map[string]int64{}
	after.MemoryClasses(func(class string, bytes int64) { classes[class] = bytes })
	if classes["garbage"] != 4000 || classes["buffers"] != before.connBytes() {
		t.Errorf("%d bytes are garbage and %d connections', want 4000 and %d",
			classes["garbage"], classes["buffers"], before.connBytes())
	}
	if !heap.Charge(3000) {
		t.Fatal("there is no memory")
	}
	outside("a command uses it", 5000)
	heap.Refund(3000)
	heap.Refund(1000)
	outside("commands have ended", 5000)
	if !heap.Charge(7000) {
		t.Fatal("there is no memory")
	}
	outside("another one needs more", 7000)
	heap.Refund(7000)
	outside("it has ended", 5000)
	n.KeepHeap(1000)
	outside("the runtime has a lower limit", 1000)
	n.KeepHeap(0)
	outside("it has none of this", 0)

	c := dial(t, n.Addr())
	c.want("MULTI", "OK")
	unqueued := n.conns.Load()
	n.KeepHeap(1 << 20)
	for range 100 {
		c.want("SET {k} "+strings.Repeat("v", 1000), "QUEUED")
	}
	if queued := n.conns.Load() - unqueued; queued < 100_000 || n.garbage.size.Load() > 1<<20-queued {
		t.Errorf("%d bytes are queued, and %d are garbage", queued, n.garbage.size.Load())
	}
	c.want("DISCARD", "OK")
	c.want("PING", "PONG")
	// What lies in the floor of a loop's connections is charged whether it is used or not.
	least := 1<<20 - unqueued - connFloor(n.cfg.Memory, 1)
	if garbage := n.garbage.size.Load(); n.conns.Load() != unqueued || garbage < least {
		t.Errorf("%d bytes are used and %d are garbage, want %d and at least %d",
			n.conns.Load(), garbage, unqueued, least)
	}
}

// TestKeepHeapTakesWhatThereIs: a node that has less than the heap needs keeps that.
func TestKeepHeapTakesWhatThereIs(t *testing.T) {
	n := startLimited(t, 16<<20, "noeviction")
	dial(t, n.Addr()).fillWith(1000, 4000)
	if n.KeepHeap(n.MaxMemory()) {
		t.Error("there was as much as the limit")
	}
	if free := n.MaxMemory() - n.engine.Used(); free > 3<<20 { // of which the shards' own pages are most
		t.Errorf("%d bytes are free, and %d are kept", free, n.garbage.size.Load())
	}
	if !n.KeepHeap(1<<20) || n.garbage.size.Load() > 1<<20 {
		t.Errorf("%d bytes are kept, want a megabyte", n.garbage.size.Load())
	}
}

// TestConnectionsUseGarbage: in a full node, what connections have in the Go heap takes the place of
// garbage. Without garbage there is no memory for it.
func TestConnectionsUseGarbage(t *testing.T) {
	n := startLimited(t, 16<<20, "noeviction")
	n.KeepHeap(n.HeapMemory() + 4<<20)
	dial(t, n.Addr()).fillWith(1000, 40_000)
	b, full, garbage := connBudget{n}, n.engine.Outside(), n.garbage.size.Load()
	if garbage < 3<<20 || b.ChargeHeap(2*garbage, 2*garbage) || n.garbage.size.Load() != garbage {
		t.Errorf("of %d bytes of garbage %d are left, or twice as many were there", garbage, n.garbage.size.Load())
	}
	if !b.ChargeHeap(garbage/2, garbage/2) || !b.ChargeHeap(garbage/4, 0) {
		t.Fatal("there is no memory, but garbage")
	}
	// The quarter was charged as something else: that is the engine's again.
	if got, left := full-n.engine.Outside(), n.garbage.size.Load(); got != garbage/4 || left != garbage-garbage/2-garbage/4 {
		t.Errorf("%d bytes of %d were given back, and %d are garbage", got, garbage, left)
	}
}

// TestGarbageIsNoConnections: while the node begins and ceases to keep memory for the Go heap, connections
// do not seem to have it.
func TestGarbageIsNoConnections(t *testing.T) {
	n := startNode(t)
	share := n.MaxMemory() / connShare
	overhead, refused := n.overhead.Load(), 0
	var done atomic.Bool
	go func() {
		defer done.Store(true)
		for range 20_000 {
			n.KeepHeap(share / 2)
			n.SetOverhead(overhead + share/2)
			n.KeepHeap(0)
			n.SetOverhead(overhead)
		}
	}()
	for !done.Load() {
		if !(connBudget{n}).has(share / 2) {
			refused++
		}
	}
	if refused > 0 {
		t.Errorf("connections were refused memory %d times", refused)
	}
}

// The classes of memory add up to what is used, with big collections too.
func TestMemoryClasses(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	for i := range 300 {
		c.want(fmt.Sprintf("HSET h f:%d %0*d", i, 100+i%50, i), "(integer) 1")
		c.want(fmt.Sprintf("RPUSH l %0*d", 100+i%50, i), fmt.Sprintf("(integer) %d", i+1))
	}
	s, err := n.Stats()
	if err != nil {
		t.Fatal(err)
	}
	sum, parts := int64(0), int64(0)
	s.MemoryClasses(func(class string, bytes int64) {
		if sum += bytes; class == "parts" {
			parts = bytes
		}
	})
	if sum != s.Engine.Used || parts < 600*100 {
		t.Errorf("the classes have %d bytes of %d, parts %d", sum, s.Engine.Used, parts)
	}
}
