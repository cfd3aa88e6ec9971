package node

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
)

// The files in testdata are conversations, whose notation package conversation explains. Package
// test holds them through a proxy over three nodes.

func TestConversations(t *testing.T) { playAll(t, startLeveled(t).Addr(), false) }

// TestConversationsWithRedis proves the expectations against the original.
func TestConversationsWithRedis(t *testing.T) {
	forOneClient(t)
	playAll(t, redistest.Start(t), true)
}

// TestSlotsAsRedis proves what commands about slots answer against a node of a Redis Cluster.
func TestSlotsAsRedis(t *testing.T) {
	redistest.Want(t, "7.")
	addr := redistest.Start(t, "--cluster-enabled", "yes")
	dial(t, addr).want("CLUSTER ADDSLOTSRANGE 0 16383", "OK")
	eventually(t, "Redis serves", func() bool {
		return strings.Contains(dial(t, addr).do("CLUSTER INFO"), "cluster_state:ok")
	})
	playFile(t, "testdata/slots.txt", addr, false)
}

// TestConversationsInDatabases holds them in another database: with Redis, where its keys are spread, and where it is
// pinned.
func TestConversationsInDatabases(t *testing.T) {
	forOneClient(t) // TestConversations has it watch the handlers
	redis, spread := redistest.Start(t), startLeveled(t)
	pinned := startLeveled(t, func(c *Config) { c.Whole = true })
	pins(t, pinned, "8")
	for name, s := range map[string]conversation.Server{
		"redis": {Dial: dials(t, redis), Redis: true}, "spread": {Dial: dials(t, spread.Addr())}, "pinned": {Dial: dials(t, pinned.Addr()), Pinned: true},
	} {
		s.Database = 8
		for _, file := range conversation.Files(t, "testdata/*.txt") {
			t.Run(name+"/"+filepath.Base(file), func(t *testing.T) { conversation.Play(t, file, s) })
		}
	}
}

func dials(t *testing.T, addr string) func() conversation.Peer {
	return func() conversation.Peer {
		c := dial(t, addr)
		return conversation.Peer{Send: c.sendRaw, Next: c.read}
	}
}

func playAll(t *testing.T, addr string, isRedis bool) {
	for _, file := range conversation.Files(t, "testdata/*.txt") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			playFile(t, file, addr, isRedis)
		})
	}
}

func playFile(t *testing.T, file, addr string, isRedis bool) {
	conversation.Play(t, file, conversation.Server{Redis: isRedis, Dial: dials(t, addr)})
}
