package differential

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/node"
	"github.com/dunlin-cache/dunlin/proxy"
	"github.com/dunlin-cache/dunlin/ring"
)

// The servers of most comparisons run in this process, and nothing is due before patient has passed: a
// busy machine can hold them up, and still no node is fenced, no pipe breaks, and no command is refused.
// So every difference is one of commands.
const patient = time.Hour

// server is one of those whose replies are compared, the real one first.
type server struct{ name, addr string }

// startServers starts a redis-server, a node that has all partitions, and a proxy with three nodes.
// The cluster has the level of this build from the beginning.
func startServers(t *testing.T) []server {
	t.Helper()
	real := redistest.Start(t)
	alone := startNodes(t, 1)
	table := startNodes(t, 3)
	p, err := proxy.Start(proxy.Config{ID: "p1", Boot: 1, Listen: "127.0.0.1:0", Group: startLoops(t), Log: quiet,
		Patience: patient, Silence: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	p.SetTable(table)
	return []server{{"redis-server", real}, {"node", alone.Nodes[0].Addr}, {"proxy", p.Addr()}}
}

var quiet = slog.New(slog.DiscardHandler)

func startLoops(t *testing.T) *netloop.Group {
	t.Helper()
	loops, err := netloop.NewGroup(netloop.Config{Loops: 1, Logger: quiet, Stall: patient, Answer: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(loops.Close)
	return loops
}

// startNodes starts nodes, and returns the table that they obey.
func startNodes(t *testing.T, count int) *ring.Table {
	t.Helper()
	loops := startLoops(t)
	var nodes []*node.Node
	var members []ring.Member
	for i := range count {
		id := fmt.Sprintf("n%d", i+1)
		n, err := node.Start(node.Config{ID: id, Boot: 1, Listen: "127.0.0.1:0", Memory: 512 << 20,
			Eviction: "noeviction", Group: loops, Log: quiet, StallLimit: patient})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Close() })
		nodes = append(nodes, n)
		members = append(members, ring.Member{ID: id, Boot: 1, Role: ring.RoleNode, State: ring.Serving,
			Addr: n.Addr(), Level: ring.Level, Fingerprint: ring.Fingerprint()})
	}
	table := ring.Plan(nil, members, nil, members[0], 1, func() uint64 { return 42 })
	table.Level = ring.Level
	for _, n := range nodes {
		n.SetTable(table)
	}
	return table
}

// redisVersion returns that of the real server as a number: 802 is 8.2.
func redisVersion(t *testing.T) int {
	t.Helper()
	numbers := strings.SplitN(redistest.Version(t), ".", 3)
	major, _ := strconv.Atoi(numbers[0])
	minor, _ := strconv.Atoi(numbers[1])
	return 100*major + minor
}
