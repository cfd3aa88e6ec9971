package node

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// An entry may have long strings and many fields. They come in uploads, or are copied in runs; the lock of the
// shard only attaches them.
func TestLongEntries(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory, c.Shards = 256<<20, 1 })
	c := dial(t, n.Addr())
	long := strings.Repeat("long value ", 300_000)
	var many []string
	for i := range 100_000 {
		many = append(many, fmt.Sprint("field", i), fmt.Sprint("value ", i))
	}
	medium := strings.Repeat("m", 50_000)
	for i, fields := range [][]string{
		{"a", long}, {"a", long, "b", "short", long, long}, many, append(many[:2000:2000], "l", long),
		{"a", medium, "b", medium, "c", medium, "d", medium},
	} {
		id := fmt.Sprint(i+1, "-1")
		c.sendWords(append([]string{"XADD", "x", id}, fields...))
		c.wantNext(fmt.Sprintf("%q", id))
		want := resp.AppendArray(resp.AppendBulk(resp.AppendArray(resp.AppendArray(nil, 1), 2), []byte(id)), len(fields))
		for _, s := range fields {
			want = resp.AppendBulk(want, []byte(s))
		}
		c.send(fmt.Sprintf("XRANGE x %s %s", id, id))
		if got := c.read(); !bytes.Equal(got, want) {
			t.Errorf("entry %d has others than %d strings", i, len(fields))
		}
	}
	c.want("XLEN x", "(integer) 5")
	c.want("XDEL x 1-1 2-1 3-1 4-1 5-1", "(integer) 5")
	c.want("XLEN x", "(integer) 0")
}

// An XAUTOCLAIM whose last entry is answered in several runs claims no entry behind it.
func TestXAutoClaimEndsWithALongEntry(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory, c.Shards = 256<<20, 1 })
	c := dial(t, n.Addr())
	var fields []string // of more bytes than a run answers, none of which is long by itself
	for i := range 100 {
		fields = append(fields, fmt.Sprint("field ", i), strings.Repeat("m", 1500))
	}
	add := func(id string, fields ...string) {
		t.Helper()
		c.sendWords(append([]string{"XADD", "x", id}, fields...))
		c.wantNext(fmt.Sprintf("%q", id))
	}
	// With COUNT 1 it looks at 10 pending entries: here the 10th one is the first that is idle for long enough.
	for i := range 9 {
		add(fmt.Sprint(i+1, "-1"), "a", "short")
	}
	add("10-1", fields...)
	add("11-1", fields...)
	add("12-1", "a", "short")
	c.want("XGROUP CREATE x g 0", "OK")
	claims := func(start, next string) {
		t.Helper()
		want := resp.AppendBulk(resp.AppendArray(nil, 3), []byte(next))
		want = resp.AppendBulk(resp.AppendArray(resp.AppendArray(want, 1), 2), []byte("10-1"))
		want = resp.AppendArray(want, len(fields))
		for _, s := range fields {
			want = resp.AppendBulk(want, []byte(s))
		}
		want = resp.AppendArray(want, 0)
		c.send("XAUTOCLAIM x g bob 1000000 " + start + " COUNT 1")
		if got := c.read(); !bytes.Equal(got, want) {
			t.Errorf("XAUTOCLAIM from %s does not answer 10-1 alone: %d bytes, want %d", start, len(got), len(want))
		}
		c.want("XPENDING x g 11-1 + 10 bob", "(empty array)")
	}
	for _, start := range []string{"10-1", "0"} { // COUNT ends it, or what it looks at
		for i := range 12 {
			idle := "0"
			if i >= 9 {
				idle = "2000000"
			}
			c.send(fmt.Sprintf("XCLAIM x g ann 0 %d-1 IDLE %s FORCE JUSTID", i+1, idle))
			c.read()
		}
		claims(start, "11-1")
	}
}

// A long entry reaches the follower whole, as one unit that is noted in runs while the partition is held.
func TestLongEntryReachesTheFollower(t *testing.T) {
	nodes, table, key := startTrio(t, func(c *Config) { c.Memory = 512 << 20 })
	p := partitionOf(key)
	table = altered(table, func(next *ring.Table) { next.Level, next.Follower[p] = ring.Level, 1 })
	install(t, table, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	c := dial(t, nodes[0].Addr())
	c.want("XADD "+key+" 1-1 f v", `"1-1"`)
	holds, resyncs := nodes[0].engine.Stats().Holds, nodes[0].senders.Stats().Resyncs
	id := 1
	for _, each := range []int{8000, 200_000, 100} { // copied, uploaded, and many
		words := []string{"XADD", key, ""}
		for n := 0; n < 400_000; n += 2 * each {
			words = append(words, fmt.Sprintf("%*d", each, n), fmt.Sprintf("%*d", each, -n))
		}
		id++
		words[2] = fmt.Sprint(id, "-1")
		c.sendWords(words)
		c.wantNext(fmt.Sprintf("%q", words[2]))
	}
	if got := nodes[0].engine.Stats().Holds; got != holds+3 {
		t.Errorf("%d holds, want 3", got-holds)
	}
	want := c.bytesOf("XRANGE " + key + " - +")
	if got := nodes[0].senders.Stats().Resyncs; got != resyncs {
		t.Errorf("%d partitions were sent anew", got-resyncs)
	}
	succeed(t, nodes, table)
	f := dial(t, nodes[1].Addr())
	eventually(t, "the follower serves", func() bool { return f.do("XLEN "+key) == "(integer) 4" })
	if got := f.bytesOf("XRANGE " + key + " - +"); got != want {
		t.Errorf("the follower has %d bytes of entries, or others than the owner, which had %d", len(got), len(want))
	}
}

// What was copied for a long entry is freed if its ID is not above the last one any more.
func TestLongEntryComesTooLate(t *testing.T) {
	n := startLeveled(t)
	words := []string{"XADD", "x", ""}
	for i := range 4000 {
		words = append(words, fmt.Sprint("field ", i), strings.Repeat("v", 200))
	}
	var clients []*client
	for range 4 {
		clients = append(clients, dial(t, n.Addr()))
	}
	for i := range 5 {
		words[2] = fmt.Sprint(i+1, "-1")
		for _, c := range clients {
			c.sendWords(words)
		}
		for _, c := range clients {
			c.read()
		}
	}
	if st := n.engine.Stats(); st.Staged != 0 {
		t.Errorf("%d bytes are staged", st.Staged)
	}
}
