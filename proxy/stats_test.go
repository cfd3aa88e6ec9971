package proxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Bytes between proxy and nodes do not count as clients' traffic, and the traffic of clients that
// are gone stays counted.
func TestClientTraffic(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	const rounds = 3
	for range rounds {
		cl := c.dial()
		cl.send("EXISTS a b")
		cl.want(":0")
		cl.Close()
	}
	eventually(t, "all clients are gone", func() bool { return c.stats().Clients == 0 })
	in := rounds * len(resp.AppendRequest(nil, []byte("EXISTS"), []byte("a"), []byte("b")))
	out := rounds * len(":0\r\n")
	if s := c.stats(); s.ClientBytesIn != uint64(in) || s.ClientBytesOut != uint64(out) {
		t.Errorf("clients sent %d bytes and were sent %d, want %d and %d", s.ClientBytesIn, s.ClientBytesOut, in, out)
	}
}

// CLIENT INFO counts the requests and bytes of its connection.
func TestClientInfoCounts(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	cl := c.dial()
	cl.send("EXISTS a b", "PING")
	cl.want(":0", "+PONG")
	cl.send("CLIENT INFO")
	in := 0
	for _, line := range []string{"EXISTS a b", "PING", "CLIENT INFO"} {
		var args [][]byte
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(word))
		}
		in += len(resp.AppendRequest(nil, args...))
	}
	want := fmt.Sprintf(" io-thread=0 tot-net-in=%d tot-net-out=%d tot-cmds=2", in, len(":0\r\n+PONG\r\n"))
	if got := cl.reply(); !strings.Contains(got, want) {
		t.Errorf("CLIENT INFO says %s, want %s", got, want)
	}
}

// After CONFIG RESETSTAT, INFO counts anew, and what is exported goes on.
func TestResetStats(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	cl := c.dial()
	cl.send("NOSUCH", "SET a 1", "GET a")
	cl.want("-ERR unknown command 'NOSUCH', with args beginning with: ", "+OK", "$1 1")
	c.proxy.resetStats()
	eventually(t, "the counters are reset", func() bool { return c.proxy.base.Load() != nil })
	cl.send("GET a")
	cl.want("$1 1")
	now := c.stats()
	if now.CommandsTotal() != 3 || now.Refused != 1 || now.Accepted != 1 {
		t.Errorf("after a reset, %d commands, %d refused, %d connections", now.CommandsTotal(), now.Refused, now.Accepted)
	}
	c.proxy.cached.Store(&now)
	info := string(c.proxy.appendInfo(nil, resp.RESP2, [][]byte{[]byte("stats")}, figures.Info{}))
	for _, want := range []string{"total_connections_received:0", "total_commands_processed:1", "total_error_replies:0",
		"total_net_input_bytes:20\r\n"} {
		if !strings.Contains(info, "\r\n"+want) {
			t.Errorf("after a reset, INFO has no %s:\n%s", want, info)
		}
	}
}
