package session

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
)

// many are clients of some loops, which count what happens to them.
type many struct {
	server *Server
	all    []*State
	loops  []*Roster
	shown  int // clients whose State was asked for
	done   int // clients that were killed or unblocked
	killed func(*State)
}

// counted is one of them.
type counted struct {
	of    *many
	state *State
}

func (c *counted) StateNow() *State { c.of.shown++; return c.state }
func (c *counted) Kill()            { c.of.done++; c.of.killed(c.state) }
func (c *counted) Unblock()         { c.of.done++ }

func (c *counted) WakeThen(_ []byte, then func(ended bool)) {
	c.of.done++
	then(true)
}

func manyClients(clients, loops int) *many {
	m := &many{server: testServer(""), killed: func(*State) {}}
	for range loops {
		m.loops = append(m.loops, new(Roster))
	}
	for range clients {
		m.join()
	}
	return m
}

func (m *many) join() {
	st := m.server.NewState("10.0.0.1:1", "10.0.0.2:2", 0)
	st.Client = &counted{m, st}
	m.all = append(m.all, st)
	m.loops[int(st.ID)%len(m.loops)].Add(st)
}

func (m *many) leave(st *State) { m.loops[int(st.ID)%len(m.loops)].Remove(st) }

// ids are those of the lines.
func ids(t *testing.T, lines []byte) (all []int) {
	t.Helper()
	for line := range strings.Lines(strings.TrimSuffix(string(lines), "\r\n")) {
		var id int
		if _, err := fmt.Sscanf(line, "id=%d addr=10.0.0.1:1 ", &id); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("the line is %q", line)
		}
		all = append(all, id)
	}
	return all
}

// TestVisitTakesFewSteps checks that however many clients there are, and however long their lines, a loop
// has others' turn soon, and no more lines than those of one turn are gathered at a time.
func TestVisitTakesFewSteps(t *testing.T) {
	const clients = 10_000
	m := manyClients(clients, 3)
	for i, st := range m.all {
		if i%3 == 0 {
			st.Name, st.LibName, st.LibVer = strings.Repeat("n", maxClientName), strings.Repeat("l", maxClientName), strings.Repeat("v", maxClientName)
		}
	}
	for request, a := range map[string]Action{
		"CLIENT LIST": ActionClientList, "CLIENT LIST TYPE pubsub": ActionClientList,
		"CLIENT KILL TYPE normal": ActionClientKill, "CLIENT KILL MAXAGE 1": ActionClientKill,
	} {
		e := NewEveryone(a, m.all[0], conversation.Words(t, request), len(m.loops))
		var lines []byte
		for more := true; more; {
			for i, clients := range m.loops {
				m.shown, m.done = 0, 0
				from := e.loops[i].last
				e.Visit(i, 0, clients)
				looked := (int(e.loops[i].last-from) + len(m.loops) - 1) / len(m.loops)
				if took := looked + changeSteps*m.done; took > maxVisit+changeSteps || m.shown > looked {
					t.Fatalf("%s: one turn takes %d steps and shows %d clients", request, took, m.shown)
				}
				if size := len(e.loops[i].text); size > (maxVisit+20)*lineStep {
					t.Fatalf("%s: one turn makes lines of %d bytes", request, size)
				}
			}
			var part []byte
			part, more = e.Gather()
			if lines = append(lines, part...); len(part) > len(m.loops)*(maxVisit+20)*lineStep {
				t.Fatalf("%s: one round gathers %d bytes", request, len(part))
			}
		}
		reply, _ := e.Reply()
		switch {
		case request == "CLIENT LIST":
			if got := ids(t, lines); len(got) != clients || !slices.IsSorted(got) {
				t.Errorf("%d clients are listed, sorted: %v", len(got), slices.IsSorted(got))
			}
			if want := fmt.Sprintf("$%d\r\n", len(lines)-2); string(reply) != want {
				t.Errorf("the list begins with %q, want %q", reply, want)
			}
		case request == "CLIENT KILL TYPE normal" && string(reply) != fmt.Sprintf(":%d\r\n", clients-1):
			t.Errorf("%s: %s", request, reply)
		}
	}
}

// TestKilledClientsComeBack checks that CLIENT KILL ends, although whoever is killed connects again at once.
func TestKilledClientsComeBack(t *testing.T) {
	const clients = 3000
	m := manyClients(clients, 2)
	var back []*State
	m.killed = func(st *State) { back = append(back, st) }
	e := NewEveryone(ActionClientKill, m.all[0], conversation.Words(t, "CLIENT KILL SKIPME yes"), len(m.loops))
	for more := true; more; _, more = e.Gather() {
		for i, roster := range m.loops {
			e.Visit(i, 0, roster)
		}
		for _, st := range back {
			m.leave(st)
			m.join()
		}
		back = back[:0]
		if m.done >= 2*clients {
			t.Fatalf("%d clients are killed, want %d", m.done, clients-1)
		}
	}
	if m.done != clients-1 {
		t.Errorf("%d clients are killed, want %d", m.done, clients-1)
	}
}

// TestClientsComeAndGo checks that a list has each client that was there all the time, once, and none that came
// after the visit had begun on its loop.
func TestClientsComeAndGo(t *testing.T) {
	m := manyClients(3000, 2)
	e := NewEveryone(ActionClientList, m.all[0], conversation.Words(t, "CLIENT LIST"), len(m.loops))
	var lines []byte
	left := map[int]bool{}
	for more, round := true, 0; more; round++ {
		for i, clients := range m.loops {
			e.Visit(i, 0, clients)
		}
		var part []byte
		part, more = e.Gather()
		lines = append(lines, part...)
		for i := range 180 { // so that rosters are compacted
			st := m.all[(round*977+i*7)%3000]
			left[int(st.ID)] = true
			m.leave(st)
		}
		if round < 10 {
			m.join()
		}
	}
	got := ids(t, lines)
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Error("the clients are not in the order of their ids, each once")
	}
	for _, st := range m.all[:3000] {
		if _, listed := slices.BinarySearch(got, int(st.ID)); !listed && !left[int(st.ID)] {
			t.Errorf("client %d was there all the time and is not listed", st.ID)
		}
	}
	if last := got[len(got)-1]; last > 3000 {
		t.Errorf("client %d is listed, which came later", last)
	}
	for _, r := range m.loops {
		if len(r.all) > 2*(len(r.all)-r.gone)+fewGone {
			t.Errorf("a roster of %d clients has %d places", len(r.all)-r.gone, len(r.all))
		}
	}
}

// TestPauseTakesTurns checks that a pause is applied in turns, and that what begins or ends it meanwhile holds for all.
func TestPauseTakesTurns(t *testing.T) {
	m := manyClients(5000, 1)
	var posted []func()
	p := Pauser{
		Server: m.server, Clients: m.loops[0], Now: func() time.Duration { return 1 },
		After: func(time.Duration, func()) func() { return func() {} },
		Post:  func(f func()) { posted = append(posted, f) },
	}
	paused := func() (n int) {
		for _, st := range m.all {
			if st.paused {
				n++
			}
		}
		return n
	}
	turn := func(before int) {
		t.Helper()
		f := posted[0]
		if posted = posted[1:]; len(posted) > 0 {
			t.Fatal("the pauser takes more than one turn at a time")
		}
		m.done = 0
		f()
		if now := paused(); now-before > maxVisit || before-now > maxVisit || m.done*changeSteps > maxVisit+changeSteps {
			t.Fatalf("one turn changes %d clients to %d and unblocks %d", before, now, m.done)
		}
	}
	m.server.pause.extend(0, time.Second, true)
	p.Obey()
	for p.busy {
		turn(paused())
	}
	if n := paused(); n != 5000 {
		t.Fatalf("%d of 5000 clients are paused", n)
	}
	for _, st := range m.all {
		st.SetBlocked(true)
	}
	m.server.Unpause()
	p.Obey()
	turn(paused())
	m.server.pause.extend(0, time.Second, true) // while some are paused
	p.Obey()
	for p.busy {
		turn(paused())
	}
	if n := paused(); n != 5000 {
		t.Errorf("%d of 5000 clients are paused again", n)
	}
	m.server.Unpause()
	p.Obey()
	for round := 0; paused() > 0; round++ { // who changes the pause all the time does not keep it from the last ones
		if round > 5000*(changeSteps+1)/maxVisit+10 {
			t.Fatalf("%d of 5000 clients are still paused", paused())
		}
		turn(paused())
		p.Obey()
	}
	for _, st := range m.all {
		st.SetBlocked(false)
	}
	p.Stop()
	turn(0)
	if len(posted) > 0 {
		t.Error("it goes on behind Stop")
	}
}

// TestVisitsTakeTurns checks that one command visits the clients at a time, those that change something first, and
// that a withdrawn one has no turn.
func TestVisitsTakeTurns(t *testing.T) {
	m := manyClients(1, 1)
	var v Visits
	begun := ""
	enter := func(name, request string, a Action) *Everyone {
		e := NewEveryone(a, m.all[0], conversation.Words(t, request), 1)
		v.Enter(e, func() { begun += name })
		return e
	}
	list := enter("a", "CLIENT LIST", ActionClientList)
	next := enter("b", "CLIENT LIST", ActionClientList)
	gone := enter("c", "CLIENT LIST", ActionClientList)
	kill := enter("d", "CLIENT KILL TYPE normal", ActionClientKill)
	unblock := enter("e", "CLIENT UNBLOCK 1", ActionClientUnblock)
	v.Leave(unblock)
	if begun != "ae" {
		t.Fatalf("begun are %q, want a alone, and e, which does not wait", begun)
	}
	if !v.Withdraw(gone) || v.Withdraw(gone) || v.Withdraw(list) {
		t.Error("what waits is withdrawn, once, and what has begun is not")
	}
	v.Leave(list)
	v.Leave(kill)
	v.Leave(next)
	enter("f", "CLIENT LIST", ActionClientList)
	if begun != "aedbf" {
		t.Errorf("begun are %q, want aedbf", begun)
	}
}

// TestIDsAreCharged checks that a command that waits says what its ids take.
func TestIDsAreCharged(t *testing.T) {
	m := manyClients(1, 1)
	args := bytes.Fields([]byte("CLIENT LIST ID" + strings.Repeat(" 1", 10_000)))
	if n := NewEveryone(ActionClientList, m.all[0], args, 1).Bytes(); n < 80_000 {
		t.Errorf("10,000 ids take %d bytes", n)
	}
}

// TestNamedClientsAreFound checks that a command on clients that it names does not visit all others, and
// lists each client once.
func TestNamedClientsAreFound(t *testing.T) {
	m := manyClients(10_000, 2)
	for request, a := range map[string]Action{
		"CLIENT LIST ID 9000 -5 3 9000 20000 3": ActionClientList, "CLIENT KILL ID 9000": ActionClientKill,
	} {
		e := NewEveryone(a, m.all[0], conversation.Words(t, request), len(m.loops))
		for i, clients := range m.loops {
			e.Visit(i, 0, clients)
		}
		lines, more := e.Gather()
		if reply, _ := e.Reply(); more || a == ActionClientKill && string(reply) != ":1\r\n" {
			t.Errorf("%s needs another round: %v, and is answered %q", request, more, reply)
		}
		if a == ActionClientList && !slices.Equal(ids(t, lines), []int{3, 9000}) {
			t.Errorf("%s lists %q", request, lines)
		}
	}
}
