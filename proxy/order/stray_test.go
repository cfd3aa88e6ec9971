package order

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

var large = Lane{Kind: member.Large, Version: resp.RESP2}

// asker is the Part of a question.
type asker struct{}

func (asker) Done(int32, []byte) {}
func (asker) Undone()            {}

// Requests that a session sent in a lane that broke are not overtaken by those that it sends to the
// same node in another, open lane. Only this session waits, and only for the lost pipe's next
// generation.
func TestStraysAreNotOvertaken(t *testing.T) {
	h := newShell(t)
	other, s := &Session{Owner: noOwner{}}, &Session{Owner: noOwner{}}
	h.submit(other) // the common pipe is open
	n := h.Owner(0)
	common, lost := n.Pipe(common), n.Pipe(large)
	incr := []byte("*2\r\n$4\r\nINCR\r\n$1\r\nx\r\n")
	send := func() *Pipe {
		p, ok := h.Submit(s, Request{Session: s}, incr, h.now)
		if !ok {
			t.Fatal("the pipe is full")
		}
		if p != nil {
			p.Wrote(len(p.Queued()))
		}
		h.run()
		return p
	}
	h.Enter(s, large)
	send()
	if lost.Inflight() != 1 {
		t.Fatal("the request was not sent in the large lane")
	}
	h.Lost(lost, ErrSilent, h.now)
	h.run()
	if len(h.failed) != 1 || h.failed[0] != Unknown || !h.Enter(s, common.Lane) {
		t.Fatalf("outcomes %v; want that nobody knows, and the session to go on", h.failed)
	}
	if p := send(); p != nil {
		t.Error("the session goes on in another lane while the node may execute what it sent in the lost one")
	}
	if h.Ask(common, Request{Session: s, Part: asker{}}, []byte("PING\r\n"), h.now) {
		t.Error("a question overtakes what the session sent in the lost lane")
	}
	if h.Submit(other, Request{Session: other}, incr, h.now); common.Inflight() != 2 {
		t.Error("a session that has lost nothing waits")
	}
	h.now += time.Second
	h.RetryTimer(h.now)
	h.run() // the broken lane opens again
	if !lost.IsOpen() || common.Inflight() != 3 || h.Parking() != 0 {
		t.Errorf("lost lane open %v, %d requests in the other one, %d sessions park; want true, 3, 0",
			lost.IsOpen(), common.Inflight(), h.Parking())
	}
	if !h.Ask(common, Request{Session: s, Part: asker{}}, []byte("PING\r\n"), h.now) || len(s.strays) != 0 {
		t.Error("the session waits for strays that are gone")
	}
}

// Requests that were queued but not written cannot arrive late.
func TestUnwrittenRequestsAreNoStrays(t *testing.T) {
	h := newShell(t)
	s := &Session{Owner: noOwner{}}
	h.Enter(s, large)
	get := []byte("*2\r\n$3\r\nGET\r\n$1\r\nx\r\n")
	h.Submit(s, Request{Session: s}, get, h.now)
	h.run() // opens the pipe, and writes it
	p := h.Owner(0).Pipe(large)
	p.Pop()
	if queued, _ := h.Submit(s, Request{Session: s}, get, h.now); queued != p {
		t.Fatal("nothing is queued")
	}
	h.Lost(p, ErrSilent, h.now)
	h.run()
	if p.strays || len(s.strays) != 0 {
		t.Error("what no node was sent counts as a stray")
	}
}

// What only reads changes nothing when it is executed late. So a session goes on in another lane
// while a node may still execute a KEYS that was given up.
func TestReadsAreNoStrays(t *testing.T) {
	f := func(want bool, args ...string) {
		t.Helper()
		words := make([][]byte, len(args))
		for i, a := range args {
			words[i] = []byte(a)
		}
		var all ring.PartitionSet
		if args[0] == "EACH" {
			words = append([][]byte{[]byte("DUNLIN"), words[0], all[:]}, words[1:]...)
		}
		h, s := newShell(t), &Session{Owner: noOwner{}}
		h.Enter(s, large)
		raw := resp.AppendRequest(nil, words...)
		for range 2 { // the first one opens the pipe
			p, _ := h.Submit(s, Request{Session: s}, raw, h.now)
			if p != nil {
				p.Wrote(len(p.Queued()))
			}
			h.run()
		}
		h.Lost(h.Owner(0).Pipe(large), ErrSilent, h.now)
		if got := len(s.strays) > 0; got != want {
			t.Errorf("%v is a stray: %v, want %v", args, got, want)
		}
	}
	f(false, "GET", "x")
	f(false, "EACH", "KEYS", "*")
	f(false, "EACH", "SCAN", "0")
	f(true, "SET", "x", "1")
	f(true, "EACH", "FLUSHALL")
	f(true, "DUNLIN", "EXEC", "x", "y")
	f(true, "NOSUCH")
}

// A session forgets its strays at nodes that left the table. If such a node returns, ownership.Gate
// keeps the strays from what it gains.
func TestStraysOfNodesThatLeft(t *testing.T) {
	h, s := newShell(t), &Session{Owner: noOwner{}}
	set := []byte("*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1\r\n1\r\n")
	table := h.Table()
	for boot := int64(2); boot < 20; boot++ {
		h.Enter(s, large)
		if p, _ := h.Submit(s, Request{Session: s}, set, h.now); p != nil {
			p.Wrote(len(p.Queued()))
		}
		h.run() // opens the first pipe, and sends
		h.Lost(h.Owner(0).Pipe(large), ErrSilent, h.now)
		next := &ring.Table{Epoch: table.Epoch + 1, Issuer: "test", Ancestors: []ring.Version{table.Version()},
			Nodes: []ring.Member{{ID: "n1", Boot: boot, Addr: "n1:6380"}}}
		table = next
		h.Install(table, h.now)
		h.run() // opens the pipe to the next node, and sends again
		h.Owner(0).Pipe(large).Pop()
	}
	if len(s.strays) > 1 || s.Outstanding() != 0 {
		t.Errorf("%d pipes with strays, %d requests outstanding; want at most 1, 0", len(s.strays), s.Outstanding())
	}
}

// A write of a broken pipe is not sent again if the node may have executed a later one of its session
// to the same key. Whoever saw that one would see the earlier one again.
func TestReplacedWritesAreNotSentAgain(t *testing.T) {
	f := func(want string, requests ...string) {
		t.Helper()
		h := newShell(t)
		sessions := map[byte]*Session{'a': {Owner: noOwner{}}, 'b': {Owner: noOwner{}}}
		h.submit(sessions['a']) // opens the pipe
		p := h.Owner(0).Pipe(common)
		p.Pop()
		for _, r := range requests { // session, partition, command
			s := sessions[r[0]]
			if !h.Enter(s, common) {
				t.Fatal("the session must wait")
			}
			raw := resp.AppendRequest(nil, bytes.Fields([]byte(r[2:]))...)
			if _, ok := h.Submit(s, Request{Session: s, Origin: Origin{Partition: uint16(r[1] - '0')}}, raw, h.now); !ok {
				t.Fatal("the pipe is full")
			}
		}
		if want != "unwritten" {
			p.Wrote(len(p.Queued()))
		} else {
			want = ""
		}
		h.Lost(p, ErrSilent, h.now)
		h.run()
		if got := len(h.failed); got != len(want) {
			t.Errorf("%q: %d fail, want %d", requests, got, len(want))
		}
	}
	f("", "a0 SET x 1")
	f("1", "a0 SET x 1", "a0 SET x 2")
	f("12", "a0 SET x 1", "a0 SET x 2", "a0 SET x 3")
	f("", "a0 SET x 1", "a0 GET x")
	f("", "a0 GET x", "a0 SET x 1")
	f("", "a0 SET x 1", "a1 SET y 2")
	f("", "a0 SET x 1", "a0 SET y 2")
	f("", "a0 SET x 1", "b0 SET x 2")
	f("1", "a0 SET {x}1 1", "a0 MSET {x}2 1 {x}1 2")
	f("1", "a0 MSET {x}2 1 {x}1 2", "a0 SET {x}1 1")
	f("12", "a0 SET x 1", "a0 DUNLIN EXEC x y") // whatever is in the transaction
	f("1", "a0 DUNLIN EXEC x y", "a0 SET x 1")
	many := "MSET" + strings.Repeat(" y 1", mostWritten)
	f("", "a0 SET x 1", "b1 "+many)
	f("1", "a0 SET x 1", "a1 "+many)
	f("1", "a1 "+many, "a0 SET x 1")
	f("12", "a0 SET x 1", "a0 INCR x") // both: an INCR is never sent again
	f("1", "a0 INCR x", "a0 SET x 1")
	f("unwritten", "a0 SET x 1", "a0 SET x 2")
}
