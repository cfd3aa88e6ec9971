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
