package order

import (
	"slices"
	"testing"
	"time"
)

// The pause before a RETRY grows while a node keeps refusing under one table, and is short again
// under the next. Nodes that come and go bring a table every quarter of a second, and each
// take-over ends within milliseconds.
func TestPausesBeginAnewWithATable(t *testing.T) {
	var l latch
	var r Request
	refused := func(epoch uint64, want int) {
		t.Helper()
		l.add(&r, nil, 0, epoch)
		if l.rounds != want {
			t.Errorf("%d rounds after a refusal of epoch %d, want %d", l.rounds, epoch, want)
		}
		l.rounds++ // as RETRY does
	}
	refused(7, 0)
	refused(7, 1)
	refused(7, 2)
	refused(6, 3) // by a node that has fallen behind
	refused(8, 0)
	refused(8, 1)
}

// A node may refuse a request ahead of RETRY, for a partition of whose latch the proxy does not
// know yet. Requests that the session sends behind RETRY, when the node has cleared the latch, do
// not overtake it.
func TestRetryIsNotOvertaken(t *testing.T) {
	h := newShell(t)
	a, c := &Session{Owner: noOwner{}}, &Session{Owner: noOwner{}}
	send := func(s *Session, partition uint16, seq uint64) {
		t.Helper()
		if !h.Enter(s, common) {
			t.Fatal("the session must wait")
		}
		p, ok := h.Submit(s, Request{Session: s, Seq: seq, Origin: Origin{Partition: partition}}, []byte("GET x\r\n"), h.now)
		if !ok {
			t.Fatal("the pipe is full")
		}
		if p != nil {
			p.Wrote(len(p.Queued()))
		}
		h.run()
	}
	inflight := func(p *Pipe) (seqs []uint64) {
		for i := range p.inflight.len() {
			if r := p.inflight.at(i); r.Session == c {
				seqs = append(seqs, r.Seq)
			}
		}
		return seqs
	}
	send(a, 1, 1)
	p := h.Owner(1).Pipe(common)
	h.Refused(p, Refusal{Epoch: 1}, h.now)
	send(c, 2, 1) // will be refused, because the node gains partition 2 too
	h.now += time.Second
	h.RetryTimer(h.now) // sends RETRY, and the first request again
	h.run()
	if p.Inflight() != 3 {
		t.Fatalf("%d requests are on their way, want 3", p.Inflight())
	}
	send(c, 2, 2)
	send(&Session{Owner: noOwner{}}, 2, 1) // this session has nothing on its way
	if h.Parking() != 1 {
		t.Errorf("%d sessions park requests, want 1", h.Parking())
	}
	if got := inflight(p); !slices.Equal(got, []uint64{1}) {
		t.Errorf("%v of the session are on their way behind RETRY, want the one ahead of it only", got)
	}
	h.Refused(p, Refusal{Epoch: 1}, h.now)
	p.Pop() // RETRY
	p.Pop() // the first request
	p.Pop() // the other session's request
	h.now += time.Second
	h.RetryTimer(h.now)
	h.run()
	if got := inflight(p); !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("%v of the session are sent, want both in their order", got)
	}
}

// TestPausesBeginAnewBehindProgress: a client pipelines commands each of which keeps the node from
// executing the next one for a moment. However many they are, each waits for a short pause only.
func TestPausesBeginAnewBehindProgress(t *testing.T) {
	h := newShell(t)
	s := &Session{Owner: noOwner{}}
	h.submit(s) // opens the pipe
	p := h.Owner(0).Pipe(common)
	const commands = 30
	for range commands - 1 {
		h.submit(s)
	}
	begin := h.now
	for done := 0; done < commands; h.now += retryFirst {
		h.RetryTimer(h.now)
		h.run()
		if p.Inflight() == 0 {
			continue // the pause is not over
		}
		if done > 0 {
			p.Pop() // RETRY
		}
		p.Pop()
		for done++; p.Inflight() > 0; {
			h.Refused(p, Refusal{Epoch: 1}, h.now)
		}
	}
	if took := h.now - begin; took > 4*commands*retryFirst {
		t.Errorf("%d commands take %v of pauses, want at most %v", commands, took, 4*commands*retryFirst)
	}
}

// scattered is the Part of a request with keys in the partitions 3 and 4. It counts how often the
// Machine asks for them.
type scattered struct{ asked *int }

func (scattered) Done(int32, []byte) {}

func (scattered) Divide(int32, []byte, func(uint16) *Node) []Piece { return nil }

func (s scattered) Partitions([]byte, int) []uint16 {
	*s.asked++
	return []uint16{3, 4}
}

// What RETRY looks at has a bound: beyond it, all partitions count.
func TestRetryParsesABoundedAmount(t *testing.T) {
	for _, test := range []struct {
		requests, size, asked int
		all                   bool
	}{{3, 100, 3, false}, {1000, 1 << 10, aheadBytes >> 10, true}} {
		h := newShell(t)
		s := &Session{Owner: noOwner{}}
		h.submit(s) // opens the pipe
		p, asked := h.Owner(0).Pipe(common), 0
		for range test.requests {
			h.Submit(s, Request{Session: s, Part: scattered{&asked}}, make([]byte, test.size), h.now)
		}
		asked = 0
		p.noteAhead()
		if asked != test.asked || !p.latch.ahead.Has(3) || p.latch.ahead.Has(5) != test.all {
			t.Errorf("%d requests of %d bytes: %d were looked at, want %d; all partitions %v, want %v",
				test.requests, test.size, asked, test.asked, p.latch.ahead.Has(5), test.all)
		}
	}
}
