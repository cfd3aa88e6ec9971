package session

import (
	"bytes"
	"sync"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/cluster"
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// FuzzRequests checks that every request gets exactly one reply, or that the caller gets an action
// instead.
func FuzzRequests(f *testing.F) {
	for _, request := range []string{
		"PING", "HELLO\x003\x00AUTH\x00default\x00x\x00SETNAME\x00n", "CLIENT\x00LIST\x00ID\x001",
		"CONFIG\x00SET\x00timeout\x001", "CONFIG\x00GET\x00[a-", "COMMAND\x00GETKEYS\x00MSET\x00a\x00b",
		"COMMAND\x00INFO\x00config|get", "CLUSTER\x00COUNTKEYSINSLOT\x007", "CLIENT\x00SETINFO\x00lib-name\x00x\r\n",
		"COMMAND\x00LIST\x00FILTERBY\x00PATTERN\x00*", "nosuch\x00\r\n",
	} {
		f.Add([]byte(request), false)
		f.Add([]byte(request), true)
	}
	f.Fuzz(func(t *testing.T, request []byte, resp3 bool) {
		s := testServer("")
		st := s.NewState("127.0.0.1:1", "127.0.0.1:2", 0)
		if resp3 {
			st.Version = resp.RESP3
		}
		args := bytes.Split(request, []byte{0})
		c := command.Lookup(args[0])
		out, action, refused := s.Refuse(st, c, args, nil)
		if !refused {
			var ok bool
			if out, action, ok = s.Do(st, c, args, nil); !ok {
				return
			}
		}
		if action == ActionClose || action == ActionClientList || action == ActionClientKill {
			if len(out) != 0 {
				t.Fatalf("%q: action %d with a reply %q", args, action, out)
			}
			return
		}
		var scan resp.Scanner
		if scan.Scan(out) != resp.Done || scan.Len() != len(out) {
			t.Fatalf("%q: %q is not one reply", args, out)
		}
	})
}

// TestLoopsShareAServer is for the race detector. Each goroutine plays a loop with a connection of
// its own.
func TestLoopsShareAServer(t *testing.T) {
	table := &ring.Table{Epoch: 1, Nodes: []ring.Member{{ID: "node-0", Addr: "h0:1"}}}
	s := NewServer(Options{Passwords: NewPasswords("secret"), Cluster: cluster.New(func() cluster.View { return cluster.View{Table: table} })})
	requests := []string{
		"HELLO 3 AUTH default secret SETNAME x", "CONFIG SET timeout 5 maxclients 9", "CONFIG GET *",
		"CLUSTER SLOTS", "CLUSTER NODES", "COMMAND", "CLIENT INFO", "AUTH wrong", "RESET",
	}
	var loops sync.WaitGroup
	for range 4 {
		loops.Go(func() {
			st := s.NewState("", "", 0)
			for range 20 {
				for _, request := range requests {
					args := conversation.Words(t, request)
					s.Do(st, command.Lookup(args[0]), args, nil)
				}
				s.Blocked()
			}
		})
	}
	loops.Wait()
	if got := s.AuthFailures(); got != 80 {
		t.Errorf("AuthFailures() = %d, want 80", got)
	}
	seen := s.NewState("", "", 0).ID
	if seen != 5 {
		t.Errorf("the fifth connection has ID %d, want 5", seen)
	}
}
