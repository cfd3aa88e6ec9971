package session

import (
	"path/filepath"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
)

// The files in testdata are scripts, whose notation package conversation explains. Package
// test/clients replays them with a real node and a real proxy.

func eachScript(t *testing.T, f func(t *testing.T, s *conversation.Script)) {
	for _, file := range conversation.Files(t, "testdata/*.txt") {
		s := conversation.ReadScript(t, file)
		t.Run(filepath.Base(file), func(t *testing.T) { f(t, s) })
	}
}

func TestConversations(t *testing.T) {
	eachScript(t, func(t *testing.T, s *conversation.Script) {
		s.Hold(t, &ourEnd{server: testServer(s.Password)}, func(conversation.Dialog) bool { return false })
	})
}

// TestConversationsWithRedis shows that the files say what Redis does.
func TestConversationsWithRedis(t *testing.T) {
	eachScript(t, func(t *testing.T, s *conversation.Script) {
		var args []string
		if s.Password != "" {
			args = append(args, "--requirepass", s.Password)
		}
		if s.Cluster {
			args = append(args, "--cluster-enabled", "yes")
		}
		s.Hold(t, startRedis(t, args...), func(d conversation.Dialog) bool { return d.Ours })
	})
}

// startRedis starts a real redis-server, which runs for one test.
func startRedis(t *testing.T, args ...string) *conversation.Socket {
	t.Helper()
	redistest.Want(t, "7.")
	return &conversation.Socket{Addr: redistest.Start(t, args...)}
}
