package session

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// noted is a client that records what is done to it.
type noted struct {
	state *State
	done  string
}

func (n *noted) StateNow() *State { return n.state }
func (n *noted) Kill()            { n.done += "killed " }
func (n *noted) Unblock()         { n.done += "unblocked " }
func (n *noted) WakeThen(reply []byte, then func(ended bool)) {
	answer, ended := n.state.EndWaiting(reply)
	n.done += "woken by " + string(answer)
	then(ended)
}

// TestEveryone checks that a command finds the clients of all loops, and that its reply adds up the
// results of all loops.
func TestEveryone(t *testing.T) {
	f := func(request string, a Action, want string, suicide bool, done ...string) {
		t.Helper()
		s := testServer("")
		loops := []*Roster{{}, {}}
		var all []*noted
		for i := range 4 { // ids 1 and 3 on the second loop, 2 and 4 on the first
			n := &noted{state: s.NewState("a:"+string('1'+rune(i)), "", 0)}
			n.state.Client = n
			n.state.Waiting = Later([]byte(":0"), func() {})
			all = append(all, n)
			loops[(i+1)%2].Add(n.state)
		}
		all[2].state.LastCmd = command.Wait
		e := NewEveryone(a, all[0].state, conversation.Words(t, request), len(loops))
		reply, selfToo := carryOut(e, s, loops...)
		if !strings.Contains(string(reply), want) || selfToo != suicide {
			t.Errorf("%s: %q, suicide %v, want %q in it, %v", request, reply, selfToo, want, suicide)
		}
		for i, n := range all {
			if n.done != done[i] {
				t.Errorf("%s: client %d is %q, want %q", request, i+1, n.done, done[i])
			}
		}
		if a != ActionClientList {
			return
		}
		text, _ := resp.DecodeBulk(reply)
		for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			if !strings.HasPrefix(line, "id="+string('1'+rune(i))+" ") {
				t.Errorf("line %d is %q, want the clients in the order of their ids", i, line)
			}
		}
	}
	f("CLIENT LIST", ActionClientList, "id=1 ", false, "", "", "", "")
	f("CLIENT KILL MAXAGE 1", ActionClientKill, ":0", false, "", "", "", "")
	f("CLIENT KILL TYPE normal", ActionClientKill, ":3", false, "", "killed ", "killed ", "killed ")
	f("CLIENT KILL SKIPME no", ActionClientKill, ":4", true, "", "killed ", "killed ", "killed ")
	f("CLIENT KILL a:4", ActionClientKill, "+OK", false, "", "", "", "killed ")
	f("CLIENT KILL a:5", ActionClientKill, "-ERR No such client", false, "", "", "", "")
	f("CLIENT UNBLOCK 3", ActionClientUnblock, ":1", false, "", "", "woken by :0", "")
	f("CLIENT UNBLOCK 2", ActionClientUnblock, ":0", false, "", "", "", "") // it does not WAIT
	f("CLIENT UNPAUSE", ActionPause, "+OK", false, "", "", "", "")
}

// answersLater is a client that says later how its wait has ended.
type answersLater struct {
	noted
	then func(ended bool)
}

func (a *answersLater) WakeThen(_ []byte, then func(ended bool)) { a.then = then }

// TestUnblockWaits checks that CLIENT UNBLOCK has no result before its client's loop knows how the wait has ended.
func TestUnblockWaits(t *testing.T) {
	for ended, want := range map[bool]string{true: ":1\r\n", false: ":0\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			st := testServer("").NewState("a:1", "", 0)
			a, clients := new(answersLater), new(Roster)
			st.Client, st.LastCmd, st.Waiting = a, command.Wait, Later(nil, func() {})
			clients.Add(st)
			e := NewEveryone(ActionClientUnblock, st, conversation.Words(t, "CLIENT UNBLOCK 1"), 1)
			e.Visit(0, 0, clients)
			gathered := false
			go func() {
				if _, more := e.Gather(); more {
					t.Error("it takes a further round")
				}
				gathered = true
			}()
			synctest.Wait()
			if gathered {
				t.Fatal("it does not wait")
			}
			a.then(ended)
			synctest.Wait()
			if reply, _ := e.Reply(); !gathered || string(reply) != want {
				t.Errorf("gathered %v, the reply is %q, want %q", gathered, reply, want)
			}
		})
	}
}

// TestPauser checks that commands that a pause has held continue when the pause is over, and that
// commands that wait for something else do not.
func TestPauser(t *testing.T) {
	s := testServer("")
	held, waits := &noted{state: s.NewState("", "", 0)}, &noted{state: s.NewState("", "", 0)}
	clients := new(Roster)
	for _, n := range []*noted{held, waits} {
		n.state.Client = n
		clients.Add(n.state)
	}
	now, after, cancelled := 400*time.Millisecond, time.Duration(0), 0
	var again func()
	p := Pauser{
		Server:  s,
		Clients: clients,
		Now:     func() time.Duration { return now },
		After: func(d time.Duration, f func()) func() {
			after, again = d, f
			return func() { cancelled++ }
		},
	}
	s.pause.extend(0, time.Second, true)
	p.Obey()
	if after.Milliseconds() != 600 || cancelled != 0 {
		t.Errorf("called again after %v, %d times cancelled; want 600 ms and 0", after, cancelled)
	}
	held.state.SetBlocked(true)
	waits.state.SetBlocked(true)
	waits.state.Waiting = Later(nil, func() {})
	now, after = time.Second, 0
	again()
	if after != 0 || held.done != "unblocked " || waits.done != "" {
		t.Errorf("after the pause: again in %v, %q, %q", after, held.done, waits.done)
	}
}
