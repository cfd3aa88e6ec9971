package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestRandomKeys: every key is chosen about as often, those that share a partition or a bucket as
// well as those that are alone.
func TestRandomKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics need many tries")
	}
	const keys, each = 60, 40
	c := dial(t, startNode(t).Addr())
	for i := range keys {
		name := fmt.Sprintf("k%d", i)
		if i%2 == 0 {
			name = fmt.Sprintf("{together}%d", i)
		}
		c.want("SET "+name+" v", "OK")
	}
	chosen := map[string]int{}
	for range keys * each {
		chosen[c.do("RANDOMKEY")]++
	}
	if len(chosen) != keys {
		t.Errorf("%d different keys of %d", len(chosen), keys)
	}
	for key, n := range chosen {
		// Six standard deviations of an even choice, and neighbours are not quite even.
		if n > 3*each {
			t.Errorf("%s was chosen %d times, %d would be even", key, n, each)
		}
	}
}

// TestRandomKeyIsAlive: an expired key that nothing has met yet is not chosen, and to look for
// others has an end.
func TestRandomKeyIsAlive(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	now := time.Now().UnixMilli()
	for i := range 5000 {
		key := fmt.Appendf(nil, "{many}%d", i)
		txn := n.engine.Lock(ring.PartitionOf(key), now)
		if err := txn.Set(key, nil, engine.TypeString, now+1); err != nil {
			t.Fatal(err)
		}
		txn.Unlock()
	}
	c.want("SET alive v", "OK")
	eventually(t, "the others are expired", func() bool { return c.do("EXISTS {many}1 {many}4999") == "(integer) 0" })
	for range 20 {
		c.want("RANDOMKEY", `"alive"`)
	}
	c.want("DEL alive", "(integer) 1")
	c.want("RANDOMKEY", "(nil)")
}

// TestEachRandomKey: a node says among how many keys it has chosen, and only of partitions that it
// is asked for.
func TestEachRandomKey(t *testing.T) {
	n := startNode(t)
	c := openPipeTo(t, n, 1, 0, "large", 1, 2)
	c.want("MSET a 1 b 2 {b}c 3", "OK")
	var some ring.PartitionSet
	some.Add(partitionOf("b"))
	for range 20 {
		covered, reply := c.each(&some, "RANDOMKEY")
		if got := inText(reply); covered != some || !strings.HasPrefix(got, "1) (integer) 2\n2) ") || strings.Contains(got, `"a"`) {
			t.Fatalf("RANDOMKEY of one partition is %s", got)
		}
	}
	some = ring.PartitionSet{}
	some.Add(partitionOf("nothing"))
	if _, reply := c.each(&some, "RANDOMKEY"); inText(reply) != "(empty array)" {
		t.Errorf("RANDOMKEY of no keys is %s", inText(reply))
	}
}
