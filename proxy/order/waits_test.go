package order

import (
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
)

// waits has a session's blocking command wait at the node of the pipe, by a token.
func (h *shell) waits(p *Pipe, token uint64, words ...string) *Session {
	h.t.Helper()
	s := &Session{Owner: noOwner{}}
	h.send(s, common, 1, 1, request(words...))
	s.Block(h.now)
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
		h.waits(p, token+1, "BLPOP", "k", "0")
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

// TestWaitsFollowTheirPartition: a refused command is sent again, with the time that is left.
func TestWaitsFollowTheirPartition(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"BLPOP k 10", "BLPOP k 7.500000"},
		{"BLPOP k 0", "BLPOP k 0"},
		{"BZMPOP 2 1 k MIN", "BZMPOP 0.001000 1 k MIN"},
		{"XREAD BLOCK 5000 STREAMS k 5", "XREAD BLOCK 2500 STREAMS k 5"},
		{"XREADGROUP BLOCK 1 GROUP block 7 STREAMS k >", "XREADGROUP BLOCK 1 GROUP block 7 STREAMS k >"},
		{"XREAD BLOCK 0 STREAMS k 5", "XREAD BLOCK 0 STREAMS k 5"},
	} {
		h := newShell(t)
		p := h.opened(common)
		s := h.waits(p, 1, strings.Fields(c.line)...)
		h.now += 2500 * time.Millisecond
		if !h.RefusedLater(p, 1, Refusal{}, h.now) || s.Waits() || len(s.parked) != 1 {
			t.Fatalf("%s is not parked", c.line)
		}
		if want := string(request(strings.Fields(c.want)...)); string(s.parked[0].raw) != want {
			t.Errorf("%s goes on as %q, want %q", c.line, s.parked[0].raw, want)
		}
	}
}

// TestWaitsOfABrokenPipe: a pop is sent again, and what may have stored an element is not.
func TestWaitsOfABrokenPipe(t *testing.T) {
	h := newShell(t)
	p := h.opened(common)
	pop, move := h.waits(p, 1, "BRPOP", "k", "0"), h.waits(p, 2, "BLMOVE", "k", "l", "LEFT", "LEFT", "0")
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

// TestPatienceBeginsAnewWithEachWait: a command that was parked, and waits then, is parked for the whole patience again
// when its node dies.
func TestPatienceBeginsAnewWithEachWait(t *testing.T) {
	h := newShell(t)
	p := h.opened(common)
	s := &Session{Owner: noOwner{}}
	h.now = h.patience
	h.send(s, common, 1, 1, request("BLPOP", "k", "0"))
	s.Block(h.now)
	p.Front().since = 1 // it was parked until now
	h.Later(p, 1, nil)
	if !s.Waits() {
		t.Fatal("it does not wait")
	}
	h.Lost(p, ErrNodeGone, h.now)
	h.now += h.patience / 2
	h.RetryTimer(h.now)
	if len(s.parked) != 1 {
		t.Errorf("it is given up %v after its node died, the patience is %v", h.patience/2, h.patience)
	}
}

// TestCancelWait: the node is told once, or as soon as the command waits.
func TestCancelWait(t *testing.T) {
	h := newShell(t)
	p := h.opened(common)
	s := h.waits(p, 7, "BLPOP", "k", "0")
	h.CancelWait(s)
	h.CancelWait(s)
	if got, want := string(p.Queued()), string(member.AppendCancel(nil, 7)); got != want {
		t.Errorf("the node is told %q, want %q", got, want)
	}
	p.Wrote(len(p.Queued()))
	p.Pop()
	early := &Session{Owner: noOwner{}}
	h.send(early, common, 1, 1, request("BLPOP", "k", "0"))
	early.Block(h.now)
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
		s := h.waits(p, 1, strings.Fields("XREAD BLOCK 0 STREAMS {$}$ {$}k {$}$ $ 5 $")...)
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
