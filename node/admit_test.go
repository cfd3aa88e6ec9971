package node

import (
	"fmt"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// slotOf is the slot of a key as MOVED names it.
func slotOf(key string) uint16 { return ring.Slot([]byte(key)) }

func partitionOf(key string) uint16 { return ring.PartitionOf([]byte(key)) }

// setView has a node obey exactly this, past take-overs.
func setView(n *Node, v *ownership.View) {
	n.tableMu.Lock()
	defer n.tableMu.Unlock()
	n.view.Store(v)
}

// sharedView is a view in which another node owns the partitions of the keys
// given; all other partitions are served here.
func sharedView(n *Node, theirs ...string) *ownership.View {
	other := ring.Member{ID: "b", Boot: 2, State: ring.Serving, Addr: "10.0.0.2:6380", Fingerprint: ring.Fingerprint()}
	t := *tableOf(nil, memberOf(n), other)
	t.Owner = [ring.Partitions]uint16{}
	for _, key := range theirs {
		t.Owner[partitionOf(key)] = 1
	}
	v := &ownership.View{Table: &t, Self: 0}
	for p := range uint16(ring.Partitions) {
		if v.Owns(p) {
			v.Standing[p] = ownership.Serving
		}
	}
	return v
}

const (
	saysNotServed = "(error) CLUSTERDOWN Hash slot not served"
	saysTryAgain  = "(error) TRYAGAIN this node is taking over the partition of that key, try again in a moment"
	saysCrossSlot = "(error) CROSSSLOT Keys in request don't hash to the same slot"
	saysWait      = "(error) DUNLINWAIT 1" // under epoch 1, that of most tests
)

func moved(key string) string {
	return fmt.Sprintf("(error) MOVED %d 10.0.0.2:6380", slotOf(key))
}

func TestWithoutTable(t *testing.T) {
	n := startBare(t)
	c := dial(t, n.Addr())
	c.want("GET k", saysNotServed)
	c.want("MGET k l", saysCrossSlot)
	c.want("MGET {k}1 {k}2", saysNotServed)
	c.want("DBSIZE", saysNotServed)
	c.want("PING", "PONG")
	p := openPipeTo(t, n, 1, 0, "common", 1, 2)
	p.want("GET k", "(error) DUNLINWAIT 0")
	if n.Serving() {
		t.Error("node without a table says that it serves")
	}
}

func TestMoved(t *testing.T) {
	n := startBare(t)
	setView(n, sharedView(n, "theirs"))
	c := dial(t, n.Addr())
	c.want("SET ours 1", "OK")
	c.want("GET theirs", moved("theirs"))
	c.want("SET theirs 1", moved("theirs"))
	c.want("MSETNX {theirs}1 1 {theirs}2 1", moved("theirs"))
	c.want("MSETNX ours 1 theirs 1", saysCrossSlot)

	// Split commands: served when everything is ours, whatever the slots.
	c.want("MGET ours also-ours", "1) \"1\"\n2) (nil)")
	c.want("MGET ours theirs", saysCrossSlot)
	c.want("DEL {theirs}1 {theirs}2", moved("theirs"))

	// A proxy has already split, and wants to know where to go.
	p := openPipeTo(t, n, 1, 0, "common", 1, 2)
	p.want("MGET ours theirs", moved("theirs"))
}

// TestMovedToIPv6 checks that a client gets the address as Redis writes it, and a proxy as it stands
// in the table.
func TestMovedToIPv6(t *testing.T) {
	n := startBare(t)
	v := sharedView(n, "theirs")
	v.Table.Nodes[1].Addr = "[2001:db8::2]:6380"
	setView(n, v)
	slot := slotOf("theirs")
	dial(t, n.Addr()).want("GET theirs", fmt.Sprintf("(error) MOVED %d 2001:db8::2:6380", slot))
	openPipeTo(t, n, 1, 0, "common", 1, 2).want("GET theirs", fmt.Sprintf("(error) MOVED %d [2001:db8::2]:6380", slot))
}

func TestGainedPartitionsWait(t *testing.T) {
	n := startBare(t)
	v := sharedView(n)
	v.Standing[partitionOf("soon")] = ownership.Gained
	setView(n, v)
	c := dial(t, n.Addr())
	c.want("GET soon", saysTryAgain)
	c.want("GET now", "(nil)")
	if n.Serving() {
		t.Error("node with a gained partition says that it serves")
	}
	p := openPipeTo(t, n, 1, 0, "common", 1, 2)
	p.want("GET soon", saysWait)
	p.want("GET now", "(nil)")
}

// TestLatch: what was sent behind a refused command must not overtake it.
func TestLatch(t *testing.T) {
	n := startBare(t)
	v := sharedView(n)
	v.Standing[partitionOf("k")] = ownership.Gained
	setView(n, v)
	p := openPipeTo(t, n, 1, 0, "common", 1, 2)
	p.want("SET k 1", saysWait)
	setView(n, v.WithGained())
	p.want("SET k 2", saysWait)
	p.want("MGET other k", saysWait)
	p.want("GET unrelated", "(nil)")
	p.want("GET other", saysWait) // it was refused with k
	p.want("DUNLIN RETRY 1", "OK")
	p.want("SET k 1", "OK")
	p.want("GET other", "(nil)")

	// Only that pipe sent anything: others are served.
	q := openPipeTo(t, n, 1, 1, "common", 1, 2)
	p.want("GET k", `"1"`)
	q.want("GET k", `"1"`)
}

// TestGivenUpCommands: a proxy gave up what it had sent, and sent it to the next owner; the
// partition has come back since. What arrives late on the old pipe must not undo what was written
// meanwhile.
func TestGivenUpCommands(t *testing.T) {
	n := startBare(t)
	setView(n, sharedView(n))
	old := openPipeTo(t, n, 1, 0, "common", 1, 2)
	old.want("SET k before", "OK")
	v := *sharedView(n)
	table := *v.Table
	table.Epoch = 3 // it was elsewhere in epoch 2
	v.Table = &table
	for p := range v.Began {
		v.Began[p] = 1
	}
	v.Began[partitionOf("k")], v.Newest = 3, 3
	setView(n, &v)
	fresh := openPipeTo(t, n, 1, 1, "common", 1, 2)
	fresh.want("SET k now", "OK")
	old.want("SET k late", "(error) DUNLINWAIT 3")
	old.want("DUNLIN RETRY 1", "OK") // of that time, too
	old.want("SET k late", "(error) DUNLINWAIT 3")
	old.want("MSET other 1 k late", "(error) DUNLINWAIT 3")
	old.sendArgs([]byte("DUNLIN"), []byte("EACH"), allPartitions[:], []byte("FLUSHALL"))
	if got := old.next(); got != "(error) DUNLINWAIT 3" {
		t.Errorf("EACH FLUSHALL from before answers %q", got)
	}
	fresh.want("GET k", `"now"`)
	old.want("DUNLIN RETRY 3", "OK")
	old.want("GET k", `"now"`)
	old.want("GET other", "(nil)")
}

func TestWrongType(t *testing.T) {
	const hash = engine.TypeString + 1
	n := startNode(t)
	c := dial(t, n.Addr())
	const wrong = "(error) WRONGTYPE Operation against a key holding the wrong kind of value"
	f := func(line, want string) {
		t.Helper()
		if err := put(n, "h", "x", hash); err != nil {
			t.Fatal(err)
		}
		c.want(line, want)
	}
	for _, line := range []string{
		"GET h", "GETSET h 1", "GETDEL h", "GETEX h", "STRLEN h", "APPEND h 1", "SETRANGE h 0 1", "GETRANGE h 0 1",
		"INCR h", "INCRBYFLOAT h 1", "SET h 1 GET", "SET h 1 NX GET", "SET h 1 XX GET",
		"SET h 1 IFEQ x", "SET h 1 IFEQ x GET", "DELIFEQ h x", "SET h 1 IFDNE 0123456789abcdef", "DIGEST h", "INCREX h",
		"SETBIT h 0 1", "GETBIT h 0", "BITCOUNT h", "BITCOUNT h 0", "BITPOS h 1", "BITPOS h 0 x", "BITOP OR {h}d h", "BITOP OR h {h}d h",
		"BITFIELD h", "BITFIELD h GET u8 0", "BITFIELD h SET u8 0 1", "BITFIELD_RO h GET u8 0",
	} {
		f(line, wrong)
	}
	f("MGET h", "1) (nil)")
	f("SET h 1", "OK")
	f("SET h 1 XX", "OK")
	f("SETNX h 1", "(integer) 0")
	f("MSETNX h 1", "(integer) 0")
	f("MSETEX 1 h 1 NX", "(integer) 0")
	f("MSETEX 1 h 1 XX", "(integer) 1")
	f("EXISTS h", "(integer) 1")
	f("EXPIRE h 100", "(integer) 1")
	f("DEL h", "(integer) 1")
	f("SCAN 0 COUNT 1000 TYPE string", "1) \"0\"\n2) (empty array)")
}

func TestOutOfMemory(t *testing.T) {
	const oom = "(error) OOM command not allowed when used memory > 'maxmemory'."
	n := startNode(t, func(c *Config) { c.Memory, c.Eviction = 8<<20, "noeviction" })
	c := dial(t, n.Addr())
	value := make([]byte, 100<<10)
	full := false
	for i := range 200 {
		c.sendArgs([]byte("SET"), fmt.Append(nil, "fill:", i), value)
		if full = c.next() == oom; full {
			break
		}
	}
	if !full {
		t.Fatal("20 MB fit into 8 MB")
	}
	c.sendArgs([]byte("SET"), []byte("k"), value, []byte("GET"))
	if got := c.next(); got != oom {
		t.Errorf("SET GET answers %.40s, want one error", got)
	}
	c.sendArgs([]byte("MSET"), []byte("k"), value, []byte("l"), value)
	if got := c.next(); got != oom {
		t.Errorf("MSET answers %.40s, want %s", got, oom)
	}
	c.sendArgs([]byte("SETRANGE"), []byte("new"), []byte("200000"), []byte("x"))
	if got := c.next(); got != oom {
		t.Errorf("SETRANGE answers %.40s, want %s", got, oom)
	}
	c.want("EXISTS new", "(integer) 0")
	c.want("DEL fill:0", "(integer) 1")
	c.want("SET small 1", "OK")
}
