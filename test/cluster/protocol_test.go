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

// TestConversationsWithRedis checks the expectations of this package's files against Redis. Package
// node does the same with its own.
func TestConversationsWithRedis(t *testing.T) {
	t.Parallel()
	playAll(t, redistest.Start(t), true, "testdata/*.txt")
}

func playAll(t *testing.T, addr string, isRedis bool, patterns ...string) {
	for _, file := range conversation.Files(t, patterns...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			conversation.Play(t, file, conversation.Server{Redis: isRedis, Dial: func() conversation.Peer {
				w := harness.DialWire(t, addr)
				return conversation.Peer{Send: w.Send, Next: w.Next}
			}})
		})
	}
}
