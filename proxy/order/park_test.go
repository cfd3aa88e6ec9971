package order

import (
	"slices"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// shell is a Machine with one node whose connections always stand.
type shell struct {
	*Machine
	t      *testing.T
	now    time.Duration
	failed []Outcome
	posts  int // turns that are to be taken

	settles []byte // what nodes say with tokens, see Later
}

type noOwner struct{}

func (noOwner) Take([]byte) Body { return nil }
func (noOwner) Keep(int) bool    { return true }

func newShell(t *testing.T) *shell {
	t.Helper()
	h := &shell{Machine: New(Config{Patience: 20 * time.Second, SilentTicks: 5}), t: t, now: time.Minute}
	table := &ring.Table{Epoch: 1, Issuer: "test", Nodes: []ring.Member{{ID: "n1", Boot: 1, Addr: "n1:6380"}}}
	h.Install(table, h.now)
	h.run()
	return h
}

// run does what the Machine asks for; timers are the test's.
func (h *shell) run() {
	for h.HasActions() {
		for _, a := range h.Actions() {
			switch a.Kind {
			case Dial:
				if _, ok := h.Connected(a.Pipe, a.Pipe.Attempt()); !ok {
					h.t.Error("a fresh connection is not wanted")
				}
				h.Opened(a.Pipe, h.now)
			case Write:
				a.Pipe.Wrote(len(a.Pipe.Queued()))
			case Fail:
				h.failed = append(h.failed, a.Outcome)
			case Post:
				h.posts++
			case Close, Undone, Proceed, Arm, Watch, Refresh, WaitParked:
			}
		}
	}
}

var common = Lane{Kind: member.Common, Version: resp.RESP2}

// submit sends a GET, unless the Machine parks it.
func (h *shell) submit(s *Session) {
	h.t.Helper()
	if !h.Enter(s, common) {
		h.t.Fatal("the session must wait")
	}
	p, ok := h.Submit(s, Request{Session: s}, []byte("*2\r\n$3\r\nGET\r\n$1\r\nx\r\n"), h.now)
	if !ok {
		h.t.Fatal("the pipe is full")
	}
	if p != nil {
		p.Wrote(len(p.Queued()))
	}
	h.run()
}

// Requests parked because of an open pipe's latch have their full time, even if another pipe of that
// node has not opened for long.
func TestLatchedPipeBesideAFailingOne(t *testing.T) {
	h := newShell(t)
	first := &Session{Owner: noOwner{}}
	h.submit(first) // opens the pipe and sends the request
	n := h.Owner(0)
	p := n.Pipe(common)
	failing := n.Pipe(Lane{Kind: member.Large, Version: resp.RESP3})
	failing.failingSince, failing.retryAt = h.now-30*time.Second, h.now+time.Minute
	if p.Front() == nil {
		t.Fatal("the first request was not sent")
	}
	h.Refused(p, Refusal{Epoch: 1}, h.now)
	h.run()
	sessions := []*Session{first}
	for range 20 {
		s := &Session{Owner: noOwner{}}
		h.submit(s)
		sessions = append(sessions, s)
	}
	if h.Parking() != 21 {
		t.Fatalf("%d sessions park requests, want 21", h.Parking())
	}
	h.now += 19 * time.Second
	h.RetryTimer(h.now)
	h.run()
	if h.Parking() != 0 || len(h.failed) > 0 || p.Inflight() != 22 { // RETRY included
		t.Errorf("%d sessions park requests, %d were given up, %d are sent", h.Parking(), len(h.failed), p.Inflight())
	}
	for _, s := range sessions {
		if s.Outstanding() != 1 {
			t.Errorf("%d requests are outstanding, want 1", s.Outstanding())
		}
	}
}

// A request that no node could take is given up after its time, and no longer counts as
// outstanding.
func TestParkedTooLong(t *testing.T) {
	h := newShell(t)
	s := &Session{Owner: noOwner{}}
	h.submit(s)
	p := h.Owner(0).Pipe(common)
	h.Refused(p, Refusal{Epoch: 1}, h.now)
	for range 200 {
		h.now += 200 * time.Millisecond
		h.RetryTimer(h.now)
		h.run()
		if r := p.Front(); r != nil && r.Session == nil {
			p.Pop()
		}
		if p.Front() != nil {
			h.Refused(p, Refusal{Epoch: 1}, h.now)
		}
	}
	if len(h.failed) != 1 || h.failed[0] != TooLate || s.Outstanding() != 0 {
		t.Errorf("outcomes %v, %d outstanding; want it to be given up once", h.failed, s.Outstanding())
	}
}

// poorOwner gets no memory for parked requests.
type poorOwner struct{ noOwner }

func (poorOwner) Keep(int) bool { return false }

// A request that must be parked fails if there is no memory for it, and no longer counts as
// outstanding. Nobody knows the outcome of one that may have been executed.
func TestNoMemoryToPark(t *testing.T) {
	h := newShell(t)
	h.submit(&Session{Owner: noOwner{}}) // opens the pipe
	p := h.Owner(0).Pipe(common)
	p.Pop()
	s := &Session{Owner: poorOwner{}}
	h.submit(s)
	h.Refused(p, Refusal{Epoch: 1}, h.now)
	h.run()
	h.submit(s) // the pipe is latched
	if !slices.Equal(h.failed, []Outcome{NoMemory, NoMemory}) || s.Outstanding() != 0 || h.Counts.NotParked != 2 {
		t.Errorf("outcomes %v, %d outstanding; want two refusals", h.failed, s.Outstanding())
	}
	begun := Request{Session: s, Origin: Origin{begun: true}}
	s.remote++
	h.undone(&begun, nil, nil, h.now)
	h.run()
	if h.failed[2] != Unknown || s.Outstanding() != 0 {
		t.Errorf("outcomes %v, %d outstanding; want the last to be unknown", h.failed, s.Outstanding())
	}
}

// The parked parts of a command that is sent in chunks are sent again chunk by chunk: a key may be
// in several of them.
func TestParkedChunksKeepTheirOrder(t *testing.T) {
	h := newShell(t)
	h.submit(&Session{Owner: noOwner{}}) // opens the pipe
	p := h.Owner(0).Pipe(common)
	p.Pop()
	s := &Session{Owner: noOwner{}}
	if !h.Enter(s, common) {
		t.Fatal("the session must wait")
	}
	type place struct {
		seq   uint64
		chunk uint32
		id    int32
	}
	want := []place{{1, 0, 0}, {1, 0, 1}, {1, 0, 2}, {1, 1, 0}, {1, 1, 1}, {1, 2, 0}, {2, 0, 0}}
	for _, i := range []int{3, 6, 1, 5, 2, 4, 0} {
		r := Request{Session: s, Seq: want[i].seq, ID: want[i].id, Origin: Origin{Chunk: want[i].chunk}}
		h.Park(r, []byte("*3\r\n$4\r\nMSET\r\n$1\r\nk\r\n$1\r\nv\r\n"), h.now)
	}
	h.RetryTimer(h.now)
	h.run()
	var got []place
	for r := p.Front(); r != nil; r = p.Front() {
		got = append(got, place{r.Seq, r.Chunk, r.ID})
		p.Pop()
	}
	if !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
}

// However many sessions park requests, few are tried again in one turn. What makes all of them worth another try
// between two turns reaches all.
func TestParkedSessionsAreTriedInTurns(t *testing.T) {
	h := newShell(t)
	h.submit(&Session{Owner: noOwner{}}) // opens the pipe
	p := h.Owner(0).Pipe(common)
	p.Pop()
	h.Lost(p, ErrSilent, h.now)
	h.run()
	p.retryAt = h.now + time.Minute // nothing opens it
	const sessions = 5*triedAtOnce + 1
	for i := range sessions {
		s := &Session{Owner: noOwner{}}
		if !h.Enter(s, common) {
			t.Fatal("the session must wait")
		}
		h.Park(Request{Session: s, Seq: uint64(i)}, []byte("*2\r\n$3\r\nGET\r\n$1\r\nx\r\n"), h.now)
	}
	h.RetryTimer(h.now)
	h.run()
	h.RetryTurn(h.now)
	h.run()
	if h.posts != 2 || h.Parking() != sessions {
		t.Fatalf("%d turns were asked for, and %d sessions park requests, want 2 and all", h.posts, h.Parking())
	}
	p.retryAt = 0
	h.open(p, h.now)
	var got []uint64
	for turn := 1; len(got) < sessions; turn++ {
		h.run()
		for r := p.Front(); r != nil; r = p.Front() {
			if r.Session != nil {
				got = append(got, r.Seq)
			}
			p.Pop()
		}
		if len(got) > turn*triedAtOnce || turn > sessions/triedAtOnce+2 { // the first turn opens the pipe
			t.Fatalf("%d of %d sessions were tried in %d turns", len(got), sessions, turn)
		}
		h.RetryTurn(h.now)
	}
	slices.Sort(got)
	if len(slices.Compact(got)) != sessions || h.Parking() > 0 {
		t.Errorf("the requests of %d sessions were sent, and %d park some, want %d and 0", len(got), h.Parking(), sessions)
	}
}
