package cluster

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestIdleClients opens ten thousand idle connections. They must cost the proxy little memory and
// other clients no time. One more connection is refused with Redis's error.
func TestIdleClients(t *testing.T) {
	harness.SkipUnderRace(t)
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const active, perClient = 50, 8 << 10
	idle := 10_000 - active
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur < 11_000 {
		idle = int(limit.Cur) / 2
	}
	c := harness.StartCluster(t, 1, 1, "--maxclients", fmt.Sprint(idle+active))
	proxy := c.Proxy(0)
	busy := make([]*harness.Wire, active)
	for i := range busy {
		busy[i] = harness.DialWire(t, proxy.Addr)
		busy[i].Want(fmt.Sprintf("SET k%d %d", i, i), "OK")
	}
	before := harness.Resident(t, proxy)
	for range idle {
		w := harness.DialWire(t, proxy.Addr)
		w.Send(resp.AppendRequest(nil, []byte("GET"), []byte("none")))
		if got := conversation.Text(w.Next()); got != "(nil)" {
			t.Fatalf("an idle client's first reply is %s", got)
		}
		w.In = nil
	}
	each := (harness.Resident(t, proxy) - before) / int64(idle)
	if each > perClient {
		t.Errorf("an idle client takes %d bytes of the proxy, want at most %d", each, perClient)
	}
	slowest := time.Duration(0)
	for round := range 20 {
		for i, w := range busy {
			sent := time.Now()
			w.Want(fmt.Sprintf("GET k%d", i), fmt.Sprintf("%q", fmt.Sprint(i)))
			slowest = max(slowest, time.Since(sent))
		}
		if slowest > 2*time.Second {
			t.Fatalf("an active client waited %v in round %d", slowest, round)
		}
	}
	harness.DialWire(t, proxy.Addr).Want("PING", "PONG") // an operator on this machine
	refused := harness.DialWire(t, proxy.Addr)
	if got := conversation.Text(refused.Next()); got != "(error) ERR max number of clients reached" {
		t.Errorf("one too many hears %s", got)
	}
	t.Logf("%d idle clients: %d bytes each; the slowest of 1,000 replies to others took %v", idle, each, slowest)
}
