package cluster

import (
	"path/filepath"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestConversations checks that a proxy with three nodes answers as a single server does.
func TestConversations(t *testing.T) {
	t.Parallel()
	// With one copy, WAIT has no follower to wait for.
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 3, Proxies: 1, NodeFlags: []string{"--copies", "1"}})
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	playAll(t, c.Proxy(0).Addr, false, "testdata/*.txt", "../../node/testdata/*.txt")
}

// TestConversationsInDatabases checks the same in other databases: one whose keys are spread, and a pinned one.
func TestConversationsInDatabases(t *testing.T) {
	t.Parallel()
	c := harness.StartClusterWith(t, harness.StartOptions{
		Nodes: 3, Proxies: 1, NodeFlags: []string{"--copies", "1", "--pinned-databases", "8"},
	})
	pinnedReady(t, c, "8")
	for name, s := range map[string]conversation.Server{"spread": {Database: 3}, "pinned": {Database: 8, Pinned: true}} {
		s.Dial = dials(t, c.Proxy(0).Addr)
		for _, file := range conversation.Files(t, "testdata/*.txt", "../../node/testdata/*.txt") {
			t.Run(name+"/"+filepath.Base(file), func(t *testing.T) { conversation.Play(t, file, s) })
		}
	}
}

// TestConversationsWithRedis checks the expectations of this package's files against Redis. Package
// node does the same with its own.
func TestConversationsWithRedis(t *testing.T) {
	t.Parallel()
	playAll(t, redistest.Start(t), true, "testdata/*.txt")
}

func playAll(t *testing.T, addr string, isRedis bool, patterns ...string) {
	for _, file := range conversation.Files(t, patterns...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			conversation.Play(t, file, conversation.Server{Redis: isRedis, Dial: dials(t, addr)})
		})
	}
}

func dials(t *testing.T, addr string) func() conversation.Peer {
	return func() conversation.Peer {
		w := harness.DialWire(t, addr)
		return conversation.Peer{Send: w.Send, Next: w.Next}
	}
}
