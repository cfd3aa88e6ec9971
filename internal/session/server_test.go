package session

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/about"
	"github.com/dunlin-cache/dunlin/internal/cluster"
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// testServer is like a node's, with a limit of memory that can be set to
// 1000 bytes or more.
func testServer(password string) *Server {
	var limit int64
	return NewServer(Options{
		Passwords: NewPasswords(password),
		Config: config.New(config.Options{
			Port:      6379,
			Policy:    "noeviction",
			MaxMemory: func() int64 { return limit },
			SetMaxMemory: func(n int64) error {
				if n < 1000 {
					return fmt.Errorf("cannot limit memory to %d bytes", n)
				}
				limit = n
				return nil
			},
			SetPolicy: func(name string) error { return nil },
		}),
		Cluster: cluster.New(nil),
	})
}

// ourEnd handles requests as a node does, on a connection without a socket.
type ourEnd struct {
	server *Server
	state  *State
}

func (e *ourEnd) Connect(*testing.T) {
	e.state = e.server.NewState("127.0.0.1:50000", "127.0.0.1:6379", e.server.o.Clock())
	e.state.Client = e
}

func (e *ourEnd) Talk(t *testing.T, args [][]byte, _ bool) (reply []byte, closed bool) {
	t.Helper()
	request := bytes.Join(args, []byte{0})
	defer func() {
		if !bytes.Equal(request, bytes.Join(args, []byte{0})) {
			t.Errorf("%q was changed", request)
		}
	}()
	c := command.Lookup(args[0])
	reply, action, refused := e.server.Refuse(e.state, c, args, nil)
	if refused {
		return reply, action == ActionClose
	}
	reply, action, ok := e.server.Do(e.state, c, args, nil)
	if !ok {
		t.Fatalf("%q: Do does not know it", args)
	}
	switch action {
	case ActionClientList, ActionClientKill, ActionClientUnblock, ActionPause:
		about := NewEveryone(action, e.state, args, 1)
		alone := new(Roster)
		alone.Add(e.state)
		return carryOut(about, e.server, alone)
	}
	return reply, action == ActionCloseAfterReply || action == ActionClose
}

// carryOut executes a command about the clients of some loops, as a node does.
func carryOut(about *Everyone, s *Server, loops ...*Roster) (reply []byte, suicide bool) {
	var lines []byte
	for more := true; more; {
		for i, clients := range loops {
			if about.action == ActionPause {
				p := &Pauser{Server: s, Clients: clients, Now: s.o.Clock, After: func(time.Duration, func()) func() { return func() {} }}
				p.Obey()
				about.Pause(i, p)
			} else {
				about.Visit(i, s.o.Clock(), clients)
			}
		}
		var part []byte
		part, more = about.Gather()
		lines = append(lines, part...)
	}
	reply, suicide = about.Reply()
	return append(reply, lines...), suicide
}

// As the only Client of its server, ourEnd has these methods.
func (e *ourEnd) StateNow() *State { return e.state }
func (e *ourEnd) Kill()            {}
func (e *ourEnd) Unblock()         {}

func (e *ourEnd) WakeThen(_ []byte, then func(ended bool)) { then(true) }

// say is Talk for tests that write a request as words.
func (e *ourEnd) say(t *testing.T, request string) string {
	t.Helper()
	reply, _ := e.Talk(t, conversation.Words(t, request), false)
	return string(reply)
}

func connected(t *testing.T, s *Server) *ourEnd {
	e := &ourEnd{server: s}
	e.Connect(t)
	return e
}

// TestHandlersAreTheLocalRows checks that each row that is built and local has a handler, and that
// no other row has one.
func TestHandlersAreTheLocalRows(t *testing.T) {
	for id := command.ID(1); id < command.NumIDs; id++ {
		c := command.ByID(id)
		isContainer := c.Subs != nil && c.ID != command.CommandCmd
		if _, _, subscribes := SubscriptionOf(id); subscribes || id == command.Exec || id == command.Watch {
			continue // the node and the proxy execute these themselves
		}
		local := c.Built && c.Route == command.Local && !isContainer && c.Flags&command.Internal == 0
		if has := handlers[id] != nil || about.Answers[id] != nil; has != local {
			t.Errorf("%s: has a handler: %v, is built and local: %v", c.Name, has, local)
		}
		if handlers[id] != nil && about.Answers[id] != nil {
			t.Errorf("%s has a handler here and in internal/about", c.Name)
		}
	}
}

func TestDoLeavesOtherCommands(t *testing.T) {
	s := testServer("")
	st := s.NewState("", "", 0)
	args := conversation.Words(t, "GET k")
	out, a, ok := s.Do(st, command.Lookup(args[0]), args, []byte("before"))
	if ok || a != ActionNone || string(out) != "before" {
		t.Errorf("Do(GET) = %q, %v, %v, want nothing done", out, a, ok)
	}
	if st.LastCmd != 0 {
		t.Errorf("LastCmd = %d, want it left to the caller", st.LastCmd)
	}
}

func TestActions(t *testing.T) {
	f := func(request string, want Action) {
		t.Helper()
		s := testServer("")
		st := s.NewState("", "", 0)
		args := conversation.Words(t, request)
		if _, a, _ := s.Do(st, command.Lookup(args[0]), args, nil); a != want {
			t.Errorf("%s: action %d, want %d", request, a, want)
		}
	}
	f("PING", ActionNone)
	f("QUIT", ActionCloseAfterReply)
	f("RESET", ActionReset)
	f("HELLO", ActionNone)
	f("HELLO 2", ActionNone)
	f("HELLO 3", ActionVersionChanged)
	f("CLIENT LIST", ActionClientList)
	f("CLIENT LIST TYPE x", ActionNone)
	f("CLIENT KILL ID 1", ActionClientKill)
	f("CLIENT KILL ID 0", ActionNone)
	f("CLIENT PAUSE 10", ActionPause)
	f("CLIENT PAUSE x", ActionNone)
	f("CLIENT UNBLOCK 1", ActionClientUnblock)
	f("DEBUG SLEEP 1", ActionNone)
	f("CLIENT UNPAUSE", ActionPause)
}

// TestAppends checks that every handler appends to the contents of dst.
func TestAppends(t *testing.T) {
	s := testServer("")
	for _, request := range []string{
		"PING", "ECHO a", "HELLO", "TIME", "CLIENT INFO", "COMMAND", "COMMAND DOCS", "CONFIG GET *",
		"CONFIG SET a b", "CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES", "CLUSTER INFO", "CLUSTER HELP",
	} {
		st := s.NewState("", "", 0)
		args := conversation.Words(t, request)
		out, _, ok := s.Do(st, command.Lookup(args[0]), args, []byte("before"))
		if !ok || !bytes.HasPrefix(out, []byte("before")) {
			t.Errorf("%s: ok %v, dst was not appended to", request, ok)
			continue
		}
		var scan resp.Scanner
		if reply := out[len("before"):]; scan.Scan(reply) != resp.Done || scan.Len() != len(reply) {
			t.Errorf("%s: %q is not one reply", request, reply)
		}
	}
}

// TestReset checks that Reset leaves nothing of the old client to the next one from the same pool.
func TestReset(t *testing.T) {
	e := connected(t, testServer("secret"))
	e.say(t, "HELLO 3 AUTH default secret SETNAME x")
	e.say(t, "CLIENT NO-EVICT on")
	e.say(t, "CLIENT NO-TOUCH on")
	e.say(t, "READONLY")
	e.say(t, "RESET")
	st := e.state
	if st.Version != resp.RESP2 || st.Authenticated || st.Name != "" || st.ReadOnly || st.NoEvict || st.NoTouch {
		t.Errorf("after RESET: %+v", st)
	}
}

// TestMaintNotifications: a server that tells clients before it stops takes their wish, in RESP3.
func TestMaintNotifications(t *testing.T) {
	e := connected(t, NewServer(Options{Maintenance: true}))
	f := func(request, want string, wishes bool) {
		t.Helper()
		if got := strings.TrimSuffix(e.say(t, request), "\r\n"); got != want || e.state.Maintenance != wishes {
			t.Errorf("%s: %q, wishes %v, want %q, %v", request, got, e.state.Maintenance, want, wishes)
		}
	}
	f("CLIENT MAINT_NOTIFICATIONS ON", "-"+errNoPushes, false)
	f("CLIENT MAINT_NOTIFICATIONS OFF", "+OK", false)
	e.say(t, "HELLO 3")
	f("CLIENT MAINT_NOTIFICATIONS on", "+OK", true)
	f("CLIENT MAINT_NOTIFICATIONS OFF x", "-"+command.ErrSyntax, true)
	f("CLIENT MAINT_NOTIFICATIONS MAYBE", "-"+command.ErrSyntax, true)
	f("CLIENT MAINT_NOTIFICATIONS off", "+OK", false)
	f("CLIENT MAINT_NOTIFICATIONS ON MOVING-ENDPOINT-TYPE", "-"+command.ErrSyntax, false)
	f("CLIENT MAINT_NOTIFICATIONS ON MOVING-ENDPOINT none", "-"+command.ErrSyntax, false)
	f("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type external-fqdn", "+OK", true)
	e.say(t, "CLIENT SETINFO LIB-NAME node-redis(shop)")
	f("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-ip", "+OK", false) // it would end
	f("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none", "+OK", true)
	f("RESET", "+RESET", false)
}

// TestNameIsCopied checks that a State does not keep the caller's input buffer.
func TestNameIsCopied(t *testing.T) {
	s := testServer("")
	st := s.NewState("", "", 0)
	args := conversation.Words(t, "HELLO 3 SETNAME bob")
	s.Do(st, command.Lookup(args[0]), args, nil)
	copy(args[3], "xxx")
	if st.Name != "bob" {
		t.Errorf("name %q changed with the buffer", st.Name)
	}
}

// TestFailuresAreInARow checks that a right password resets the count of wrong ones.
func TestFailuresAreInARow(t *testing.T) {
	e := connected(t, testServer("secret"))
	for range 5 {
		e.say(t, "AUTH wrong")
		e.say(t, "AUTH wrong")
		if got := e.say(t, "AUTH secret"); got != "+OK\r\n" {
			t.Fatalf("AUTH secret: %q", got)
		}
	}
}

func TestLongNamesAreRefused(t *testing.T) {
	e := connected(t, testServer(""))
	long := string(bytes.Repeat([]byte("x"), maxClientName+1))
	if got := e.say(t, "CLIENT SETNAME "+long); got[0] != '-' {
		t.Errorf("a name of %d bytes was taken", len(long))
	}
	if got := e.say(t, "HELLO 2 "+long); len(got) > 300 {
		t.Errorf("an error of %d bytes repeats a long argument", len(got))
	}
}

// TestZeroAllocations is about commands of health checks, which may be as frequent as other
// requests.
func TestZeroAllocations(t *testing.T) {
	s := testServer("secret")
	st := s.NewState("", "", 0)
	st.Authenticated = true
	dst := make([]byte, 0, 1024)
	for _, request := range []string{"PING", "PING x", "ECHO hello", "SELECT 0", "TIME", "CLIENT ID", "CLUSTER KEYSLOT k"} {
		args := conversation.Words(t, request)
		c := command.Lookup(args[0])
		if n := testing.AllocsPerRun(100, func() { s.Do(st, c, args, dst) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", request, n)
		}
	}
}
