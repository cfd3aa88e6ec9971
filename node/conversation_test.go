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
func TestConversationsWithRedis(t *testing.T) { playAll(t, redistest.Start(t), true) }

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

func playAll(t *testing.T, addr string, isRedis bool) {
	for _, file := range conversation.Files(t, "testdata/*.txt") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			playFile(t, file, addr, isRedis)
		})
	}
}

func playFile(t *testing.T, file, addr string, isRedis bool) {
	conversation.Play(t, file, conversation.Server{Redis: isRedis, Dial: func() conversation.Peer {
		c := dial(t, addr)
		return conversation.Peer{Send: c.sendRaw, Next: c.read}
	}})
}
