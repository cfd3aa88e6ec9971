package cluster

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
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
		// While a stream lags, it has what a full node keeps for the eight bytes of a first expiry.
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

// TestResidentMemory fills the buffers of many connections beside a full node. The resident memory
// must stay within 1.1 times the limit.
func TestResidentMemory(t *testing.T) {
	harness.SkipUnderRace(t) // its own memory is resident, too
	t.Parallel()
	const limit, values = 96 << 20, 30_000
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 1, NodeFlags: []string{"--memory", "96mb"}})
	n := c.Node(0)
	fill := func() {
		w := harness.DialWire(t, n.Addr)
		value := []byte(strings.Repeat("v", 4000))
		for i := 0; i < values; i += 100 {
			var batch []byte
			for j := range 100 {
				batch = resp.AppendRequest(batch, []byte("SET"), fmt.Appendf(nil, "key:%d", i+j), value)
			}
			w.Send(batch)
			for range 100 {
				// On a busy machine a node may be fenced for a moment, and answers TRYAGAIN.
				if got := conversation.Text(w.Next()); got != "OK" && !strings.Contains(got, "TRYAGAIN") {
					t.Fatalf("SET answers %s", got)
				}
			}
		}
	}
	check := func(when string) {
		t.Helper()
		if peak := peakResident(t, n); peak > limit*110/100 {
			t.Errorf("%s up to %d MiB were resident, the limit is %d", when, peak>>20, limit>>20)
		}
		s := harness.Scrape(t, n.Admin)
		used, _ := s.Sum("dunlin_node_memory_used_bytes")
		if classes, _ := s.Sum("dunlin_node_memory_bytes"); classes != used || used > limit {
			t.Errorf("%s %v bytes are used, by class %v", when, used, classes)
		}
	}
	fill()
	check("with values")

	request, reply := []byte("*2001\r\n$4\r\nMSET\r\n"), []byte("*1001\r\n$4\r\nMGET\r\n")
	for i := range 1000 {
		key := fmt.Appendf(nil, "key:%d", values-1-i)
		request = fmt.Appendf(request, "$%d\r\n%s\r\n$1000\r\n%s\r\n", len(key), key, strings.Repeat("w", 1000))
		reply = fmt.Appendf(reply, "$%d\r\n%s\r\n", len(key), key)
	}
	var all []net.Conn
	for i := range 150 {
		w := harness.DialWire(t, n.Addr)
		all = append(all, w.Conn)
		if i%2 == 0 {
			w.Send(request[:len(request)-10]) // never ends
		} else {
			w.Send(reply) // is never read
		}
	}
	harness.Eventually(t, harness.ReplyTimeout, "buffers fill their share", func() bool {
		starved, _ := harness.Scrape(t, n.Admin).Sum("dunlin_node_starved_connections_total")
		return starved > 0
	}, func() string { return "" })
	check("with buffers")
	fill()
	check("with values beside buffers")
	for _, conn := range all {
		conn.Close()
	}
	fill()
	check("with values in the place of buffers")
	harness.DialWire(t, n.Addr).Want("PING", "PONG")
}

// peakResident returns the highest resident memory that the process has had.
func peakResident(t *testing.T, m *harness.Member) (bytes int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &bytes); err == nil {
			return bytes << 10
		}
	}
	t.Fatal("the system does not say")
	return 0
}
