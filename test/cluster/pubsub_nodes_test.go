package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// nodeGaps counts the gaps of a node's own subscribers.
const nodeGaps = "dunlin_node_pubsub_gaps_total"

// startNodes starts a cluster whose clients connect to the nodes. A proxy tells when the cluster has its level.
func startNodes(t *testing.T, nodes int) *harness.Cluster {
	t.Helper()
	c := harness.StartCluster(t, nodes, 1)
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	return c
}

// TestPubSubAtNodes: clients of nodes subscribe and publish at any node, as in a Redis Cluster. PUBLISH counts the
// subscribers of all members, and PUBSUB tells of the whole cluster at each.
func TestPubSubAtNodes(t *testing.T) {
	t.Parallel()
	c := startNodes(t, 3)
	var channels []string // of all nodes
	for i := range 30 {
		channels = append(channels, fmt.Sprintf("channel-%d", i))
	}
	s := subscribe(t, c.Node(0).Addr, "SUBSCRIBE", channels...)
	pattern := subscribe(t, c.Node(1).Addr, "PSUBSCRIBE", "channel-*")
	proxied := subscribe(t, c.Proxy(0).Addr, "SUBSCRIBE", channels[:10]...)
	for at, m := range []*harness.Member{c.Node(0), c.Node(1), c.Node(2), c.Proxy(0)} {
		p := harness.DialWire(t, m.Addr)
		p.Want("PUBSUB NUMPAT", "(integer) 1")
		p.Want("PUBSUB NUMSUB channel-1 channel-20 none", `1) "channel-1"
2) (integer) 2
3) "channel-20"
4) (integer) 1
5) "none"
6) (integer) 0`)
		if got := string(p.Do("PUBSUB CHANNELS channel-2?")); !strings.HasPrefix(got, "*10\r\n") {
			t.Errorf("PUBSUB CHANNELS at %s answers %q", m.ID, got)
		}
		for i, name := range channels {
			want := 2
			if i < 10 {
				want = 3
			}
			p.Want(fmt.Sprintf("PUBLISH %s %d-%d", name, at, i), fmt.Sprintf("(integer) %d", want))
		}
	}
	for _, w := range []struct {
		wire     *harness.Wire
		channels int
	}{{s, 30}, {pattern, 30}, {proxied, 10}} {
		seen := map[string]int{} // by channel, how many publishers have come
		for range 4 * w.channels {
			got := payload(w.wire.Next())
			at, i, _ := strings.Cut(got, "-")
			if fmt.Sprint(seen[i]) != at {
				t.Fatalf("message %s comes, behind those of %d publishers", got, seen[i])
			}
			seen[i]++
		}
	}
	s.Send([]byte("UNSUBSCRIBE channel-1\r\n"))
	if got := string(s.Next()); !strings.HasSuffix(got, "channel-1\r\n:29\r\n") {
		t.Errorf("UNSUBSCRIBE is answered by %q", got)
	}
	p := harness.DialWire(t, c.Node(2).Addr)
	p.Want("PUBLISH channel-1 m", "(integer) 2")
	s.Conn.Close()
	harness.Eventually(t, 10*time.Second, "a subscriber that has gone does not count", func() bool {
		return string(p.Do("PUBLISH channel-20 m")) == ":1\r\n"
	})
	own := subscribe(t, c.Node(0).Addr, "SUBSCRIBE", channels...)
	for _, name := range channels { // who publishes on its own channel gets the reply first
		own.Send([]byte("PUBLISH " + name + " own\r\n"))
		if got := string(own.Next()); !strings.HasPrefix(got, ":") {
			t.Errorf("before the reply comes %q", got)
		}
		if got := payload(own.Next()); got != "own" {
			t.Errorf("behind the reply comes %q", got)
		}
	}
	own.Send([]byte("UNSUBSCRIBE\r\n"))
	for range channels {
		own.Next()
	}
	own.Want("PING", "PONG")
	if n, ok := harness.Scrape(t, c.Node(0).Admin).Sum(nodeGaps); n > 0 || !ok {
		t.Errorf("%v gaps are counted, but nothing was lost", n)
	}
}

// TestPubSubAtNodesWhileOthersJoinAndLeave is TestPubSubWhileNodesJoinAndLeave for clients of nodes.
func TestPubSubAtNodesWhileOthersJoinAndLeave(t *testing.T) {
	t.Parallel()
	c := startNodes(t, 3)
	publishWhileNodesJoinAndLeave(t, c, c.Node(0), c.Node(1), c.Node(2), nodeGaps)
}

// TestPubSubAtNodesAfterOneDies: subscriptions go on at the next owners, and the gap is counted.
func TestPubSubAtNodesAfterOneDies(t *testing.T) {
	t.Parallel()
	c := startNodes(t, 3)
	var channels []string
	for i := range 50 {
		channels = append(channels, fmt.Sprintf("c%d", i))
	}
	s := subscribe(t, c.Node(0).Addr, "SUBSCRIBE", channels...)
	c.Node(2).Kill()
	p := harness.DialWire(t, c.Node(1).Addr)
	harness.Eventually(t, 30*time.Second, "PUBLISH counts the subscriber again", func() bool {
		for _, name := range channels {
			if got := string(p.Do("PUBLISH " + name + " again")); got != ":1\r\n" {
				return false
			}
		}
		return true
	})
	for _, name := range channels {
		p.Want("PUBLISH "+name+" last", "(integer) 1")
	}
	for last := 0; last < len(channels); {
		if payload(s.Next()) == "last" {
			last++
		}
	}
	if gaps, _ := harness.Scrape(t, c.Node(0).Admin).Sum(nodeGaps); gaps == 0 {
		t.Error("no gap is counted")
	}
}

// TestEventsAtNodes: clients of nodes hear of changes at all nodes.
func TestEventsAtNodes(t *testing.T) {
	t.Parallel()
	c := startNodes(t, 3)
	p := harness.DialWire(t, c.Proxy(0).Addr)
	p.Want("CONFIG SET notify-keyspace-events KEA", "OK")
	s := subscribe(t, c.Node(0).Addr, "SUBSCRIBE", "__keyevent@0__:set")
	changed := map[string]bool{}
	for i := range 20 {
		key := fmt.Sprintf("k%d", i)
		p.Want("SET "+key+" v", "OK")
		changed[key] = true
	}
	for range 20 {
		key := payload(s.Next())
		if !changed[key] {
			t.Fatalf("%q is told twice, or has not changed", key)
		}
		delete(changed, key)
	}
}
