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
