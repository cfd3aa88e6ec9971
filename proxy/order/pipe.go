package order

import (
	"errors"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

const (
	// HugeRequest is from how many bytes on a request is not copied but given away, and travels on
	// a pipe of its own kind.
	HugeRequest = 1 << 20

	maxPipeRequests = 32 << 10 // requests outstanding on one pipe
	maxPipeBytes    = 8 << 20  // their bytes; an empty pipe takes one larger request
	keepPipeBuf     = 1 << 20  // an empty pipe gives a larger buffer back

	// DialTimeout is how long the shell may take to connect a pipe.
	DialTimeout = time.Second
	openTicks   = 10 // a handshake takes at most that many silence ticks
	minBackoff  = 10 * time.Millisecond
	maxBackoff  = 500 * time.Millisecond

	// LargePatience is how many times longer a long request may keep a node silent than a small one,
	// and whatever is slow if the node does not answer later.
	LargePatience = 20
)

// Why a pipe is lost, as the Machine itself finds out.
var (
	ErrSilent   = errors.New("node sent nothing for too long with commands outstanding")
	ErrNodeGone = errors.New("node left the cluster")
)

type pipeState uint8

const (
	closed  pipeState = iota // no connection; opens on demand, not before retryAt
	opening                  // the shell connects and introduces itself
	open
)

// Pipe is one worker's connection of one lane to one node: the requests that it has taken and the
// bytes of those that are not answered.
//
// Stream offsets count the bytes of requests since the pipe was opened: base ≤ acked ≤ sent ≤ tail.
//
//	buf  [base … acked)  answered, dropped when room is needed
//	     [acked … sent)  written, no reply yet: kept, to be sent again when the pipe breaks
//	     [sent … tail)   queued
type Pipe struct {
	Node *Node
	Lane Lane
	// Shell is the shell's own side of the pipe. The Machine does not look at it.
	Shell any
	// AnswersLater says that the node answers later what takes long. The shell sets it before
	// Opened, or when the node answers LEVEL.
	AnswersLater bool

	state        pipeState
	attempt      uint64 // the number of the newest connection, to tell late events of older ones
	backoff      time.Duration
	retryAt      time.Duration // before which a closed pipe is not opened again
	failingSince time.Duration // the first of the attempts in a row that failed; 0: none
	silent       int           // ticks since the last byte, with requests outstanding
	probed       bool          // the node was asked for a sign of life since
	offered      bool          // the node was told this proxy's level behind the greeting

	buf               []byte
	body              Body   // not nil: has the memory of buf, which is one long request
	lead              []byte // what is to be written before that: what is left of the name of its database
	base, acked, sent uint64
	inflight          fifo
	unsent            int // requests of which nothing was written
	latch             latch
	later             deferrals
	counted           int  // bytes of its buffers that Room knows of
	strays            bool // of a lost connection, and no newer one was acknowledged since
}

// IsOpen reports whether the pipe takes requests.
func (p *Pipe) IsOpen() bool { return p.state == open }

// IsOpening reports whether the shell was told to connect the pipe and has not done so yet.
func (p *Pipe) IsOpening() bool { return p.state == opening }

// IsFailing reports whether the pipe is closed and the last attempt to open it has failed.
func (p *Pipe) IsFailing() bool { return p.state == closed && p.failingSince > 0 }

// Attempt returns the number of the pipe's newest connection. The number also changes when that is
// lost.
func (p *Pipe) Attempt() uint64 { return p.attempt }

// Inflight returns the number of requests without a reply.
func (p *Pipe) Inflight() int { return p.inflight.len() + len(p.later.list) + p.later.waits.Len() }

// Size returns the bytes of memory that the pipe keeps for its requests. A request that was not
// copied is not included.
func (p *Pipe) Size() int {
	if p.body != nil {
		return p.later.bytes
	}
	return cap(p.buf) + p.later.bytes
}

func (p *Pipe) tail() uint64 { return p.base + uint64(len(p.buf)) }

// full reports whether a request of n bytes must wait for room.
func (p *Pipe) full(n int) bool { return p.Inflight() > 0 && p.refuses(n) }

func (p *Pipe) refuses(n int) bool {
	return p.inflight.len() >= maxPipeRequests || p.kept()+n > maxPipeBytes || n > HugeRequest || p.body != nil ||
		len(p.later.list) >= member.MaxLater || !p.fits(n) && p.crowded(n)
}

// fits reports whether the buffer has room for n more bytes as it is.
func (p *Pipe) fits(n int) bool { return len(p.buf)+n <= cap(p.buf) }

// kept returns the bytes of the outstanding requests that were copied.
func (p *Pipe) kept() int { return int(p.tail()-p.acked) + p.later.bytes }

// IsFull reports whether the pipe is open and cannot take a request of n bytes now.
func (p *Pipe) IsFull(n int) bool { return p.state == open && p.full(n) }

// HasRoom reports whether sessions that found the pipe full may try again.
func (p *Pipe) HasRoom() bool {
	return p.inflight.len() < maxPipeRequests/2 && p.kept() < maxPipeBytes/2 && len(p.later.list) < member.MaxLater/2 &&
		(p.inflight.len() == 0 || p.Node.room == nil || p.Node.room.Free(HugeRequest))
}

// send queues a request whose bytes are raw. It copies them, unless there is a body, which it takes
// over. The pipe must be open and not full.
func (m *Machine) send(p *Pipe, r *Request, raw []byte, body Body) {
	if r.Session != nil && r.Session.Actor != 0 && body == nil {
		var room [64]byte
		m.send(p, &Request{}, member.AppendAs(room[:0], r.Session.Actor), nil)
	}
	switch {
	case body != nil:
		p.buf, p.body, p.lead = raw[:len(raw):len(raw)], body, member.AppendDatabase(nil, r.Database)
		p.settle()
	case p.fits(len(raw) + member.DatabaseRoom):
		p.buf = append(member.AppendDatabase(p.buf, r.Database), raw...)
	default:
		p.makeRoom()
		p.buf = append(member.AppendDatabase(p.buf, r.Database), raw...)
		p.settle()
	}
	r.end = p.tail()
	p.inflight.push(r)
	p.unsent++
	m.Counts.Requests++
	m.watch()
}

// makeRoom drops answered bytes from the front instead of growing, when they are at least half of
// the buffer: each byte is then moved at most once on average.
func (p *Pipe) makeRoom() {
	dead := int(p.acked - p.base)
	if dead < len(p.buf)/2 {
		return
	}
	p.buf = p.buf[:copy(p.buf, p.buf[dead:])]
	p.base = p.acked
}

// Queued returns the bytes that the shell is to write next: a view, valid until the next event of
// the Machine, and empty if there are none. More may be queued behind them.
func (p *Pipe) Queued() []byte {
	if len(p.lead) > 0 {
		return p.lead
	}
	return p.buf[p.sent-p.base:]
}

// IsLong reports whether the pipe carries one long request that was not copied.
func (p *Pipe) IsLong() bool { return p.body != nil }

// MayWait reports whether a batch can wait for the next reply. One must come if only whole requests
// were written and some of them have no reply.
func (p *Pipe) MayWait() bool { return p.sent > p.acked && p.inflight.endsAt(p.sent) }

// Wrote is the event that the shell has written the first n bytes of Queued.
func (p *Pipe) Wrote(n int) {
	if len(p.lead) > 0 {
		p.lead = p.lead[n:]
	} else {
		p.sent += uint64(n)
	}
	if n > 0 && p.Lane.Kind != member.Common && !p.probed {
		p.silent = 0
	}
}

// TakeUnsent returns the number of requests that were queued since the last call.
func (p *Pipe) TakeUnsent() (n int) {
	n, p.unsent = p.unsent, 0
	return n
}

// Heard is the event that the node has sent something.
func (p *Pipe) Heard() { p.silent, p.probed = 0, false }

// Front returns the request to which the next reply belongs, valid until Pop or the next event of
// the Machine. It returns nil if no written request waits for a reply: the node must not have sent
// one.
func (p *Pipe) Front() *Request {
	if p.inflight.len() == 0 {
		return nil
	}
	if r := p.inflight.front(); r.end <= p.sent {
		return r
	}
	return nil // an answer to a command that was not sent
}

// Pop removes the front request, whose reply has come, and frees its bytes.
func (p *Pipe) Pop() {
	r := p.inflight.front()
	if s := r.Session; s != nil && !r.asks {
		s.remote--
	}
	if r.since != 0 {
		p.latch.progress = true
	}
	p.drop(r)
}

func (p *Pipe) drop(r *Request) {
	p.acked = r.end
	p.inflight.pop()
	if p.acked == p.tail() {
		p.base = p.acked
		p.buf = p.buf[:0]
		if p.body != nil || cap(p.buf) > smallBuffer {
			p.shrink()
		}
	}
}

// shrink gives back what an empty pipe does not keep.
func (p *Pipe) shrink() {
	release(p.takeBody())
	if !p.keepsBuffer() {
		p.buf = nil
	}
	p.settle()
}

// takeBody hands the memory of the pipe's only request over to the caller. It returns nil if the
// request was copied.
func (p *Pipe) takeBody() Body {
	body := p.body
	p.body = nil
	return body
}

// open has the shell connect a closed pipe, unless an attempt failed a moment ago.
func (m *Machine) open(p *Pipe, now time.Duration) {
	if p.state != closed || now < p.retryAt || p.Node.gone {
		return
	}
	if !p.failing(now) {
		p.failingSince = now
	}
	p.state, p.silent, p.probed = opening, 0, false
	p.attempt++
	m.act(Action{Kind: Dial, Pipe: p})
	m.watch()
}

// Connected is the event that the connection of that attempt stands. The shell introduces it to the
// node with the generation. If ok is false, it came too late and must be closed. Generations grow
// with every connection of the worker, so that the node can throw away what it has not executed yet
// of an older one.
func (m *Machine) Connected(p *Pipe, attempt uint64) (generation uint64, ok bool) {
	if p.attempt != attempt || p.state != opening {
		return 0, false
	}
	m.generation++
	return m.generation, true
}

// Opened is the event that the node has acknowledged the pipe's generation and takes requests.
func (m *Machine) Opened(p *Pipe, now time.Duration) {
	p.state, p.strays = open, false
	p.backoff, p.retryAt, p.failingSince = 0, 0, 0
	m.retryParked(now)
}

// Lost is the event that the pipe's connection is gone, or must be closed. It decides about
// everything in flight: a request that no node can have seen, or that may be executed twice, is
// parked to be sent again. The rest fails, because nobody knows whether it was executed. So does a
// write that a later one of its session may have replaced (markReplaced). Of blocking commands that waited, few come
// back at once, and the others in turns.
func (m *Machine) Lost(p *Pipe, why error, now time.Duration) {
	if p.state == closed {
		return
	}
	m.act(Action{Kind: Close, Pipe: p, Err: why, Inflight: p.Inflight(), Notable: (p.state == open || p.backoff == 0) && !p.Node.gone})
	p.state = closed
	p.attempt++
	p.latch = latch{}
	p.backoff = min(max(2*p.backoff, minBackoff), maxBackoff)
	p.retryAt = now + p.backoff

	since := p.Node.failingSince(now)
	buf, body, base, sent, begin := p.buf, p.takeBody(), p.base, p.sent, p.acked
	queue := p.inflight
	list, waits := p.later.list, p.later.waits
	p.inflight, p.unsent, p.later, p.AnswersLater, p.offered = fifo{}, 0, deferrals{}, false, false
	p.buf, p.lead, p.base, p.acked, p.sent = nil, nil, 0, 0, 0
	p.settle()
	if body == nil {
		m.markReplaced(&queue, buf, base, begin, sent)
	}
	m.returnDeferred(p, list, since, now)
	if waits.Len() > 0 {
		m.returning = append(m.returning, brokenWaits{pipe: p, waits: waits})
		if !m.posted {
			m.returnSome(now)
		}
	}
	for queue.len() > 0 {
		r := *queue.front()
		queue.pop()
		raw := r.bare(buf[begin-base:r.end-base], body == nil)
		if r.since == 0 {
			r.since = since
		}
		if r.Session != nil {
			m.returned(&r, raw, body, p, begin < sent, now)
		}
		begin = r.end
	}
}

// outOfReach opens the pipe if it is closed. It returns the time since when the node has been out
// of reach, 0 if the pipe is open.
func (m *Machine) outOfReach(p *Pipe, now time.Duration) time.Duration {
	if p.state == open {
		return 0
	}
	m.open(p, now)
	return p.Node.failingSince(now)
}

// failing reports whether attempts to open the pipe keep failing. After a while without an attempt,
// a new series begins.
func (p *Pipe) failing(now time.Duration) bool {
	return p.failingSince != 0 && (p.state != closed || now-p.retryAt <= DialTimeout)
}

// tick counts a tick of silence, and gives the pipe up after too many.
func (m *Machine) tick(p *Pipe, now time.Duration) {
	m.offer(p)
	m.cancel(p)
	answered := p.sent == p.acked && p.state != opening
	if answered && len(p.later.list)+p.later.waits.Len() == 0 {
		p.silent = 0
		return
	}
	p.silent++
	limit := m.silentTicks
	switch {
	case p.state == opening:
		limit = openTicks
	case answered:
		m.probe(p)
	case p.Lane.Kind != member.Common && p.silent > limit && !m.prompt(p):
		limit *= m.patienceWith(p, now)
	}
	if p.silent > limit {
		m.Lost(p, ErrSilent, now)
	}
}

// patienceWith returns how many times longer than a common pipe this one waits for a silent node:
// once if the node is out of reach. To find that out, it sends a PING on an idle common pipe.
func (m *Machine) patienceWith(p *Pipe, now time.Duration) int {
	asked := p.Node.Pipe(Lane{Kind: member.Common, Version: p.Lane.Version})
	switch {
	case asked.state == closed:
		m.open(asked, now)
	case asked.state == open && asked.inflight.len() == 0:
		m.Tell(asked, resp.AppendRequest(nil, []byte("PING")))
	}
	if asked.state != open && asked.failing(now) && now-asked.failingSince > DialTimeout {
		return 1
	}
	return LargePatience
}

// Tell sends a request of the pipe's own, whose reply does not matter. The pipe must be open. Tell
// copies raw.
func (m *Machine) Tell(p *Pipe, raw []byte) { m.tellOf(0, p, raw) }

// tellOf is Tell for a request about a database.
func (m *Machine) tellOf(database uint8, p *Pipe, raw []byte) {
	m.send(p, &Request{Origin: Origin{Database: database}}, raw, nil)
	m.act(Action{Kind: Write, Pipe: p})
}

// Ask sends a question of an Asker at once, or not at all. If ok is false, the pipe is full, closed
// (it is then being opened), waits for RETRY, or must not be used by this session yet. Ask copies
// raw.
func (m *Machine) Ask(p *Pipe, r Request, raw []byte, now time.Duration) (ok bool) {
	if p.state != open || len(r.Session.strays) > 0 && m.mayOvertakeStrays(r.Session, p, now) || p.full(len(raw)) || !m.unlatch(p, now) {
		m.open(p, now)
		return false
	}
	r.asks = true
	m.send(p, &r, raw, nil)
	m.act(Action{Kind: Write, Pipe: p})
	return true
}
