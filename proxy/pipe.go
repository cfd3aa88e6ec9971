package proxy

import (
	"errors"
	"fmt"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

const (
	maxPipeRequests = 32 << 10  // requests outstanding on one pipe
	maxPipeBytes    = 8 << 20   // their bytes; one larger request is taken by an empty pipe
	coalesceBytes   = 16 << 10  // a smaller batch waits for a reply while written requests are outstanding
	keepPipeBuf     = 1 << 20   // an empty pipe gives a larger buffer back
	bodyTurn        = 128 << 10 // of a long request in one iteration

	dialTimeout = time.Second
	openTicks   = 10 // a handshake takes at most that many silence ticks
	minBackoff  = 10 * time.Millisecond
	maxBackoff  = 500 * time.Millisecond
)

// lane is the way that a session's outstanding requests travel; see "Order" in doc.go.
type lane struct {
	kind    member.Kind
	version resp.Version
}

type pipeState uint8

const (
	pipeClosed     pipeState = iota // no connection; opens on demand, not before retryAt
	pipeDialing                     // connecting
	pipeChallenged                  // waiting for the nonce
	pipeOpening                     // waiting for the node to accept the pipe
	pipeOpen
)

var (
	errSilent     = errors.New("node sent nothing for too long with commands outstanding")
	errOutOfStep  = errors.New("node sent a malformed or a surplus reply")
	errPeerGone   = errors.New("node left the cluster")
	errPipeClosed = errors.New("pipe closed")
)

// pipe is one worker's connection of one lane to one node.
//
// Stream offsets count the bytes of requests since the pipe was opened: base ≤ acked ≤ sent ≤ tail.
//
//	buf  [base … acked)  answered, dropped when room is needed
//	     [acked … sent)  written, no reply yet: kept, to be sent again when the pipe breaks
//	     [sent … tail)   queued
type pipe struct {
	w    *worker
	peer *peer
	lane lane

	state        pipeState
	conn         *netloop.Conn // nil while closed or dialing
	attempt      uint64        // the number of the newest dial, to tell late callbacks of older ones
	backoff      time.Duration
	retryAt      time.Duration // loop time before which a closed pipe is not opened again
	failingSince time.Duration // the first of the attempts in a row that failed; 0: none
	scan         resp.Scanner

	buf               []byte
	body              *netloop.Buffer // not nil: has the memory of buf, which is one long request
	base, acked, sent uint64
	inflight          fifo
	heard             bool // a reply came since the last flush: coalescing may send
	unsent            int  // requests of which nothing was written
	silent            int  // silence ticks since the last byte, with requests outstanding
	waiters           []*client
	latch             latch
}

// request is one command, or a part of one, that a pipe has taken and not answered yet.
type request struct {
	client *client   // whose command; nil for the pipe's own
	part   collector // gathers the parts of a command that was split; nil for a whole command
	seq    uint64    // the command's number in its session
	end    uint64    // stream offset one past its last byte
	id     int32     // which part
	origin
}

// origin is what a request keeps while it is sent again.
type origin struct {
	partition uint16
	hops      uint8         // -MOVED replies followed so far
	begun     bool          // a pipe broke after it had begun to be written: it may have been executed
	since     time.Duration // when it was first held; 0 if never
}

func (p *pipe) tail() uint64 { return p.base + uint64(len(p.buf)) }

// full reports whether a request of n bytes must wait.
func (p *pipe) full(n int) bool {
	if p.inflight.len() == 0 {
		return false
	}
	return p.inflight.len() >= maxPipeRequests || int(p.tail()-p.acked)+n > maxPipeBytes || n > hugeRequest || p.body != nil
}

// send queues a request whose bytes are raw: they are copied, unless there is a body, which is the pipe's from now on. The
// pipe must be open and not full.
func (p *pipe) send(r request, raw []byte, body *netloop.Buffer) {
	if body != nil {
		p.buf, p.body = raw[:len(raw):len(raw)], body
		p.push(r)
		return
	}
	p.makeRoom(len(raw))
	p.buf = append(p.buf, raw...)
	p.push(r)
}

// push completes a request whose bytes were just appended to buf.
func (p *pipe) push(r request) {
	r.end = p.tail()
	p.inflight.push(r)
	p.w.stats.PipeRequests++
	p.unsent++
	p.conn.MarkDirty()
}

// makeRoom drops answered bytes from the front instead of growing, when they are at least half of the buffer: each byte
// is then moved at most once on average.
func (p *pipe) makeRoom(n int) {
	dead := int(p.acked - p.base)
	if len(p.buf)+n <= cap(p.buf) || dead < len(p.buf)/2 {
		return
	}
	p.buf = p.buf[:copy(p.buf, p.buf[dead:])]
	p.base = p.acked
}

// OnFlush writes what is queued. A small batch waits while wholly written requests are outstanding and no reply has come
// since: it then goes out together with what arrives until the next reply. No timer is needed, since a reply must come.
// A request whose first bytes were written is never held back.
func (p *pipe) OnFlush(c *netloop.Conn) {
	if p.body == nil { // which counts already
		c.SetOther(cap(p.buf))
	}
	queued := int(p.tail() - p.sent)
	if queued == 0 || p.state != pipeOpen {
		return
	}
	if !p.heard && queued < coalesceBytes && p.sent > p.acked && p.inflight.endsAt(p.sent) {
		return
	}
	p.heard = false
	p.w.stats.PipeFlushes++
	p.countBatch()
	batch := p.buf[p.sent-p.base:]
	if p.body != nil {
		batch = batch[:min(len(batch), bodyTurn)]
	}
	n, err := c.TryWrite(batch)
	p.sent += uint64(n)
	p.w.stats.PipeBytesOut += uint64(n)
	if n > 0 && p.lane.kind != member.Common {
		p.silent = 0
	}
	switch {
	case err != nil:
		p.fail(fmt.Errorf("cannot write to node: %w", err))
	case n == len(batch) && p.sent < p.tail():
		c.MarkDirty()
	}
}

// OnData pairs replies with the requests at the front of the FIFO.
func (p *pipe) OnData(c *netloop.Conn, in []byte) int {
	p.silent = 0
	off := 0
	for off < len(in) && p.conn == c {
		switch p.scan.Scan(in[off:]) {
		case resp.NeedMore:
			return off
		case resp.Malformed:
			p.fail(errOutOfStep)
			return len(in)
		}
		n := p.scan.Len()
		p.reply(in[off : off+n])
		off += n
	}
	if p.sent < p.tail() && p.conn == c {
		c.MarkDirty()
	}
	return off
}

func (p *pipe) reply(reply []byte) {
	if p.state != pipeOpen {
		p.greeted(reply)
		return
	}
	if p.inflight.len() == 0 || reply[0] == '>' { // nobody has asked for pushes: see internal/member
		p.fail(errOutOfStep)
		return
	}
	r := p.inflight.front()
	if r.end > p.sent {
		p.fail(errOutOfStep) // an answer to a command that was not sent
		return
	}
	p.heard = true
	if reply[0] == '-' && r.client != nil && p.instead(r, reply) {
		return
	}
	client, part, seq, id := r.client, r.part, r.seq, r.id
	p.pop(r)
	switch {
	case part != nil:
		part.partDone(id, reply)
	case client != nil:
		client.deliver(seq, reply)
	}
}

// pop takes the front request off and frees its bytes.
func (p *pipe) pop(r *request) {
	p.acked = r.end
	p.inflight.pop()
	if p.acked == p.tail() {
		p.base = p.acked
		p.buf = p.buf[:0]
		if cap(p.buf) > keepPipeBuf {
			p.buf = nil
		}
		p.takeBody().Release()
	}
	if len(p.waiters) > 0 && p.inflight.len() < maxPipeRequests/2 && int(p.tail()-p.acked) < maxPipeBytes/2 {
		p.wakeWaiters()
	}
}

// takeBody is what has the memory of the only request's bytes, now the caller's; nil if that is the pipe's buffer.
func (p *pipe) takeBody() *netloop.Buffer {
	body := p.body
	p.body = nil
	return body
}

func (p *pipe) wakeWaiters() {
	for i, s := range p.waiters {
		if s.waitsFor == p {
			s.waitsFor = nil
		}
		s.resume()
		p.waiters[i] = nil
	}
	p.waiters = p.waiters[:0]
}

// instead handles what a node answers in the place of a reply. It reports whether this was such an answer; then it has
// popped the request.
func (p *pipe) instead(r *request, reply []byte) bool {
	what := member.Classify(reply)
	if what.Refused() {
		p.refusal(r, what, reply)
		p.pop(r)
		return true
	}
	if what != member.LargeReply || p.lane.kind != member.Common {
		return false
	}
	ticket, size, ok := member.ParseTicket(reply)
	if !ok {
		return false
	}
	asked := *r
	p.pop(r)
	p.fetch(asked, ticket, size)
	return true
}

// refusal handles the answers by which a node says that it did not execute the command.
func (p *pipe) refusal(r *request, why member.Instead, reply []byte) {
	raw := p.buf[p.acked-p.base : r.end-p.base]
	if p.latch.add(r, raw, p.tail(), member.WaitEpoch(reply)) {
		p.w.retrySoon()
	}
	p.w.stats.Refusals++
	if why == member.Moved {
		p.w.proxy.moved()
		p.w.follow(r, reply)
	}
	p.w.undone(*r, raw, p.takeBody())
}

// OnClose is called by the loop once the socket is gone.
func (p *pipe) OnClose(c *netloop.Conn, err error) {
	if p.conn != c {
		return
	}
	if err == nil {
		err = errPipeClosed
	}
	p.fail(err)
}

// fail closes the pipe and decides about everything in flight: what no node can have seen, or what may be executed twice,
// is held to be sent again; the rest fails, since nobody knows whether it was executed.
func (p *pipe) fail(err error) {
	if p.state == pipeClosed {
		return
	}
	wasOpen := p.state == pipeOpen
	p.state = pipeClosed
	p.attempt++
	if c := p.conn; c != nil {
		p.conn = nil
		c.Close(err)
	}
	p.w.noteBroken(p, err, wasOpen)
	p.latch = latch{}
	p.backoff = min(max(2*p.backoff, minBackoff), maxBackoff)
	p.retryAt = p.w.loop.Now() + p.backoff

	since := p.peer.failingSince()
	buf, body, base, sent, begin := p.buf, p.takeBody(), p.base, p.sent, p.acked
	queue := p.inflight
	p.inflight, p.unsent = fifo{}, 0
	p.buf, p.base, p.acked, p.sent = nil, 0, 0, 0
	p.scan.Reset()
	for queue.len() > 0 {
		r := *queue.front()
		queue.pop()
		raw := buf[begin-base : r.end-base]
		if r.since == 0 {
			r.since = since
		}
		if r.client != nil {
			p.w.broken(r, raw, body, begin < sent)
		}
		begin = r.end
	}
	p.wakeWaiters()
}

// tick is called every silence tick. Counting ticks rather than reading a clock means that a proxy that was itself held
// up does not blame the node for it.
func (p *pipe) tick(limit int) {
	waiting := p.sent > p.acked || (p.state != pipeOpen && p.state != pipeClosed)
	if !waiting {
		p.silent = 0
		return
	}
	p.silent++
	switch {
	case p.state != pipeOpen:
		limit = openTicks
	case p.lane.kind != member.Common && p.silent > limit:
		limit *= p.patience()
	}
	if p.silent > limit {
		p.fail(errSilent)
	}
}

// largePatience: a large or slow command may keep a node silent that many times longer than a small one.
const largePatience = 20

// patience is how many times longer than the common pipe this one waits for a silent node that can be reached. A common pipe
// that is not used is asked.
func (p *pipe) patience() int {
	asked := p.peer.pipe(lane{kind: member.Common, version: p.lane.version})
	asked.probe()
	now := p.w.loop.Now()
	if asked.state != pipeOpen && asked.failing(now) && now-asked.failingSince > dialTimeout {
		return 1
	}
	return largePatience
}
