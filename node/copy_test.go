package node

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/keys"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// TestCopiesOfLargeValues: whatever its size, and whether a reply is being sent from it, a value is
// copied whole with its expiry, and what follows in the pipeline comes after it.
func TestCopiesOfLargeValues(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	c := dial(t, n.Addr())
	for _, size := range []int{uploadFrom - 8, uploadFrom, exec.RewriteFrom, exec.RewriteFrom + 1, 9 << 20} {
		for _, pinned := range []bool{false, size > 1<<20} {
			v := bigValue(size, byte(size))
			c.want("FLUSHALL", "OK")
			c.wantBig("SET {k}a BIG EXAT 33177117420", v, "OK")
			var slow *client
			if pinned {
				slow = slowClient(t, n, []byte("GET {k}a\r\n"))
			}
			c.sendRaw([]byte("COPY {k}a {k}copy\r\nRENAME {k}a {k}longer-name\r\nRENAMENX {k}longer-name {k}copy\r\n" +
				"COPY {k}copy {k}longer-name REPLACE\r\nCOPY {k}copy {k}longer-name\r\n" +
				"EXPIRETIME {k}copy\r\nEXPIRETIME {k}longer-name\r\nEXISTS {k}a\r\nGET {k}copy\r\nGET {k}longer-name\r\n"))
			for i, want := range []string{"(integer) 1", "OK", "(integer) 0", "(integer) 1", "(integer) 0",
				"(integer) 33177117420", "(integer) 33177117420", "(integer) 0", "BIG", "BIG"} {
				if got := c.nextBig(v); got != want {
					t.Fatalf("%d bytes, pinned %t: reply %d is %.100s, want %s", size, pinned, i, got, want)
				}
			}
			if pinned {
				if got := slow.nextBig(v); got != "BIG" {
					t.Errorf("%d bytes: the slow reader gets %.100s", size, got)
				}
			}
		}
	}
	c.want("FLUSHALL", "OK")
	settled(t, n)
	if st := n.engine.Stats(); st.Pinned != 0 || st.Staged != 0 {
		t.Errorf("%d bytes are pinned, %d staged", st.Pinned, st.Staged)
	}
}

// TestCopyMeetsWriter: a copy is of what the key has at one moment, not before the command and not
// torn, though a writer never stops.
func TestCopyMeetsWriter(t *testing.T) {
	const size = 1 << 20
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	writer, c := dial(t, n.Addr()), dial(t, n.Addr())
	write := func(i int) {
		writer.sendArgs([]byte("SET"), []byte("{k}a"), bytes.Repeat([]byte{byte(i)}, size))
		writer.next()
	}
	write(0)
	var mu sync.Mutex
	written, stop := 0, false
	var all sync.WaitGroup
	all.Go(func() {
		for i := 1; i < 200; i++ {
			write(i)
			mu.Lock()
			written = i
			done := stop
			mu.Unlock()
			if done {
				return
			}
		}
	})
	for range 30 {
		mu.Lock()
		atLeast := written
		mu.Unlock()
		c.want("COPY {k}a {k}b REPLACE", "(integer) 1")
		c.send("GET {k}b")
		got, _ := resp.DecodeBulk(c.read())
		if len(got) != size || bytes.Count(got, got[:1]) != size || int(got[0]) < atLeast {
			t.Fatalf("the copy has %d bytes, value %d to %d; %d was acknowledged before", len(got), got[0], got[size-1], atLeast)
		}
	}
	mu.Lock()
	stop = true
	mu.Unlock()
	all.Wait()
}

// TestRenamesMeet: clients rename one large key to and fro. It is never lost and never doubled.
func TestRenamesMeet(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	v := bigValue(1<<20, 7)
	first := dial(t, n.Addr())
	first.wantBig("SET {k}0 BIG", v, "OK")
	var all sync.WaitGroup
	for range 4 {
		c := dial(t, n.Addr())
		all.Go(func() {
			for range 40 {
				line := fmt.Sprintf("RENAME {k}%d {k}%d", rand.IntN(3), rand.IntN(3))
				if got := c.do(line); got != "OK" && got != "(error) "+keys.ErrNoKey {
					t.Errorf("%s answers %s", line, got)
				}
			}
		})
	}
	all.Wait()
	first.want("EXISTS {k}0 {k}1 {k}2", "(integer) 1")
	for i := range 3 {
		line := fmt.Sprintf("GET {k}%d", i)
		first.send(line)
		if got := first.nextBig(v); got != "BIG" && got != "(nil)" {
			t.Errorf("%s answers %.100s", line, got)
		}
	}
}

// TestCopyWithoutMemory: a copy that there is no memory for leaves everything as it was.
func TestCopyWithoutMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("copies of 40 MiB")
	}
	n := startNode(t, func(c *Config) { c.Memory, c.Eviction = 64<<20, "noeviction" })
	c := dial(t, n.Addr())
	v := bigValue(40<<20, 1)
	c.wantBig("SET {k}a BIG EXAT 33177117420", v, "OK")
	c.want("SET {k}b small", "OK")
	c.want("COPY {k}a {k}c", "(error) "+exec.ErrOOM)
	c.want("COPY {k}a {k}b REPLACE", "(error) "+exec.ErrOOM)
	c.want("RENAME {k}a {k}b", "(error) "+exec.ErrOOM)
	c.want("GET {k}b", `"small"`)
	c.want("EXPIRETIME {k}a", "(integer) 33177117420")
	c.wantBig("GET {k}a", v, "BIG")
	c.want("EXISTS {k}c", "(integer) 0")
	if st := n.engine.Stats(); st.Staged != 0 {
		t.Errorf("%d bytes are staged", st.Staged)
	}
}

// TestCopiesInATransaction: commands that a goroutine finishes are executed in a transaction as they
// are outside.
func TestCopiesInATransaction(t *testing.T) {
	forOneClient(t)
	c := dial(t, startNode(t, func(c *Config) { c.Memory = 256 << 20 }).Addr())
	v := bigValue(5<<20, 1)
	dump := conversation.Quote(rdb.AppendDump(nil, v))
	c.wantBig("SET {k}a BIG", v, "OK")
	c.want("SET {k}s small", "OK")
	c.want("MULTI", "OK")
	for _, line := range []string{"COPY {k}a {k}b", "RENAME {k}a {k}c", "DUMP {k}c", "DUMP {k}s", "RESTORE {k}d 0 BIG", "PFADD {k}h x", "OBJECT ENCODING {k}s"} {
		c.wantBig(line, rdb.AppendDump(nil, v), "QUEUED")
	}
	want := "1) (integer) 1\n2) OK\n3) " + dump + "\n4) " + conversation.Quote(rdb.AppendDump(nil, []byte("small"))) +
		"\n5) OK\n6) (integer) 1\n7) \"embstr\""
	if got := c.do("EXEC"); got != want {
		t.Errorf("EXEC answers %d bytes, want %d", len(got), len(want))
	}
	c.wantBig("MGET {k}a {k}b {k}c {k}d", v, "1) (nil)\n2) BIG\n3) BIG\n4) BIG")
}
