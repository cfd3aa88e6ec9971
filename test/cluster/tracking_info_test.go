package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// infoNumbers returns the numbers of a server's INFO.
func infoNumbers(w *harness.Wire) map[string]int {
	w.T.Helper()
	numbers := make(map[string]int)
	for line := range strings.Lines(string(w.Do("INFO"))) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			if n, err := strconv.Atoi(value); err == nil {
				numbers[name] = n
			}
		}
	}
	return numbers
}

// TestTrackingInInfo: INFO shows who tracks, and what: a node's part at a node, the cluster's at a proxy.
func TestTrackingInInfo(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 1)
	proxy := c.Proxy(0).Addr
	harness.AwaitLevel(t, proxy)
	const tracked = 30
	reads, follows, asks := harness.DialWire(t, proxy), harness.DialWire(t, proxy), harness.DialWire(t, proxy)
	var nodes []*harness.Wire
	for _, n := range c.ByRole("node") {
		nodes = append(nodes, harness.DialWire(t, n.Addr))
	}
	from := 0
	want := func(what string, clients, keys, prefixes int) {
		t.Helper()
		last := ""
		harness.Eventually(t, harness.ReadyTimeout, what, func() bool {
			for i := from; i < tracked; i++ { // again: a partition that moves, and a cluster may begin so, is tracked no more
				reads.Do(fmt.Sprint("GET ", i))
			}
			all, sum := infoNumbers(asks), 0
			for _, n := range nodes {
				own := infoNumbers(n)
				sum += own["tracking_total_keys"]
				if own["tracking_total_prefixes"] != prefixes || own["tracking_clients"] != 0 {
					sum = -1 << 20
				}
			}
			last = fmt.Sprint(all["tracking_clients"], all["tracking_total_keys"], all["tracking_total_items"],
				all["tracking_total_prefixes"], ", sum of the nodes' keys ", sum)
			return all["tracking_clients"] == clients && all["tracking_total_keys"] == keys && sum == keys &&
				all["tracking_total_items"] == keys && all["tracking_total_prefixes"] == prefixes
		}, func() string { return last })
	}
	reads.Do("HELLO 3")
	reads.Want("CLIENT TRACKING ON", "OK")
	follows.Do("HELLO 3")
	follows.Want("CLIENT TRACKING ON BCAST PREFIX x PREFIX y", "OK")
	want("all is tracked", 2, tracked, 2)
	from = 1
	asks.Do("SET 0 v")
	want("a key has changed", 2, tracked-1, 2)
	follows.Send([]byte("CLIENT TRACKING OFF\r\n"))
	reply := follows.Next()
	for len(reply) > 0 && reply[0] == '>' { // a partition has moved, so everything is invalid
		reply = follows.Next()
	}
	if string(reply) != "+OK\r\n" {
		t.Fatalf("CLIENT TRACKING OFF answers %q", reply)
	}
	want("a client tracks no more", 1, tracked-1, 0)
}
