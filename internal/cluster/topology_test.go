package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// tableOf returns a table that gives each of the nodes at these addresses an equal run of
// partitions.
func tableOf(addrs ...string) *ring.Table {
	t := &ring.Table{Epoch: 1}
	for i, addr := range addrs {
		t.Nodes = append(t.Nodes, ring.Member{ID: fmt.Sprintf("node-%d", i), Boot: 1, State: ring.Serving, Addr: addr})
	}
	for p := range t.Owner {
		t.Owner[p] = uint16(p * len(addrs) / ring.Partitions)
		t.Follower[p] = ring.NoNode
	}
	return t
}

func TestRangesAreJoined(t *testing.T) {
	table := tableOf("h0:1", "h1:2")
	f := func(change func(), want string) {
		t.Helper()
		change()
		var got []string
		for _, r := range (View{Table: table}).topology("").ranges {
			got = append(got, fmt.Sprintf("%d-%d@%d", r.first, r.last, r.node))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("ranges %s, want %s", s, want)
		}
	}
	f(func() {}, "0-8191@0 8192-16383@1")
	f(func() { table.Owner[0] = 1 }, "0-3@1 4-8191@0 8192-16383@1")
	f(func() { table.Owner[4095] = 0 }, "0-3@1 4-8191@0 8192-16379@1 16380-16383@0")
	f(func() { table.Owner[1] = ring.NoNode }, "0-3@1 8-8191@0 8192-16379@1 16380-16383@0")
}

func TestClusterStateNeedsAllSlots(t *testing.T) {
	table := tableOf("h0:1", "h1:2")
	alone := &Endpoint{ID: "proxy-0"}
	f := func(v View, want string) {
		t.Helper()
		if got := string(appendInfo(nil, resp.RESP2, v)); !strings.Contains(got, want) {
			t.Errorf("CLUSTER INFO %q, want %q in it", got, want)
		}
	}
	f(View{}, "cluster_state:fail\r\ncluster_slots_assigned:0\r\n")
	f(View{Table: table}, "cluster_state:ok\r\ncluster_slots_assigned:16384\r\n")
	f(View{Table: table}, "cluster_known_nodes:2\r\ncluster_size:2\r\n")
	f(View{Table: table, Alone: alone}, "cluster_known_nodes:1\r\ncluster_size:1\r\n")
	f(View{Alone: alone}, "cluster_state:fail\r\n")
	table.Owner[7] = ring.NoNode
	f(View{Table: table}, "cluster_state:fail\r\ncluster_slots_assigned:16380\r\n")
	f(View{Table: table, Alone: alone}, "cluster_state:fail\r\n")
}

// TestAloneIsWhereTheClientCame checks that a proxy names the address to which the client
// connected. Behind a load balancer or a service address, clients cannot reach the proxy's own
// address.
func TestAloneIsWhereTheClientCame(t *testing.T) {
	f := func(e Endpoint, laddr, wantHost string, wantPort int) {
		t.Helper()
		n := View{Alone: &e}.topology(laddr).nodes[0]
		if n.host != wantHost || n.port != wantPort {
			t.Errorf("%+v reached at %s: listed as %s %d, want %s %d", e, laddr, n.host, n.port, wantHost, wantPort)
		}
	}
	f(Endpoint{ID: "p"}, "10.0.0.1:6379", "10.0.0.1", 6379)
	f(Endpoint{ID: "p"}, "[::1]:6379", "::1", 6379)
	f(Endpoint{ID: "p", Host: "cache"}, "10.0.0.1:6379", "cache", 6379)
	f(Endpoint{ID: "p", Host: "cache", Port: 7000}, "10.0.0.1:6379", "cache", 7000)
}

func TestOddAddresses(t *testing.T) {
	f := func(addr, wantHost string, wantPort int) {
		t.Helper()
		if host, port := splitAddr(addr); host != wantHost || port != wantPort {
			t.Errorf("splitAddr(%q) = %q, %d, want %q, %d", addr, host, port, wantHost, wantPort)
		}
	}
	f("h:1", "h", 1)
	f("[::1]:65535", "::1", 65535)
	f("h", "h", 0)
	f("h:redis", "h", 0)
	f("", "", 0)
}

// TestTopologyCache checks that a reply is encoded once for each table.
func TestTopologyCache(t *testing.T) {
	table := tableOf("h0:1")
	s := New(func() View { return View{Table: table, Self: "node-0"} })
	slots := func(v resp.Version) string { return string(s.AppendSlots(nil, v, "")) }
	first := slots(resp.RESP2)
	if again := slots(resp.RESP2); again != first {
		t.Errorf("second reply %q differs from the first %q", again, first)
	}
	if n := len(s.cache.replies); n != 1 {
		t.Errorf("%d replies are kept, want 1", n)
	}
	if shards := string(s.AppendShards(nil, resp.RESP2, "")); shards == first {
		t.Error("SHARDS was answered with SLOTS")
	}
	if three := slots(resp.RESP3); three == first {
		t.Error("a client of RESP3 was answered in RESP2")
	}
	table = tableOf("h0:1", "h1:2")
	if next := slots(resp.RESP2); !strings.Contains(next, NodeID("node-1")) {
		t.Errorf("after a new table: %q", next)
	}
	if n := len(s.cache.replies); n != 1 {
		t.Errorf("%d replies are kept after a new table, want 1", n)
	}
}

func TestMyID(t *testing.T) {
	f := func(v View, wantID string) {
		t.Helper()
		got := string(New(func() View { return v }).AppendMyID(nil))
		if want := "$40\r\n" + NodeID(wantID) + "\r\n"; got != want {
			t.Errorf("MYID of %+v: %q, want %q", v, got, want)
		}
	}
	f(View{Self: "node-0"}, "node-0")
	f(View{Self: "proxy-0", Alone: &Endpoint{ID: "proxy-0"}}, "proxy-0")
}

func TestReplicas(t *testing.T) {
	table := tableOf("h0:1", "h1:2")
	s := New(func() View { return View{Table: table, Self: "node-0"} })
	if got := string(s.AppendReplicas(nil, []byte(NodeID("node-1")))); got != "*0\r\n" {
		t.Errorf("replicas of a node: %q", got)
	}
}

// TestWithoutHooks is about a proxy before its first table.
func TestWithoutHooks(t *testing.T) {
	s := New(nil)
	if got := string(s.AppendSlots(nil, resp.RESP2, "")); got != "*0\r\n" {
		t.Errorf("SLOTS: %q", got)
	}
	if got := string(s.AppendReplicas(nil, []byte("1"))); got != "-ERR Unknown node 1\r\n" {
		t.Errorf("REPLICAS: %q", got)
	}
}

func BenchmarkSlots(b *testing.B) {
	table := tableOf("10.0.0.1:6380", "10.0.0.2:6380", "10.0.0.3:6380")
	for p := range table.Owner { // as ragged as a ring
		table.Owner[p] = uint16(p % 3)
	}
	s := New(func() View { return View{Table: table, Self: "node-0"} })
	dst := make([]byte, 0, 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		s.AppendSlots(dst, resp.RESP2, "")
	}
}
