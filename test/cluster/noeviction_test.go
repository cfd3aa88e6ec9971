package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestNoEvictionCluster checks that full nodes refuse commands that need memory, through a proxy as
// at a node, and execute all others.
func TestNoEvictionCluster(t *testing.T) {
	t.Parallel()
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 2, Proxies: 1,
		NodeFlags: []string{"--memory", "64mb", "--eviction", "noeviction"}})
	const oom = "(error) OOM command not allowed when used memory > 'maxmemory'."
	w := harness.DialWire(t, c.Proxy(0).Addr)
	value := strings.Repeat("v", 4000)
	set := func(i int) string { return fmt.Sprintf("SET key:%d %s", i, value) }
	stored, refused := 0, 0
	for i := 0; refused < 1000; i++ {
		switch got := conversation.Text(w.Do(set(i))); got {
		case "OK":
			stored++
		case oom:
			refused++
		default:
			t.Fatalf("SET answers %s", got)
		}
		if stored > 64<<20/2000 {
			t.Fatal("more is stored than there is memory for")
		}
	}
	for i := range 200 {
		w.Want(fmt.Sprintf("STRLEN key:%d", i), "(integer) 4000")
		// Of what a full node keeps for the eight bytes of a first expiry, a stream that lags leaves half.
		// Connections may have that for a moment.
		harness.Eventually(t, harness.ReadyTimeout, "EXPIRE works on a full node", func() bool {
			return conversation.Text(w.Do(fmt.Sprintf("EXPIRE key:%d 1000", i))) == "(integer) 1"
		})
	}
	w.Want("MGET key:0 nothing", "1) \""+value+"\"\n2) (nil)")
	w.Want("DEL key:0 key:1 key:2 key:3", "(integer) 4")
	w.Want("CONFIG GET maxmemory-policy", "1) \"maxmemory-policy\"\n2) \"noeviction\"")
	if info := string(w.Do("INFO memory")); !strings.Contains(info, "maxmemory_policy:noeviction") ||
		!strings.Contains(info, fmt.Sprintf("maxmemory:%d", 2*64<<20)) {
		t.Errorf("INFO memory of the proxy says\n%s", info)
	}
	for _, m := range c.ByRole("node") {
		if evicted, _ := harness.Scrape(t, m.Admin).Sum("dunlin_node_evicted_keys_total"); evicted > 0 {
			t.Errorf("%s evicted %v keys", m.ID, evicted)
		}
	}

	w.Want("CONFIG SET maxmemory-policy allkeys-lru", "OK")
	for i := range 1000 {
		w.Want(set(1_000_000+i), "OK")
	}
	w.Want("CONFIG SET maxmemory 100mb", "OK")
	for _, policy := range []string{"allkeys-lfu", "volatile-random", "allkeys-lru"} {
		w.Want("CONFIG SET maxmemory-policy "+policy, "OK")
		w.Want("CONFIG GET maxmemory-policy", "1) \"maxmemory-policy\"\n2) \""+policy+"\"")
		if info := string(w.Do("INFO memory")); !strings.Contains(info, "maxmemory_policy:"+policy+"\r\n") {
			t.Errorf("INFO memory of the proxy says\n%s", info)
		}
	}
	for _, m := range c.ByRole("node") {
		at := harness.DialWire(t, m.Addr)
		at.Want("CONFIG GET maxmemory-policy", "1) \"maxmemory-policy\"\n2) \"allkeys-lru\"")
		at.Want("CONFIG GET maxmemory", "1) \"maxmemory\"\n2) \"104857600\"")
	}
}
