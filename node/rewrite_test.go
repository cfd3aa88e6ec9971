package node

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/bitstring"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/strings"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// TestRewrites changes large values in all ways that do not fit where they are, with a reply
// being sent from the old one or not.
func TestRewrites(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 512 << 20 })
	c := dial(t, n.Addr())
	old := bigValue(17<<20, 1)
	for _, change := range []struct {
		line  string
		patch []byte
		at    int  // where it lies in the new value
		short bool // with -short, one of each kind
	}{
		{"APPEND k BIG", []byte("small"), len(old), false},
		{"APPEND k BIG", bigValue(2<<20, 2), len(old), true},
		{"APPEND k BIG", bigValue(20<<20, 2), len(old), false},
		{"SETRANGE k 0 BIG", []byte("small"), 0, false},
		{"SETRANGE k 1000000 BIG", bigValue(1<<20, 2), 1_000_000, true},
		{"SETRANGE k 1000000 BIG", bigValue(3<<20, 2), 1_000_000, false},
		{"SETRANGE k 40000000 BIG", []byte("far away"), 40_000_000, false},
		{"SETRANGE k 40000000 BIG", bigValue(100_000, 2), 40_000_000, true},
	} {
		if testing.Short() && !change.short {
			continue
		}
		want := append([]byte(nil), old...)
		want = append(want, make([]byte, max(0, change.at+len(change.patch)-len(old)))...)
		copy(want[change.at:], change.patch)
		for _, pinned := range []bool{false, true} {
			c.wantBig("SET k BIG EXAT 33177117420", old, "OK")
			var slow *client
			if pinned {
				slow = slowClient(t, n, []byte("GET k\r\n"))
			}
			c.sendRaw(bigRequest(t, change.line, change.patch))
			c.sendRaw([]byte("EXPIRETIME k\r\nGET k\r\n")) // must wait for it
			for _, reply := range []string{fmt.Sprintf("(integer) %d", len(want)), "(integer) 33177117420", "BIG"} {
				if got := c.nextBig(want); got != reply {
					t.Fatalf("%s of %d bytes, pinned %t: got %.100s, want %s", change.line, len(change.patch), pinned, got, reply)
				}
			}
			if pinned {
				if got := slow.nextBig(old); got != "BIG" {
					t.Errorf("%s of %d bytes: the slow reader gets %.100s", change.line, len(change.patch), got)
				}
			}
		}
	}
}

// TestRewritesOfNothing: a key that is missing, or has a small value.
func TestRewritesOfNothing(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 512 << 20 })
	c := dial(t, n.Addr())
	v := bigValue(5<<20, 1)
	c.wantBig("APPEND new BIG", v, fmt.Sprintf("(integer) %d", len(v)))
	c.wantBig("GET new", v, "BIG")
	c.want("SETRANGE far 50000000 end", "(integer) 50000003")
	c.wantBig("GET far", append(make([]byte, 50_000_000), "end"...), "BIG")
	c.want("SET k small EXAT 33177117420", "OK")
	c.wantBig("APPEND k BIG", v, fmt.Sprintf("(integer) %d", len(v)+5))
	c.wantBig("GET k", append([]byte("small"), v...), "BIG")
	c.want("EXPIRETIME k", "(integer) 33177117420")
	if err := put(n, "hash", "v", 2); err != nil {
		t.Fatal(err)
	}
	c.wantBig("APPEND hash BIG", v, "(error) "+exec.ErrWrongType)
	c.wantBig("SETRANGE hash 0 BIG", v, "(error) "+exec.ErrWrongType)
	c.wantBig("SETRANGE k -1 BIG", v, "(error) "+strings.ErrOffset)
	c.wantBig("SETRANGE k 536870912 BIG", v, "(error) "+exec.ErrTooLong)
	c.want("FLUSHALL", "OK")
	if st := n.engine.Stats(); st.Pinned != 0 || st.Staged != 0 {
		t.Errorf("%d bytes are pinned, %d staged", st.Pinned, st.Staged)
	}
}

// TestRewritesOfBits: bits of values that cannot be changed where they are, and of some that can.
func TestRewritesOfBits(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 512 << 20 })
	c := dial(t, n.Addr())
	old := bigValue(3<<20, 1)
	f := func(line, reply string, length int, change func(v []byte)) {
		t.Helper()
		want := append(bytes.Clone(old), make([]byte, length-len(old))...)
		change(want)
		for _, pinned := range []bool{false, true} {
			c.wantBig("SET k BIG EXAT 33177117420", old, "OK")
			var slow *client
			if pinned {
				slow = slowClient(t, n, []byte("GET k\r\n"))
			}
			c.want(line, reply)
			c.wantBig("GET k", want, "BIG")
			c.want("EXPIRETIME k", "(integer) 33177117420")
			if pinned {
				if got := slow.nextBig(old); got != "BIG" {
					t.Errorf("%s: the slow reader gets %.100s", line, got)
				}
			}
		}
	}
	bit := func(at int) string { return fmt.Sprintf("(integer) %d", bitstring.Field(old, uint64(at), 1)) }
	f("SETBIT k 8000001 1", bit(8000001), len(old), func(v []byte) { bitstring.SetField(v, 8000001, 1, 1) })
	f("SETBIT k 8000001 0", bit(8000001), len(old), func(v []byte) { bitstring.SetField(v, 8000001, 1, 0) })
	f("SETBIT k 80000007 1", "(integer) 0", 10_000_001, func(v []byte) { v[10_000_000] = 1 })
	f("BITFIELD k SET u8 0 7 INCRBY u16 #5000000 1 GET u8 0", fmt.Sprintf("1) (integer) %d\n2) (integer) 1\n3) (integer) 7", old[0]),
		10_000_002, func(v []byte) { v[0], v[10_000_001] = 7, 1 })
	f("BITFIELD k OVERFLOW FAIL SET u8 80000000 256", "1) (nil)", 10_000_001, func([]byte) {})
	c.want("DEL k", "(integer) 1")
	c.want("SETBIT far 4000000000 1", "(integer) 0")
	c.want("STRLEN far", "(integer) 500000001")
	c.want("SETBIT far 4294967295 1", "(error) "+exec.NeverFits(512<<20))
	c.want("DEL far", "(integer) 1")
	if st := n.engine.Stats(); st.Pinned != 0 || st.Staged != 0 {
		t.Errorf("%d bytes are pinned, %d staged", st.Pinned, st.Staged)
	}
}

// TestScanLarge: values that a goroutine looks through, and changes behind its back.
func TestScanLarge(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	c := dial(t, n.Addr())
	v := bigValue(20<<20, 1)
	bits := int64(len(v)) * 8
	c.wantBig("SET k BIG", v, "OK")
	f := func(line string, want int64) {
		t.Helper()
		c.sendRaw([]byte(line + "\r\nGET probe\r\n"))
		if got := c.next(); got != fmt.Sprintf("(integer) %d", want) {
			t.Errorf("%s answers %s, want %d", line, got, want)
		}
		if got := c.next(); got != "(nil)" {
			t.Errorf("%s is followed by %s", line, got)
		}
	}
	f("BITCOUNT k", int64(bitstring.Count(v)))
	f("BITCOUNT k 1000001 -3", int64(bitstring.Count(v[1_000_001:len(v)-2])))
	f("BITCOUNT k 1000001 -3 BIT", int64(bitstring.CountIn(v, 1_000_001, bits-2)))
	f("BITPOS k 1 100000000 -1 BIT", bitstring.Find(v, true, 100_000_000, bits))
	ones := bytes.Repeat([]byte{0xFF}, len(v))
	ones[len(ones)-1] = 0xFE
	c.wantBig("SET k BIG", ones, "OK")
	f("BITPOS k 0", bits-1)
	f("BITPOS k 0 1 -2", -1)
	f("SETBIT k 167772159 1", 0)
	f("BITPOS k 0", bits)
	// What is looked through stays what it is.
	other := dial(t, n.Addr())
	for range 5 {
		c.send("BITCOUNT k")
		other.want("SETBIT k 0 0", "(integer) 1")
		if got := c.next(); got != fmt.Sprintf("(integer) %d", bits) && got != fmt.Sprintf("(integer) %d", bits-1) {
			t.Errorf("BITCOUNT answers %s", got)
		}
		other.want("SETBIT k 0 1", "(integer) 0")
	}
	eventually(t, "pins are released", func() bool { return pinnedBytes(n) == 0 })
}

// TestRewritesMeet: clients append to one large value at the same time. Each must see its own
// piece added, whole, to what the others made of the value meanwhile.
func TestRewritesMeet(t *testing.T) {
	const clients, appends, size = 4, 12, 300_000
	n := startNode(t, func(c *Config) { c.Memory = 512 << 20 })
	var all sync.WaitGroup
	for i := range clients {
		c := dial(t, n.Addr())
		all.Go(func() {
			for j := range appends {
				c.sendArgs([]byte("APPEND"), []byte("k"), bytes.Repeat([]byte{byte(i*appends + j)}, size))
				c.next()
			}
		})
	}
	all.Wait()
	c := dial(t, n.Addr())
	c.send("GET k")
	got, _ := resp.DecodeBulk(c.read())
	if len(got) != clients*appends*size {
		t.Fatalf("the value has %d bytes, want %d", len(got), clients*appends*size)
	}
	last := [clients]int{-1, -1, -1, -1}
	for len(got) > 0 {
		number := int(got[0])
		if bytes.Count(got[:size], got[:1]) != size {
			t.Fatalf("piece %d is torn", number)
		}
		if i, j := number/appends, number%appends; j != last[i]+1 {
			t.Fatalf("piece %d of client %d follows piece %d", j, i, last[i])
		} else {
			last[i] = j
		}
		got = got[size:]
	}
}

// TestRewriteWithoutMemoryBesideTheOld: there is room for the new value only in place of the old.
func TestRewriteWithoutMemoryBesideTheOld(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory, c.Eviction = 64<<20, "noeviction" })
	c := dial(t, n.Addr())
	v := bigValue(32<<20, 1)
	c.wantBig("SET k BIG", v, "OK")
	c.want("APPEND k more", fmt.Sprintf("(integer) %d", len(v)+4))
	c.wantBig("GET k", append(v, "more"...), "BIG")
	// And not even then.
	c.wantBig("APPEND k BIG", bigValue(40<<20, 1), "(error) "+exec.ErrOOM)
	c.want("SETRANGE k 70000000 x", "(error) "+exec.NeverFits(64<<20))
	c.want("SETRANGE l 70000000 x", "(error) "+exec.NeverFits(64<<20))
	c.want("SETBIT l 400000000 1", "(error) "+exec.ErrOOM)
	c.want("EXISTS k l", "(integer) 1")
}

// TestRewriteOfAClosedConnection leaves nothing behind.
func TestRewriteOfAClosedConnection(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	c := dial(t, n.Addr())
	v := bigValue(30<<20, 1)
	c.wantBig("SET k BIG", v, "OK")
	before := settled(t, n)
	for range 5 {
		other := dial(t, n.Addr())
		other.sendRaw(bigRequest(t, "SETRANGE k 20000000 BIG", v))
		other.conn.Close()
	}
	eventually(t, "they are gone", func() bool { return n.clients.Load() == 1 })
	c.want("DEL k", "(integer) 1")
	c.wantBig("SET k BIG", v, "OK")
	if used := settled(t, n); used > before+1000 {
		t.Errorf("%d bytes are used, %d before", used, before)
	}
}

// TestRewriteIsCharged: what a rewrite copies of its command is charged before it is copied, and a
// command for which there is no memory is refused.
func TestRewriteIsCharged(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 32<<20, newGroup(t, 1) })
	c := dial(t, n.Addr())
	c.want("PING", "PONG")
	w := n.workers[0]
	w.loop.Post(func() {
		for cn := range w.conns {
			r := w.begin(cn)
			for _, size := range []int{1 << 20, 20 << 20} {
				r.Args = [][]byte{[]byte("APPEND"), []byte("k"), make([]byte, size)}
				before := n.lists.Load()
				rewrite := r.NewRewrite()
				fits := size < 16<<20
				if copied := &rewrite.Args[2][0] != &r.Args[2][0]; copied != fits || (n.lists.Load()-before > int64(size)) != fits {
					t.Errorf("%d bytes: copied %t, %d bytes are charged", size, copied, n.lists.Load()-before)
				}
				if fits {
					rewrite.End()
				} else {
					rewrite.Start(&r.Request, nil)
				}
				if now := n.lists.Load(); now != before {
					t.Errorf("%d bytes stay charged", now-before)
				}
			}
			r.Finish()
		}
	})
	if got := c.next(); got != "(error) "+exec.ErrOOM {
		t.Errorf("got %s", got)
	}
}

// TestSmallSourcesAreCharged: what a goroutine has copied of small values counts until its work is done.
func TestSmallSourcesAreCharged(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	c := dial(t, n.Addr())
	setLong(t, n, "{k}large")
	for key, size := range map[string]int{"{k}a": 12_000, "{k}b": 11_500, "{k}c": 11_500} {
		if err := put(n, key, string(bigValue(size, 1)), engine.TypeString); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []struct {
		line   string
		copied int64
	}{
		{"BITOP AND {k}d {k}a {k}large", 12_000}, {"LCS {k}b {k}c LEN", 23_000}, {"SETRANGE {k}a 3000000 x", 12_000},
	} {
		free := occupy(t, n)
		c.send(f.line)
		eventually(t, f.line+" is charged", func() bool { return n.lists.Load() >= f.copied })
		free()
		c.next()
		eventually(t, f.line+" gives back", func() bool { return n.lists.Load() == 0 })
	}
}
