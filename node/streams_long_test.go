package node

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
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
