package gossip

import (
	"fmt"
	"net"
	"testing"
)

func TestSplitHostPort(t *testing.T) {
	f := func(addr, wantHost string, wantPort int) {
		t.Helper()
		host, port, err := splitHostPort(addr, DefaultPort)
		if err != nil || host != wantHost || port != wantPort {
			t.Errorf("splitHostPort(%q) = %q, %d, %v, want %q, %d", addr, host, port, err, wantHost, wantPort)
		}
	}
	f("dunlin-node", "dunlin-node", DefaultPort)
	f("dunlin-node:1", "dunlin-node", 1)
	f("10.0.0.1", "10.0.0.1", DefaultPort)
	f("10.0.0.1:1", "10.0.0.1", 1)
	f("fd00::1", "fd00::1", DefaultPort) // as Kubernetes gives a pod its address
	f("[fd00::1]:1", "fd00::1", 1)
	f(":1", "", 1)
	for _, bad := range []string{"host:port", "host:1:2", "host:65536"} {
		if host, port, err := splitHostPort(bad, DefaultPort); err == nil {
			t.Errorf("splitHostPort(%q) = %q, %d, want an error", bad, host, port)
		}
	}
}

// TestIPv6 starts members as the pods of a cluster that has IPv6 alone: they listen everywhere, and
// each is told its address.
func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("skipped: no IPv6: %v", err)
	}
	l.Close()
	w := newWorld(t)
	start := func(id string, join ...*testAgent) *testAgent {
		return w.start(id, join, func(c *Config) {
			c.Bind, c.Advertise = fmt.Sprintf("0.0.0.0:%d", freePort(t)), "::1"
		})
	}
	a := start("a")
	b := start("b", a)
	w.agree([]*testAgent{a, b}, "a", "b")
}
