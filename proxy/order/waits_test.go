package order

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

// waits has a session's blocking command wait at the node of the pipe, by a token, for up to a limit.
func (h *shell) waits(p *Pipe, token uint64, limit time.Duration, words ...string) *Session {
	h.t.Helper()
	s := &Session{Owner: noOwner{}}
	s.Block(1, limit, h.now)
	h.send(s, common, 1, 1, request(words...))
	if !h.Later(p, token, h.settles) || !s.Waits() || s.Outstanding() != 1 {
		h.t.Fatal("the command does not wait")
	}
	return s
}

// TestWaitsHinderNobody: however many commands wait, others of their partition and pipe go on.
func TestWaitsHinderNobody(t *testing.T) {
	h := newShell(t)
	p := h.opened(common)
	const many = 2 * member.MaxLater
	for token := range uint64(many) {
		h.waits(p, token+1, 0, "BLPOP", "k", "0")
	}
	if h.send(&Session{Owner: noOwner{}}, common, 1, 1, request("SET", "k", "v")) != p {
		t.Error("a write is kept back")
	}
	p.Pop()
	if p.Inflight() != many || !p.HasRoom() || p.later.bytes != 0 {
		t.Errorf("%d in flight, %d bytes, want %d and none", p.Inflight(), p.later.bytes, many)
	}
	if r, ok := h.Completed(p, 5); !ok || r.Session.Outstanding() != 0 || r.Session.Waits() {
		t.Error("a command that is served still waits")
	}
	if _, ok := h.Completed(p, 5); ok {
		t.Error("a command is served twice")
	}
}

// TestWaitsFollowTheirPartition: a refused command is sent again, with the time that is left then.
func TestWaitsFollowTheirPartition(t *testing.T) {
	for _, c := range []struct {
		line  string
		limit time.Duration
		want  string
	}{
		{"BLPOP k 10", 10 * time.Second, "BLPOP k 5.000000"},
		{"BLPOP k 0", 0, "BLPOP k 0"},
		{"BZMPOP 5.0001 1 k MIN", 5000100 * time.Microsecond, "BZMPOP 0.001000 1 k MIN"},
		{"XREAD BLOCK 7000 STREAMS k 5", 7 * time.Second, "XREAD BLOCK 2000 STREAMS k 5"},
		{"XREADGROUP BLOCK 5001 GROUP block 7 STREAMS k >", 5001 * time.Millisecond, "XREADGROUP BLOCK 1 GROUP block 7 STREAMS k >"},
		{"XREAD BLOCK 0 STREAMS k 5", 0, "XREAD BLOCK 0 STREAMS k 5"},
	} {
		h := newShell(t)
		p := h.opened(common)
		s := h.waits(p, 1, c.limit, strings.Fields(c.line)...)
		h.now += 2500 * time.Millisecond
		if !h.RefusedLater(p, 1, Refusal{}, h.now) || s.Waits() || !s.WaitsParked() {
			t.Fatalf("%s is not parked", c.line)
		}
		h.now += 2500 * time.Millisecond
		h.RetryTimer(h.now)
		want := string(request(strings.Fields(c.want)...))
		if got := string(p.Queued()); !strings.HasSuffix(got, want) || s.WaitsParked() {
			t.Errorf("%s goes on as %q, want %q", c.line, got, want)
		}
	}
}

// TestWaitsSayTheirAge: a blocking command that is sent again says for how long it has waited, each time anew, to nodes
// that understand it.
func TestWaitsSayTheirAge(t *testing.T) {
	for _, level := range []uint8{ring.WaitedLevel - 1, ring.WaitedLevel} {
		h := newShell(t)
		table := *h.Table()
		table.Epoch, table.Level, table.Ancestors = 2, level, []ring.Version{table.Version()}
		h.Install(&table, h.now)
		p, raw := h.opened(common), request("BLPOP", "k", "0")
		h.waits(p, 1, 0, "BLPOP", "k", "0")
		want := func(what string, age time.Duration) {
			t.Helper()
			h.RetryTimer(h.now)
			want := string(raw)
			if level >= ring.WaitedLevel {
				want = string(member.AppendWaited(nil, age)) + want
			}
			if got := string(p.Queued()); !strings.HasSuffix(got, "\r\n"+want) {
				t.Errorf("a command that %s goes on as %q, want %q", what, got, want)
			}
			for h.run(); p.Front() != nil && p.Front().Session == nil; {
				p.Pop()
			}
		}
		h.now += 2500 * time.Millisecond
		h.RefusedLater(p, 1, Refusal{}, h.now)
		want("waited at a node", 2500*time.Millisecond)
		h.now += time.Second
		h.Refused(p, Refusal{Epoch: 3}, h.now)
		h.now += time.Second
		want("was refused at once", 4500*time.Millisecond)
		if !h.Later(p, 2, nil) {
			t.Fatal("the command does not wait")
		}
		h.RefusedLater(p, 2, Refusal{Epoch: 4}, h.now)
		h.now += time.Second
		want("waited again", 5500*time.Millisecond)
	}
}

// TestParkedWaitsEndInTime: a command that no node can take waits until its deadline, however often it waited at a node
// before, and for ever without one.
func TestParkedWaitsEndInTime(t *testing.T) {
	for _, first := range []bool{false, true} {
		for _, limit := range []time.Duration{0, 5 * time.Second, time.Hour} {
			h := newShell(t)
			p := h.opened(common)
			var s *Session
			begun := h.now
			if first { // it was never at a node
				h.Lost(p, ErrNodeGone, h.now)
				p.Node.gone = true
				s = &Session{Owner: noOwner{}}
				s.Block(1, limit, h.now)
				h.send(s, common, 1, 1, request("BLPOP", "k", "x"))
			} else {
				s = h.waits(p, 1, limit, "BLPOP", "k", "x")
				h.now += 2 * time.Second
				h.Lost(p, ErrNodeGone, h.now)
				p.Node.gone = true
			}
			for h.now < begun+limit-time.Second || limit == 0 && h.now < begun+10*h.patience {
				h.now += time.Second / 2
				h.retryParked(h.now)
				h.run()
			}
			if !s.WaitsParked() || len(h.failed) > 0 {
				t.Errorf("limit %v: it has ended after %v: %v", limit, h.now-begun, h.failed)
			}
			if limit == 0 {
				continue
			}
			h.now = begun + limit
			h.retryParked(h.now)
			h.run()
			if !slices.Equal(h.failed, []Outcome{WaitOver}) || s.Outstanding() > 0 {
				t.Errorf("limit %v: its end is %v, want WaitOver", limit, h.failed)
			}
		}
	}
}

// TestCancelParked: a command that no node has ends at once, also if it is canceled just before it comes back.
func TestCancelParked(t *testing.T) {
	for _, early := range []bool{false, true} {
		h := newShell(t)
		p := h.opened(common)
		s := h.waits(p, 1, 0, "BLPOP", "k", "0")
		if early {
			h.CancelWait(s)
		}
		h.RefusedLater(p, 1, Refusal{}, h.now)
		if !early {
			h.CancelWait(s)
		}
		h.run()
		if !slices.Equal(h.failed, []Outcome{WaitOver}) || s.Outstanding() > 0 || s.WaitsParked() {
			t.Errorf("its end is %v, want WaitOver", h.failed)
		}
	}
}

// TestWaitsOfABrokenPipe: a pop is sent again, and what may have stored an element is not.
func TestWaitsOfABrokenPipe(t *testing.T) {
	h := newShell(t)
	p := h.opened(common)
	pop, move := h.waits(p, 1, 0, "BRPOP", "k", "0"), h.waits(p, 2, 0, "BLMOVE", "k", "l", "LEFT", "LEFT", "0")
	h.Lost(p, ErrSilent, h.now)
	var failed []*Session
	for _, a := range h.Actions() {
		if a.Kind == Fail && a.Outcome == Unknown {
			failed = append(failed, a.Request.Session)
		}
	}
	if len(failed) != 1 || failed[0] != move || len(pop.parked) != 1 || pop.Waits() || move.Waits() {
		t.Errorf("%d commands failed, and %d are sent again", len(failed), len(pop.parked))
	}
}

// TestManyWaitsOfABrokenPipe: however many commands waited on a pipe, few come back in one turn. The pipe can be open
// again before the last ones do: its node is not told to cancel what it does not have, and nothing is a stray any more.
func TestManyWaitsOfABrokenPipe(t *testing.T) {
	h := newShell(t)
	p := h.opened(common)
	const many = 4*returnedAtOnce + 1
	var all []*Session
	for token := range uint64(many) {
		all = append(all, h.waits(p, token+1, 0, "BLPOP", "k", "0"))
	}
	back := func() (n int) {
		for _, s := range all {
			if !s.Waits() {
				n++
			}
		}
		return n
	}
	sent := make(map[*Session]bool)
	h.Lost(p, ErrSilent, h.now)
	p.retryAt = 0
	h.open(p, h.now)
	h.run()
	if n := back(); n > returnedAtOnce || !p.IsOpen() {
		t.Fatalf("%d of %d commands come back at once", n, many)
	}
	h.waits(p, many, 0, "BLPOP", "k", "0") // by the token that the last one had
	h.CancelWait(all[many-1])
	if got := p.Queued(); len(got) > 0 {
		t.Errorf("the node is told %q", got)
	}
	for turn := 2; back() < many || len(sent) < many-1; turn++ {
		h.RetryTurn(h.now)
		h.run()
		for r := p.Front(); r != nil; r = p.Front() {
			if r.Session != nil {
				sent[r.Session] = true
			}
			p.Pop()
		}
		if n := back(); n > turn*returnedAtOnce || turn > 2*many/returnedAtOnce {
			t.Fatalf("%d of %d commands are back, and %d are sent again, in %d turns", n, many, len(sent), turn)
		}
		h.RetryTimer(h.now)
	}
	if sent[all[many-1]] || !slices.Equal(h.failed, []Outcome{WaitOver}) {
		t.Errorf("who did not want to wait any more: sent %v, %v", sent[all[many-1]], h.failed)
	}
	if p.strays {
		t.Error("commands are strays of a connection that the node has closed")
	}
}

// TestCancelWait: the node is told once, or as soon as the command waits.
func TestCancelWait(t *testing.T) {
	h := newShell(t)
	p := h.opened(common)
	s := h.waits(p, 7, 0, "BLPOP", "k", "0")
	h.CancelWait(s)
	h.CancelWait(s)
	if got, want := string(p.Queued()), string(member.AppendCancel(nil, 7)); got != want {
		t.Errorf("the node is told %q, want %q", got, want)
	}
	p.Wrote(len(p.Queued()))
	p.Pop()
	early := &Session{Owner: noOwner{}}
	early.Block(1, 0, h.now)
	h.send(early, common, 1, 1, request("BLPOP", "k", "0"))
	h.CancelWait(early)
	if len(p.Queued()) > 0 {
		t.Error("the node is told of a command that does not wait")
	}
	h.Later(p, 8, nil)
	if got, want := string(p.Queued()), string(member.AppendCancel(nil, 8)); got != want {
		t.Errorf("the node is told %q, want %q", got, want)
	}
}

// TestWaitsMeanWhatTheyMeant: $ is what it was when the command began to wait, wherever that is sent again.
func TestWaitsMeanWhatTheyMeant(t *testing.T) {
	for why, end := range map[string]func(h *shell, p *Pipe){
		"refused": func(h *shell, p *Pipe) { h.RefusedLater(p, 1, Refusal{}, h.now) },
		"lost":    func(h *shell, p *Pipe) { h.Lost(p, ErrNodeGone, h.now) },
	} {
		h := newShell(t)
		p := h.opened(common)
		h.settles = []byte("7-0 0-0")
		s := h.waits(p, 1, 0, strings.Fields("XREAD BLOCK 0 STREAMS {$}$ {$}k {$}$ $ 5 $")...)
		end(h, p)
		if len(s.parked) != 1 {
			t.Fatalf("%s: it is not parked", why)
		}
		if want := string(request(strings.Fields("XREAD BLOCK 0 STREAMS {$}$ {$}k {$}$ 7-0 5 0-0")...)); string(s.parked[0].raw) != want {
			t.Errorf("%s: sent again as %q", why, s.parked[0].raw)
		}
	}
}

// TestWaitsOutOfStep: a node that names too many IDs, or too few, is out of step.
func TestWaitsOutOfStep(t *testing.T) {
	for _, line := range []string{"XREAD BLOCK 0 STREAMS k 5", "XREAD BLOCK 0 STREAMS k l $ $", "BLPOP k 0", "GET k"} {
		h := newShell(t)
		p := h.opened(common)
		s := &Session{Owner: noOwner{}}
		h.send(s, common, 1, 1, request(strings.Fields(line)...))
		if h.Later(p, 1, []byte("7-0")) || p.Front() == nil || s.Waits() {
			t.Errorf("%s: it is in step", line)
		}
	}
}

// TestReadsThatDoNotWait: an XREAD without BLOCK that is answered later is a read like others.
func TestReadsThatDoNotWait(t *testing.T) {
	h := newShell(t)
	p := h.opened(common)
	s := &Session{Owner: noOwner{}}
	h.send(s, common, 1, 1, request(strings.Fields("XREAD STREAMS k 5")...))
	if !h.Later(p, 1, nil) || s.Waits() || len(p.later.list) != 1 {
		t.Error("it waits")
	}
}
