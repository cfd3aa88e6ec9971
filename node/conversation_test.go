package node

import (
	"path/filepath"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
)

// The files in testdata are conversations, whose notation package conversation explains. Package
// test holds them through a proxy over three nodes.

func TestConversations(t *testing.T) { playAll(t, startLeveled(t).Addr(), false) }

// TestConversationsWithRedis proves the expectations against the original.
func TestConversationsWithRedis(t *testing.T) { playAll(t, redistest.Start(t), true) }

func playAll(t *testing.T, addr string, isRedis bool) {
	for _, file := range conversation.Files(t, "testdata/*.txt") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			conversation.Play(t, file, conversation.Server{Redis: isRedis, Dial: func() conversation.Peer {
				c := dial(t, addr)
				return conversation.Peer{Send: c.sendRaw, Next: c.read}
			}})
		})
	}
}
