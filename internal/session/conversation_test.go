package session

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
)

// The files in testdata are scripts, whose notation package conversation explains. Package test holds them with a real node
// and a real proxy.

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

// realEnd is a real redis-server that runs for one test.
type realEnd struct{ conversation.Socket }

// startRedis starts a server with one database.
func startRedis(t *testing.T, args ...string) *realEnd {
	t.Helper()
	e := &realEnd{conversation.Socket{Addr: redistest.Start(t, append([]string{"--databases", "1"}, args...)...)}}
	if version := redistest.Version(t); !strings.HasPrefix(version, "7.") {
		t.Skipf("redis-server is of version %q, want 7 to compare with", version)
	}
	return e
}

func (e *realEnd) say(t *testing.T, request string) string {
	t.Helper()
	reply, _ := e.Talk(t, conversation.Words(t, request), false)
	return string(reply)
}
