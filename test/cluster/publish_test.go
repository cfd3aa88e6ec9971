package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestPublishElsewhere: transactions and scripts publish on channels that other nodes have, in database 0 and in a
// pinned one. Each message arrives once and in order, and is counted, also while nodes are replaced.
func TestPublishElsewhere(t *testing.T) {
	t.Parallel()
	const channels = 12
	c := harness.StartClusterWith(t, harness.StartOptions{
		Nodes: 3, Proxies: 1, NodeFlags: []string{"--copies", "2", "--pinned-databases", "8"},
	})
	pinnedReady(t, c, "8")
	listener, w := harness.DialWire(t, c.Proxy(0).Addr), harness.DialWire(t, c.Proxy(0).Addr)
	sent := make([][]string, channels)
	for i := range channels {
		listener.Send(fmt.Appendf(nil, "SUBSCRIBE channel%d\r\n", i))
		listener.Next()
	}
	script := `EVAL "redis.call('SET', KEYS[1], 1); return redis.call('PUBLISH', ARGV[1], ARGV[2])" 1 key `
	next := func(i int) string {
		sent[i] = append(sent[i], fmt.Sprintf("m%d-%d", i, len(sent[i])))
		return fmt.Sprintf("channel%d %s", i, sent[i][len(sent[i])-1])
	}
	publish := func() {
		t.Helper()
		for i := range channels {
			w.Want(script+next(i), "(integer) 1")
			w.Want("MULTI", "OK")
			w.Want("PUBLISH "+next(i), "QUEUED")
			w.Want("SET another 1", "QUEUED")
			w.Want("PUBLISH "+next(i), "QUEUED")
			w.Want("EXEC", "1) (integer) 1\n2) OK\n3) (integer) 1")
			w.Want("MULTI", "OK")
			w.Want("PUBLISH "+next(i), "QUEUED")
			w.Want("EXEC", "1) (integer) 1")
		}
	}
	for _, database := range []string{"0", "8"} {
		w.Want("SELECT "+database, "OK")
		publish()
	}
	w.Want(`EVAL "return redis.call('KEYS', 'k*')" 0`, "1) \"key\"")
	for i := range channels { // a transaction of a pinned database takes shard channels of any slot
		shard := harness.DialWire(t, c.Proxy(0).Addr)
		shard.Send(fmt.Appendf(nil, "SSUBSCRIBE shard%d\r\n", i))
		shard.Next()
		w.Want("MULTI", "OK")
		w.Want(fmt.Sprintf("SPUBLISH shard%d m", i), "QUEUED")
		w.Want("SET another 1", "QUEUED")
		w.Want("EXEC", "1) (integer) 1\n2) OK")
		if got, want := string(shard.Next()), fmt.Sprintf("$%d\r\nshard%d\r\n$1\r\nm\r\n", len(fmt.Sprint("shard", i)), i); !strings.HasSuffix(got, want) {
			t.Errorf("a shard channel brings %q, want %q", got, want)
		}
	}
	for i := range 3 {
		c.Node(i).Term(harness.ReadyTimeout)
		publish()
		c.Node(i).Start()
		c.Converge(harness.ReadyTimeout)
		publish()
	}
	got := make(map[string][]string)
	for n := range channels * len(sent[0]) {
		parts := strings.Split(string(listener.Next()), "\r\n")
		if len(parts) < 7 || parts[2] != "message" {
			t.Fatalf("message %d is %q", n, parts)
		}
		got[parts[4]] = append(got[parts[4]], parts[6])
	}
	for i := range channels {
		if name := fmt.Sprint("channel", i); strings.Join(got[name], " ") != strings.Join(sent[i], " ") {
			t.Errorf("%s gets %v, want %v", name, got[name], sent[i])
		}
	}
}
