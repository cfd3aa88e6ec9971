package proxy

import (
	"testing"

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
