package node

import (
	"bytes"
	"fmt"
	"net"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// bigValue is a value of n bytes that looks like no other piece of itself.
func bigValue(n int, seed byte) []byte {
	var rows [256][256]byte // the race detector watches each byte that is made, but not each one that is copied
	for x := range rows {
		for j := range rows[x] {
			rows[x][j] = byte(j^x) + seed
		}
	}
	b := make([]byte, n)
	for at := 0; at < n; at += len(rows) {
		copy(b[at:], rows[byte(at>>8^at>>16)][:])
	}
	return b
}

// bigRequest encodes a line in which the word BIG stands for value, which may be anything.
func bigRequest(t *testing.T, line string, value []byte) []byte {
	t.Helper()
	args := words(t, line)
	for i, arg := range args {
		if string(arg) == "BIG" {
			args[i] = value
		}
	}
	return resp.AppendRequest(nil, args...)
}

// wantBig sends such a request and compares the reply, in which the value is BIG as well.
func (c *client) wantBig(line string, value []byte, want string) {
	c.t.Helper()
	c.sendRaw(bigRequest(c.t.(*testing.T), line, value))
	if got := c.nextBig(value); got != want {
		c.t.Errorf("%s answers %.200s, want %s", line, got, want)
	}
}

func (c *client) nextBig(value []byte) string {
	c.t.Helper()
	reply := c.read()
	if got, ok := resp.DecodeBulk(reply); ok && bytes.Equal(got, value) {
		return "BIG"
	}
	if len(reply) > len(value) {
		reply = bytes.ReplaceAll(reply, resp.AppendBulk(nil, value), []byte("+BIG\r\n"))
	}
	return conversation.Text(reply)
}

// settled is what the engine uses when all that is gone has been given back. It may differ by a few
// of the 16 bytes that each large value takes which is there, or not yet given back, at the same
// time.
func settled(t *testing.T, n *Node) (used int64) {
	t.Helper()
	eventually(t, "memory is given back", func() bool {
		st := n.engine.Stats()
		used = st.Used - st.Outside
		return st.Leaving == 0 && st.Staged == 0
	})
	return used
}

// TestUploads: a large value is a value like any other, in every command and wherever its
// request is cut.
func TestUploads(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	for _, size := range []int{uploadFrom - 1, uploadFrom, 300_000, 5 << 20} {
		v := bigValue(size, byte(size))
		c := dial(t, n.Addr())
		c.want("FLUSHALL", "OK")
		c.wantBig("SET k BIG", v, "OK")
		c.wantBig("GET k", v, "BIG")
		c.wantBig("SET k BIG NX", v, "(nil)")
		c.wantBig("SET k BIG XX EX 100", v, "OK")
		c.wantTTL("k", 100)
		c.wantBig("SET k BIG KEEPTTL GET", v, "BIG")
		c.wantTTL("k", 100)
		c.wantBig("SETNX k BIG", v, "(integer) 0")
		c.wantBig("SETNX l BIG", v, "(integer) 1")
		c.wantBig("GETSET l BIG", v, "BIG")
		c.wantBig("SETEX l 50 BIG", v, "OK")
		c.wantTTL("l", 50)
		c.wantBig("PSETEX m 70000 BIG", v, "OK")
		c.wantTTL("m", 70)
		c.wantBig("MSET a BIG b small c BIG", v, "OK")
		c.wantBig("MGET c a b none", v, "1) BIG\n2) BIG\n3) \"small\"\n4) (nil)")
		c.wantBig("MSETNX {a}1 BIG {a}2 2 {a}3 BIG", v, "(integer) 1")
		c.wantBig("MSETNX {a}1 BIG {a}4 4", v, "(integer) 0")
		c.wantBig("GETRANGE {a}3 0 -1", v, "BIG")
		c.want("STRLEN {a}3", fmt.Sprintf("(integer) %d", size))
		c.want("EXISTS {a}4", "(integer) 0")
		c.wantBig("SET k BIG EXAT 1", v, "OK") // in the past
		c.want("EXISTS k", "(integer) 0")
		if size < 1<<20 {
			c.wantBig("ECHO BIG", v, "BIG") // gathered
		}
		c.wantBig("GETDEL c", v, "BIG")
		c.wantBig("GETEX a EX 10", v, "BIG")
	}
}

// TestUploadsInAPipeline: replies come in order, whatever the pieces in which the requests do.
func TestUploadsInAPipeline(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c := dial(t, n.Addr())
	v := bigValue(uploadFrom+1000, 3)
	var input []byte
	for _, line := range []string{"PING", "SET k BIG EX 100", "GET k", "SET l small", "MSET a BIG b 1 c BIG", "GET a", "INCR b", "GET l"} {
		input = append(input, bigRequest(t, line, v)...)
	}
	for _, pieces := range []int{1, 2, 7, 301} {
		for i := range pieces {
			c.sendRaw(input[len(input)*i/pieces : len(input)*(i+1)/pieces])
			if i%10 == 0 { // or the system would join them
				n.cfg.Group.Each(func(*netloop.Loop) {})
			}
		}
		for _, want := range []string{"PONG", "OK", "BIG", "OK", "OK", "BIG", "(integer) 2", `"small"`} {
			if got := c.nextBig(v); got != want {
				t.Fatalf("in %d pieces: got %.200s, want %s", pieces, got, want)
			}
		}
	}
}

// TestRefusedUploads: the refusal is the reply, nothing is stored, and the memory comes back.
func TestRefusedUploads(t *testing.T) {
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	n := startBare(t, func(c *Config) { c.Memory, c.Eviction = 64<<20, "noeviction" })
	setView(n, sharedView(n, "theirs"))
	if err := put(n, "hash", "v", engine.TypeHash); err != nil {
		t.Fatal(err)
	}
	c, p := dial(t, n.Addr()), openPipeTo(t, n, 1, 0, "large", 1, 2)
	// The second one is refused because of others that are stored, the third one always.
	v, long, longest := bigValue(1<<20, 1), bigValue(10<<20, 1), bigValue(62<<20, 1)
	c.wantBig("SET there BIG", long, "OK")
	before := int64(0)
	oom := "(error) " + exec.ErrOOM
	for round := range rounds {
		c.wantBig("GETSET hash BIG", v, "(error) "+exec.ErrWrongType)
		c.wantBig("SET hash BIG GET", v, "(error) "+exec.ErrWrongType)
		c.wantBig("SET k BIG FOO", v, "(error) "+exec.ErrSyntax)
		c.wantBig("SET k BIG EX BIG", v, "(error) "+exec.ErrNotInteger)
		c.wantBig("SET k BIG BIG", v, "(error) "+exec.ErrSyntax)
		c.wantBig("SET k v EX BIG", v, "(error) "+exec.ErrNotInteger)
		c.wantBig("MSETEX 1 k v EX BIG", v, "(error) "+exec.ErrNotInteger)
		c.wantBig("SET there BIG IFDEQ BIG", v, "(error) ERR must be exactly 16 hexadecimal characters")
		c.wantBig("SETEX k -1 BIG", v, "(error) ERR invalid expire time in 'setex' command")
		c.wantBig("SETEX k BIG BIG", v, "(error) "+exec.ErrNotInteger)
		c.wantBig("MSET a BIG b", v, "(error) ERR wrong number of arguments for 'mset' command")
		c.wantBig("SET theirs BIG", v, moved("theirs"))
		c.wantBig("MSET {theirs}1 BIG {theirs}2 BIG", v, moved("theirs"))
		c.wantBig("MSETNX ours 1 theirs BIG", v, saysCrossSlot)
		p.want("DUNLIN RETRY 1", "OK")
		p.wantBig("SET theirs BIG", v, moved("theirs"))
		p.wantBig("SET theirs BIG", v, saysWait) // like all that may be behind a refused one
		c.sendArgs([]byte("SET"), bytes.Repeat([]byte("k"), 65_536), v)
		if got := c.next(); got != "(error) "+exec.ErrKeyTooLong {
			t.Errorf("a key of 64 KiB: %s", got)
		}
		c.wantBig("SET k BIG", longest, "(error) "+exec.NeverFits(64<<20))
		c.wantBig("SETNX there BIG", longest, "(integer) 0")
		c.wantBig("MSET a BIG b BIG c BIG d BIG e BIG f BIG", long, oom) // what came first is stored
		c.do("DEL a b c d e f")
		c.want("PING", "PONG")
		used := settled(t, n)
		if round > 0 && used > before+1000 {
			t.Fatalf("%d bytes are used, %d before", used, before)
		}
		before = used // in the first round, shards took their pages
	}
	if got := c.do("DBSIZE"); got != "(integer) 2" {
		t.Errorf("%s keys are there", got)
	}
}

// TestUploadServedTooLate: the value was thrown away, so the command must not be executed
// when its partition is served at last. A pipe is told to wait until DUNLIN RETRY.
func TestUploadServedTooLate(t *testing.T) {
	n := startBare(t)
	v := bigValue(1<<20, 1)
	clients := map[*client]string{dial(t, n.Addr()): saysTryAgain, openPipeTo(t, n, 1, 0, "large", 1, 2): saysWait}
	for c, want := range clients {
		setView(n, sharedView(n, "k"))
		input := bigRequest(t, "SET k BIG", v)
		c.sendRaw(input[:len(input)/2])
		eventually(t, "it has begun", func() bool { return uploading(t, n) == 1 })
		setView(n, sharedView(n))
		c.sendRaw(append(input[len(input)/2:], "GET k\r\n"...))
		if got := c.next(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if want == saysWait {
			c.next()
			c.want("DUNLIN RETRY 1", "OK")
			c.want("GET k", "(nil)")
		} else if got := c.next(); got != "(nil)" {
			t.Errorf("GET answers %.100s", got)
		}
	}
}

// uploading is how many connections are in the middle of a large value.
func uploading(t *testing.T, n *Node) (count int) {
	t.Helper()
	counts := make([]int, len(n.workers))
	if err := n.cfg.Group.Each(func(l *netloop.Loop) {
		for cn := range n.workers[l.Index()].conns {
			if cn.Upload != nil {
				counts[l.Index()]++
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	return sum(counts)
}

// TestUploadCutOff: whatever ends a connection in the middle of a large value, nothing of it
// is stored, what was there stays, and every byte comes back.
func TestUploadCutOff(t *testing.T) {
	n := startNode(t)
	v := bigValue(20<<20, 1)
	old := bigValue(1<<20, 2)
	dial(t, n.Addr()).wantBig("SET k BIG", v, "OK")
	dial(t, n.Addr()).wantBig("SET k BIG", old, "OK")
	before := settled(t, n)
	for name, end := range map[string]func(c *client){
		"closed":      func(c *client) { c.conn.Close() },
		"reset":       func(c *client) { c.conn.(*net.TCPConn).SetLinger(0); c.conn.Close() },
		"half closed": func(c *client) { c.conn.(*net.TCPConn).CloseWrite() },
		"garbage":     func(c *client) { c.sendRaw(append(make([]byte, 10<<20), "xxx"...)) },
		"stalled": func(*client) {
			n.cfg.Group.Each(func(l *netloop.Loop) {
				for cn := range n.workers[l.Index()].conns {
					cn.State.LastUsed -= 2 * uploadPatience
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, n.Addr())
			input := bigRequest(t, "SET k BIG", v)
			c.sendRaw(input[:len(input)-10<<20-2]) // half of it
			eventually(t, "half of it is there", func() bool { return n.engine.Stats().Staged > 10<<20 })
			end(c)
			eventually(t, "it is given up", func() bool { return uploading(t, n) == 0 })
			if used := settled(t, n); used > before+1000 {
				t.Errorf("%d bytes are used, %d before", used, before)
			}
			dial(t, n.Addr()).wantBig("GET k", old, "BIG")
		})
	}
}

// TestUploadIsNotGathered: the connection keeps nothing of a large value.
func TestUploadIsNotGathered(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c := dial(t, n.Addr())
	v := bigValue(30<<20, 1)
	input := bigRequest(t, "SET k BIG", v)
	for len(input) > 0 {
		piece := min(len(input), 1<<20)
		c.sendRaw(input[:piece])
		input = input[piece:]
		n.cfg.Group.Each(func(l *netloop.Loop) {
			if held := l.Stats().PooledBytes; held > 8<<20 {
				t.Errorf("the loop's buffers have %d bytes", held)
			}
		})
		if s, err := n.Stats(); err != nil || s.InBuffer > 512<<10 {
			t.Fatalf("a buffer has %d bytes, %v", s.InBuffer, err)
		}
	}
	if got := c.next(); got != "OK" {
		t.Error(got)
	}
	if got := n.engine.Stats(); got.Used > 31<<20+got.Fixed+got.Outside {
		t.Errorf("%d bytes are used for a value of 30 MiB", got.Used)
	}
}

// TestDrainWaitsForAnUpload: the middle of a value is not between two requests.
func TestDrainWaitsForAnUpload(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	v := bigValue(1<<20, 1)
	input := bigRequest(t, "SET k BIG", v)
	c.sendRaw(input[:500_000])
	eventually(t, "it has begun", func() bool { return uploading(t, n) == 1 })
	drained := make(chan error)
	go func() { drained <- n.Drain(t.Context()) }()
	eventually(t, "no more is accepted", func() bool {
		conn, err := net.Dial("tcp", n.Addr())
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	c.sendRaw(input[500_000:])
	if got := c.next(); got != "OK" {
		t.Errorf("SET answers %s", got)
	}
	if err := came(t, "the end of Drain", drained); err != nil {
		t.Error(err)
	}
}

// TestUploadsEvict: with more large values than memory, the newest are there.
func TestUploadsEvict(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	v := bigValue(20<<20, 1)
	for i := range 6 {
		key := fmt.Sprint("k", i)
		c.wantBig("SET "+key+" BIG", v, "OK")
		c.wantBig("GET "+key, v, "BIG")
	}
	if st := n.engine.Stats(); st.Used > st.Max || st.Evicted < 3 {
		t.Errorf("%d bytes are used of %d, %d values evicted", st.Used, st.Max, st.Evicted)
	}
	// None could ever make room for this one, so nothing is evicted for it.
	keys := n.engine.Stats().Keys
	c.wantBig("SET k BIG", bigValue(70<<20, 1), "(error) "+exec.NeverFits(64<<20))
	if now := n.engine.Stats().Keys; now != keys {
		t.Errorf("%d keys of %d are left", now, keys)
	}
}

// TestAnnouncedUploads: clients that announce large values and send next to nothing keep no memory
// from others.
func TestAnnouncedUploads(t *testing.T) {
	n := startNode(t)
	announced := fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%1000s", 20<<20, "")
	for range 20 {
		dial(t, n.Addr()).sendRaw(announced)
	}
	eventually(t, "they are uploading", func() bool { return uploading(t, n) == 20 })
	dial(t, n.Addr()).wantBig("SET mine BIG", bigValue(1<<20, 2), "OK")
}

// TestCrawlingUploads: when a large value finds no memory, clients are closed whose own make no
// progress.
func TestCrawlingUploads(t *testing.T) {
	n := startNode(t)
	crawls := dial(t, n.Addr())
	crawls.sendRaw(bigRequest(t, "SET k BIG", bigValue(45<<20, 1))[:40<<20])
	eventually(t, "it has most of the memory", func() bool { return n.engine.Stats().Staged > 39<<20 })
	lookForMemory(t, n)
	lookForMemory(t, n)
	if uploading(t, n) != 1 {
		t.Error("it is closed though nobody wants its memory")
	}
	c, v := dial(t, n.Addr()), bigValue(30<<20, 2)
	c.wantBig("SET mine BIG", v, "(error) "+exec.ErrOOM)
	eventually(t, "it is closed", func() bool {
		lookForMemory(t, n)
		return uploading(t, n) == 0
	})
	c.wantBig("SET mine BIG", v, "OK")
}
