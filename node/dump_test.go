package node

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/keys"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// TestDumpsOfLargeValues: large payloads are what small ones are, go out in order, and come back
// in.
func TestDumpsOfLargeValues(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	c := dial(t, n.Addr())
	for _, size := range []int{exec.PinFrom - 1, exec.PinFrom, exec.RewriteFrom - 13, exec.RewriteFrom + 13, 9 << 20} {
		v := bigValue(size, byte(size))
		payload := rdb.AppendDump(nil, v)
		c.wantBig("SET k BIG", v, "OK")
		c.sendRaw([]byte("DUMP k\r\nDEL k\r\n"))
		if got := c.nextBig(payload); got != "BIG" {
			t.Fatalf("%d bytes: DUMP answers %.100s", size, got)
		}
		if got := c.next(); got != "(integer) 1" {
			t.Fatalf("DEL answers %s", got)
		}
		c.wantBig("RESTORE k 33177117420000 BIG ABSTTL", payload, "OK")
		c.wantBig("GET k", v, "BIG")
		c.want("EXPIRETIME k", "(integer) 33177117420")
		c.wantBig("RESTORE k 0 BIG", payload, "(error) "+keys.ErrBusyKey)
		c.wantBig("RESTORE k x BIG REPLACE", payload, "(error) "+exec.ErrNotInteger)
		c.wantBig("RESTORE k 1 BIG REPLACE FOO", payload, "(error) "+exec.ErrSyntax)
		payload[size/2] ^= 1
		c.wantBig("RESTORE k 0 BIG REPLACE", payload, "(error) "+keys.ErrPayload)
		c.wantBig("GET k", v, "BIG")
		payload[size/2] ^= 1
		c.wantBig("RESTORE k 1 BIG REPLACE ABSTTL", payload, "OK") // its time has passed
		c.want("EXISTS k", "(integer) 0")
	}
	settled(t, n)
	if st := n.engine.Stats(); st.Pinned != 0 || st.Staged != 0 {
		t.Errorf("%d bytes are pinned, %d staged", st.Pinned, st.Staged)
	}
}

// TestDumpTickets: on a common pipe the payload of a large value waits behind a ticket.
func TestDumpTickets(t *testing.T) {
	n := startNode(t)
	common, fetch := openPipeTo(t, n, 7, 0, "common", 1, 2), openPipeTo(t, n, 7, 1, "fetch", 1, 2)
	v := bigValue(700<<10, 1)
	common.wantBig("SET k BIG", v, "OK")
	number, size := common.ticketFor("DUMP k")
	want := resp.AppendBulk(nil, rdb.AppendDump(nil, v))
	if got := fetch.fetch(number, 0, size); !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want the payload of %d", len(got), len(want))
	}
}

func TestDumpTooLarge(t *testing.T) {
	c := dial(t, startNode(t, func(c *Config) { c.Memory = 512 << 20 }).Addr())
	c.want(fmt.Sprintf("SETRANGE k %d x", keys.MaxDump), fmt.Sprintf("(integer) %d", keys.MaxDump+1))
	c.want("DUMP k", "(error) "+keys.ErrDumpTooLarge)
}

// TestRestoreFromRedis takes large values over from a real redis-server, which compresses them.
func TestRestoreFromRedis(t *testing.T) {
	forOneClient(t)
	real := dial(t, redistest.Start(t))
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	ours := dial(t, n.Addr())
	text := []byte(strings.Repeat("the quick brown fox jumps over the lazy dog and ", 100))
	for i := range text {
		text[i] += byte(i * i >> 11 & 7)
	}
	for _, v := range [][]byte{text, bytes.Repeat(text, 10), bytes.Repeat(text, 100), bytes.Repeat([]byte("a"), 4<<20), bigValue(1<<20, 1)} {
		real.wantBig("SET k BIG", v, "OK")
		real.send("DUMP k")
		payload, _ := resp.DecodeBulk(real.read())
		ours.wantBig("RESTORE k 0 BIG REPLACE", payload, "OK")
		ours.wantBig("GET k", v, "BIG")
		ours.send("DUMP k")
		payload, _ = resp.DecodeBulk(ours.read())
		real.wantBig("RESTORE k 0 BIG REPLACE", payload, "OK")
		real.wantBig("GET k", v, "BIG")
	}
}

// TestRestoreOfAlmostNothing: a long payload may hold a short string, with whatever behind it.
func TestRestoreOfAlmostNothing(t *testing.T) {
	c := dial(t, startNode(t).Addr())
	payload := append([]byte("\x00\x05hello"), make([]byte, exec.RewriteFrom)...)
	payload = rdb.AppendFoot(payload, rdb.Sum(0, payload))
	c.wantBig("RESTORE k 0 BIG", payload, "OK")
	c.want("GET k", `"hello"`)
}

// DUMP writes a hash whose fields expire for Redis or for Valkey, and RESTORE reads both.
func TestDumpForValkey(t *testing.T) {
	for forValkey, kind := range map[bool]byte{false: 24, true: 22} {
		c := dial(t, startLeveled(t, func(cfg *Config) { cfg.DumpForValkey = forValkey }).Addr())
		c.want("HSET h a 1 b 2", "(integer) 2")
		c.want("HPEXPIREAT h 4102444800000 FIELDS 1 a", "1) (integer) 1")
		c.send("DUMP h")
		_, payload, _ := bytes.Cut(c.read(), []byte("\r\n"))
		if payload = bytes.TrimSuffix(payload, []byte("\r\n")); payload[0] != kind {
			t.Errorf("with DumpForValkey %t the type is %d, want %d", forValkey, payload[0], kind)
		}
		c.sendArgs([]byte("RESTORE"), []byte("r"), []byte("0"), payload)
		if got := c.next(); got != "OK" {
			t.Fatal(got)
		}
		c.want("HMGET r a b", "1) \"1\"\n2) \"2\"")
		c.want("HPEXPIRETIME r FIELDS 2 a b", "1) (integer) 4102444800000\n2) (integer) -1")
	}
}
