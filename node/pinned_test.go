package node

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/strings"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// slowClient has asked for much and read nothing of it yet.
func slowClient(t *testing.T, n *Node, input []byte) *client {
	t.Helper()
	c := dial(t, n.Addr())
	c.conn.(*net.TCPConn).SetReadBuffer(32 << 10)
	c.sendRaw(input)
	eventually(t, "a pin is held", func() bool { return pinnedBytes(n) > 0 })
	return c
}

// pinnedBytes is how many bytes the outputs of all connections have pinned.
func pinnedBytes(n *Node) int64 { return n.engine.Stats().Pinned }

// TestPinnedReplies: whatever becomes of a key while its value is on its way to a slow reader, the
// reply is the value that was there. The memory comes back afterwards.
func TestPinnedReplies(t *testing.T) {
	size := 20 << 20
	if testing.Short() {
		size = 5 << 20
	}
	v, w := bigValue(size, 1), bigValue(size, 9)
	for _, fate := range []string{"SET k BIG", "SET k small", "GETSET k small", "DEL k", "GETDEL k", "FLUSHALL", "APPEND k more", "SETRANGE k 1000 patch", "PEXPIRE k 1"} {
		n := startNode(t, func(c *Config) { c.Memory = 128 << 20 })
		c := dial(t, n.Addr())
		c.wantBig("SET k BIG", v, "OK")
		c.want("DEL k", "(integer) 1")
		empty := settled(t, n)
		c.wantBig("SET k BIG", v, "OK")
		slow := slowClient(t, n, []byte("GET k\r\nPING\r\n"))
		c.sendRaw(bigRequest(t, fate, w))
		c.read()
		c.want("PING", "PONG")
		for _, want := range []string{"BIG", "PONG"} {
			if got := slow.nextBig(v); got != want {
				t.Errorf("%s: the slow reader gets %.100s, want %s", fate, got, want)
			}
		}
		c.do("FLUSHALL")
		if used := settled(t, n); used > empty+1<<20 || pinnedBytes(n) != 0 {
			t.Errorf("%s: %d bytes are used in the end, %d before, %d pinned", fate, used, empty, pinnedBytes(n))
		}
	}
}

// TestPinnedRepliesKeepOrder: copied and inserted replies leave in the order of their requests.
func TestPinnedRepliesKeepOrder(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 128 << 20 })
	c := dial(t, n.Addr())
	v := bigValue(3<<20, 1)
	c.wantBig("MSET a BIG b BIG", v, "OK")
	c.want("SET small value", "OK")
	var input []byte
	var want []string
	for range 10 {
		for _, exchange := range [][2]string{
			{"GET a", "BIG"}, {"GET small", `"value"`}, {"MGET a small b", "1) BIG\n2) \"value\"\n3) BIG"}, {"SET a BIG GET", "BIG"}, {"GETEX b", "BIG"},
		} {
			input = append(input, bigRequest(t, exchange[0], v)...)
			want = append(want, exchange[1])
		}
	}
	go c.conn.Write(input)
	for i, reply := range want {
		if got := c.nextBig(v); got != reply {
			t.Fatalf("reply %d is %.100s, want %s", i, got, reply)
		}
	}
	// A part of a large value, and one that is small.
	c.send("GETRANGE a 1000 2000000")
	if got, ok := resp.DecodeBulk(c.read()); !ok || !bytes.Equal(got, v[1000:2_000_001]) {
		t.Errorf("GETRANGE answers %d other bytes", len(got))
	}
	c.send("GETRANGE a -3 -1")
	if got, ok := resp.DecodeBulk(c.read()); !ok || !bytes.Equal(got, v[len(v)-3:]) {
		t.Errorf("GETRANGE answers %q", got)
	}
}

// TestRefusedRepliesHoldNothing: a value that was to be answered, but the command fails after all.
func TestRefusedRepliesHoldNothing(t *testing.T) {
	forOneClient(t)
	n := startNode(t, func(c *Config) { c.Memory, c.Eviction = 64<<20, "noeviction" })
	c := dial(t, n.Addr())
	v, tooMuch := bigValue(30<<20, 1), bigValue(40<<20, 1)
	c.wantBig("SET k BIG", v, "OK")
	for range 3 {
		c.wantBig("GETSET k BIG", tooMuch, "(error) "+exec.ErrOOM)
		c.wantBig("SET k BIG GET", tooMuch, "(error) "+exec.ErrOOM)
		c.want("MGET k k k k", "(error) "+strings.ErrReplyTooLarge)
		if pins := pinnedBytes(n); pins != 0 {
			t.Errorf("%d bytes are pinned", pins)
		}
	}
	c.wantBig("GET k", v, "BIG")
}

// TestPinsEndWithTheirConnection: closed by either side, stalled, or with the node.
func TestPinsEndWithTheirConnection(t *testing.T) {
	v := bigValue(30<<20, 1)
	for name, end := range map[string]func(n *Node, c *client){
		"closed":      func(_ *Node, c *client) { c.conn.Close() },
		"reset":       func(_ *Node, c *client) { c.conn.(*net.TCPConn).SetLinger(0); c.conn.Close() },
		"stalled":     func(*Node, *client) {},
		"node closed": func(n *Node, _ *client) { _ = n.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			group, err := netloop.NewGroup(netloop.Config{Loops: 1, Logger: discardLog, Stall: 500 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(group.Close)
			n, err := Start(Config{ID: "a", Boot: 1, Listen: "127.0.0.1:0", Memory: 128 << 20, Shards: 16, Log: discardLog, Group: group, StallLimit: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			n.SetTable(soleTable(n))
			c := dial(t, n.Addr())
			c.wantBig("SET k BIG", v, "OK")
			slow := slowClient(t, n, []byte("GET k\r\nGET k\r\n"))
			if name != "node closed" {
				c.want("DEL k", "(integer) 1")
			}
			end(n, slow)
			eventually(t, "the pin is released", func() bool { return pinnedBytes(n) == 0 })
			if name == "node closed" {
				return
			}
			if used := settled(t, n); used > 2<<20 {
				t.Errorf("%d bytes are used", used)
			}
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHalfClosedAmidPinnedReplies: who sends requests and closes its side gets all replies.
func TestHalfClosedAmidPinnedReplies(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	v := bigValue(5<<20, 1)
	input := append(bigRequest(t, "SET k BIG", v), bytes.Repeat([]byte("GET k\r\n"), 5)...)
	input = append(input, "PING\r\n"...)
	go func() {
		_, err := c.conn.Write(input)
		if err := errors.Join(err, c.conn.(*net.TCPConn).CloseWrite()); err != nil {
			t.Error(err)
		}
	}()
	for i, want := range []string{"OK", "BIG", "BIG", "BIG", "BIG", "BIG", "PONG", "(closed)"} {
		if want == "(closed)" {
			if got := c.next(); got != want {
				t.Errorf("in the end: %s", got)
			}
			break
		}
		if got := c.nextBig(v); got != want {
			t.Fatalf("reply %d is %.100s, want %s", i, got, want)
		}
	}
	eventually(t, "the connection is gone", func() bool { return n.clients.Load() == 0 })
	if pins := pinnedBytes(n); pins != 0 {
		t.Errorf("%d bytes are pinned", pins)
	}
}
