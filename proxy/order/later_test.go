package order

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// request builds the bytes of one.
func request(words ...string) []byte {
	var args [][]byte
	for _, w := range words {
		args = append(args, []byte(w))
	}
	return resp.AppendRequest(nil, args...)
}

// send submits a request in a lane. It returns the pipe that was written, nil if it is parked.
func (h *shell) send(s *Session, l Lane, partition uint16, seq uint64, raw []byte) *Pipe {
	h.t.Helper()
	if !h.Enter(s, l) {
		h.t.Fatal("the session must wait")
	}
	p, ok := h.Submit(s, Request{Session: s, Seq: seq, Origin: Origin{Partition: partition}}, raw, h.now)
	if !ok {
		h.t.Fatal("the pipe is full")
	}
	if p != nil {
		p.Wrote(len(p.Queued()))
	}
	h.run()
	return p
}

// opened opens the pipe of a lane, whose node answers later.
func (h *shell) opened(l Lane) *Pipe {
	h.send(&Session{Owner: noOwner{}}, l, 0, 1, request("GET", "x"))
	p := h.Owner(0).Pipe(l)
	p.Pop()
	p.AnswersLater = true
	return p
}

func (h *shell) ticks(n int) {
	for range n {
		h.now += SilenceTick
		h.Tick(h.now)
		h.run()
	}
}

// Tick is needed while something is outstanding, and no longer.
func TestWatch(t *testing.T) {
	h := newShell(t)
	watches := func() (n int) {
		for _, a := range h.Actions() {
			if a.Kind == Watch {
				n++
			}
		}
		return n
	}
	p := h.opened(common)
	if h.Tick(h.now) {
		t.Fatal("everything is answered, and Tick wants to be called again")
	}
	for range 2 {
		h.Tell(p, request("PING"))
		h.Tell(p, request("PING"))
		if n := watches(); n != 1 {
			t.Errorf("%d times told to call Tick, want 1", n)
		}
		p.Wrote(len(p.Queued()))
		for range 2 {
			if !h.Tick(h.now) {
				t.Error("a request is outstanding, and Tick does not want to be called again")
			}
			p.Pop()
		}
		if h.Tick(h.now) {
			t.Error("everything is answered, and Tick wants to be called again")
		}
	}
}

// What is deferred is outstanding, though the requests behind it are answered.
func TestDeferredIsOutstanding(t *testing.T) {
	h := newShell(t)
	p, s := h.opened(large), &Session{Owner: noOwner{}}
	h.send(s, large, 1, 1, request("BITCOUNT", "x"))
	h.send(s, large, 1, 2, request("GET", "x"))
	if !h.Later(p, 7, nil) || p.Front().Seq != 2 {
		t.Fatal("the reply that follows does not belong to the request that follows")
	}
	p.Pop()
	if s.Outstanding() != 1 || p.Inflight() != 1 || h.Owner(0).Inflight() != 1 || h.Enter(s, common) || !h.Enter(s, large) {
		t.Errorf("%d outstanding, %d in flight; want 1, and the session to stay in its lane", s.Outstanding(), p.Inflight())
	}
	if h.send(s, large, 1, 3, request("SET", "x", "1")) == nil {
		t.Error("a deferred read delays what follows")
	}
	for token, want := range map[uint64]bool{6: false, 8: false, 7: true} {
		if r, ok := h.Completed(p, token); ok != want || ok && r.Seq != 1 {
			t.Errorf("token %d completes request %d, %v", token, r.Seq, ok)
		}
	}
	if _, ok := h.Completed(p, 7); ok || s.Outstanding() != 1 || p.Size() > keepPipeBuf {
		t.Errorf("a request is completed twice, or %d are outstanding", s.Outstanding())
	}
	for _, token := range []uint64{7, 0} { // not greater than the newest
		if h.Later(p, token, nil) {
			t.Errorf("token %d was taken behind token 7", token)
		}
	}
	p.Pop()
	if h.Later(p, 8, nil) {
		t.Error("a token was taken without a request")
	}
	h.Tell(p, request("PING"))
	h.run()
	if h.Later(p, 9, nil) {
		t.Error("a request of the pipe's own was deferred")
	}
}

// Nothing is sent for a partition while a write to it is deferred, and all is sent in order when the
// write comes back refused.
func TestDeferredWriteIsNotOvertaken(t *testing.T) {
	h := newShell(t)
	p, s, other := h.opened(common), &Session{Owner: noOwner{}}, &Session{Owner: noOwner{}}
	h.send(s, common, 1, 1, request("APPEND", "x", "1"))
	h.Later(p, 1, nil)
	if h.send(other, common, 2, 1, request("GET", "y")) == nil {
		t.Error("another partition must wait")
	}
	p.Pop()
	if h.send(s, common, 1, 2, request("APPEND", "x", "2")) != nil || h.send(other, common, 1, 2, request("GET", "x")) != nil {
		t.Error("a deferred write is overtaken")
	}
	third := &Session{Owner: noOwner{}}
	h.Enter(third, common)
	whole := Request{Session: third, Part: scattered{new(int)}}
	if h.SubmitTo(h.Owner(0), whole, request("MGET", "a", "b"), nil, h.now) == nil {
		t.Error("a command on other partitions must wait")
	}
	p.Wrote(len(p.Queued()))
	p.Pop()
	if !h.RefusedLater(p, 1, Refusal{Epoch: 1}, h.now) || s.Outstanding() != 2 || h.Parking() != 2 {
		t.Fatalf("%d outstanding, %d sessions park; want 2, 2", s.Outstanding(), h.Parking())
	}
	h.now += time.Second
	h.RetryTimer(h.now)
	h.run()
	var seqs []uint64
	for i := range p.inflight.len() {
		if r := p.inflight.at(i); r.Session == s {
			seqs = append(seqs, r.Seq)
		}
	}
	if !slices.Equal(seqs, []uint64{1, 2}) || h.Parking() != 0 {
		t.Errorf("%v of the session are sent, want both in their order", seqs)
	}
}

// Long writes that a client pipelines follow one another without a pause: each one's completion explains
// why the node has refused the next.
func TestDeferredWritesFollowSoon(t *testing.T) {
	h := newShell(t)
	p, s := h.opened(common), &Session{Owner: noOwner{}}
	for seq := range uint64(12) {
		if h.send(s, common, 1, seq, request("APPEND", "x", "1")) == nil {
			t.Fatalf("write %d waits, though nothing is deferred", seq)
		}
	}
	for token := range uint64(11) {
		if p.Front().Session == nil {
			p.Pop() // the reply to RETRY
		}
		h.Later(p, token+1, nil)
		for p.Front() != nil {
			h.Refused(p, Refusal{Epoch: 1}, h.now)
		}
		h.Completed(p, token+1)
		h.now += 2 * time.Millisecond
		h.RetryTimer(h.now)
		h.run()
		p.Wrote(len(p.Queued()))
		if h.Parking() != 0 {
			t.Fatalf("after %d writes the next one waits for longer", token+1)
		}
	}
}

// A deferred request with keys in several partitions blocks these, though it only reads.
func TestDeferredOfSeveralPartitions(t *testing.T) {
	h := newShell(t)
	p, s := h.opened(common), &Session{Owner: noOwner{}}
	h.Enter(s, common)
	if h.SubmitTo(h.Owner(0), Request{Session: s, Part: scattered{new(int)}}, request("MGET", "a", "b"), nil, h.now) != p {
		t.Fatal("it is parked")
	}
	p.Wrote(len(p.Queued()))
	if !h.Later(p, 1, nil) {
		t.Fatal("out of step")
	}
	for partition, parked := range map[uint16]bool{3: true, 4: true, 5: false} {
		if sent := h.send(&Session{Owner: noOwner{}}, common, partition, 1, request("SET", "x", "1")); (sent == nil) != parked {
			t.Errorf("partition %d: parked %v, want %v", partition, sent == nil, parked)
		}
	}
	if _, ok := h.Completed(p, 1); !ok || p.later.writes != 0 {
		t.Errorf("%d requests block partitions", p.later.writes)
	}
}

// However long the values of a request are, it blocks the partitions of its keys, and waits for writes to these.
func TestDeferredOfLongValues(t *testing.T) {
	h := newShell(t)
	p, s := h.opened(common), &Session{Owner: noOwner{}}
	long := request("MSET", "a", strings.Repeat("v", 2*aheadBytes), "b", "v")
	h.Enter(s, common)
	if h.SubmitTo(h.Owner(0), Request{Session: s, Part: scattered{new(int)}}, long, nil, h.now) != p {
		t.Fatal("it is parked")
	}
	p.Wrote(len(p.Queued()))
	if !h.Later(p, 1, nil) {
		t.Fatal("out of step")
	}
	if h.send(&Session{Owner: noOwner{}}, common, 5, 1, request("SET", "x", "1")) == nil {
		t.Fatal("it blocks a partition in which it has no key")
	}
	if _, ok := h.Completed(p, 1); !ok || !h.Later(p, 2, nil) {
		t.Fatal("out of step")
	}
	other := &Session{Owner: noOwner{}}
	h.Enter(other, common)
	if h.SubmitTo(h.Owner(0), Request{Session: other, Part: scattered{new(int)}}, long, nil, h.now) == nil {
		t.Error("it waits for a write to another partition")
	}
	for _, part := range []Part{longKeyed{}, scattered{new(int)}} {
		_, few := part.(scattered)
		another := &Session{Owner: noOwner{}}
		h.Enter(another, common)
		sent := h.SubmitTo(h.Owner(0), Request{Session: another, Part: part}, long, nil, h.now) != nil
		if sent != few {
			t.Errorf("sent %v beside a deferred write, want %v", sent, few)
		}
	}
}

// longKeyed has keys that are too long to look for their partitions.
type longKeyed struct{ scattered }

func (longKeyed) Partitions([]byte, int) []uint16 { return nil }

// When a node is silent, what it answers later is given up as soon as anything else: on an idle pipe
// it is asked for a sign of life.
func TestDeferredAreGivenUpWithTheirNode(t *testing.T) {
	for _, lane := range []Lane{common, large} {
		h := newShell(t)
		p, reads, writes := h.opened(lane), &Session{Owner: noOwner{}}, &Session{Owner: noOwner{}}
		h.send(reads, lane, 1, 1, request("BITCOUNT", "x"))
		h.send(writes, lane, 2, 1, request("APPEND", "y", "1"))
		if !h.Later(p, 1, nil) || !h.Later(p, 2, nil) {
			t.Fatal("out of step")
		}
		for range 10 { // alive
			h.ticks(3)
			if p.Front() == nil {
				t.Fatal("the node is not asked")
			}
			p.Heard()
			p.Pop()
		}
		h.ticks(5)
		if !p.IsOpen() {
			t.Fatal("given up too early")
		}
		h.ticks(1)
		if h.Parking() != 1 || reads.Outstanding() != 1 || writes.Outstanding() != 0 || !slices.Equal(h.failed, []Outcome{Unknown}) {
			t.Errorf("%d sessions park, outcomes %v; want the read to be parked, and nobody to know about the write", h.Parking(), h.failed)
		}
		if _, ok := h.Completed(p, 1); ok {
			t.Error("a completion of the lost connection was taken")
		}
	}
}

// How long a large pipe may be silent depends on what its node works on.
func TestPatience(t *testing.T) {
	long := request("SET", "x", string(make([]byte, promptRequest)))
	for _, c := range []struct {
		raw    []byte
		later  bool
		prompt bool
	}{
		{request("BITCOUNT", "x"), true, true}, {request("BITCOUNT", "x"), false, false}, {long, true, false},
		{request("DUNLIN", "EXEC", "1", "0", "x"), true, true}, {request("DUNLIN", "EXEC", "1", "0", "x"), false, false},
		{member.AppendRequest(nil, member.VerbEach, make([]byte, 512), []byte("KEYS"), []byte("*")), true, true},
	} {
		h := newShell(t)
		h.Machine.table.Level = ring.OfferLevel
		p := h.opened(large)
		p.AnswersLater, p.offered = c.later, true
		h.send(&Session{Owner: noOwner{}}, large, 1, 1, c.raw)
		h.ticks(6)
		if p.IsOpen() == c.prompt {
			t.Errorf("%.30q, answered later %v: given up at once %v, want %v", c.raw, c.later, !p.IsOpen(), c.prompt)
		}
	}
}

// A pipe that was opened while the cluster had no level offers its proxy's later, once.
func TestOffer(t *testing.T) {
	h := newShell(t)
	p := h.opened(large)
	for _, c := range []struct {
		level   uint8
		answers bool
		offers  int
	}{{0, false, 0}, {ring.OfferLevel - 1, false, 0}, {ring.OfferLevel, true, 0}, {ring.OfferLevel, false, 1}, {ring.OfferLevel, false, 1}} {
		h.Machine.table.Level, p.AnswersLater = c.level, c.answers
		h.ticks(1)
		if p.Inflight() != c.offers {
			t.Errorf("level %d: %d offers, want %d", c.level, p.Inflight(), c.offers)
		}
	}
}

// What nobody waits for any more is canceled, once. It counts until it is complete.
func TestCancel(t *testing.T) {
	h := newShell(t)
	p, gone, stays := h.opened(large), &Session{Owner: noOwner{}}, &Session{Owner: noOwner{}}
	for i, s := range []*Session{gone, stays} {
		h.send(s, large, 1, 1, request("BITCOUNT", "x"))
		if !h.Later(p, uint64(i+1), nil) {
			t.Fatal("out of step")
		}
	}
	gone.Close()
	h.ticks(1)
	if p.inflight.len() != 0 {
		t.Error("something was told to a node of a lower level")
	}
	h.Machine.table.Level = ring.OfferLevel
	want := member.AppendCancel(nil, 1)
	for range 2 {
		p.Heard()
		h.ticks(1)
		if got := p.buf[p.acked-p.base:]; string(got) != string(want) {
			t.Errorf("the node is told %q, want %q", got, want)
		}
	}
	p.Pop()
	if p.Inflight() != 2 {
		t.Errorf("%d requests are outstanding, want 2", p.Inflight())
	}
	if _, ok := h.Completed(p, 1); !ok || p.Inflight() != 1 {
		t.Error("the canceled request was not completed")
	}
}

// What a client that leaves has asked for is canceled before anything that it asks for over another connection.
func TestCancelAtOnce(t *testing.T) {
	h := newShell(t)
	p, s := h.opened(large), &Session{Owner: noOwner{}}
	h.Machine.table.Level = ring.OfferLevel
	h.send(s, large, 1, 1, request("BITCOUNT", "x"))
	if !h.Later(p, 1, nil) {
		t.Fatal("out of step")
	}
	s.lane = large
	s.Close()
	h.CancelDeferred(s)
	if got, want := p.buf[p.acked-p.base:], member.AppendCancel(nil, 1); string(got) != string(want) {
		t.Errorf("the node is told %q, want %q", got, want)
	}
}

// Deferred requests count in the bounds of their pipe.
func TestDeferredAreBounded(t *testing.T) {
	h := newShell(t)
	p, token := h.opened(common), uint64(0)
	later := func(raw []byte) {
		token++
		h.send(&Session{Owner: noOwner{}}, common, 1, 1, raw)
		if !h.Later(p, token, nil) {
			t.Fatal("out of step")
		}
	}
	get := request("GET", "x")
	for range member.MaxLater {
		if p.IsFull(len(get)) {
			t.Fatalf("full with %d requests", token)
		}
		later(get)
	}
	if !p.IsFull(len(get)) || p.HasRoom() {
		t.Error("there is no bound of deferred requests")
	}
	for token := range uint64(member.MaxLater/2 + 1) {
		h.Completed(p, token+1)
	}
	if p.IsFull(len(get)) || !p.HasRoom() || p.later.bytes != len(get)*(member.MaxLater/2-1) {
		t.Errorf("no room, or %d bytes, when half of them are complete", p.later.bytes)
	}
	for !p.IsFull(HugeRequest) {
		later(request("GET", string(make([]byte, HugeRequest-100))))
	}
	if len(p.later.list) > member.MaxLater/2+10 || p.Size() > maxPipeBytes+keepPipeBuf {
		t.Errorf("%d deferred requests take %d bytes", len(p.later.list), p.Size())
	}
}

// Nothing waits for a request without keys because of a partition, and it waits for nothing.
func TestKeylessConcernsNoPartition(t *testing.T) {
	h := newShell(t)
	p := h.opened(common)
	keyless := func(seq uint64) *Session {
		s := &Session{Owner: noOwner{}}
		at := h.Anywhere()
		at.Partition = 1
		h.Enter(s, common)
		if sent, ok := h.Submit(s, Request{Session: s, Seq: seq, Origin: at}, request("EVAL", "return 1", "0"), h.now); sent != p || !ok {
			t.Fatal("a request without keys is parked")
		}
		p.Wrote(len(p.Queued()))
		return s
	}
	keyless(1)
	if !h.Later(p, 1, nil) {
		t.Fatal("out of step")
	}
	key := &Session{Owner: noOwner{}}
	if h.send(key, common, 1, 1, request("APPEND", "x", "1")) == nil {
		t.Error("a write waits for a deferred request without keys")
	}
	h.Later(p, 2, nil)
	keyless(1) // beside the deferred write
	h.Refused(p, Refusal{}, h.now)
	if h.send(&Session{Owner: noOwner{}}, common, 2, 1, request("GET", "y")) == nil || p.latch.refuses(1) {
		t.Error("the refusal of a request without keys latches a partition")
	}
	p.latch.on = true
	p.latch.partitions.Add(1)
	keyless(1)

	seen := make(map[uint16]bool)
	for range ring.Partitions {
		seen[h.Anywhere().Partition] = true
	}
	if len(seen) != ring.Partitions {
		t.Errorf("requests without keys go by %d partitions", len(seen))
	}
}
