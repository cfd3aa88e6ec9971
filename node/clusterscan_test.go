package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// clusterScan calls CLUSTERSCAN until the cursor is 0 again, and returns all keys.
func clusterScan(t *testing.T, c *client, options string) (keys []string) {
	t.Helper()
	for cursor, calls := "0", 0; ; calls++ {
		if calls > 3*ring.Partitions {
			t.Fatalf("the cursor is %s after %d calls", cursor, calls)
		}
		c.send("CLUSTERSCAN " + cursor + options)
		reply := c.read()
		n, header, ok := resp.DecodeArray(reply)
		if !ok || n != 2 {
			t.Fatalf("CLUSTERSCAN %s answers %.100q", cursor, reply)
		}
		var s resp.Scanner
		s.Scan(reply[header:])
		next, _ := resp.DecodeBulk(reply[header : header+s.Len()])
		cursor = string(next)
		rest := reply[header+s.Len():]
		n, header, _ = resp.DecodeArray(rest)
		for rest = rest[header:]; n > 0; n-- {
			s.Scan(rest)
			key, _ := resp.DecodeBulk(rest[:s.Len()])
			keys, rest = append(keys, string(key)), rest[s.Len():]
		}
		if cursor == "0" {
			return keys
		}
	}
}

func TestClusterScan(t *testing.T) {
	forOneClient(t)
	n := startLeveled(t)
	c := dial(t, n.Addr())
	var want []string
	for i := range 3000 {
		key := fmt.Sprint("key:", i)
		if i < 200 {
			key = fmt.Sprint("{tag}", i) // many in one slot
		}
		want = append(want, key)
	}
	c.send("MSET " + strings.Join(want, " v ") + " v")
	c.read()
	slices.Sort(want)
	got := clusterScan(t, c, " COUNT 7")
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("%d keys are found of %d", len(got), len(want))
	}
	slot := ring.Slot([]byte("tag"))
	got = clusterScan(t, c, fmt.Sprintf(" COUNT 10 SLOT %d", slot))
	for _, key := range got {
		if ring.Slot([]byte(key)) != slot {
			t.Errorf("%s is not in slot %d", key, slot)
		}
	}
	if slices.Sort(got); len(slices.Compact(got)) != 200 {
		t.Errorf("%d keys of one slot are found, want 200", len(got))
	}
}
