package node

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/glob"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// gatherRig is a node with many values of 4,000 bytes, among them some that are pinned.
type gatherRig struct {
	node        *Node
	names       [][]byte
	mget, reply []byte // a request for all of them, and its reply
}

func newGatherRig(t testing.TB, keys int) *gatherRig {
	rig := &gatherRig{node: startNode(t, func(c *Config) { c.Memory, c.Group = 128<<20, newGroup(t, 1) })}
	rig.reply = resp.AppendArray(nil, keys)
	for i := range keys {
		name, value := fmt.Sprint("{k}", i), bytes.Repeat(fmt.Appendf(nil, "%07d,", i), 500)
		if i%400 == 100 {
			value = bytes.Repeat(value, 20)
		}
		if err := put(rig.node, name, string(value), engine.TypeString); err != nil {
			t.Fatal(err)
		}
		rig.names = append(rig.names, []byte(name))
		rig.reply = resp.AppendBulk(rig.reply, value)
	}
	rig.mget = resp.AppendRequest(nil, append([][]byte{[]byte("MGET")}, rig.names...)...)
	return rig
}

// settled waits until nothing of a reply is left.
func (rig *gatherRig) settled(t testing.TB) {
	t.Helper()
	eventually(t, "all replies are freed", func() bool {
		st := rig.node.engine.Stats()
		return rig.node.engine.Replies() == 0 && st.Staged == 0 && st.Pinned == 0
	})
}

// TestGatheredReplies: a reply that several runs make is the same as that of one, and leaves nothing
// behind.
func TestGatheredReplies(t *testing.T) {
	rig := newGatherRig(t, 1200)
	check := func(how string, got []byte, want ...[]byte) {
		t.Helper()
		if want := slices.Concat(want...); !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, want %d, which they are not", how, len(got), len(want))
		}
		rig.settled(t)
	}
	c := dial(t, rig.node.Addr())
	c.sendRaw(rig.mget)
	check("client", c.read(), rig.reply)
	c.sendRaw(slices.Concat(rig.mget, rig.mget, []byte("PING\r\n")))
	if got := c.read(); !bytes.Equal(got, rig.reply) {
		t.Errorf("first of two: %d bytes, want %d", len(got), len(rig.reply))
	}
	check("second", c.read(), rig.reply)
	check("behind them", c.read(), []byte("+PONG\r\n"))

	p := laterPipe(t, rig.node, "large", 1)
	p.sendRaw(rig.mget)
	p.frame("pipe", "-DUNLINLATER 1")
	check("pipe", p.read(), []byte(push(1, "")), rig.reply)
	incr := resp.AppendRequest(nil, []byte("INCR"), []byte("{k}n"))
	p.sendArgs(append(execArgs(t, nil), incr, rig.mget, incr, rig.mget)...)
	p.frame("EXEC", "-DUNLINLATER 2")
	check("EXEC", p.read(), []byte(push(2, "*4\r\n:1\r\n")), rig.reply, []byte(":2\r\n"), rig.reply)

	c.send("MULTI")
	c.sendRaw(slices.Concat(rig.mget, rig.mget))
	c.send("EXEC")
	for range 3 {
		c.read()
	}
	check("MULTI", c.read(), []byte("*2\r\n"), rig.reply, rig.reply)

	c.send("KEYS *")
	reply := c.read()
	n, header, _ := resp.DecodeArray(reply)
	found := strings.Split(string(reply[header:]), "\r\n")
	if n != len(rig.names)+1 || len(found) != 2*n+1 {
		t.Errorf("KEYS answers %d keys in %d lines, want %d", n, len(found), len(rig.names)+1)
	}
	rig.settled(t)
}

// TestGatheredReplyOfGoneClient: the end of a connection frees what its command has gathered.
func TestGatheredReplyOfGoneClient(t *testing.T) {
	rig := newGatherRig(t, 4000)
	c := dial(t, rig.node.Addr())
	c.sendRaw(slices.Concat(rig.mget, rig.mget)) // more than the system's buffers take
	eventually(t, "the reply is there", func() bool { return rig.node.engine.Replies() > 8<<20 })
	c.conn.Close()
	rig.settled(t)
}

// TestGatheredRepliesLeaveNoGarbage: a steady stream of them takes little of the Go heap.
func TestGatheredRepliesLeaveNoGarbage(t *testing.T) {
	rig := newGatherRig(t, 1000)
	c := dial(t, rig.node.Addr())
	all := make([]byte, len(rig.reply))
	once := func() {
		c.sendRaw(rig.mget)
		if _, err := io.ReadFull(c.conn, all); err != nil {
			t.Fatal(err)
		}
	}
	once()
	const times = 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		once()
	}
	runtime.ReadMemStats(&after)
	// What is left is a copy of the 1,000 arguments.
	if each := int(after.TotalAlloc-before.TotalAlloc) / times; each > len(rig.reply)/16 {
		t.Errorf("a reply of %d bytes takes %d of the Go heap", len(rig.reply), each)
	}
}

// TestRepliesWithoutMemory: connections have half of the memory, for replies too. A command that reads
// is refused, and of what was executed only the reply is lost.
func TestRepliesWithoutMemory(t *testing.T) {
	rig := newGatherRig(t, 200)
	var taken exec.Gathered
	heap := heapBudget{rig.node}
	for piece := make([]byte, engine.ReplyPiece); taken.Append(heap, piece); {
		if most := rig.node.MaxMemory() / connShare; rig.node.engine.Replies() > most {
			t.Fatalf("replies take more than %d bytes", most)
		}
	}
	if got := rig.node.engine.Replies(); got != 0 {
		t.Errorf("a lost reply keeps %d bytes", got)
	}
	var held []engine.Staged
	for {
		piece, err := heap.StageReply(engine.ReplyPiece)
		if err != nil {
			break
		}
		held = append(held, piece)
	}
	c, p := dial(t, rig.node.Addr()), laterPipe(t, rig.node, "large", 1)
	c.sendRaw(rig.mget)
	c.frame("MGET", "-"+exec.ErrOOM)
	incr := resp.AppendRequest(nil, []byte("INCR"), []byte("{k}n"))
	p.sendArgs(append(execArgs(t, nil), incr, rig.mget, rig.mget, incr)...)
	p.frame("EXEC", "-DUNLINLATER 1")
	p.frame("EXEC", push(1, "-"+exec.ErrReplyLost))
	c.want("GET {k}n", `"2"`)
	for i := range held {
		held[i].Discard()
	}
	c.sendRaw(rig.mget)
	if got := c.read(); !bytes.Equal(got, rig.reply) {
		t.Errorf("MGET answers %d bytes, want %d", len(got), len(rig.reply))
	}
	rig.settled(t)
}

// TestLongPatternIsNotCopied: a pattern of KEYS that is too long costs the Go heap nothing.
func TestLongPatternIsNotCopied(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	const long = 1 << 20 // of which the request may have no more
	request := resp.AppendRequest(nil, []byte("KEYS"), make([]byte, long))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.sendRaw(request)
	c.frame("KEYS", "-"+glob.ErrPattern.Error())
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > long/2 {
		t.Errorf("a pattern of %d bytes takes %d of the Go heap", long, took)
	}
}
